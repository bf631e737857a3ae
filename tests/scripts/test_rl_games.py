"""train.algo=rl_games: what rl-games is told, what it tells us, and a run folder like ours."""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from gymscale.scripts import config, rl_games_bridge, rl_games_training
from gymscale.scripts.config import UsageError

needs_rl_games = pytest.mark.skipif(
    importlib.util.find_spec("rl_games") is None, reason=f"rl-games is not installed: {rl_games_bridge.INSTALL}"
)


def params(*overrides: str) -> dict[str, Any]:
    return dict(config.to_plain(config.load(["sim_device=cpu", "rl_device=cpu", *overrides]).train)["params"])


# ---- the translation


def test_ants_settings_go_over_with_their_names() -> None:
    ours = params("task=Ant", "num_envs=1024", "max_iterations=7")
    theirs = rl_games_bridge.translate(ours, 1024, "cpu")
    wanted = {
        **{"gamma": 0.99, "tau": 0.95, "learning_rate": 3e-4, "lr_schedule": "adaptive", "schedule_type": "legacy"},
        **{"kl_threshold": 0.008, "e_clip": 0.2, "horizon_length": 16, "mini_epochs": 4, "critic_coef": 2},
        **{"clip_value": True, "bounds_loss_coef": 1e-4, "normalize_input": True, "normalize_value": True},
        **{"value_bootstrap": True, "truncate_grads": False, "grad_norm": 1.0, "max_epochs": 7, "num_actors": 1024},
        **{"device": "cpu", "name": "Ant", "seq_length": 4, "games_to_track": 100, "save_frequency": 50},
    }
    assert {name: theirs["config"][name] for name in wanted} == wanted
    assert theirs["config"]["reward_shaper"]["scale_value"] == 0.01
    assert theirs["network"]["mlp"]["units"] == [256, 128, 64]
    assert theirs["network"]["space"]["continuous"]["sigma_init"] == {"name": "const_initializer", "val": 0}
    # 1024 x 16 = 16384 samples are less than the minibatch of 32768, so that there is one, as for our learner.
    assert theirs["config"]["minibatch_size"] == 16384
    assert ours == params("task=Ant", "num_envs=1024", "max_iterations=7")  # left as it was


def test_mixed_precision_is_for_cuda_and_a_constant_rate_has_no_schedule() -> None:
    ours = params("task=Ant", "train.params.config.lr_schedule=constant")
    on_cpu, on_cuda = (rl_games_bridge.translate(ours, 1024, device)["config"] for device in ("cpu", "cuda:0"))
    assert (on_cpu["mixed_precision"], on_cuda["mixed_precision"]) == (False, True)
    assert on_cpu["lr_schedule"] is None


def test_minibatches_become_equal_parts() -> None:
    ours = params("task=Cartpole", "train.params.config.minibatch_size=1000")
    ours["config"]["horizon_length"] = 15
    # 128 x 15 = 1920 samples: 2 x 960
    assert rl_games_bridge.translate(ours, 128, "cpu")["config"]["minibatch_size"] == 960


def test_minibatches_that_cannot_be_equal_are_refused() -> None:
    ours = params("task=Cartpole", "train.params.config.minibatch_size=1000")
    with pytest.raises(UsageError, match="128 envs x 16 steps = 2048 samples do not split into 3"):
        rl_games_bridge.translate(ours, 128, "cpu")


