"""The baseline's equations against plain Python numbers: nothing here is computed by the learner's own functions."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ppo import distributions
from ppo.agent import Agent
from ppo.config import TrainConfig
from ppo.distributed import World
from ppo.rollout import Batch, advantages
from ppo.trainer import Trainer
from ppo.update import STATISTICS, PolicyUpdate
from tests.ppo.envs import Pendulum, box
from tests.ppo.settings import CONFIG, make_config

CPU = torch.device("cpu")


def test_gae_is_the_sum_of_discounted_errors_up_to_the_end_of_the_episode():
    torch.manual_seed(0)
    rewards, values, last = torch.randn(5, 9), torch.randn(5, 9), torch.randn(5)
    dones = (torch.rand(5, 9) < 0.25).float()
    result = advantages(rewards, values, dones, last, 0.97, 0.8)
    for env in range(5):
        after = [*values[env, 1:].tolist(), last[env].item()]
        for t in range(9):
            expected, factor = 0.0, 1.0
            for k in range(t, 9):
                alive = 1.0 - dones[env, k].item()
                expected += factor * (rewards[env, k].item() + 0.97 * after[k] * alive - values[env, k].item())
                factor *= 0.97 * 0.8
                if not alive:
                    break
            assert result[env, t].item() == pytest.approx(expected, abs=1e-5)


# One observation, one action, no hidden layer: mean = 0.5 x, value = 0.25 x - 0.1, log-std = -0.5.
OBSERVATIONS = [1.0, -2.0, 3.0]
ACTIONS = [0.9, -1.4, 1.0]
OLD_LOG_PROBS = [-0.9, -0.2, -0.8]
OLD_MEANS, OLD_LOG_STDS = [0.4, -0.7, 1.3], [-0.4, -0.6, -0.5]
OLD_VALUES, RETURNS, ADVANTAGES = [0.0, -0.2, 0.1], [0.5, -1.0, 0.9], [0.8, -1.1, 0.3]
E_CLIP, CRITIC, ENTROPY, BOUNDS = 0.2, 4.0, 0.01, 0.5


def linear_policy(**overrides: Any) -> PolicyUpdate:
    settings = {**CONFIG, "critic_coef": CRITIC, "entropy_coef": ENTROPY, "bounds_loss_coef": BOUNDS}
    settings |= {"normalize_input": False, "normalize_value": False, "e_clip": E_CLIP, "learning_rate": 1e-3}
    network = {"mlp": {"units": [], "activation": "elu"}}
    config = TrainConfig.from_params({"network": network, "config": {**settings, "mini_epochs": 1, **overrides}})
    sizes = SimpleNamespace(observation_space=box(1, 1.0), action_space=box(1, 1.0), state_space=None)
    agent = Agent(sizes, config, CPU)
    with torch.no_grad():
        agent.network.mean.weight.fill_(0.5)
        agent.network.value.weight.fill_(0.25)
        agent.network.value.bias.fill_(-0.1)
        agent.network.log_std.fill_(-0.5)
    return PolicyUpdate(agent, config, 3, CPU, World())


def batch() -> Batch:
    column = torch.tensor
    return Batch(
        observations=column(OBSERVATIONS).view(3, 1),
        actions=column(ACTIONS).view(3, 1),
        log_probs=column(OLD_LOG_PROBS),
        means=column(OLD_MEANS).view(3, 1),
        log_stds=column(OLD_LOG_STDS).view(3, 1),
        values=column(OLD_VALUES),
        advantages=column(ADVANTAGES),
        returns=column(RETURNS),
        hidden=torch.zeros(3, 0),
        starts=torch.zeros(3),
    )


def objective(mean_weight: float, mean_bias: float, value_weight: float, value_bias: float, log_std: float) -> dict:
    """The terms of the loss, sample by sample."""
    std = math.exp(log_std)
    sums = dict.fromkeys(("policy_loss", "value_loss", "bounds_loss", "clip_fraction"), 0.0)
    for x, action, old_log_prob, advantage, old_value, target in zip(
        OBSERVATIONS, ACTIONS, OLD_LOG_PROBS, ADVANTAGES, OLD_VALUES, RETURNS, strict=True
    ):
        mean, value = mean_weight * x + mean_bias, value_weight * x + value_bias
        log_prob = -0.5 * ((action - mean) / std) ** 2 - log_std - 0.5 * math.log(2.0 * math.pi)
        ratio = math.exp(log_prob - old_log_prob)
        within = min(max(ratio, 1.0 - E_CLIP), 1.0 + E_CLIP)
        sums["policy_loss"] += max(-advantage * ratio, -advantage * within) / 3
        near = old_value + min(max(value - old_value, -E_CLIP), E_CLIP)
        sums["value_loss"] += max((value - target) ** 2, (near - target) ** 2) / 3
        sums["bounds_loss"] += (max(mean - 1.1, 0.0) ** 2 + max(-mean - 1.1, 0.0) ** 2) / 3
        sums["clip_fraction"] += (abs(ratio - 1.0) > E_CLIP) / 3
    sums["entropy"] = 0.5 * math.log(2.0 * math.pi * math.e) + log_std
    sums["loss"] = sums["policy_loss"] + 0.5 * CRITIC * sums["value_loss"] + BOUNDS * sums["bounds_loss"]
    sums["loss"] -= ENTROPY * sums["entropy"]
    return sums


START = {"mean_weight": 0.5, "mean_bias": 0.0, "value_weight": 0.25, "value_bias": -0.1, "log_std": -0.5}


def test_every_term_of_the_loss():
    expected = objective(**START)
    assert 0.0 < expected["clip_fraction"] < 1.0
    assert expected["bounds_loss"] > 0.01
    statistics = dict(zip(STATISTICS, linear_policy()._accumulate_gradients(batch()).tolist(), strict=True))
    for name, value in expected.items():
        assert statistics[name] == pytest.approx(value, rel=1e-5), name


def test_the_gradient_is_that_of_finite_differences():
    update = linear_policy()
    update._accumulate_gradients(batch())
    network = update.agent.network
    found = {
        "mean_weight": network.mean.weight.grad,
        "mean_bias": network.mean.bias.grad,
        "value_weight": network.value.weight.grad,
        "value_bias": network.value.bias.grad,
        "log_std": network.log_std.grad,
    }
    for name, gradient in found.items():
        up, down = (objective(**{**START, name: START[name] + step})["loss"] for step in (1e-6, -1e-6))
        assert gradient.item() == pytest.approx((up - down) / 2e-6, rel=1e-4), name


@pytest.mark.parametrize("estimator", ["rl_games", "exact"])
def test_both_estimators_of_the_kl_divergence(estimator: str):
    std, expected = math.exp(-0.5), 0.0
    for x, old_mean, old_log_std in zip(OBSERVATIONS, OLD_MEANS, OLD_LOG_STDS, strict=True):
        old_std, eps = math.exp(old_log_std), 1e-5 if estimator == "rl_games" else 0.0
        square = (std**2 + (old_mean - 0.5 * x) ** 2) / (2.0 * (old_std**2 + eps))
        expected += (math.log(old_std / std + eps) + square - 0.5) / 3
    statistics = linear_policy(kl_estimator=estimator)._accumulate_gradients(batch())
    assert statistics[STATISTICS.index("kl")].item() == pytest.approx(expected, rel=1e-4)


def test_the_exact_divergence_resolves_what_float32_rounding_would_hide():
    """Means 1e-3 of a deviation apart, 20 dims: the KL divergence is 1e-5."""
    mean, log_std = torch.zeros(1, 20), torch.full((1, 20), math.log(0.1))
    kl = distributions.kl_divergence(mean + 1e-4, log_std, mean, log_std).item()
    assert kl == pytest.approx(20 * 0.5 * 1e-3**2, rel=1e-3)
    biased = distributions.kl_divergence_rl_games(mean + 1e-4, log_std, mean, log_std).item()
    assert biased < -0.009


def test_one_adam_step_with_a_clipped_gradient():
    update = linear_policy(grad_norm=0.1)
    update.run(batch())
    slopes = {}
    for name in START:
        up, down = (objective(**{**START, name: START[name] + step})["loss"] for step in (1e-6, -1e-6))
        slopes[name] = (up - down) / 2e-6
    norm = math.sqrt(sum(slope**2 for slope in slopes.values()))
    assert norm > 0.1
    network = update.agent.network
    moments = update.optimizer.state_dict()["adam"]["state"]
    order = {id(p): i for i, p in enumerate(update.optimizer.parameters)}
    for name, parameter in (("mean_weight", network.mean.weight), ("log_std", network.log_std)):
        clipped = slopes[name] * 0.1 / norm
        assert moments[order[id(parameter)]]["exp_avg"].item() == pytest.approx(0.1 * clipped, rel=1e-3)
        # The first step of Adam has the length of the rate, whatever the gradient.
        assert parameter.item() == pytest.approx(START[name] - math.copysign(1e-3, slopes[name]), abs=1e-6)


def test_the_standard_schedule_takes_the_mean_of_a_mini_epoch(monkeypatch: pytest.MonkeyPatch):
    """Minibatches with KL 0.001 and 0.029: legacy raises, then lowers; the mean 0.015 leaves the rate alone."""
    rates = {}
    for schedule_type in ("legacy", "standard"):
        update = linear_policy(schedule_type=schedule_type, minibatch_size=2)
        update.minibatch_size = 2
        divergences = iter((0.001, 0.029))
        seen: list[float] = []
        monkeypatch.setattr(update, "_divergence", lambda *_, kl=divergences: torch.tensor(next(kl)))
        adapt = update._adapt_rate

        def recording(statistics: torch.Tensor, adapt=adapt, update=update, seen=seen) -> None:
            adapt(statistics)
            seen.append(update.optimizer.rate.item())

        monkeypatch.setattr(update, "_adapt_rate", recording)
        update.run(batch())
        rates[schedule_type] = seen
    assert rates == {"legacy": pytest.approx([1.5e-3, 1e-3]), "standard": pytest.approx([1e-3])}


def test_a_rollout_leaves_all_statistics_alone_and_values_are_real():
    trainer = Trainer(Pendulum(16), make_config((8,)), "cpu", None)
    agent = trainer.agent
    agent.value_normalizer.mean.fill_(2.0)
    agent.value_normalizer.var.fill_(9.0)
    buffer = trainer.collector.collect()
    assert (agent.obs_normalizer.count.item(), agent.value_normalizer.count.item()) == (1.0, 1.0)
    raw = buffer.observations[3, 5]
    seen = (raw / math.sqrt(1.0 + 1e-5)).clamp(-5.0, 5.0)
    head = agent.network(seen.view(1, 3), torch.zeros(1, 0)).value.item()
    assert buffer.values[3, 5].item() == pytest.approx(max(-5.0, min(5.0, head)) * math.sqrt(9.00001) + 2.0, rel=1e-5)


def test_advantages_are_formed_in_real_units_and_standardised_over_the_whole_batch():
    trainer = Trainer(Pendulum(16), make_config((8,), minibatch_size=64, mini_epochs=1), "cpu", None)
    trainer.agent.value_normalizer.mean.fill_(5.0)
    buffer = trainer.collector.collect()
    raw = [a for row in buffer.advantages.tolist() for a in row]
    mean = sum(raw) / len(raw)
    std = math.sqrt(sum((a - mean) ** 2 for a in raw) / (len(raw) - 1))
    given: list[Batch] = []
    run = trainer.update.run
    trainer.update.run = lambda batch: given.append(batch) or run(batch)
    trainer._learn()
    assert given[0].advantages.tolist() == pytest.approx([(a - mean) / (std + 1e-8) for a in raw], abs=1e-5)
