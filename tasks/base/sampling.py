"""One randomised quantity: its parsed description, its schedule, and how values and noise are drawn."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from typing import Any, Mapping

import numpy as np
import torch
from torch import Tensor

from tasks.base.errors import TaskError

_PROPERTY_DISTRIBUTIONS = ("uniform", "loguniform", "gaussian")
_NOISE_DISTRIBUTIONS = ("uniform", "gaussian")
_KEYS = {"range", "operation", "distribution", "schedule", "schedule_steps"}
_PROPERTY_KEYS = _KEYS | {"setup_only", "num_buckets"}
_NOISE_KEYS = _KEYS | {"range_correlated"}


@dataclass(frozen=True)
class Randomization:
    """How a quantity varies.

    `bounds` are the ends of the range, or mean and standard deviation of a gaussian. Until the schedule is over, an
    additive change grows from 0 and a factor from 1.
    """

    bounds: tuple[float, float]
    operation: str
    distribution: str
    schedule: str | None = None
    schedule_steps: int = 1
    setup_only: bool = False
    num_buckets: int = 0
    correlated: tuple[float, float] = (0.0, 0.0)

    def progress(self, frame: int) -> float:
        """Share of the change, in [0, 1], at a simulated frame."""
        if self.schedule == "linear":
            return min(frame, self.schedule_steps) / self.schedule_steps
        if self.schedule == "constant":
            return float(frame >= self.schedule_steps)
        return 1.0

    def effective(self, bounds: tuple[float, float], frame: int) -> tuple[float, float]:
        """Bounds as the schedule leaves them at a simulated frame."""
        share = self.progress(frame)
        neutral = 1.0 - share if self.operation == "scaling" else 0.0
        spread = 0.0 if self.distribution == "gaussian" else neutral
        return bounds[0] * share + neutral, bounds[1] * share + spread

    def sample(self, shape: tuple[int, ...], frame: int, rng: np.random.Generator) -> np.ndarray:
        """Independent changes of the given shape."""
        low, high = self.effective(self.bounds, frame)
        if self.distribution == "gaussian":
            return rng.normal(low, high, shape)
        if self.distribution == "loguniform":
            return np.exp(rng.uniform(math.log(low), math.log(high), shape))
        return rng.uniform(low, high, shape)

    def apply(self, original: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Original values with the changes added or multiplied, then rounded down to a bucket if there are any."""
        values = original * change if self.operation == "scaling" else original + change
        return self.bucketed(values) if self.num_buckets else values

    def bucketed(self, values: np.ndarray) -> np.ndarray:
        """Largest bucket edge at or below each value; below the first edge comes the last one."""
        if self.distribution == "uniform":
            low, high = self.bounds
        else:
            low, high = (self.bounds[0] + sign * 2.0 * math.sqrt(self.bounds[1]) for sign in (-1.0, 1.0))
        edges = [low + (high - low) * i / self.num_buckets for i in range(self.num_buckets)]
        picks = [edges[bisect.bisect(edges, value) - 1] for value in np.asarray(values).flat]
        return np.array(picks).reshape(np.shape(values))


def parse(where: str, description: Any, noise: bool = False) -> Randomization:
    """Check one description of the config, found at `where`.

    Raises:
        TaskError: a key is unknown or missing, or a value is not allowed; the message names it.
    """
    if not isinstance(description, Mapping):
        raise TaskError(f"{where} must have the keys range, operation and distribution")
    allowed = _NOISE_KEYS if noise else _PROPERTY_KEYS
    for key in description:
        if key not in allowed:
            raise TaskError(f"{where}.{key} is unknown; allowed are {', '.join(sorted(allowed))}")
    operation = _choice(where, description, "operation", ("additive", "scaling"))
    distribution = _choice(
        where, description, "distribution", _NOISE_DISTRIBUTIONS if noise else _PROPERTY_DISTRIBUTIONS
    )
    schedule = description.get("schedule")
    if schedule is not None:
        _choice(where, description, "schedule", ("linear", "constant"))
        if int(description.get("schedule_steps", 0)) < 1:
            raise TaskError(f"{where}.schedule_steps must be at least 1")
    bounds = _pair(where, description, "range")
    if distribution == "loguniform" and min(bounds) <= 0.0:
        raise TaskError(f"{where}.range must be positive for loguniform")
    if distribution == "gaussian" and bounds[1] < 0.0:
        raise TaskError(f"{where}.range: the standard deviation is negative")
    return Randomization(
        bounds=bounds,
        operation=operation,
        distribution=distribution,
        schedule=schedule,
        schedule_steps=int(description.get("schedule_steps", 1)),
        setup_only=bool(description.get("setup_only", False)),
        num_buckets=int(description.get("num_buckets", 0)),
        correlated=_pair(where, description, "range_correlated") if "range_correlated" in description else (0.0, 0.0),
    )


def _choice(where: str, description: Mapping[str, Any], key: str, allowed: tuple[str, ...]) -> str:
    value = description.get(key)
    if value not in allowed:
        raise TaskError(f"{where}.{key} is {value!r}; allowed are {', '.join(allowed)}")
    return str(value)


def _pair(where: str, description: Mapping[str, Any], key: str) -> tuple[float, float]:
    value = description.get(key)
    try:
        low, high = (float(v) for v in value)  # type: ignore[union-attr]
    except (TypeError, ValueError):
        raise TaskError(f"{where}.{key} is {value!r}; two numbers are needed") from None
    return low, high


class Noise:
    """Noise on a whole tensor, drawn anew at every call; a second, correlated part stays until the next refresh."""

    def __init__(self, description: Randomization, operation: str, correlated_starts_at_one: bool) -> None:
        """Prepare the noise at frame 0.

        Args:
            description: ranges, distribution and schedule.
            operation: "additive" or "scaling".
            correlated_starts_at_one: schedule the correlated part of a factor from 1 instead of from 0 (Q21).
        """
        self.description = description
        self.operation = operation
        self.correlated_starts_at_one = correlated_starts_at_one
        self.held: Tensor | None = None
        self.refresh(0)

    def refresh(self, frame: int) -> None:
        """Follow the schedule to a simulated frame and forget the correlated part."""
        description = self.description
        self.bounds = description.effective(description.bounds, frame)
        if self.correlated_starts_at_one:
            self.correlated = description.effective(description.correlated, frame)
        else:
            share = description.progress(frame)
            self.correlated = (description.correlated[0] * share, description.correlated[1] * share)
        self.held = None

    def __call__(self, values: Tensor) -> Tensor:
        """Values with noise."""
        if self.held is None:
            self.held = torch.randn_like(values)
        if self.description.distribution == "gaussian":
            noise = torch.randn_like(values) * self.bounds[1] + self.bounds[0]
            noise += self.held * self.correlated[1] + self.correlated[0]
        else:
            noise = torch.rand_like(values) * (self.bounds[1] - self.bounds[0]) + self.bounds[0]
            noise += self.held * (self.correlated[1] - self.correlated[0]) + self.correlated[0]
        return values * noise if self.operation == "scaling" else values + noise

    def get_state(self) -> dict[str, Any]:
        """Scheduled bounds and the correlated part."""
        held = None if self.held is None else self.held.clone()
        return {"bounds": self.bounds, "correlated": self.correlated, "held": held}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned."""
        self.bounds = tuple(state["bounds"])
        self.correlated = tuple(state["correlated"])
        self.held = state["held"]