def test_a_central_critic_goes_over_with_its_own_minibatch() -> None:
    ours = params("task=ShadowHandOpenAI_FF")
    central = rl_games_bridge.translate(ours, 1024, "cpu")["config"]["central_value_config"]
    assert central["network"]["mlp"]["units"] == ours["config"]["central_value_config"]["network"]["mlp"]["units"]
    assert 1024 * ours["config"]["horizon_length"] % central["minibatch_size"] == 0


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("cpu_update=hand_written", "cpu_update=hand_written has no counterpart in rl-games: leave it at autograd"),
        ("kl_estimator=exact", "kl_estimator=exact has no counterpart in rl-games: leave it at rl_games"),
        ("max_lr=0.1", "max_lr=0.1 has no counterpart in rl-games: leave it at 0.01"),
        ("torch_compile=default", "torch_compile=default has no counterpart in rl-games: leave it at none"),
    ],
)
def test_settings_without_counterpart_are_refused(setting: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        rl_games_bridge.translate(params("task=Cartpole", f"+train.params.config.{setting}"), 512, "cpu")


# ---- the environment


class Countdown:
    """Two environments whose episodes last 2 and 3 steps and pay 1 and 10 a step."""

    num_envs, device, state_space = 2, "cpu", None
    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = spaces.Box(-2.0, 2.0, (1,), np.float32)

    def __init__(self) -> None:
        self.progress = torch.zeros(2)

    def reset(self) -> dict[str, torch.Tensor]:
        return {"obs": self.progress[:, None]}

    def step(self, actions: torch.Tensor) -> Any:
        self.progress += 1
        done = self.progress >= torch.tensor([2.0, 3.0])
        self.progress *= ~done
        return self.reset(), torch.tensor([1.0, 10.0]), done, {"time_outs": done, "episode": {"speed": 4.0}}


def test_episode_statistics_are_of_raw_rewards_over_the_last_episodes() -> None:
    env = rl_games_bridge.RlGamesVecEnv(Countdown(), horizon=6, window=3)
    iterations: list[int] = []
    env.on_iteration = lambda: iterations.append(1)
    env.set_train_info(0, None)
    observation = env.reset()
    for _ in range(6):
        observation, rewards, dones, infos = env.step(torch.zeros(2, 1))
    assert iterations == [1]
    assert (observation["obs"].shape, rewards.tolist(), dones.tolist()) == ((2, 1), [1.0, 10.0], [True, True])
    assert set(infos) == {"time_outs"}
    # Returns 2, 30, 2, then 2 and 30 in the last step: the last three are 2, 2, 30, of lengths 2, 2, 3.
    summary = env.episode_summary()
    assert summary["reward_mean"] == pytest.approx(34 / 3)
    assert summary["episode_length_mean"] == pytest.approx(7 / 3)
    assert (summary["episodes"], summary["episode/speed"]) == (5, 4.0)


class Writer:
    def __init__(self) -> None:
        self.rows: list[tuple[str, float, int]] = []
        self.folder = "here"

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.rows.append((name, value, step))


class Sink:
    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []
        self.closed = False

    def log(self, metrics: dict[str, float], step: int) -> None:
        assert metrics["frame"] == step
        self.rows.append(metrics)

    def close(self) -> None:
        self.closed = True


def test_the_observer_logs_our_metrics_and_ends_the_run_when_asked() -> None:
    env = rl_games_bridge.RlGamesVecEnv(Countdown(), horizon=6, window=3)
    writer, sink = Writer(), Sink()
    agent = SimpleNamespace(vec_env=env, writer=writer, device="cpu", batch_size=12, epoch_num=1, frame=12)
    observer = rl_games_training.Observer([sink], io.StringIO())
    observer.after_init(agent)
    env.set_train_info(0, agent)
    for _ in range(6):
        env.step(torch.zeros(2, 1))
    observer.after_steps()
    agent.writer.add_scalar("info/kl", torch.tensor(0.25), 0)
    agent.writer.add_scalar("losses/a_loss", -0.5, 0)
    observer.after_print_stats(0, 1, 0.0)
    (row,) = sink.rows
    assert {name: row[name] for name in ("iteration", "frame", "kl", "policy_loss")} == {
        **{"iteration": 1, "frame": 12, "kl": 0.25, "policy_loss": -0.5}
    }
    assert row["reward_mean"] == pytest.approx(34 / 3)
    assert row["fps_step"] > row["fps_step_inference"] > row["fps_total"] > 0
    assert [name for name, *_ in writer.rows] == ["info/kl", "losses/a_loss"]
    assert agent.writer.folder == "here"
    observer.request_stop("SIGINT")
    with pytest.raises(rl_games_training._Stopped):
        observer.after_print_stats(0, 1, 0.0)
    observer.close()
    assert sink.closed


# ---- the command line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train.algo=rlgames"], "train.algo must be one of ppo, rl_games, got 'rlgames'"),
        (["train.algoo=rl_games"], "unknown config key 'train.algoo'; did you mean 'train.algo'?"),
        (["train.algo=rl_games"], "train.algo=rl_games needs the package rl-games: pip install"),
    ],
)
def test_bad_input(
    words: list[str],
    message: str,
    run_train: Callable[..., int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "rl_games" else find_spec(name))
    assert run_train(*words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["wandb_activate=True"], "leave out wandb_activate=True"),
        (["train.params.config.minibatch_size=60"], "do not split into"),
        (["test=True", "checkpoint=model.pth"], "test=True plays our own checkpoints"),
        (["train.ewma.com=8"], "rl-games has no PPO-EWMA: leave train.ewma.com empty, or train with train.algo=ppo"),
    ],
)
def test_what_only_our_learner_does_is_refused(
    words: list[str],
    message: str,
    run_train: Callable[..., int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(rl_games_bridge, "require_installed", lambda: None)
    (tmp_path / "model.pth").touch()
    assert run_train("train.algo=rl_games", "num_envs=20", *words) == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["model.pth"]


@needs_rl_games
def test_a_run_leaves_a_folder_like_ours(run_train: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    words = ("num_envs=32", "max_iterations=6", "hydra.run.dir=run", "train.params.config.minibatch_size=128")
    assert run_train("train.algo=rl_games", "task.env.episodeLength=10", *words) == 0
    folder = Path("run")
    assert {path.name for path in folder.iterdir()} == {"config.yaml", "metrics.csv", "nn", "summaries", "events.log"}
    with (folder / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["iteration"], row["frame"]) for row in rows] == [(str(i), str(i * 32 * 8)) for i in range(1, 7)]
    last = {name: float(value) for name, value in rows[-1].items()}
    assert last["episode_length_mean"] == 10.0
    assert -10.0 < last["reward_mean"] < 10.0
    assert last["fps_step"] > last["fps_step_inference"] > last["fps_total"] > 0
    assert {"kl", "lr", "policy_loss", "value_loss", "entropy", "wall_time_s"} <= last.keys()
    model = torch.load(folder / "nn" / "last.pth", weights_only=False)["model"]
    assert model["a2c_network.actor_mlp.0.weight"].shape == (8, 1)
    out = capsys.readouterr().out
    assert "iteration 6/6  frame 1536" in out
    assert "RunningMeanStd" not in out
    assert "RunningMeanStd" in (folder / "events.log").read_text()


@needs_rl_games
def test_a_signal_ends_the_run_after_a_checkpoint(
    run_train: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("num_envs=16", "max_iterations=50", "hydra.run.dir=run", "train.params.config.minibatch_size=128")
    assert run_train("train.algo=rl_games", "task.env.fault=interrupt", *words) == 130
    assert "stopped by SIGINT after iteration 3, frame 384" in capsys.readouterr().out  # the fault is at step 20 of 24
    checkpoint = torch.load("run/nn/last.pth", weights_only=False)
    assert (checkpoint["epoch"], checkpoint["frame"]) == (3, 384)
