"""Running normalisation of observations and values."""

from __future__ import annotations

import torch
from torch import nn

_EPS = 1e-5
_CLIP = 5.0


class RunningNormalizer(nn.Module):
    """Running mean and variance, merged by sample count; outputs are clamped to +-5.

    Accumulators are float64; mean 0, variance 1 and count 1 at the start, so the prior weighs one sample.
    Updating and normalising are separate calls: the learner decides when statistics move.
    """

    mean: torch.Tensor
    var: torch.Tensor
    count: torch.Tensor

    def __init__(self, size: int) -> None:
        """Create statistics for vectors of `size` features."""
        super().__init__()
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("var", torch.ones(size, dtype=torch.float64))
        self.register_buffer("count", torch.ones((), dtype=torch.float64))

    @torch.no_grad()
    def update(self, batch: torch.Tensor) -> None:
        """Merge the statistics of `batch` (..., size); one with a non-finite value changes nothing."""
        batch = batch.reshape(-1, self.mean.shape[0])
        mean = batch.mean(0)
        var = (batch - mean).square_().mean(0)  # several times faster than torch.var on tall CPU matrices
        finite = torch.isfinite(mean).all() & torch.isfinite(var).all()
        self.merge(mean.nan_to_num().double(), var.nan_to_num().double(), batch.shape[0] * finite)

    def merge(self, mean: torch.Tensor, var: torch.Tensor, count: int | torch.Tensor) -> None:
        """Merge another population's mean (size,), biased variance (size,) and sample count."""
        delta = mean - self.mean
        total = self.count + count
        sum_squares = self.var * self.count + var * count + delta.square() * (self.count * count / total)
        self.mean.add_(delta * (count / total))
        self.var.copy_(sum_squares / total)
        self.count.copy_(total)

    def normalize(self, x: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """Return (x - mean) / sqrt(var + 1e-5) clamped to +-5, shape (..., size); `out` may be `x` itself."""
        scale = torch.rsqrt(self.var.float() + _EPS)
        result = torch.sub(x, self.mean.float(), out=out)
        return result.mul_(scale).clamp_(-_CLIP, _CLIP)

    def denormalize(self, x: torch.Tensor) -> torch.Tensor:
        """Inverse of `normalize` after clamping x to +-5."""
        return x.clamp(-_CLIP, _CLIP) * torch.sqrt(self.var.float() + _EPS) + self.mean.float()
