"""Learning-rate schedules. The rate stays a tensor, so adapting it never synchronises the device."""

from __future__ import annotations

import torch

FACTOR = 1.5
"""Step of the adaptive rate."""


def adapt_to_kl(
    rate: torch.Tensor, kl: torch.Tensor, threshold: float, min_rate: float, max_rate: float
) -> torch.Tensor:
    """KL-adaptive rule on 0-dim tensors: rate/1.5 above 2*threshold, rate*1.5 below threshold/2, within bounds.

    A KL that is not finite never raises the rate: an infinite one lowers it, NaN (a skipped update) keeps it.
    """
    lowered = (rate / FACTOR).clamp_min(min_rate)
    raised = (rate * FACTOR).clamp_max(max_rate)
    too_near = (kl < 0.5 * threshold) & torch.isfinite(kl)
    return torch.where(kl > 2.0 * threshold, lowered, torch.where(too_near, raised, rate))


def linear_decay(initial: float, final: float, progress: float) -> float:
    """Line from `initial` at progress 0 to `final` at progress 1 and beyond."""
    return final + (initial - final) * max(0.0, 1.0 - progress)
