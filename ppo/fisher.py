"""The part of an update that climbs, and the part that only moves the policy: Fisher signal and waste.

Source of the idea: CAPO (Mustafaoglu et al. 2026, arXiv 2603.12596): along the natural-gradient direction an update
improves the surrogate, Fisher-orthogonal to it it spends divergence without a first-order gain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch

from ppo.layers import plain_layers
from ppo.networks import ActorCritic, PolicyOutput

CG_STEPS = 10
"""Steps of the conjugate gradients that approximate the natural gradient; a fixed number, so nothing is read."""
DAMPING = 0.01
"""Added to the Fisher matrix when it is inverted, times its Rayleigh quotient along the gradient."""


class FisherSplit(NamedTuple):
    """The second-order divergence 1/2 d^T F d of an update d, in nats a sample, and its two parts."""

    signal: torch.Tensor
    """1/2 (d^T F n)^2 / (n^T F n): of the projection of d on the natural gradient n, in the norm of F"""
    waste: torch.Tensor
    """1/2 d^T F d - signal: of what is F-orthogonal to n, which changes the surrogate by nothing to first order"""
    forward: torch.Tensor
    """d^T F n / sqrt(d^T F d n^T F n), the cosine in the norm of F: negative where the update went downhill"""


def split(product: Callable[[torch.Tensor], torch.Tensor], update: torch.Tensor, gradient: torch.Tensor) -> FisherSplit:
    """Divide an update (P,) by the direction n = (F + damping)^-1 gradient, given v -> F v.

    The division is F-orthogonal whatever n came out as; damping and the number of steps only decide the direction.
    `gradient` is that of the surrogate to be raised, at the policy before the update.
    """
    scale = torch.dot(gradient, product(gradient)) / torch.dot(gradient, gradient)
    damping = DAMPING * scale
    natural = conjugate_gradients(lambda v: product(v) + damping * v, gradient, CG_STEPS)
    fisher_natural = product(natural)
    natural_square = torch.dot(natural, fisher_natural)
    along = torch.dot(update, fisher_natural)
    total = torch.dot(update, product(update))
    signal = along.square() / natural_square
    return FisherSplit(0.5 * signal, 0.5 * (total - signal), along / (total * natural_square).sqrt())


def conjugate_gradients(
    product: Callable[[torch.Tensor], torch.Tensor], target: torch.Tensor, steps: int
) -> torch.Tensor:
    """Approximate A^-1 target for a symmetric positive definite A, given v -> A v, in a fixed number of steps."""
    solution = torch.zeros_like(target)
    residual, direction = target.clone(), target.clone()
    square = torch.dot(residual, residual)
    tiny = torch.finfo(target.dtype).tiny
    for _ in range(steps):
        image = product(direction)
        length = square / torch.dot(direction, image).clamp_min(tiny)
        solution = solution + length * direction
        residual = residual - length * image
        new_square = torch.dot(residual, residual)
        direction = residual + (new_square / square.clamp_min(tiny)) * direction
        square = new_square
    return solution


class GaussianFisher:
    """Products with the Fisher matrix of a Gaussian policy, averaged over the states of a batch.

    F = mean over states of J^T J, J the Jacobian of (mean / sigma, sqrt(2) log sigma) with sigma held fixed: the
    expectation over actions is done analytically. Products differentiate the network twice.
    """

    def __init__(self, output: PolicyOutput, parameters: Sequence[torch.Tensor]) -> None:
        """Take the policy's output, computed with gradients inside `differentiable_twice`, and its parameters."""
        mean, log_std = output.mean, output.log_std.expand_as(output.mean)
        states = mean[..., 0].numel()
        statistics = torch.cat(((mean * torch.exp(-log_std.detach())).flatten(), math.sqrt(2.0) * log_std.flatten()))
        self._statistics = statistics / math.sqrt(states)
        self._parameters = list(parameters)
        self._cotangent = torch.zeros_like(self._statistics, requires_grad=True)
        transposed = torch.autograd.grad(self._statistics, self._parameters, self._cotangent, create_graph=True)
        self._transposed = torch.cat([part.flatten() for part in transposed])

    def __call__(self, vector: torch.Tensor) -> torch.Tensor:
        """Return F v (P,) for v (P,)."""
        # J v is the derivative by w of (J^T w) . v, which is linear in w.
        (pushed,) = torch.autograd.grad(self._transposed, self._cotangent, vector, retain_graph=True)
        pulled = torch.autograd.grad(self._statistics, self._parameters, pushed, retain_graph=True)
        return torch.cat([part.flatten() for part in pulled])


@contextmanager
def differentiable_twice(network: ActorCritic) -> Iterator[None]:
    """Inside, the network runs in float32 and on operators that can be differentiated twice, with gradients on."""
    autocast, network.autocast = network.autocast, None
    try:
        with plain_layers(), torch.enable_grad():
            yield
    finally:
        network.autocast = autocast
