"""The PPO losses as pure functions, one per equation; each returns one value per sample, shape [B]."""

from __future__ import annotations

import torch

MEAN_BOUND = 1.1
"""Action means beyond this magnitude are pulled back by `bounds_loss`."""


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
