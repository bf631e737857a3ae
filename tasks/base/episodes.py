"""Episode statistics: every named reward term, summed over the episodes that have just ended."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class EpisodeStats:
    """Running sums of per-step values, without a host synchronisation.

    The last row of `sums` counts the steps; an episode that counts none is left out of the means.
    """

    def __init__(self, num_envs: int, device: str, divisor: float = 1.0) -> None:
        """Start empty; the names come with the first `add`. Means are divided by `divisor`."""
        self.num_envs = num_envs
        self.device = device
        self.divisor = divisor
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
        means = ended[:-1].sum(dim=1) / (counted.clamp(min=1) * self.divisor)
        self.means = torch.where(counted > 0, means, self.means)

    def report(self) -> dict[str, Tensor]:
        """The latest means as `rew_<term>` -> 0-dim tensor."""
        return {f"rew_{name}": self.means[i] for i, name in enumerate(self.names)}

    def get_state(self) -> dict[str, Any]:
        """Names, sums and means."""
        return {"names": list(self.names), "sums": self.sums.clone(), "means": self.means.clone()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned."""
        self._allocate(list(state["names"]))
        self.sums.copy_(state["sums"])
        self.means.copy_(state["means"])
