from __future__ import annotations

import pytest
import torch

from ppo.rollout import Batch, RolloutBuffer, advantages, bootstrap_time_outs, minibatch_sizes
from ppo.trainer import Trainer
from tests.ppo.envs import Pendulum
from tests.ppo.settings import make_config

REWARDS = torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]])
VALUES = torch.tensor([[0.5, 1.0, 1.5, 2.0, 2.5]])
LAST_VALUE = torch.tensor([3.0])
GAMMA, LAM = 0.9, 0.5


def test_D3_gae_without_any_end():
    result = advantages(REWARDS, VALUES, torch.zeros(1, 5), LAST_VALUE, GAMMA, LAM)
    torch.testing.assert_close(result, torch.tensor([[3.72626375, 5.169475, 6.2655, 6.59, 5.2]]))


@pytest.mark.parametrize(
    ("bootstrap", "expected"), [(True, [1.85, 1.0, 5.01, 3.8, 5.2]), (False, [1.85, 1.0, 4.2, 2.0, 5.2])]
)
def test_D3_gae_with_a_failure_at_1_and_a_time_out_at_3(bootstrap, expected):
    dones = torch.tensor([[0.0, 1.0, 0.0, 1.0, 0.0]])
    rewards = REWARDS.clone()
    if bootstrap:
        time_outs = torch.tensor([[0.0, 0.0, 0.0, 1.0, 0.0]])
        rewards = bootstrap_time_outs(rewards, VALUES, time_outs, GAMMA)
        assert rewards[0, 3].item() == pytest.approx(4.0 + 0.9 * 2.0)
    result = advantages(rewards, VALUES, dones, LAST_VALUE, GAMMA, LAM)
    torch.testing.assert_close(result, torch.tensor([expected]))


def test_gae_of_lambda_1_is_the_discounted_return_minus_the_value():
    torch.manual_seed(0)
    rewards, values, last = torch.randn(3, 6), torch.randn(3, 6), torch.randn(3)
    result = advantages(rewards, values, torch.zeros(3, 6), last, 0.97, 1.0)
    discounts = 0.97 ** torch.arange(6.0)
    first = (rewards * discounts).sum(1) + 0.97**6 * last - values[:, 0]
    torch.testing.assert_close(result[:, 0], first)


@pytest.mark.parametrize("value_bootstrap", [True, False])
def test_D3_rollout_scales_rewards_before_the_real_valued_bootstrap(value_bootstrap):
    class Recording(Pendulum):
        def step(self, actions):
            result = super().step(actions)
            self.log.append((result[1], result[3]["time_outs"].float()))
            return result

    env = Recording(8, max_steps=10)
    env.log = []
    trainer = Trainer(env, make_config(value_bootstrap=value_bootstrap), "cpu", None)
    trainer.agent.value_normalizer.mean.fill_(7.0)
    trainer.agent.value_normalizer.var.fill_(4.0)
    trainer.collector.collect()
    rewards, time_outs = (torch.stack(column, 1) for column in zip(*env.log, strict=True))
    assert time_outs.sum() > 0
    assert trainer.collector.buffer.values.mean() == pytest.approx(7.0, abs=1.0)
    bootstrap = 0.99 * trainer.collector.buffer.values * time_outs if value_bootstrap else 0.0
    torch.testing.assert_close(trainer.collector.buffer.rewards, 0.1 * rewards + bootstrap)
    torch.testing.assert_close(trainer.collector.buffer.dones, time_outs)


def test_D2_minibatch_larger_than_the_batch_becomes_one():
    assert minibatch_sizes(100 * 16, 8192) == [1600]


@pytest.mark.parametrize("total", [1, 7, 1600, 4096, 65_537])
@pytest.mark.parametrize("requested", [1, 3, 1000, 32_768])
def test_D2_minibatches_cover_the_batch_and_differ_by_at_most_one_sample(total, requested):
    sizes = minibatch_sizes(total, requested)
    assert sum(sizes) == total
    assert max(sizes) <= requested
    assert max(sizes) - min(sizes) <= 1
    assert len(sizes) == -(-total // requested)


def test_D2_any_size_trains():
    config = make_config(horizon_length=7, minibatch_size=50, max_epochs=1, mini_epochs=2)
    trainer = Trainer(Pendulum(13), config, "cpu", None)
    assert trainer.describe()["minibatches"] == 2
    assert trainer.describe()["minibatch_size"] == 46
    assert trainer.train().frames == 91


def make_batch() -> tuple[RolloutBuffer, Batch]:
    buffer = RolloutBuffer(num_envs=3, horizon=4, num_observations=2, num_actions=1, device="cpu")
    buffer.observations[..., 0] = torch.arange(3.0)[:, None]  # environment
    buffer.observations[..., 1] = torch.arange(4.0)  # time
    return buffer, buffer.batch(buffer.values, buffer.advantages, buffer.rewards, hidden_size=0)


def test_flat_batch_is_env_major_and_shares_memory():
    buffer, batch = make_batch()
    assert batch.observations[:, 0].tolist() == [0.0] * 4 + [1.0] * 4 + [2.0] * 4
    assert batch.observations[:, 1].tolist() == [0.0, 1.0, 2.0, 3.0] * 3
    first, second = batch.split([5, 7])
    assert (len(first), len(second)) == (5, 7)
    first.means.fill_(3.0)
    assert buffer.means.flatten().tolist() == [3.0] * 5 + [0.0] * 7


def test_gather_keeps_rows_together():
    _, batch = make_batch()
    batch.actions.copy_(torch.arange(12.0)[:, None])
    order = torch.randperm(12)
    shuffled = batch.gather(order, batch.empty_like())
    torch.testing.assert_close(shuffled.actions[:, 0], order.float())
    torch.testing.assert_close(shuffled.observations, batch.observations[order])
