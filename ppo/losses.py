"""The PPO losses as pure functions, one per equation; each returns one value per sample, shape [B]."""

from __future__ import annotations

import math

import torch

MEAN_BOUND = 1.1
"""Action means beyond this magnitude are pulled back by `bounds_loss`."""
_MAX_LOG_RATIO = 60.0
"""Ratios that only select or scale a constant stay finite below this; e^60 is far beyond any cap."""


def policy_loss(log_ratio: torch.Tensor, advantage: torch.Tensor, clip: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Clipped surrogate max(-A r, -A clip(r, 1 - clip, 1 + clip)), r = exp(log_ratio).

    Args:
        log_ratio: [B] log pi_theta(a|s) - log pi_behaviour(a|s).
        advantage: [B].
        clip: half-width of the trust interval around 1.

    Returns:
        (loss [B], ratio [B]).
    """
    ratio = torch.exp(log_ratio)
    clipped = ratio.clamp(1.0 - clip, 1.0 + clip)
    return -torch.minimum(advantage * ratio, advantage * clipped), ratio


def capped_behaviour(log_prob: torch.Tensor, behaviour: torch.Tensor, max_ratio: float) -> torch.Tensor:
    """Log-probability [B] of the behaviour policy, raised where pi_theta / pi_behaviour would exceed `max_ratio`."""
    return torch.maximum(behaviour, log_prob.detach() - math.log(max_ratio))


def decoupled_policy_loss(
    log_prob: torch.Tensor,
    behaviour: torch.Tensor,
    proximal: torch.Tensor,
    advantage: torch.Tensor,
    clip: float,
    max_ratio: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Decoupled surrogate -(pi_k / pi_b) min(u A, clip(u, 1 - clip, 1 + clip) A), u = pi_theta / pi_k.

    Hilton, Cobbe, Schulman 2021 (arXiv 2110.00641). With pi_k = pi_b it is `policy_loss`, bit for bit. The first
    term is formed as (pi_theta / pi_b) A, from log-probabilities, so that no intermediate ratio can overflow.

    Args:
        log_prob: [B] log pi_theta(a|s).
        behaviour: [B] log pi_b(a|s) of the policy that collected.
        proximal: [B] log pi_k(a|s) of the policy that the step stays near.
        advantage: [B].
        clip: half-width of the trust interval around 1.
        max_ratio: cap of pi_theta / pi_b, see `capped_behaviour`.

    Returns:
        (loss [B], u [B]).
    """
    behaviour = capped_behaviour(log_prob, behaviour, max_ratio)
    ratio = proximal_ratio(log_prob, proximal)
    weight = torch.exp((proximal - behaviour).clamp_max(_MAX_LOG_RATIO))
    clipped = ratio.clamp(1.0 - clip, 1.0 + clip) * weight
    return -torch.minimum(advantage * torch.exp(log_prob - behaviour), advantage * clipped), ratio


def penalised_policy_loss(
    log_prob: torch.Tensor,
    behaviour: torch.Tensor,
    proximal: torch.Tensor,
    advantage: torch.Tensor,
    coefficient: float,
    max_ratio: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Decoupled surrogate with a penalty: -(pi_theta / pi_b) A + coefficient (log pi_theta - log pi_k)^2 / 2.

    Arguments and results are those of `decoupled_policy_loss`; the penalty estimates the KL divergence.
    """
    ratio = torch.exp(log_prob - capped_behaviour(log_prob, behaviour, max_ratio))
    penalty = (0.5 * coefficient) * (log_prob - proximal).square()
    return penalty - advantage * ratio, proximal_ratio(log_prob, proximal)


def proximal_ratio(log_prob: torch.Tensor, proximal: torch.Tensor) -> torch.Tensor:
    """Ratio u = pi_theta / pi_k [B], finite however far apart the policies are."""
    return torch.exp((log_prob - proximal).clamp_max(_MAX_LOG_RATIO))


def value_loss(value: torch.Tensor, old_value: torch.Tensor, target: torch.Tensor, clip: float | None) -> torch.Tensor:
    """Squared error; with `clip`, the worse of it and the error of the value kept within `clip` of the old one."""
    error = (value - target).square()
    if clip is None:
        return error
    clipped = old_value + (value - old_value).clamp(-clip, clip)
    return torch.maximum(error, (clipped - target).square())


def bounds_loss(mean: torch.Tensor) -> torch.Tensor:
    """Squared excess of action means [B, A] beyond +-MEAN_BOUND, summed over actions."""
    return (mean.abs() - MEAN_BOUND).clamp_min(0.0).square().sum(-1)
