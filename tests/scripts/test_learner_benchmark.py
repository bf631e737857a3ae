"""Learners alone: how they take turns, what they are measured on, and that all train the same amount."""

from __future__ import annotations

import csv
import importlib.util
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from gymscale.scripts import benchmark, config, learner_benchmark, learners, pendulum, synthetic
from gymscale.scripts.learner_benchmark import SIZES, Entry
from ppo.config import TrainConfig

CONFIG_DIR = str(Path(__file__).parent / "cfg")


def read(words: list[str]) -> benchmark.Request:
    return benchmark.read_request(words, None)


def test_learners_of_one_case_take_turns_and_get_the_settings_of_the_size() -> None:
    request = read(["learners=ours,rl_games", "size=Ant,ShadowHand", "seeds=1,2", "train.params.config.gamma=0.9"])
    groups = list(request.entries())
    assert [(g[0].size, g[0].seed, [e.learner for e in g]) for g in groups] == [
        (size, seed, ["ours", "rl_games"]) for size in ("Ant", "ShadowHand") for seed in (1, 2)
    ]
    assert groups[2][0].overrides[:2] == ("task=ShadowHand", "num_envs=8192")
    cfg = config.load([*groups[2][0].overrides, "rl_device=cpu", "sim_device=cpu"])
    assert list(cfg.train.params.network.mlp.units) == [512, 512, 256, 128]
    assert (cfg.train.params.config.gamma, cfg.train.params.config.mixed_precision) == (0.9, False)


def test_variants_of_ours_differ_in_their_overrides_only() -> None:
    entries = next(read(["learners=ours,ours_fast_bf16", "sim_device=cpu"]).entries())
    read_configs = [
        TrainConfig.from_params(config.to_plain(config.load(entry.overrides).train)["params"]) for entry in entries
    ]
    assert [(c.cpu_update, c.mixed_precision_cpu) for c in read_configs] == [
        ("autograd", False),
        ("hand_written", True),
    ]
    assert read_configs[0].learning_rate == read_configs[1].learning_rate


def test_all_stands_for_every_learner_once() -> None:
    assert read(["learners=skrl,all"]).learners == ["skrl", *(name for name in learners.ALL if name != "skrl")]
    assert {"ours", "rl_games", "rsl_rl", "skrl"} <= set(learners.ALL)


def test_a_missing_package_is_one_line_and_nothing_to_measure_is_wrong_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert benchmark._installed(read(["learners=ours,skrl"])).learners == ["ours"]
    assert capsys.readouterr().out == "skrl: not installed (pip install skrl)\n"
    assert benchmark.main(["learners=rl_games"]) == 2
    assert "rl_games: not installed (pip install 'gymscale[rl-games]')" in capsys.readouterr().err


def test_ratios_are_taken_within_a_round() -> None:
    # The machine was 10 times slower in the second round: the ratio of medians would be 4 / 4 = 1.
    assert learner_benchmark.median_ratio([4.0, 40.0, 2.0], [2.0, 20.0, 4.0]) == 2.0


def test_our_learner_in_its_own_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["task=Fake", "num_envs=16", "rl_device=cpu", "sim_device=cpu"]
    # FakePPO: 16 envs x 8 steps in 4 mini-epochs of 2 minibatches of 64.
    settings = [f"train.params.config.{key}" for key in ("horizon_length=8", "minibatch_size=64", "mini_epochs=4")]
    good = Entry("ours", "Ant", 1, (*words, *settings), CONFIG_DIR)
    bad = Entry("ours", "Ant", 1, (*words, "train.params.config.nothing=1"), CONFIG_DIR)
    rows, failed = learner_benchmark.compare([good, bad], 2)
    assert failed == 1
    assert "ours, Ant: UsageError: unknown config key 'train.params.config.nothing'" in capsys.readouterr().err
    assert list(rows[0]) == ["learner", "size", "num_envs", "device", "seed", "networks", "steps", "total", "peak_MiB"]
    assert (rows[0]["num_envs"], rows[0]["networks"], rows[0]["steps"]) == (16, "shared", 8)
    assert rows[0]["total"] > 0
    assert rows[0]["peak_MiB"] > 10


