"""Two processes on this machine, over gloo."""

from __future__ import annotations

import contextlib
import multiprocessing as python_multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import multiprocessing

from ppo import checkpoint
from ppo.config import ConfigError, TrainConfig
from ppo.distributed import World
from ppo.normalize import RunningNormalizer, standardize
from ppo.trainer import Trainer
from tests.ppo.envs import Cartpole, Pendulum
from tests.ppo.settings import make_config

REPOSITORY = Path(__file__).parents[2]


def _enter(rank: int, port: int, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE="2")
    world = World.join("cpu")
    assert (world.rank, world.size) == (rank, 2)
    function(world, *arguments)
    world.leave()


def run_two(function: Callable[..., None], *arguments: Any) -> None:
    """Run function(world, *arguments) in two processes; what one of them raises is raised here."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    python_multiprocessing.set_forkserver_preload(["torch", "ppo.trainer"])  # imported once, not twice a test
    multiprocessing.start_processes(_enter, (port, function, arguments), nprocs=2, start_method="forkserver")


def _collectives(world: World, path: Path) -> None:
    tensors = [torch.tensor([1.0, 2.0]) * (1 + world.rank), torch.tensor(10.0 * world.rank)]
    world.average_(tensors)
    gathered = world.gather(torch.tensor([world.rank]))
    first = torch.tensor([5.0 + world.rank])
    world.broadcast_([first])
    results = {
        "average": tensors,
        "gathered": gathered,
        "first": first,
        "sum": world.sum([1.0 + world.rank, 2.0]),
        "objects": world.gather_objects({"rank": world.rank}),
    }
    torch.save(results, path / f"{world.rank}.pt")


def test_collectives(tmp_path):
    run_two(_collectives, tmp_path)
    for rank in range(2):
        results = torch.load(tmp_path / f"{rank}.pt")
        assert [t.tolist() for t in results["average"]] == [[1.5, 3.0], 5.0]
        assert [t.tolist() for t in results["gathered"]] == [[0], [1]]
        assert results["first"].tolist() == [5.0]
        assert results["sum"] == [3.0, 4.0]
        assert results["objects"] == ([{"rank": 0}, {"rank": 1}] if rank == 0 else [])


def test_one_process_is_a_world_of_its_own():
    world, x = World(), torch.tensor([1.0])
    world.average_([x])
    world.broadcast_([x])
    world.leave()
    assert world.gather(x)[0] is x
    assert world.sum([3.0]) == [3.0]
    assert world.gather_objects("a") == ["a"]


def test_join_without_torchrun_says_how_to_start(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(ConfigError, match="torchrun --nproc_per_node=K"):
        World.join("cpu")


def _normalize(world: World, data: torch.Tensor, path: Path) -> None:
    own = data.chunk(2)[world.rank]
    normalizer = RunningNormalizer(3)
    normalizer.update(own, world)
    poisoned = RunningNormalizer(3)
    poisoned.update(own * (float("nan") if world.rank else 1.0), world)
    torch.save([normalizer.state_dict(), poisoned.state_dict(), standardize(own, world)], path / f"{world.rank}.pt")


def test_normaliser_statistics_merge_exactly(tmp_path):
    torch.manual_seed(0)
    data = torch.randn(1000, 3) * 5.0 + 100.0
    run_two(_normalize, data, tmp_path)
    whole, half = RunningNormalizer(3), RunningNormalizer(3)
    whole.update(data, World())
    half.update(data[:500], World())
    results = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    for statistics, poisoned, _ in results:
        for name in ("mean", "var", "count"):
            torch.testing.assert_close(statistics[name], getattr(whole, name), rtol=1e-6, atol=0)
            torch.testing.assert_close(poisoned[name], getattr(half, name), rtol=1e-6, atol=0)
        assert all(torch.equal(statistics[k], results[0][0][k]) for k in statistics)
    expected = (data - data.mean()) / (data.std() + 1e-8)
    torch.testing.assert_close(torch.cat([results[0][2], results[1][2]]), expected, atol=1e-5, rtol=1e-5)


HALVES = {"horizon_length": 8, "mini_epochs": 1, "minibatch_size": 10**6, "grad_norm": 0.05, "entropy_coef": 0.01}


def learn_from(rollout: dict[str, torch.Tensor], world: World, num_envs: int) -> Trainer:
    """One update on a given rollout, from given weights."""
    trainer = Trainer(Pendulum(num_envs), make_config((16,), **HALVES), "cpu", None, seed=world.rank, world=world)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in trainer.agent.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    for name, column in rollout.items():
        getattr(trainer.collector.buffer, name).copy_(column)
    trainer._learn()
    return trainer


def _learn_half(world: World, rollout: dict[str, torch.Tensor], path: Path) -> None:
    trainer = learn_from({name: column.chunk(2)[world.rank] for name, column in rollout.items()}, world, 8)
    gradient = torch.cat([g.flatten() for g in trainer.update.optimizer.gradients()])
    rate = trainer.update.optimizer.rate
    torch.save([gradient, trainer.agent.state_dict(), rate], path / f"{world.rank}.pt")


def test_halves_in_two_processes_give_the_gradient_of_the_whole(tmp_path):
    torch.manual_seed(0)
    shapes = {"observations": (3,), "actions": (1,), "means": (1,), "log_stds": (1,)}
    shapes |= dict.fromkeys(("log_probs", "values", "advantages"), ())
    rollout = {name: torch.randn(16, 8, *shape) for name, shape in shapes.items()}
    whole = learn_from(rollout, World(), 16)
    run_two(_learn_half, rollout, tmp_path)
    expected = torch.cat([g.flatten() for g in whole.update.optimizer.gradients()])
    assert expected.norm().item() == pytest.approx(0.05, rel=1e-3)  # clipped after averaging
    halves = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    for gradient, state, rate in halves:
        torch.testing.assert_close(gradient, expected, atol=1e-6, rtol=0)
        assert torch.equal(rate, halves[0][2])
        for name, tensor in whole.agent.state_dict().items():
            torch.testing.assert_close(state[name], tensor, atol=1e-5, rtol=1e-5)
            assert torch.equal(state[name], halves[0][1][name])


class Collecting:
    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []

    def log(self, metrics, step):
        self.rows.append(metrics)

    def close(self):
        pass


def training(**overrides: Any) -> TrainConfig:
    central = {"minibatch_size": 64, "mini_epochs": 1, "learning_rate": 1e-3, "network": {"mlp": {"units": [8]}}}
    settings = {"horizon_length": 8, "minibatch_size": 64, "mini_epochs": 2, "central_value_config": central}
    return make_config((8,), **{**settings, **overrides})


def _train(world: World, path: Path, config: TrainConfig, restore: Path | None) -> None:
    logger = Collecting()
    run_dir = path if world.rank == 0 else None
    seed = 10 * world.rank + (restore is not None)
    trainer = Trainer(Cartpole(16, seed=seed), config, "cpu", run_dir, [logger], seed=seed, world=world)
    if restore is not None:
        trainer.restore(restore)
    result = trainer.train()
    state = {"model": trainer.agent.state_dict(), "rate": trainer.update.optimizer.rate, "rows": logger.rows}
    observation = trainer.collector.observation["obs"]
    torch.save({**state, "frames": result.frames, "observation": observation}, path / f"{world.rank}.pt")


def results_of(path: Path) -> list[dict[str, Any]]:
    return [torch.load(path / f"{rank}.pt") for rank in range(2)]


def test_F4_all_processes_agree_one_logs_and_resume_is_exact(tmp_path):
    config = training(max_epochs=4, save_frequency=2)
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    whole.mkdir(), resumed.mkdir()
    run_two(_train, whole, config, None)
    first, second = results_of(whole)
    assert all(torch.equal(first["model"][k], second["model"][k]) for k in first["model"])
    assert torch.equal(first["rate"], second["rate"])
    assert not torch.equal(first["observation"], second["observation"])  # different environments
    assert second["rows"] == []
    assert [row["frame"] for row in first["rows"]] == [256, 512, 768, 1024]
    assert first["frames"] == second["frames"] == 1024
    assert len(checkpoint.read(whole / "nn" / "last.pth")["other_processes"]) == 1

    run_two(_train, resumed, config, whole / "nn" / "ep_2.pth")
    for before, after in zip((first, second), results_of(resumed), strict=True):
        assert all(torch.equal(before["model"][k], after["model"][k]) for k in before["model"])
        assert torch.equal(before["observation"], after["observation"])


def test_a_checkpoint_of_two_processes_goes_on_in_one(tmp_path, caplog):
    run_two(_train, tmp_path, training(max_epochs=2), None)
    trainer = Trainer(Cartpole(16), training(max_epochs=3), "cpu", None)
    trainer.restore(tmp_path / "nn" / "last.pth")
    assert trainer.epoch == 2
    assert "episodes start afresh" in caplog.text
    assert trainer.train().frames == 2 * 256 + 128


def _stop(world: World, path: Path) -> None:
    trainer = Trainer(Pendulum(4), make_config((8,), horizon_length=4), "cpu", None, seed=world.rank, world=world)
    if world.rank == 1:
        collect = trainer.collector.collect
        trainer.collector.collect = lambda: (trainer.epoch == 2 and trainer.request_stop("SIGTERM")) or collect()
    result = trainer.train()
    torch.save([result.stop_reason, result.epochs], path / f"{world.rank}.pt")


def test_all_processes_stop_together(tmp_path):
    run_two(_stop, tmp_path)
    assert results_of(tmp_path) == [["stop of another process", 3], ["SIGTERM", 3]]


def _unequal(world: World) -> None:
    with pytest.raises(ConfigError, match="the same in every process"):
        Trainer(Pendulum(4 + world.rank), make_config((8,)), "cpu", None, world=world)


def test_unequal_numbers_of_environments_are_rejected():
    run_two(_unequal)


ENDLESS = """
import os
import torch
from ppo.distributed import World
from ppo.trainer import Trainer
from tests.ppo.envs import Pendulum
from tests.ppo.settings import make_config
torch.set_num_threads(1)
def say(line):  # in one write: both processes share the pipe
    os.write(1, (line + chr(10)).encode())
world = World.join("cpu")
trainer = Trainer(Pendulum(4), make_config((8,), horizon_length=4), "cpu", None, seed=world.rank, world=world)
class Report:
    def log(self, metrics, step):
        say(f"iteration {metrics['iteration']}")
    def close(self):
        pass
trainer._loggers._loggers.append(Report())
say(f"pid {world.rank} {os.getpid()}")
trainer.train()
"""


def test_a_dead_process_ends_the_job(tmp_path):
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone", str(script)]
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    pids: dict[str, int] = {}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as job:
        watchdog = threading.Timer(120, job.kill)
        watchdog.start()
        try:
            for line in job.stdout:
                words = line.split()
                if words[:1] == ["pid"]:
                    pids[words[1]] = int(words[2])
                if len(pids) == 2 and words[:1] == ["iteration"] and int(words[1]) >= 3:
                    break
            os.kill(pids["1"], signal.SIGKILL)
            killed = time.monotonic()
            assert job.wait() != 0
            assert time.monotonic() - killed < 60
        finally:
            watchdog.cancel()
            job.kill()
            for pid in pids.values():  # nobody else would end them if this test failed
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
