"""torch.compile for functions whose tensors keep their shapes from call to call."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R], mode: str) -> Callable[P, R]:
    """The function compiled for every shape that it meets; `none` returns it as it is.

    With `reduce-overhead` results live in memory of the CUDA graph: the next call overwrites them.
    """
    if mode == "none":
        return function
    return torch.compile(function, mode=mode, dynamic=False)
