"""CAPO: the pool, the replicas, and the settings in which it is PPO."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
import torch

from ppo import distributions
from ppo.agent import Agent
from ppo.capo import ConsensusUpdate, average, logarithmic_pool, pooled
from ppo.capo_comparison import compare
from ppo.config import TrainConfig
from ppo.distributed import World
from ppo.extensions import CapoConfig, EwmaConfig
from ppo.trainer import Trainer
from ppo.update import PolicyUpdate
from tests.ppo.envs import Cartpole, Pendulum
from tests.ppo.settings import CONFIG, make_config
from tests.ppo.test_update import CPU, SAMPLES, SIZES, make_batch, parameters

SMALL = {"horizon_length": 8, "minibatch_size": 64, "mini_epochs": 2, "learning_rate": 3e-3}


def with_capo(config: TrainConfig, **capo: Any) -> TrainConfig:
    return dataclasses.replace(config, capo=CapoConfig(**capo))


def make_consensus(replicas: int = 3, merge: str = "pool", capo: dict[str, Any] | None = None, **overrides: Any):
    torch.manual_seed(3)
    config = make_config((16, 8), **{"mini_epochs": 2, **overrides})
    update = PolicyUpdate(Agent(SIZES, config, CPU), config, 32, CPU, World())
    return ConsensusUpdate(update, CapoConfig(replicas=replicas, merge=merge, **(capo or {})))


def copies(consensus: ConsensusUpdate) -> list[torch.Tensor]:
    return [tensor.detach().clone() for tensor in consensus.state()]


def same(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


# ---- the pool


@pytest.mark.parametrize(
    ("means", "stds"), [([0.0, 1.0, -3.0], [1.0, 0.5, 2.0]), ([2.0, 2.5], [0.1, 0.4]), ([1.0], [0.7])]
)
def test_pool_is_the_normalised_geometric_mean_by_numerical_integration(means, stds):
    x = torch.linspace(-30.0, 30.0, 600_001, dtype=torch.float64)
    normals = [torch.distributions.Normal(torch.tensor(m).double(), s) for m, s in zip(means, stds, strict=True)]
    density = torch.stack([normal.log_prob(x) for normal in normals]).mean(0).exp()
    density = density / torch.trapezoid(density, x)
    expected_mean = torch.trapezoid(density * x, x)
    expected_var = torch.trapezoid(density * (x - expected_mean) ** 2, x)

    columns = [torch.tensor(values).double().view(-1, 1) for values in (means, [math.log(s) for s in stds])]
    mean, log_std = logarithmic_pool(*columns)
    assert mean.item() == pytest.approx(expected_mean.item(), rel=1e-6, abs=1e-9)
    assert log_std.exp().item() == pytest.approx(expected_var.sqrt().item(), rel=1e-6)


def test_pool_is_taken_of_each_state_and_action():
    torch.manual_seed(0)
    means, log_stds = torch.randn(3, 5, 2), torch.randn(3, 1, 2)
    mean, log_std = logarithmic_pool(means, log_stds)
    assert mean.shape == log_std.shape == (5, 2)
    single = logarithmic_pool(means[:, 4, 1:], log_stds[:, 0, 1:])
    torch.testing.assert_close(torch.stack((mean[4, 1], log_std[4, 1])), torch.cat(single))


def test_pool_is_never_further_from_a_policy_than_its_members_are_on_average():
    torch.manual_seed(0)
    means, log_stds = torch.randn(4, 200, 3), 0.5 * torch.randn(4, 200, 3)
    reference = torch.randn(200, 3), torch.randn(200, 3)
    members = distributions.kl_divergence(*reference, means, log_stds).mean(0)
    assert (distributions.kl_divergence(*reference, *logarithmic_pool(means, log_stds)) <= members + 1e-5).all()


# ---- replicas


@pytest.mark.parametrize("shuffle", ["none", "epoch", "iteration"])
@pytest.mark.parametrize("schedule_type", ["legacy", "standard"])
def test_the_first_replica_is_ppo_and_the_others_differ_by_their_order_only(shuffle, schedule_type):
    settings = {"shuffle": shuffle, "schedule_type": schedule_type, "kl_threshold": 1e-3}
    plain, consensus = make_consensus(**settings), make_consensus(**settings)
    batch = make_batch(plain.update.agent)
    statistics = plain.update.run(batch)
    results, found = consensus.optimize(make_batch(consensus.update.agent))
    assert same(results[0], copies(plain))
    assert torch.equal(found[0]["kl"], statistics["kl"])
    assert plain.update.optimizer.rate != 3e-4
    assert torch.equal(consensus.update.optimizer.rate, plain.update.optimizer.rate)
    count = len(consensus.update.optimizer.parameters)
    for result in results[1:]:
        assert not torch.equal(result[0], results[0][0])
        for own, first in zip(result[:count], results[0][:count], strict=True):
            torch.testing.assert_close(own, first, rtol=0.0, atol=0.01)
    assert not torch.equal(results[1][0], results[2][0])


def test_replicas_see_every_sample_once_an_epoch_and_leave_the_batch_alone():
    consensus = make_consensus()
    batch = make_batch(consensus.update.agent)
    before = {f.name: getattr(batch, f.name).clone() for f in dataclasses.fields(batch)}
    steps = [state["step"] for state in consensus.update.optimizer._adam.state.values()]
    consensus.run(batch)
    assert all(torch.equal(getattr(batch, name), column) for name, column in before.items())
    steps = [state["step"].item() for state in consensus.update.optimizer._adam.state.values()]
    assert set(steps) == {6.0}  # two epochs of three minibatches
    assert consensus.update.agent.obs_normalizer.count.item() == pytest.approx(1.0 + SAMPLES)


def test_mean_of_the_replicas():
    consensus, other = make_consensus(merge="mean"), make_consensus(merge="mean")
    results, statistics = other.optimize(make_batch(other.update.agent))
    found = consensus.run(make_batch(consensus.update.agent))
    for tensor, parts in zip(consensus.state(), zip(*results, strict=True), strict=True):
        torch.testing.assert_close(tensor.detach(), sum(parts) / 3.0)
    assert torch.equal(found["policy_loss"], statistics[0]["policy_loss"])
    assert "capo/kl_of_mean" not in found


@pytest.mark.parametrize("separate", [False, True])
def test_distillation_nears_the_pool_and_keeps_the_mean_value(separate):
    capo = {"distill_epochs": 40, "distill_learning_rate": 1e-4}
    settings = {"separate": separate, "learning_rate": 0.03, "lr_schedule": "constant", "mini_epochs": 4}
    consensus = make_consensus(capo=capo, **settings)
    batch = make_batch(consensus.update.agent)
    results, _ = consensus.optimize(batch)
    consensus.load(average(results))
    _, members = consensus.outputs(batch, results)
    _, (before,) = consensus.outputs(batch, [consensus.state()])
    critic = {n: p.clone() for n, p in consensus.update.agent.network.named_parameters() if "critic" in n}
    statistics = consensus.distil(batch, results)
    _, (after,) = consensus.outputs(batch, [consensus.state()])

    pool, value = pooled(members), torch.stack([member.value for member in members]).mean(0)
    distances = [distributions.kl_divergence(*pool, x.mean, x.log_std).mean().item() for x in (before, after)]
    assert distances[1] < 0.2 * distances[0]
    assert statistics["capo/kl_of_mean"].item() == pytest.approx(distances[0], rel=0.3)
    assert statistics["capo/kl_of_distilled"].item() < 0.3 * distances[0]
    if separate:
        named = dict(consensus.update.agent.network.named_parameters())
        assert len(critic) > 0
        assert all(torch.equal(named[name], parameter) for name, parameter in critic.items())
        assert torch.equal(before.value, after.value)
    else:
        assert (after.value - value).square().mean() < (before.value - value).square().mean()


def test_a_distillation_that_leads_away_is_undone():
    consensus = make_consensus(capo={"distill_learning_rate": 0.1}, learning_rate=1e-5, lr_schedule="constant")
    batch = make_batch(consensus.update.agent)
    results, _ = consensus.optimize(batch)
    consensus.load(average(results))
    before = copies(consensus)
    statistics = consensus.distil(batch, results)
    assert statistics["capo/kl_of_distilled"] > statistics["capo/kl_of_mean"]
    assert same(copies(consensus), before)


def test_D1_skipped_steps_are_counted_over_all_replicas():
    consensus = make_consensus()
    batch = make_batch(consensus.update.agent)
    before = parameters(consensus.update)
    batch.returns[:] = math.nan
    assert consensus.run(batch)["skipped_updates"].item() == 3 * 6
    assert torch.isfinite(parameters(consensus.update)).all()
    torch.testing.assert_close(parameters(consensus.update), before, rtol=0.0, atol=1e-4)


def test_one_minibatch_an_epoch_is_told_once(caplog):
    consensus = make_consensus(replicas=2, merge="mean")
    consensus.run(make_batch(consensus.update.agent))
    assert caplog.text == ""
    consensus.update.minibatch_size = SAMPLES
    for _ in range(2):
        consensus.run(make_batch(consensus.update.agent))
    assert caplog.text.count("with one minibatch an epoch all replicas are the same") == 1


# ---- in training


def train(config: TrainConfig, iterations: int = 3) -> tuple[Trainer, dict[str, torch.Tensor]]:
    trainer = Trainer(Cartpole(32, hide_velocities=True), config, "cpu", None, seed=5)
    for _ in range(iterations):
        trainer.collector.collect()
        trainer._learn()
    moments = trainer.update.optimizer.state_dict()["adam"]["state"]
    tensors = {f"{i}.{name}": tensor for i, state in moments.items() for name, tensor in state.items()}
    return trainer, {**trainer.agent.state_dict(), **tensors, "rate": trainer.update.optimizer.rate}


def assert_same(expected: dict[str, torch.Tensor], found: dict[str, torch.Tensor]) -> None:
    assert expected.keys() == found.keys()
    assert [name for name in expected if not torch.equal(expected[name], found[name])] == []


@pytest.mark.parametrize("merge", ["pool", "mean", "deeper"])
@pytest.mark.parametrize("shuffle", ["none", "epoch"])
def test_one_replica_is_ppo_bit_for_bit(merge, shuffle):
    config = make_config((8,), **SMALL, shuffle=shuffle)
    assert_same(train(config)[1], train(with_capo(config, replicas=1, merge=merge))[1])


def test_deeper_is_ppo_with_as_many_epochs_as_the_replicas_have_together():
    config = make_config((8,), **SMALL)
    trainer, found = train(with_capo(config, replicas=3, merge="deeper"))
    assert trainer.describe()["mini_epochs"] == 6
    assert_same(train(dataclasses.replace(config, mini_epochs=6))[1], found)


@pytest.mark.parametrize("cpu_update", ["autograd", "hand_written"])
@pytest.mark.parametrize("merge", ["pool", "mean"])
def test_it_learns_with_an_average_of_the_past_too(merge, cpu_update):
    config = make_config((8,), **SMALL, cpu_update=cpu_update, separate=True)
    config = dataclasses.replace(config, ewma=EwmaConfig(com=5.0))
    trainer, tensors = train(with_capo(config, replicas=2, merge=merge))
    assert all(torch.isfinite(tensor).all() for tensor in tensors.values())
    # three iterations of two epochs of four minibatches, whatever the number of replicas
    assert trainer.update.proximal.weight.item() == pytest.approx(sum((5 / 6) ** i for i in range(25)))


def test_recurrent_networks_with_a_central_critic():
    network = {"mlp": {"units": [8]}, "rnn": {"name": "lstm", "units": 4}}
    central = {"minibatch_size": 64, "mini_epochs": 1, "learning_rate": 1e-3, "network": {"mlp": {"units": [8]}}}
    config = {**CONFIG, **SMALL, "central_value_config": central, "shuffle": "epoch"}
    config = with_capo(TrainConfig.from_params({"network": network, "config": config}), replicas=2)
    trainer, tensors = train(config, iterations=2)
    assert all(torch.isfinite(tensor).all() for tensor in tensors.values())
    trainer.collector.collect()
    assert trainer._learn()["capo/kl_of_mean"].item() < 1e-3


def test_F1_resume_equals_the_uninterrupted_run_bit_for_bit(tmp_path):
    config = with_capo(make_config((8,), **SMALL, max_epochs=4, save_frequency=2), replicas=2)
    whole = Trainer(Pendulum(16), config, "cpu", tmp_path, seed=7)
    whole.train()
    second = Trainer(Pendulum(16, seed=9), config, "cpu", None, seed=9)
    second.restore(tmp_path / "nn" / "ep_2.pth")
    second.train()
    assert same(copies(whole.consensus), copies(second.consensus))


# ---- the comparison


def test_comparison_puts_everything_back_and_finds_the_pool_nearer_than_its_members():
    consensus = make_consensus(learning_rate=1e-3, lr_schedule="constant", normalize_input=False)
    batch = make_batch(consensus.update.agent)
    before, rate = copies(consensus), consensus.update.optimizer.rate.clone()
    results = compare(consensus, batch, coefficient=0.1)
    assert same(copies(consensus), before)
    assert torch.equal(consensus.update.optimizer.rate, rate)
    assert 0.0 < results["kl/pool"] < results["kl/replicas"]
    assert results["surrogate/replicas"] > batch.advantages.mean()
    # the parts of a step's second-order divergence make up that divergence
    for kind in ("replicas", "mean", "distilled"):
        assert results[f"signal/{kind}"] + results[f"waste/{kind}"] == pytest.approx(results[f"kl/{kind}"], rel=0.3)
