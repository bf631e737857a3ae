from __future__ import annotations

import math
import signal
from typing import Any

import pytest
import torch

from ppo import checkpoint
from ppo.config import ConfigError
from ppo.env import VectorEnv
from ppo.trainer import Trainer
from tests.ppo.envs import Pendulum
from tests.ppo.settings import make_config


class Collecting:
    """Keeps the metrics of every iteration."""

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []
        self.closed = False

    def log(self, metrics, step):
        assert step == metrics["frame"]
        self.rows.append(metrics)

    def close(self):
        self.closed = True


def small(**overrides: Any):
    settings = {"horizon_length": 8, "minibatch_size": 64, "mini_epochs": 2, **overrides}
    return make_config((16, 16), **settings)


def state(trainer: Trainer) -> dict[str, torch.Tensor]:
    """Everything that training depends on, as flat tensors."""
    assert trainer.collector.observation is not None
    tensors = {f"model.{k}": v for k, v in trainer.agent.state_dict().items()}
    for i, moments in enumerate(trainer.update.optimizer.state_dict()["adam"]["state"].values()):
        tensors |= {f"optimizer.{i}.{k}": v for k, v in moments.items()}
    tensors |= {f"episodes.{k}": v for k, v in trainer.collector.episodes.state_dict().items()}
    tensors |= {
        "lr": trainer.update.optimizer.rate,
        "rng": torch.get_rng_state(),
        "obs": trainer.collector.observation["obs"],
    }
    return {k: v.clone() for k, v in tensors.items()}


def assert_same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> None:
    assert a.keys() == b.keys()
    assert [k for k in a if not torch.equal(a[k], b[k])] == []


def test_pendulum_satisfies_the_protocol():
    assert isinstance(Pendulum(2), VectorEnv)


@pytest.mark.parametrize("shuffle", ["none", "epoch"])
def test_same_seed_gives_bit_identical_training(shuffle):
    runs = []
    for _ in range(2):
        trainer = Trainer(Pendulum(32), small(max_epochs=20, shuffle=shuffle), "cpu", None, seed=7)
        trainer.train()
        runs.append(state(trainer))
    assert_same(*runs)


def test_another_seed_gives_another_run():
    first, second = (Trainer(Pendulum(32), small(max_epochs=1), "cpu", None, seed=seed) for seed in (1, 2))
    assert not torch.equal(first.agent.network.mean.weight, second.agent.network.mean.weight)


@pytest.mark.parametrize(
    "settings",
    [
        {"shuffle": "epoch"},
        {"schedule_type": "standard"},
        {"lr_schedule": "linear"},
        {"cpu_update": "hand_written"},
        {"mixed_precision_cpu": True},
    ],
)
def test_F1_resume_equals_the_uninterrupted_run_bit_for_bit(tmp_path, settings):
    config = small(max_epochs=20, save_frequency=10, games_to_track=30, **settings)
    whole = Trainer(Pendulum(32), config, "cpu", tmp_path / "whole", seed=7)
    whole.train()

    first = Trainer(Pendulum(32), config, "cpu", tmp_path / "first", seed=7)
    stop_at_10 = Collecting()
    stop_at_10.log = lambda metrics, step: first.request_stop("test") if metrics["iteration"] == 10 else None
    first._loggers._loggers.append(stop_at_10)
    assert first.train().stop_reason == "test"

    second = Trainer(Pendulum(32, seed=99), config, "cpu", tmp_path / "second", seed=99)
    second.restore(tmp_path / "first" / "nn" / "last.pth")
    assert (second.epoch, second.frame, second.run_id) == (10, 10 * 256, first.run_id)
    assert second.update.optimizer.rate.item() == first.update.optimizer.rate.item()
    result = second.train()
    assert (result.epochs, result.frames) == (20, 20 * 256)
    assert_same(state(whole), state(second))


def test_restoring_only_the_model_starts_a_new_run(tmp_path):
    trainer = Trainer(Pendulum(32), small(max_epochs=3), "cpu", tmp_path, seed=7)
    trainer.train()
    other = Trainer(Pendulum(16), small(max_epochs=3), "cpu", None, seed=1)
    other.restore(tmp_path / "nn" / "last.pth", load_optimizer=False)
    assert (other.epoch, other.frame) == (0, 0)
    assert other.update.optimizer.rate.item() == pytest.approx(3e-4)
    assert_same(trainer.agent.state_dict(), other.agent.state_dict())


def test_resume_with_another_number_of_environments_starts_episodes_afresh(tmp_path, caplog):
    Trainer(Pendulum(32), small(max_epochs=2), "cpu", tmp_path).train()
    other = Trainer(Pendulum(8), small(max_epochs=3), "cpu", None)
    other.restore(tmp_path / "nn" / "last.pth")
    assert "no state of 8 environments" in caplog.text
    result = other.train()
    assert (result.epochs, result.frames) == (3, 2 * 256 + 64)


