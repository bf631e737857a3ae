from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Independent, Normal, kl_divergence

from ppo import distributions


@pytest.fixture
def gaussians() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(50, 4), 0.5 * torch.randn(50, 4), torch.randn(50, 4), 0.5 * torch.randn(50, 4)]


def normal(mean: torch.Tensor, log_std: torch.Tensor) -> Independent:
    return Independent(Normal(mean, log_std.exp()), 1)


def test_log_prob_and_entropy_match_torch(gaussians):
    mean, log_std, actions, _ = gaussians
    reference = normal(mean, log_std)
    torch.testing.assert_close(distributions.log_prob(actions, mean, log_std), reference.log_prob(actions))
    torch.testing.assert_close(distributions.entropy(log_std), reference.entropy())


def test_sample_returns_its_own_log_prob(gaussians):
    mean, log_std, _, _ = gaussians
    actions, log_prob = distributions.sample(mean, log_std)
    torch.testing.assert_close(log_prob, normal(mean, log_std).log_prob(actions))


def test_sample_has_the_right_moments():
    torch.manual_seed(0)
    mean, log_std = torch.tensor([1.0, -2.0]).expand(20000, 2), torch.tensor([0.0, -1.0]).expand(20000, 2)
    actions, _ = distributions.sample(mean, log_std)
    torch.testing.assert_close(actions.mean(0), torch.tensor([1.0, -2.0]), atol=0.03, rtol=0)
    torch.testing.assert_close(actions.std(0), torch.tensor([1.0, math.exp(-1)]), atol=0.02, rtol=0)


def test_D5_exact_kl_matches_torch_both_ways(gaussians):
    mean_p, log_std_p, mean_q, log_std_q = gaussians
    p, q = normal(mean_p, log_std_p), normal(mean_q, log_std_q)
    torch.testing.assert_close(distributions.kl_divergence(*gaussians), kl_divergence(p, q))
    reverse = distributions.kl_divergence(mean_q, log_std_q, mean_p, log_std_p)
    torch.testing.assert_close(reverse, kl_divergence(q, p))
    assert distributions.kl_divergence(mean_p, log_std_p, mean_p, log_std_p).abs().max() == 0.0


@pytest.mark.parametrize(("sigma", "bias"), [(1.0, 1.0e-4), (0.1, -0.0098), (0.03, -0.11)])
def test_D5_rl_games_kl_of_equal_distributions_is_biased(sigma, bias):
    mean, log_std = torch.zeros(1, 20), torch.full((1, 20), math.log(sigma))
    kl = distributions.kl_divergence_rl_games(mean, log_std, mean, log_std)
    assert kl.item() == pytest.approx(bias, rel=0.05)


def test_D5_rl_games_kl_is_the_exact_one_up_to_its_epsilons(gaussians):
    exact = distributions.kl_divergence(*gaussians)
    torch.testing.assert_close(distributions.kl_divergence_rl_games(*gaussians), exact, atol=2e-3, rtol=1e-3)
