"""Episode statistics: named per-step values, summed or averaged over each of the episodes that have just ended."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Table:
    """Running sums of per-step values, without a host synchronisation.

    The last row of `sums` counts the steps; an episode that counts none is left out of the means.
    """

    def __init__(self, num_envs: int, device: str, prefix: str = "", average: bool = False) -> None:
        """Start empty; the names come with the first `add`.

        Args:
            num_envs: N.
            device: where the sums live.
            prefix: put before each name in reports.
            average: an episode counts with its mean over its steps instead of its sum.
        """
        self.num_envs = num_envs
        self.device = device
        self.prefix = prefix
        self.average = average
        self.divisor = 1.0
        """Reported means are divided by it."""
        self.names: list[str] = []
        self._allocate([])

    def _allocate(self, names: list[str]) -> None:
        self.names = names
        self.sums = torch.zeros(len(names) + 1, self.num_envs, device=self.device)
        self.means = torch.zeros(len(names), device=self.device)

    def add(self, names: list[str], values: Tensor) -> None:
        """Add one step's values, (K, N), in the order of `names`."""
        if names != self.names:
            self._allocate(names)
        self.sums[:-1] += values
        self.sums[-1] += 1.0

    def drop(self, mask: Tensor) -> None:
        """Forget the running episodes of the envs in `mask` (N,) bool."""
        self.sums.masked_fill_(mask, 0.0)

    def finish(self, ids: Tensor) -> None:
        """Take the means over the episodes that end in envs `ids` (K,), and start these afresh.

        Without a countable episode the previous means stay.
        """
        ended = self.sums[:, ids]
        self.sums.index_fill_(1, ids, 0.0)
        counted = torch.count_nonzero(ended[-1])
        values = ended[:-1] / ended[-1].clamp(min=1.0) if self.average else ended[:-1]
        means = values.sum(dim=1) / (counted.clamp(min=1) * self.divisor)
        self.means = torch.where(counted > 0, means, self.means)

    def running(self) -> dict[str, Tensor]:
        """Sum, or mean over the steps, of each value (N,) in every env's running episode."""
        values = self.sums[:-1] / self.sums[-1].clamp(min=1.0) if self.average else self.sums[:-1].clone()
        return dict(zip(self.names, values))

    def report(self) -> dict[str, Tensor]:
        """The latest means as prefixed name -> 0-dim tensor."""
        return {f"{self.prefix}{name}": self.means[i] for i, name in enumerate(self.names)}

    def get_state(self) -> dict[str, Any]:
        """Names, sums and means."""
        return {"names": list(self.names), "sums": self.sums.clone(), "means": self.means.clone()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned."""
        self._allocate(list(state["names"]))
        self.sums.copy_(state["sums"])
        self.means.copy_(state["means"])


class Statistics:
    """The three tables of a task: sums of reward terms, means of measured quantities, totals of counted events."""

    def __init__(self, num_envs: int, device: str) -> None:
        """Start empty."""
        self.rewards = Table(num_envs, device, prefix="rew_")
        self.means = Table(num_envs, device, average=True)
        self.totals = Table(num_envs, device)
        self._tables = {"rewards": self.rewards, "means": self.means, "totals": self.totals}

    def finish(self, ids: Tensor) -> None:
        """Close the episodes of envs `ids` (K,)."""
        for table in self._tables.values():
            table.finish(ids)

    def drop(self, mask: Tensor) -> None:
        """Forget the running episodes of the envs in `mask` (N,) bool."""
        for table in self._tables.values():
            table.drop(mask)

    def report(self) -> dict[str, Tensor]:
        """Means over the episodes that ended last, by name."""
        return {name: mean for table in self._tables.values() for name, mean in table.report().items()}

    def running(self) -> dict[str, Tensor]:
        """Measured and counted values (N,) of the running episodes."""
        return {**self.means.running(), **self.totals.running()}

    def get_state(self) -> dict[str, Any]:
        """State of the tables."""
        return {name: table.get_state() for name, table in self._tables.items()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned."""
        for name, table in self._tables.items():
            table.set_state(state[name])
