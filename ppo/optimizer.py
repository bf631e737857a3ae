"""Adam that never takes a step from a loss or gradient that is not finite, and never waits for the device."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

_FIRST_SCALE = 2.0**16
_GOOD_STEPS_TO_GROW = 2000


class GuardedAdam:
    """Adam with gradient clipping; learning rate, gradient norm and loss scale are tensors on the device.

    With `scale_loss` (needed for float16) losses are multiplied before the backward pass by a factor that halves
    after an overflow and doubles after 2000 good steps.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        rate: float,
        max_norm: float | None,
        weight_decay: float = 0.0,
        scale_loss: bool = False,
    ) -> None:
        """Start at `rate`; gradients are clipped to `max_norm` unless it is None."""
        self.parameters = list(parameters)
        device = self.parameters[0].device
        self.rate = torch.tensor(rate, device=device)
        self.max_norm = max_norm
        self._adam = torch.optim.Adam(self.parameters, lr=self.rate, eps=1e-8, weight_decay=weight_decay, fused=True)
        self._scale = torch.tensor(_FIRST_SCALE, device=device) if scale_loss else None
        self._good_steps = torch.zeros((), device=device)

    def zero_grad(self) -> None:
        """Drop the gradients."""
        self._adam.zero_grad(set_to_none=True)

    def backward(self, loss: torch.Tensor) -> None:
        """Add the gradients of a loss."""
        (loss if self._scale is None else loss * self._scale).backward()

    def gradients(self) -> list[torch.Tensor]:
        """The accumulated gradients, the same tensors that `step` uses."""
        return [p.grad for p in self.parameters if p.grad is not None]

    def step(self, loss: torch.Tensor) -> torch.Tensor:
        """Apply the gradients of `loss`, clipped; returns their norm before clipping, NaN if the step was skipped."""
        gradients = self.gradients()
        if self._scale is not None:
            torch._foreach_mul_(gradients, 1.0 / self._scale)
        norm = get_total_norm(gradients)
        norm = torch.where(torch.isfinite(norm) & torch.isfinite(loss), norm, torch.nan)
        if self.max_norm is not None:
            clip_grads_with_norm_(self.parameters, self.max_norm, norm)
        self._adam.found_inf = norm.isnan().float()  # type: ignore[attr-defined]  # fused Adam then leaves all as is
        self._adam.step()
        if self._scale is not None:
            self._adapt_scale(norm.isnan())
        return norm

    def _adapt_scale(self, skipped: torch.Tensor) -> None:
        assert self._scale is not None
        self._good_steps.copy_(torch.where(skipped, 0.0, self._good_steps + 1.0))
        grow = self._good_steps == _GOOD_STEPS_TO_GROW
        self._scale.mul_(torch.where(skipped, 0.5, torch.where(grow, 2.0, 1.0)))
        self._good_steps.mul_(~grow)

    def tensors(self) -> list[torch.Tensor]:
        """What steps change beside the parameters and the rate: moments, step counts, loss scale.

        Moments and counts that no step has made yet are made here, at zero.
        """
        state = [] if self._scale is None else [self._scale, self._good_steps]
        for parameter in self.parameters:
            moments = self._adam.state[parameter]
            if not moments:
                moments["step"] = torch.zeros((), device=parameter.device)
                moments["exp_avg"], moments["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
            state += moments.values()
        return state

    def restart(self) -> None:
        """Forget all moments and step counts."""
        for moments in self._adam.state.values():
            for tensor in moments.values():
                tensor.zero_()

    def set_rate(self, rate: float) -> None:
        """Set the learning rate in place: optimiser and schedule share one tensor."""
        self.rate.fill_(rate)

    def state_dict(self) -> dict[str, Any]:
        """Moments, step counts, rate and loss scale."""
        return {"adam": self._adam.state_dict(), "scale": self._scale, "good_steps": self._good_steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned; the rate stays the tensor that the schedule writes."""
        self._adam.load_state_dict(state["adam"])
        self.rate.copy_(self._adam.param_groups[0]["lr"])
        for group in self._adam.param_groups:
            group["lr"] = self.rate
        if self._scale is not None and state["scale"] is not None:
            self._scale.copy_(state["scale"])
            self._good_steps.copy_(state["good_steps"])
