"""The path that a vector of parameters takes, one outer step after the other."""

from __future__ import annotations

from collections import deque

import torch

SNAPSHOTS = 8
"""Positions kept to measure net displacement; the window is exact to within one part in this many."""


class StepGeometry:
    """Length of each step, angle to the step before, and how much of a window's path was progress.

    All results are 0-dim tensors on the vectors' device; nothing is read on the host. Definitions, d_k = x_{k+1} - x_k:

    - `parameter_step` |d_k|;
    - `update_cosine` d_k . d_{k-1} / (|d_k| |d_{k-1}|), NaN for the first step. Plain stochastic gradient descent
      with step eta, at rest in a quadratic bowl of curvature h, has -eta h / 2: steps that cancel are negative;
    - `path_length` the sum of |d| over the last `window` steps (between 7/8 of them and all);
    - `net_displacement` |x_{k+1} - x_start| over the same steps;
    - `straightness` their ratio: 1 on a straight line, 1/sqrt(n) for n independent steps.
    """

    def __init__(self, window: int) -> None:
        """Look back over `window` steps."""
        self._spacing = max(1, window // SNAPSHOTS)
        self._snapshots: deque[tuple[torch.Tensor, torch.Tensor]] = deque(maxlen=max(1, window // self._spacing))
        self._steps = 0
        self._path: torch.Tensor | None = None
        self._previous: torch.Tensor | None = None

    def step(self, before: torch.Tensor, after: torch.Tensor) -> dict[str, torch.Tensor]:
        """Take one step from `before` to `after`, both (P,), which are kept and must not change afterwards."""
        change = after - before
        length = change.norm()
        if self._path is None or self._previous is None:
            self._path = torch.zeros_like(length)
            self._previous = torch.zeros_like(change)
        if self._steps % self._spacing == 0:
            self._snapshots.append((before, self._path))
        cosine = torch.dot(change, self._previous) / (length * self._previous.norm())
        self._path = self._path + length
        self._previous = change
        self._steps += 1
        start, path_before = self._snapshots[0]
        path, net = self._path - path_before, (after - start).norm()
        return {
            "parameter_step": length,
            "update_cosine": cosine,
            "path_length": path,
            "net_displacement": net,
            "straightness": net / path,
        }
