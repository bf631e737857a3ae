"""The processes of a job that torchrun started (multi_gpu=True), told by their environment, without torch."""

from __future__ import annotations

import os

HOW_TO_START = "torchrun --nproc_per_node=K scripts/train.py multi_gpu=True ..."


def count() -> int:
    """Return how many processes the job has; 1 without torchrun."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def started_by_torchrun() -> bool:
    """Return whether torchrun started this process."""
    return "RANK" in os.environ and "LOCAL_RANK" in os.environ


def local_rank() -> int:
    """Return this process's number on this machine, which is also the number of its GPU."""
    return int(os.environ.get("LOCAL_RANK", "0"))
