from __future__ import annotations

import copy
import math
from types import SimpleNamespace

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from ppo import distributions
from ppo.agent import Action, Agent
from ppo.config import TrainConfig
from ppo.distributed import World
from ppo.normalize import RunningNormalizer
from ppo.rollout import Batch
from ppo.update import STATISTICS, PolicyUpdate
from tests.ppo.envs import box
from tests.ppo.settings import CONFIG, make_config

CPU = torch.device("cpu")
SAMPLES, OBSERVATIONS, ACTIONS = 96, 5, 3
NO_HIDDEN = torch.zeros(SAMPLES, 0)
SIZES = SimpleNamespace(observation_space=box(OBSERVATIONS, 1.0), action_space=box(ACTIONS, 1.0), state_space=None)


def make_update(minibatch_size: int = SAMPLES, **overrides) -> PolicyUpdate:
    torch.manual_seed(3)
    config = make_config((16, 16), **overrides)
    return PolicyUpdate(Agent(SIZES, config, CPU), config, minibatch_size, CPU, World())


def make_batch(agent: Agent) -> Batch:
    """A batch that the agent itself collected, with made-up advantages and returns."""
    torch.manual_seed(4)
    observations = 2.0 * torch.randn(SAMPLES, OBSERVATIONS) + 1.0
    with torch.no_grad():
        action = Action(*(column.clone() for column in agent.act({"obs": observations}, NO_HIDDEN)))
        log_stds = action.log_stds.expand_as(action.means).clone()
    return Batch(
        observations=observations,
        actions=action.actions,
        log_probs=action.log_probs,
        means=action.means,
        log_stds=log_stds,
        values=action.values,
        advantages=torch.randn(SAMPLES),
        returns=action.values + torch.randn(SAMPLES),
        hidden=torch.zeros(SAMPLES, 0),
        starts=torch.zeros(SAMPLES),
    )


def parameters(update: PolicyUpdate) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in update.optimizer.parameters])


def reference_loss(agent: Agent, config: TrainConfig, batch: Batch, observations: torch.Tensor) -> torch.Tensor:
    """The whole objective through torch.distributions."""
    mean, log_std, value, _ = agent.network(observations, torch.zeros(len(observations), 0))
    policy = torch.distributions.Normal(mean, log_std.exp())
    ratio = torch.exp(policy.log_prob(batch.actions).sum(-1) - batch.log_probs)
    surrogate = -torch.min(ratio * batch.advantages, ratio.clamp(0.8, 1.2) * batch.advantages)
    clipped = batch.values + (value - batch.values).clamp(-0.2, 0.2)
    critic = torch.max((value - batch.returns) ** 2, (clipped - batch.returns) ** 2)
    bounds = ((mean - 1.1).clamp_min(0) ** 2 + (-mean - 1.1).clamp_min(0) ** 2).sum(-1)
    entropy = policy.entropy().sum(-1)
    total = surrogate + 0.5 * config.critic_coef * critic - config.entropy_coef * entropy
    return (total + config.bounds_loss_coef * bounds).mean()


def test_one_step_equals_adam_on_the_written_out_objective():
    update = make_update(mini_epochs=1, entropy_coef=0.01, bounds_loss_coef=0.5, lr_schedule="constant", grad_norm=0.3)
    batch = make_batch(update.agent)
    other = copy.deepcopy(update.agent)
    statistics = update.run(batch)

    normalizer = RunningNormalizer(OBSERVATIONS)
    normalizer.update(batch.observations, World())
    loss = reference_loss(other, update.config, batch, normalizer.normalize(batch.observations))
    optimizer = torch.optim.Adam(other.parameters(), lr=3e-4, eps=1e-8)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(other.parameters(), 0.3)
    optimizer.step()
    assert norm > 0.3
    torch.testing.assert_close(statistics["loss"], loss.detach())
    torch.testing.assert_close(statistics["grad_norm"], norm)
    expected = torch.cat([p.detach().flatten() for p in other.parameters()])
    torch.testing.assert_close(parameters(update), expected, atol=1e-7, rtol=1e-5)


def test_truncate_grads_false_steps_with_the_whole_gradient():
    whole = make_update(mini_epochs=1, truncate_grads=False, grad_norm=1e-3)
    cut = make_update(mini_epochs=1, truncate_grads=True, grad_norm=1e-3)
    for update in (whole, cut):
        update.run(make_batch(update.agent))
    first_moments = [
        torch.cat([update.optimizer._adam.state[p]["exp_avg"].flatten() for p in update.optimizer.parameters])
        .norm()
        .item()
        for update in (whole, cut)
    ]
    assert first_moments[1] == pytest.approx(0.1 * 1e-3, rel=1e-3)
    assert first_moments[0] > 10 * first_moments[1]


