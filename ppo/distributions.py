"""Diagonal Gaussian maths on plain tensors (no Distribution objects on the hot path).

Shapes: actions and mean are (..., A), log_std broadcasts against them; results are (...), or a scalar where only
log_std of shape (A,) matters.
"""

from __future__ import annotations

import math

import torch

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_KL_EPS = 1e-5


def sample(mean: torch.Tensor, log_std: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw actions; returns (actions (..., A), log-probabilities (...))."""
    noise = torch.randn_like(mean)
    actions = torch.addcmul(mean, log_std.exp(), noise)
    log_prob = -(noise.square_().mul_(0.5) + log_std + LOG_SQRT_2PI).sum(-1)
    return actions, log_prob


def log_prob(actions: torch.Tensor, mean: torch.Tensor, log_std: torch.Tensor) -> torch.Tensor:
    """Log-density of the actions."""
    standardised = (actions - mean) * torch.exp(-log_std)
    return -(0.5 * standardised.square() + log_std + LOG_SQRT_2PI).sum(-1)


def entropy(log_std: torch.Tensor) -> torch.Tensor:
    """Differential entropy; independent of the mean."""
    return (log_std + (0.5 + LOG_SQRT_2PI)).sum(-1)


def kl_divergence(
    mean_p: torch.Tensor, log_std_p: torch.Tensor, mean_q: torch.Tensor, log_std_q: torch.Tensor
) -> torch.Tensor:
    """Exact KL(p || q), zero for equal distributions; expm1 keeps the digits of small divergences in float32."""
    log_variance_ratio = 2.0 * (log_std_p - log_std_q)
    mean_term = (mean_p - mean_q).square() * torch.exp(-2.0 * log_std_q)
    return 0.5 * (torch.expm1(log_variance_ratio) - log_variance_ratio + mean_term).sum(-1)


def kl_divergence_rl_games(
    mean_p: torch.Tensor, log_std_p: torch.Tensor, mean_q: torch.Tensor, log_std_q: torch.Tensor
) -> torch.Tensor:
    """KL(p || q) with rl_games' two epsilons, which bias it: +1e-4 at 20 equal dims of sigma 1, -0.11 at 0.03."""
    std_p, std_q = log_std_p.exp(), log_std_q.exp()
    log_term = torch.log(std_q / std_p + _KL_EPS)
    square_term = (std_p.square() + (mean_p - mean_q).square()) / (2.0 * (std_q.square() + _KL_EPS))
    return (log_term + square_term - 0.5).sum(-1)
