"""Episode statistics and timers; tensors until they are read for logging."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ppo.distributed import World


class EpisodeTracker:
    """Raw return and length of the last finished episodes.

    `step` only writes tensors of fixed shape; `summary` is the one place that reads them.
    """

    def __init__(self, num_envs: int, horizon: int, window: int, device: torch.device) -> None:
        """Follow `num_envs` running episodes and keep the last `window` finished ones."""
        self.window = window
        self.running = torch.zeros(2, num_envs, device=device)
        """Return and length so far of each environment's current episode."""
        self.finished = torch.zeros(0, 2, device=device)
        """(at most window, 2) return and length, oldest first."""
        self._steps = torch.zeros(horizon, 2, num_envs, device=device)
        self._done = torch.zeros(horizon, num_envs, dtype=torch.bool, device=device)

    def part(self, envs: slice) -> EpisodeTracker:
        """A tracker of some of the environments, which this one steps; it keeps a window of its own."""
        part = copy.copy(self)
        part.running, part._steps, part._done = self.running[:, envs], self._steps[..., envs], self._done[:, envs]
        return part

    def step(self, t: int, rewards: torch.Tensor, dones: torch.Tensor) -> None:
        """Account for step t of the horizon: unscaled rewards (N,), dones (N,)."""
        self.running[0] += rewards
        self.running[1] += 1.0
        self._steps[t] = self.running
        self._done[t] = dones
        self.running *= ~self._done[t]

    def summary(self, world: World) -> dict[str, float]:
        """Means over the windows of all processes after a full horizon; NaN without episodes. Synchronises."""
        ended = self._steps.transpose(1, 2)[self._done]
        self.finished = torch.cat((self.finished, ended))[-self.window :]
        local = [*self.finished.sum(0).tolist(), len(self.finished), len(ended)]
        returns, lengths, count, episodes = world.sum(local)
        if count == 0:
            return {"reward_mean": float("nan"), "episode_length_mean": float("nan"), "episodes": episodes}
        return {"reward_mean": returns / count, "episode_length_mean": lengths / count, "episodes": episodes}

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Episodes in flight and the window."""
        return {"running": self.running, "finished": self.finished}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Restore; episodes in flight only if the number of environments is the same."""
        self.finished = state["finished"].to(self.finished)
        if state["running"].shape == self.running.shape:
            self.running.copy_(state["running"])


class MeanTracker:
    """Means of named scalars (`info["episode"]`) over an iteration."""

    def __init__(self) -> None:
        """Start empty."""
        self._values: dict[str, list[Any]] = {}
        self._last: dict[str, Any] | None = None

    def add(self, values: dict[str, Any]) -> None:
        """Add floats or 0-dim tensors; tensors are not read, only kept. The same dict again holds nothing new."""
        if values is self._last:
            return
        self._last = values
        for name, value in values.items():
            self._values.setdefault(name, []).append(value.clone() if torch.is_tensor(value) else value)

    def pop(self, prefix: str) -> dict[str, float]:
        """Return the means under `prefix/name` and start again. Synchronises."""
        means = {}
        for name, values in self._values.items():
            on_device = torch.is_tensor(values[0])
            means[f"{prefix}/{name}"] = float(torch.stack(values).float().mean()) if on_device else _mean(values)
        self._values.clear()
        return means


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


class Stopwatch:
    """Sums the time of marked stretches; on CUDA by events, so that measuring never waits."""

    def __init__(self, device: torch.device) -> None:
        """Start at zero."""
        self._cuda = device.type == "cuda"
        self._seconds = 0.0
        self._events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Count the time spent inside the block."""
        if self._cuda:  # pragma: needs cuda
            pair = (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
            pair[0].record()
            yield
            pair[1].record()
            self._events.append(pair)
        else:
            start = time.perf_counter()
            yield
            self._seconds += time.perf_counter() - start

    def pop(self) -> float:
        """Seconds since the last pop. Synchronises on CUDA."""
        if self._events:  # pragma: needs cuda
            self._events[-1][1].synchronize()
            self._seconds += sum(start.elapsed_time(end) for start, end in self._events) / 1000.0
            self._events.clear()
        seconds, self._seconds = self._seconds, 0.0
        return seconds


class RateWatch:
    """Tells when the adaptive learning rate has sat at one of its bounds for a while."""

    PATIENCE = 50
    """iterations at the bound before the one warning"""

    def __init__(self, min_rate: float, max_rate: float) -> None:
        """Watch a rate between two bounds."""
        self._bounds = {"min_lr": min_rate, "max_lr": max_rate}
        self._pinned = dict.fromkeys(self._bounds, 0)

    def check(self, rate: float) -> str | None:
        """Take this iteration's rate; returns a warning once each time a bound has held for PATIENCE iterations."""
        for name, bound in self._bounds.items():
            self._pinned[name] = self._pinned[name] + 1 if abs(rate - bound) <= 1e-6 * bound else 0
            if self._pinned[name] == self.PATIENCE:
                return f"the learning rate has been at {name}={bound:g} for {self.PATIENCE} iterations"
        return None