@pytest.mark.parametrize("name", [name for name in learners.VARIANTS if name != "rl_games_compiled"])
@pytest.mark.parametrize("separate", [False, True])
def test_every_learner_steps_the_environment_and_the_optimiser_as_often(name: str, separate: bool) -> None:
    if not learners.VARIANTS[name].is_installed:
        pytest.skip(f"{name} is not installed (pip install {learners.VARIANTS[name].install})")
    overrides = [
        *("task=Cartpole", "num_envs=32", "sim_device=cpu", f"train.params.network.separate={separate}"),
        *(f"train.params.config.{key}" for key in ("horizon_length=8", "minibatch_size=64", "mini_epochs=3")),
        *learners.VARIANTS[name].overrides,
    ]
    params = config.to_plain(config.load(overrides).train)["params"]
    env = CountingEnv(32, "cpu")
    job = learners.Job(env, params, TrainConfig.from_params(params), "cpu", 1)
    turns = iter((True, True, False))
    steps: list[Any] = []
    handle = register_optimizer_step_post_hook(lambda *_: steps.append(1))
    try:
        learners.run(name, job, lambda: next(turns))
    finally:
        handle.remove()
    assert (env.steps, len(steps)) == (2 * 8, 2 * 3 * 4)  # 32 x 8 = 256 samples: 4 minibatches of 64


class CountingEnv(pendulum.PendulumEnv):
    steps = 0

    def step(self, actions: torch.Tensor) -> Any:
        self.steps += 1
        assert actions.shape == (32, 1)
        assert actions.abs().max() <= 1.0
        return super().step(actions)


def test_sizes_are_those_of_the_benchmarks() -> None:
    assert set(SIZES) == {*synthetic.SIZES, "Pendulum"}
    env = synthetic.SyntheticEnv(4, *synthetic.SIZES["Ant"], device="cpu")
    for _ in range(synthetic.EPISODE_LENGTH):
        obs, reward, done, info = env.step(env._observations[0, :, :8])
    assert (obs["obs"].shape, reward.shape, done.shape) == ((4, 60), (4,), (4,))
    assert not info["time_outs"].any()


def test_a_step_of_the_pendulum_worked_out_by_hand() -> None:
    env = pendulum.PendulumEnv(2, "cpu")
    env.set_state(
        {
            "angle": torch.tensor([0.1, math.pi + 0.5]),  # the second: half a radian past hanging down
            "speed": torch.tensor([1.0, -8.0]),
            "progress": torch.tensor([0, 199]),
        }
    )
    obs, reward, done, info = env.step(torch.tensor([[0.5], [-3.0]]))
    # torque 1: speed 1 + (15 sin 0.1 + 3) 0.05 = 1.2248751, angle 0.1 + 0.05 speed = 0.1612438
    assert obs["obs"][0].tolist() == pytest.approx([math.cos(0.1612438), math.sin(0.1612438), 1.2248751], abs=1e-5)
    # -(0.1^2 + 0.1 x 1 + 0.001 x 1) and, the angle being -pi + 0.5, -((pi - 0.5)^2 + 0.1 x 64 + 0.001 x 4)
    assert reward.tolist() == pytest.approx([-0.111, -((math.pi - 0.5) ** 2 + 6.404)], abs=1e-5)
    assert done.tolist() == info["time_outs"].tolist() == [False, True]
    assert obs["obs"][1, 2].abs() <= 1.0  # a new episode


def test_only_episodes_seen_whole_count_for_the_return() -> None:
    env = pendulum.PendulumEnv(1, "cpu")
    env._progress.fill_(pendulum.EPISODE_LENGTH - 3)
    total = 0.0
    for step in range(3 + pendulum.EPISODE_LENGTH):
        reward = env.step(torch.zeros(1, 1))[1]
        total += float(reward) if step >= 3 else 0.0
        if step == 2:
            assert math.isnan(env.take_return())
    assert env.take_return() == pytest.approx(total, rel=1e-5)
    assert math.isnan(env.take_return())


@pytest.mark.slow
def test_all_learners_reach_the_same_return_on_the_pendulum(tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    assert benchmark.main(["learners=all", "size=Pendulum", "iterations=300", "sim_device=cpu", f"csv={path}"]) == 0
    with path.open(newline="") as file:
        returns = {row["learner"]: float(row["return"]) for row in csv.DictReader(file)}
    assert returns["ours"] > -250.0  # about -1200 before training
    assert min(returns.values()) > returns["ours"] - 100.0
