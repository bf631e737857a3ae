"""How noisy a gradient is: the simple noise scale of McCandlish et al. 2018 (arXiv 1812.06162, appendix A.1)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

MEMORY = 0.9
"""Weight of the past in the running averages of signal and noise, whose ratio the noise scale is."""


def signal_and_noise(
    small_square: torch.Tensor, big_square: torch.Tensor, small: float, big: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Unbiased estimates of the true gradient's squared norm |G|^2 and of the noise tr(Sigma) of one sample.

    E|g_n|^2 = |G|^2 + tr(Sigma) / n for the mean gradient of n samples, solved for the two unknowns.

    Args:
        small_square: mean of |g|^2 over gradients of `small` samples each.
        big_square: |g|^2 of the gradient of `big` samples.
        small: samples of a small batch.
        big: samples of the big one; both are NaN if it is no bigger.
    """
    if big <= small:
        return torch.full_like(big_square, torch.nan), torch.full_like(big_square, torch.nan)
    signal = (big * big_square - small * small_square) / (big - small)
    noise = (small_square - big_square) / (1.0 / small - 1.0 / big)
    return signal, noise


def squares(gradients: Sequence[torch.Tensor], weights: Sequence[float]) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean of |g|^2 over gradients (P,), and |mean g|^2; weights are their shares of the samples and sum to 1."""
    mean = sum((g * w for g, w in zip(gradients, weights, strict=True)), torch.zeros_like(gradients[0]))
    small = torch.stack([g.square().sum() for g in gradients]).mean()
    return small, mean.square().sum()


class NoiseScale:
    """Running averages of signal and noise; their ratio is the noise scale.

    Single estimates scatter and the signal's may even be negative, so that ratios of averages are used, not averages
    of ratios.
    """

    def __init__(self) -> None:
        """Start without an estimate."""
        self._averages: torch.Tensor | None = None

    def update(self, signal: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """Return tr(Sigma) / |G|^2 in samples; NaN while the average signal is not positive."""
        new = torch.stack((signal, noise))
        self._averages = new if self._averages is None else torch.lerp(new, self._averages, MEMORY)
        average_signal, average_noise = self._averages.unbind()
        return torch.where(average_signal > 0.0, average_noise / average_signal, torch.nan)
