from __future__ import annotations

import math

import pytest
import torch

from ppo.agent import Agent
from ppo.distributed import World
from ppo.normalize import RunningNormalizer
from tests.ppo.envs import Pendulum
from tests.ppo.settings import make_config


def test_first_merge_weighs_the_prior_as_one_sample():
    normalizer = RunningNormalizer(1)
    normalizer.update(torch.tensor([[2.0], [4.0], [6.0]]), World())
    # prior: one sample of mean 0, variance 1; batch: 3 of mean 4, variance 8/3
    assert normalizer.count.item() == 4.0
    assert normalizer.mean.item() == pytest.approx(3.0)
    assert normalizer.var.item() == pytest.approx((1.0 + 8.0 + 4.0**2 * 1.0 * 3.0 / 4.0) / 4.0)


def test_merging_parts_equals_merging_the_whole():
    torch.manual_seed(0)
    data = torch.randn(1000, 3) * torch.tensor([1.0, 10.0, 0.1]) + 5.0
    whole, parts = RunningNormalizer(3), RunningNormalizer(3)
    whole.update(data, World())
    for part in data.split([100, 350, 550]):
        parts.update(part, World())
    torch.testing.assert_close(parts.mean, whole.mean, rtol=1e-6, atol=0)
    torch.testing.assert_close(parts.var, whole.var, rtol=1e-5, atol=0)
    assert parts.count.item() == 1001.0


def test_normalize_clamps_and_denormalize_inverts():
    normalizer = RunningNormalizer(1)
    normalizer.mean.fill_(2.0)
    normalizer.var.fill_(9.0)
    x = torch.tensor([[2.0], [5.0], [100.0], [-100.0]])
    normalized = normalizer.normalize(x)
    torch.testing.assert_close(normalized, torch.tensor([[0.0], [3.0 / math.sqrt(9.00001)], [5.0], [-5.0]]))
    torch.testing.assert_close(normalizer.denormalize(normalized[:2]), x[:2])
    # outputs of the value head beyond 5 deviations are clamped first
    assert normalizer.denormalize(torch.tensor([[7.0]])).item() == pytest.approx(2.0 + 5.0 * 3.0, rel=1e-5)


def test_normalize_in_place():
    normalizer = RunningNormalizer(2)
    normalizer.update(torch.randn(100, 2) * 3.0, World())
    x = torch.randn(10, 2)
    expected = normalizer.normalize(x)
    assert normalizer.normalize(x, out=x) is x
    torch.testing.assert_close(x, expected)


def test_accumulators_are_float64():
    normalizer = RunningNormalizer(1)
    assert {normalizer.mean.dtype, normalizer.var.dtype, normalizer.count.dtype} == {torch.float64}


def test_values_merge_before_returns_and_the_count_grows_by_two_batches():
    agent = Agent(Pendulum(1), make_config(), torch.device("cpu"))
    values = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    returns = torch.tensor([[10.0, 20.0], [30.0, 60.0]])
    expected, results = RunningNormalizer(1), []
    for target in (values, returns):
        expected.update(target.reshape(-1, 1), World())
        results.append((target - expected.mean.float()) / torch.sqrt(expected.var.float() + 1e-5))
    normalized_values, normalized_returns = agent.normalize_targets(values, returns, World())
    torch.testing.assert_close(normalized_values, results[0])
    torch.testing.assert_close(normalized_returns, results[1])
    assert agent.value_normalizer.count.item() == 1.0 + 2 * 4