def test_metrics_have_the_agreed_names_and_values():
    logger = Collecting()
    trainer = Trainer(Pendulum(64, max_steps=20), small(max_epochs=5, games_to_track=64), "cpu", None, [logger])
    trainer.train()
    assert logger.closed
    names = "iteration frame wall_time_s reward_mean episode_length_mean fps_step fps_step_inference fps_total kl lr "
    names += "policy_loss value_loss entropy bounds_loss clip_fraction grad_norm skipped_updates episodes episode/speed"
    assert set(names.split()) <= set(logger.rows[0])
    last = logger.rows[-1]
    assert [row["iteration"] for row in logger.rows] == [1, 2, 3, 4, 5]
    assert [row["frame"] for row in logger.rows] == [512, 1024, 1536, 2048, 2560]
    assert last["episode_length_mean"] == 20.0
    assert -20 * 1.7 < last["reward_mean"] < 0.0
    assert last["fps_step"] > last["fps_step_inference"] > last["fps_total"] > 0
    assert last["entropy"] == pytest.approx(0.5 * math.log(2 * math.pi * math.e), abs=0.1)


def test_rewards_are_raw_means_over_the_last_finished_episodes():
    class Counting(Pendulum):
        """Reward is the environment's index; episodes last 5 steps."""

        def step(self, actions):
            observation, _, done, info = super().step(actions)
            return observation, torch.arange(float(self.num_envs)), done, info

    env = Counting(4, max_steps=5)
    env.progress[:] = torch.tensor([0, 0, 4, 4])
    logger = Collecting()
    trainer = Trainer(env, small(max_epochs=1, horizon_length=5, games_to_track=3), "cpu", None, [logger])
    trainer.train()
    # finished in order of time: envs 2, 3 after 1 step, then envs 0, 1 after 5 steps; the last three count
    assert logger.rows[0]["reward_mean"] == pytest.approx((3 * 1 + 0 * 5 + 1 * 5) / 3)
    assert logger.rows[0]["episode_length_mean"] == pytest.approx((1 + 5 + 5) / 3)
    assert logger.rows[0]["episodes"] == 4
    assert trainer.collector.episodes.running[1].tolist() == [0.0, 0.0, 4.0, 4.0]  # in flight


def test_before_any_episode_ends_the_reward_is_nan():
    logger = Collecting()
    result = Trainer(Pendulum(4, max_steps=1000), small(max_epochs=1), "cpu", None, [logger]).train()
    assert math.isnan(result.reward_mean)
    assert math.isnan(logger.rows[0]["episode_length_mean"])


@pytest.mark.parametrize(
    ("settings", "reason", "epochs"),
    [
        ({"max_epochs": 2}, "max_epochs", 2),
        ({"max_frames": 600}, "max_frames", 3),
        ({"score_to_win": -1e9}, "score_to_win", 1),
    ],
)
def test_stop_reasons(settings, reason, epochs):
    result = Trainer(Pendulum(32, max_steps=8), small(**settings), "cpu", None).train()
    assert (result.stop_reason, result.epochs) == (reason, epochs)


def test_F10_a_signal_finishes_the_iteration_and_saves(tmp_path):
    trainer = Trainer(Pendulum(32), small(), "cpu", tmp_path)
    previous = signal.signal(signal.SIGINT, lambda *_: trainer.request_stop("interrupted"))
    interrupt = Collecting()
    interrupt.log = lambda metrics, step: signal.raise_signal(signal.SIGINT) if metrics["iteration"] == 3 else None
    trainer._loggers._loggers.append(interrupt)
    try:
        result = trainer.train()
    finally:
        signal.signal(signal.SIGINT, previous)
    assert (result.stop_reason, result.epochs) == ("interrupted", 3)
    assert checkpoint.read(tmp_path / "nn" / "last.pth")["epoch"] == 3


def test_F10_an_error_of_the_environment_is_not_swallowed(tmp_path):
    class Failing(Pendulum):
        def step(self, actions):
            raise RuntimeError("simulator lost")

    logger = Collecting()
    with pytest.raises(RuntimeError, match="simulator lost"):
        Trainer(Failing(4), small(max_epochs=1), "cpu", tmp_path, [logger]).train()
    assert logger.closed


def test_best_and_periodic_checkpoints(tmp_path):
    config = small(max_epochs=7, save_frequency=3, save_best_after=4)
    trainer = Trainer(Pendulum(32, max_steps=10), config, "cpu", tmp_path)
    trainer.train()
    assert sorted(p.name for p in (tmp_path / "nn").iterdir()) == ["best.pth", "ep_3.pth", "ep_6.pth", "last.pth"]
    best = checkpoint.read(tmp_path / "nn" / "best.pth")
    assert best["epoch"] >= 4
    assert best["env_state"] is None
    assert best["reward_mean"] == trainer.best_reward
    assert checkpoint.read(tmp_path / "nn" / "last.pth")["epoch"] == 7


def test_a_checkpoint_is_a_boundary_for_the_running_environment(tmp_path):
    class Watched(Pendulum):
        restored: list[bool] = []

        def set_state(self, state):
            self.restored.append(True)
            super().set_state(state)

    Trainer(Watched(8), small(max_epochs=4, save_frequency=2), "cpu", tmp_path).train()
    assert len(Watched.restored) == 2  # iterations 2 and 4; the end is iteration 4's checkpoint


