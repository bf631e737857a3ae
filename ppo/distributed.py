"""Several processes that learn together: one environment batch each, one policy.

Every process computes gradients on its own minibatch; they are averaged in one flat reduction, so all take the same
step. A `World` of one process does nothing, which keeps the learner free of special cases.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch
from torch import distributed

from ppo.config import ConfigError


class World:
    """The processes of a job; this one is number `rank` of `size`."""

    def __init__(self, rank: int = 0, size: int = 1, device: torch.device | str = "cpu") -> None:
        """Describe a job; more than one process must have called `join` or initialised torch.distributed."""
        self.rank = rank
        self.size = size
        self.device = torch.device(device)

    @classmethod
    def join(cls, device: torch.device | str) -> World:
        """Join the job that torchrun started (RANK, WORLD_SIZE): nccl on GPUs, gloo on CPUs.

        Raises:
            ConfigError: if this process was not started by torchrun.
        """
        try:
            rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        except (KeyError, ValueError):
            raise ConfigError("several processes are started with: torchrun --nproc_per_node=K SCRIPT ARGS") from None
        device = torch.device(device)
        if device.type == "cuda":  # pragma: needs cuda
            torch.cuda.set_device(device)
        distributed.init_process_group("gloo" if device.type == "cpu" else "cpu:gloo,cuda:nccl")
        return cls(rank, size, device)

    def leave(self) -> None:
        """Leave the job."""
        if self.size > 1:
            distributed.destroy_process_group()

    def average_(self, tensors: Sequence[torch.Tensor]) -> None:
        """Replace float32 tensors by their mean over the processes, in one reduction."""
        if self.size == 1:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        distributed.all_reduce(flat)
        flat /= self.size
        for tensor, mean in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(mean.view_as(tensor))

    def gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Every process's tensor of this shape, in order of rank."""
        if self.size == 1:
            return [tensor]
        parts = [torch.empty_like(tensor) for _ in range(self.size)]
        distributed.all_gather(parts, tensor)
        return parts

    def broadcast_(self, tensors: Sequence[torch.Tensor]) -> None:
        """Replace tensors by those of the first process."""
        if self.size > 1:
            for tensor in tensors:
                distributed.broadcast(tensor, src=0)

    def share(self, value: Any) -> Any:
        """Return the first process's picklable value in all processes."""
        if self.size == 1:
            return value
        values = [value]
        distributed.broadcast_object_list(values, src=0)
        return values[0]

    def sum(self, values: Sequence[float]) -> list[float]:
        """Sums of numbers over the processes; waits for them."""
        if self.size == 1:
            return list(values)
        total = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.all_reduce(total)
        return total.tolist()

    def gather_objects(self, value: Any) -> list[Any]:
        """Every process's plain-typed value, in order of rank; only the first process receives them."""
        if self.size == 1:
            return [value]
        values = [None] * self.size if self.rank == 0 else None
        distributed.gather_object(value, values)
        return values or []
