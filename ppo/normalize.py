"""Running normalisation of observations and values."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import torch
from torch import nn

from ppo.distributed import World

_EPS = 1e-5
_CLIP = 5.0


class Moments(NamedTuple):
    """Mean and biased variance (size,) of a number of samples, in float64."""

    mean: torch.Tensor
    var: torch.Tensor
    samples: torch.Tensor


def moments(samples: torch.Tensor, world: World) -> Moments:
    """Moments of (n, size) samples over all processes; if they are not finite the number is 0."""
    mean = samples.mean(0)
    var = (samples - mean).square_().mean(0)  # several times faster than torch.var on tall CPU matrices
    finite = torch.isfinite(mean).all() & torch.isfinite(var).all()
    count = (samples.shape[0] * finite).double().view(1)
    local = torch.cat((mean.nan_to_num().double(), var.nan_to_num().double(), count))
    size = mean.shape[0]
    return reduce(merge, (Moments(part[:size], part[size:-1], part[-1]) for part in world.gather(local)))


def merge(a: Moments, b: Moments) -> Moments:
    """Moments of two populations together."""
    delta = b.mean - a.mean
    total = (a.samples + b.samples).clamp_min(1.0)
    sum_squares = a.var * a.samples + b.var * b.samples + delta.square() * (a.samples * b.samples / total)
    return Moments(a.mean + delta * (b.samples / total), sum_squares / total, a.samples + b.samples)


def standardize(x: torch.Tensor, world: World) -> torch.Tensor:
    """Shift and scale x to mean 0 and (unbiased) standard deviation 1 over all elements and processes."""
    mean, var, samples = moments(x.reshape(-1, 1), world)
    std = torch.sqrt(var * samples / (samples - 1.0).clamp_min(1.0))
    return (x - mean.float()) / (std.float() + 1e-8)


class RunningNormalizer(nn.Module):
    """Running mean and variance, merged by sample count; outputs are clamped to +-5.

    Accumulators are float64; mean 0, variance 1 and count 1 at the start, so the prior weighs one sample.
    Updating and normalising are separate calls: the learner decides when statistics move. Columns after the first
    `size` are no quantities but labels (SAPG's block ids) and stay as they are.
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
    def update(self, batch: torch.Tensor, world: World) -> None:
        """Merge the statistics of `batch` (..., size) of every process; one with a non-finite value counts nothing."""
        size = self.mean.shape[0]
        new = moments(batch[..., :size].reshape(-1, size), world)
        mean, var, count = merge(Moments(self.mean, self.var, self.count), new)
        self.mean.copy_(mean)
        self.var.copy_(var)
        self.count.copy_(count)

    def normalize(self, x: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """Return (x - mean) / sqrt(var + 1e-5) clamped to +-5, shape (..., size); `out` may be `x` itself."""
        size = self.mean.shape[0]
        if x.shape[-1] > size:
            if out is None:
                return torch.cat((self.normalize(x[..., :size]), x[..., size:]), dim=-1)
            self.normalize(x[..., :size], out=out[..., :size])
            out[..., size:] = x[..., size:]
            return out
        scale = torch.rsqrt(self.var.float() + _EPS)
        result = torch.sub(x, self.mean.float(), out=out)
        return result.mul_(scale).clamp_(-_CLIP, _CLIP)

    def denormalize(self, x: torch.Tensor) -> torch.Tensor:
        """Inverse of `normalize` after clamping x to +-5."""
        return x.clamp(-_CLIP, _CLIP) * torch.sqrt(self.var.float() + _EPS) + self.mean.float()