def test_linear_rate_follows_the_iterations():
    logger = Collecting()
    Trainer(Pendulum(8), small(max_epochs=4, lr_schedule="linear"), "cpu", None, [logger]).train()
    expected = [3e-4 + (1e-6 - 3e-4) * i / 4 for i in range(4)]
    assert [row["lr"] for row in logger.rows] == pytest.approx(expected)


def test_entropy_coefficient_falls_along_a_line():
    trainer = Trainer(Pendulum(8), small(max_epochs=4, entropy_coef=0.4, schedule_entropy=True), "cpu", None)
    trainer.train()
    assert trainer.update._loss_weights[2].item() == pytest.approx(-0.1)


def test_D10_a_pinned_rate_is_reported_once(caplog):
    config = small(max_epochs=60, kl_threshold=1e9, max_lr=1e-3, horizon_length=1, mini_epochs=1)
    Trainer(Pendulum(8), config, "cpu", None).train()
    assert caplog.text.count("the learning rate has been at max_lr=0.001 for 50 iterations") == 1


def test_D16_huge_rewards_keep_the_value_loss_finite():
    logger = Collecting()
    config = small(max_epochs=10, reward_shaper={"scale_value": 1e6})
    Trainer(Pendulum(8), config, "cpu", None, [logger]).train()
    assert all(math.isfinite(row["value_loss"]) for row in logger.rows)
    assert logger.rows[-1]["value_loss"] < 10.0
    assert sum(row["skipped_updates"] for row in logger.rows) == 0


def test_skipped_updates_are_reported(caplog):
    class Poisoned(Pendulum):
        def step(self, actions):
            observation, reward, done, info = super().step(actions)
            return observation, reward * math.nan, done, info

    logger = Collecting()
    trainer = Trainer(Poisoned(8), small(max_epochs=1), "cpu", None, [logger])
    before = [p.clone() for p in trainer.agent.parameters()]
    trainer.train()
    assert logger.rows[0]["skipped_updates"] == 2
    assert "2 updates skipped" in caplog.text
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.agent.parameters(), strict=True))


class RecordingActions(Pendulum):
    def step(self, actions):
        self.actions = actions.clone()
        return super().step(actions)


@pytest.mark.parametrize("clip_actions", [True, False])
def test_actions_are_clipped_for_the_environment_but_not_for_the_learner(clip_actions):
    env = RecordingActions(64)
    trainer = Trainer(env, small(max_epochs=1, horizon_length=1, clip_actions=clip_actions), "cpu", None)
    trainer.train()
    stored = trainer.collector.buffer.actions[:, 0]
    assert stored.abs().max() > 1.0
    assert torch.equal(env.actions, stored.clamp(-1, 1) if clip_actions else stored)


def test_clipped_actions_are_stretched_to_the_action_space():
    env = RecordingActions(64)
    env.action_space.low[:], env.action_space.high[:] = -1.0, 3.0
    trainer = Trainer(env, small(max_epochs=1, horizon_length=1), "cpu", None)
    trainer.train()
    torch.testing.assert_close(env.actions, 2.0 * trainer.collector.buffer.actions[:, 0].clamp(-1, 1) + 1.0)


def test_play_counts_each_environments_first_episodes():
    class Uneven(Pendulum):
        """Environment i has episodes of 2 + i steps and a reward of 1 a step."""

        def step(self, actions):
            observation, _, _, _ = super().step(actions)
            self.age = self.age + 1 if hasattr(self, "age") else torch.ones(self.num_envs)
            done = self.age >= 2 + torch.arange(self.num_envs)
            self.age = torch.where(done, 0, self.age)
            ages = torch.where(done, 2.0 + torch.arange(self.num_envs), math.nan)  # defined where an episode ends
            return observation, torch.ones(self.num_envs), done, {"measures": {"age": ages}}

    trainer = Trainer(Uneven(3), small(), "cpu", None)
    before = trainer.agent.obs_normalizer.count.item()
    result = trainer.play(7)
    assert result["episodes"] == 7
    assert result["reward_mean"] == pytest.approx((3 * 2 + 2 * 3 + 2 * 4) / 7)
    assert result["episode_length_mean"] == result["reward_mean"] == result["age"]
    assert trainer.agent.obs_normalizer.count.item() == before


def test_play_is_deterministic_or_sampled():
    env = RecordingActions(16, max_steps=1)
    trainer = Trainer(env, small(), "cpu", None)
    sampled, means = [], []
    for _ in range(2):
        env.set_state(Pendulum(16, seed=5).get_state())
        trainer.play(16, deterministic=True)
        means.append(env.actions)
        env.set_state(Pendulum(16, seed=5).get_state())
        trainer.play(16, deterministic=False)
        sampled.append(env.actions)
    assert torch.equal(*means)
    assert not torch.equal(*sampled)


def test_environment_on_another_device_is_rejected():
    env = Pendulum(2)
    env.device = "meta"
    with pytest.raises(ConfigError, match="the environment is on meta, the learner on cpu"):
        Trainer(env, small(), "cpu", None)