@pytest.mark.parametrize("micro_batch_size", [1, 7, 32])
def test_micro_batches_give_the_same_step(micro_batch_size):
    whole, parts = make_update(), make_update(micro_batch_size=micro_batch_size)
    results = [update.run(make_batch(update.agent)) for update in (whole, parts)]
    torch.testing.assert_close(parameters(parts), parameters(whole), atol=2e-6, rtol=1e-5)
    for name in STATISTICS:
        torch.testing.assert_close(results[1][name], results[0][name], atol=1e-5, rtol=1e-4)


def test_observation_statistics_move_minibatch_by_minibatch_in_the_first_mini_epoch_only():
    update = make_update(minibatch_size=32, mini_epochs=3)
    batch = make_batch(update.agent)
    raw = batch.observations.clone()
    seen: list[torch.Tensor] = []
    forward = update.agent.network.forward
    update.agent.network.forward = lambda x, *rest: seen.append(x.clone()) or forward(x, *rest)
    update.run(batch)
    expected = RunningNormalizer(OBSERVATIONS)
    for i, part in enumerate(raw.split(32)):
        expected.update(part, World())
        torch.testing.assert_close(seen[i], expected.normalize(part))
    for mini_epoch in (1, 2):
        for i, part in enumerate(raw.split(32)):
            torch.testing.assert_close(seen[3 * mini_epoch + i], expected.normalize(part))
    assert update.agent.obs_normalizer.count.item() == 1.0 + SAMPLES


def test_previous_visit_moves_the_kl_reference_and_behaviour_keeps_it():
    moving = make_update(mini_epochs=1, learning_rate=1e-2)
    batch = make_batch(moving.agent)
    before = batch.means.clone()
    moving.run(batch)
    assert not torch.equal(batch.means, before)  # the normaliser moved, so did the means
    fixed = make_update(mini_epochs=1, learning_rate=1e-2, kl_reference="behaviour")
    batch = make_batch(fixed.agent)
    fixed.run(batch)
    assert torch.equal(batch.means, before)


def test_kl_is_measured_before_the_step_against_the_reference():
    """Second mini-epoch: previous visit = the network before the first step; behaviour = that too, unnormalised."""
    settings = {"mini_epochs": 2, "kl_estimator": "exact", "lr_schedule": "constant", "normalize_input": False}
    update = make_update(**settings)
    batch = make_batch(update.agent)
    means, log_stds = batch.means.clone(), batch.log_stds.clone()
    once = make_update(**{**settings, "mini_epochs": 1})
    assert once.run(make_batch(once.agent))["kl"].item() == pytest.approx(0.0, abs=1e-7)
    with torch.no_grad():
        new = once.agent.network(batch.observations, NO_HIDDEN)
        expected = distributions.kl_divergence(new.mean, new.log_std, means, log_stds).mean()
    assert expected > 1e-6
    assert update.run(batch)["kl"].item() == pytest.approx(expected.item() / 2, rel=1e-3)


@pytest.mark.parametrize(("schedule_type", "adaptations"), [("legacy", 6), ("standard", 2)])
def test_adaptive_rate_per_minibatch_or_per_mini_epoch(schedule_type, adaptations):
    # a threshold so high that every measurement raises the rate
    update = make_update(
        minibatch_size=32, mini_epochs=2, schedule_type=schedule_type, kl_threshold=1e9, learning_rate=1e-6
    )
    update.run(make_batch(update.agent))
    assert update.optimizer.rate.item() == pytest.approx(1e-6 * 1.5**adaptations, rel=1e-5)
    assert update.optimizer._adam.param_groups[0]["lr"] is update.optimizer.rate


def test_constant_rate_does_not_move():
    update = make_update(minibatch_size=32, lr_schedule="constant", kl_threshold=1e9)
    update.run(make_batch(update.agent))
    assert update.optimizer.rate.item() == pytest.approx(3e-4)


@pytest.mark.parametrize(("shuffle", "orders"), [("none", 0), ("iteration", 1), ("epoch", 3)])
def test_shuffling(shuffle, orders):
    update = make_update(minibatch_size=32, mini_epochs=3, shuffle=shuffle, normalize_input=False)
    batch = make_batch(update.agent)
    batch.observations[:, 0] = torch.arange(SAMPLES)
    seen: list[torch.Tensor] = []
    forward = update.agent.network.forward
    update.agent.network.forward = lambda x, *rest: seen.append(x[:, 0].long()) or forward(x, *rest)
    update.run(batch)
    epochs = [torch.cat(seen[3 * i : 3 * i + 3]) for i in range(3)]
    for order in epochs:
        assert torch.equal(order.sort().values, torch.arange(SAMPLES))
    distinct = {tuple(order.tolist()) for order in epochs}
    assert len(distinct) == max(orders, 1)
    assert (tuple(range(SAMPLES)) in distinct) == (shuffle == "none")


@pytest.mark.parametrize("poison", ["returns", "advantages", "observations"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_D1_a_non_finite_minibatch_is_skipped_and_counted(poison, value):
    update = make_update(minibatch_size=32, mini_epochs=1, normalize_input=False)
    before = parameters(update)
    batch = make_batch(update.agent)
    getattr(batch, poison)[:] = value
    statistics = update.run(batch)
    assert statistics["skipped_updates"].item() == 3
    assert torch.equal(parameters(update), before)
    assert update.optimizer.rate.item() == pytest.approx(3e-4)  # a step not taken says nothing about the rate

    update.run(make_batch(update.agent))  # and goes on learning
    assert torch.isfinite(parameters(update)).all()
    assert not torch.equal(parameters(update), before)


def test_D1_only_the_poisoned_minibatch_is_skipped():
    update = make_update(minibatch_size=32, mini_epochs=2)
    batch = make_batch(update.agent)
    batch.returns[40] = math.nan
    statistics = update.run(batch)
    assert statistics["skipped_updates"].item() == 2
    assert math.isfinite(statistics["loss"].item())
    assert math.isfinite(statistics["grad_norm"].item())


def test_D1_a_non_finite_observation_leaves_the_statistics_alone():
    update = make_update(minibatch_size=32, mini_epochs=1)
    batch = make_batch(update.agent)
    batch.observations[0, 0] = math.nan
    update.run(batch)
    normalizer = update.agent.obs_normalizer
    assert normalizer.count.item() == 1.0 + 64
    assert torch.isfinite(normalizer.mean).all()
    assert torch.isfinite(normalizer.var).all()


def test_D1_negative_or_nan_log_std_never_throws():
    update = make_update(mini_epochs=1)
    with torch.no_grad():
        update.agent.network.log_std.fill_(-0.1)
        assert torch.isfinite(update.agent.act({"obs": torch.randn(4, OBSERVATIONS)}, NO_HIDDEN[:4]).log_probs).all()
    batch = make_batch(update.agent)
    with torch.no_grad():
        update.agent.network.log_std.fill_(math.nan)
        update.agent.act({"obs": torch.randn(4, OBSERVATIONS)}, NO_HIDDEN[:4])
    assert update.run(batch)["skipped_updates"].item() == 1


def test_entropy_bonus_widens_the_policy():
    update = make_update(entropy_coef=1.0, learning_rate=1e-2, lr_schedule="constant")
    batch = make_batch(update.agent)
    batch.advantages.zero_()
    update.run(batch)
    assert (update.agent.network.log_std > 0.02).all()


def test_weight_decay_reaches_adam():
    assert make_update(weight_decay=0.1).optimizer._adam.param_groups[0]["weight_decay"] == 0.1


def test_entropy_coefficient_can_be_scheduled():
    update = make_update(entropy_coef=0.5)
    batch = make_batch(update.agent)
    update.set_entropy_coef(0.25)
    statistics = update._accumulate_gradients(batch)
    terms = dict(zip(STATISTICS, statistics.tolist(), strict=True))
    expected = terms["policy_loss"] + terms["value_loss"] - 0.25 * terms["entropy"] + 1e-4 * terms["bounds_loss"]
    assert terms["loss"] == pytest.approx(expected, rel=1e-5)
    log_std_grad = update.agent.network.log_std.grad
    plain = make_update(entropy_coef=0.0)
    plain._accumulate_gradients(make_batch(plain.agent))
    torch.testing.assert_close(log_std_grad, plain.agent.network.log_std.grad - 0.25)


def test_D5_kl_under_autocast_is_computed_in_float32():
    update = make_update(
        mixed_precision_cpu=True, kl_estimator="exact", kl_reference="behaviour", normalize_input=False
    )
    batch = make_batch(update.agent)
    batch.means.add_(0.01)
    with torch.no_grad():
        mean, log_std, _, _ = update.agent.network(batch.observations, NO_HIDDEN)
        assert mean.dtype == torch.float32
        new, old = (Normal(m.double(), s.double().exp()) for m, s in ((mean, log_std), (batch.means, batch.log_stds)))
        expected = kl_divergence(new, old).sum(-1).mean().item()
    assert expected == pytest.approx(3 * 0.5 * 0.01**2, rel=0.01)
    statistics = update._accumulate_gradients(batch)
    assert statistics[STATISTICS.index("kl")].item() == pytest.approx(expected, rel=1e-3)


def test_state_dependent_sigma_starts_constant_and_learns():
    network = {"space": {"continuous": {"fixed_sigma": False}}, "mlp": {"units": [16]}}
    config = TrainConfig.from_params({"network": network, "config": {**CONFIG, "learning_rate": 1e-2}})
    update = PolicyUpdate(Agent(SIZES, config, CPU), config, SAMPLES, CPU, World())
    batch = make_batch(update.agent)
    assert batch.log_stds.abs().max() == 0.0
    update.run(batch)
    with torch.no_grad():
        log_std = update.agent.network(batch.observations, NO_HIDDEN).log_std
    assert log_std.shape == (SAMPLES, ACTIONS)
    assert (log_std.std(0) > 1e-3).all()
