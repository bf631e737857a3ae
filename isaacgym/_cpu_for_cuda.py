"""CUDA devices read as the CPU, for ``python -m isaacgym --cpu``.

``CpuForCuda`` sees every torch function that takes a device and replaces CUDA devices among its arguments.
``replace_functions`` replaces the few names that no mode sees: functions of ``torch.cuda`` that fail without CUDA,
loading, defaults and generators. ``torch.cuda.is_available()`` is False, also on a machine that has CUDA.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_CUDA = re.compile(r"cuda(:\d+)?")


def replaced(value: Any) -> Any:
    """Return "cpu" for a CUDA device or the name of one, anything else as it is."""
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    if isinstance(value, str) and _CUDA.fullmatch(value):
        return "cpu"
    return value


class CpuForCuda(TorchFunctionMode):
    """While active, tensors that are asked for on CUDA are made on the CPU."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call ``func`` with CUDA devices replaced; moving to CUDA and pinning memory become nothing."""
        if func is torch.Tensor.cuda or func is torch.Tensor.pin_memory:
            return args[0]
        options = {name: replaced(value) for name, value in (kwargs or {}).items()}
        if type(options.get("device")) is int:
            options["device"] = "cpu"
        if options.get("pin_memory"):
            options["pin_memory"] = False
        if func in _TAKE_DEVICE_NUMBERS:
            args = tuple("cpu" if type(value) is int else value for value in args)
        return func(*(replaced(value) for value in args), **options)


_TAKE_DEVICE_NUMBERS = (torch.Tensor.to, torch._C._nn._parse_to)
"""Functions for which a bare integer is the number of a CUDA device."""


class _Generator(torch.Generator):
    """A random generator on the CPU whatever device is asked for."""

    def __new__(cls, device: Any = "cpu") -> _Generator:
        return super().__new__(cls, "cpu")  # type: ignore[call-arg]


def _nothing(*_: Any, **__: Any) -> None:
    return None


def replace_functions() -> None:
    """Replace what fails without CUDA and cannot be seen by a mode."""
    load, tensor_type = torch.load, torch.set_default_tensor_type

    def load_to_cpu(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        return load(f, "cpu", *args, **kwargs)

    def default_tensor_type(kind: Any) -> None:
        tensor_type(kind.replace("torch.cuda.", "torch.") if isinstance(kind, str) else kind)

    default_device = torch.set_default_device
    stand_ins: dict[str, Callable[..., Any]] = {
        "is_available": lambda: False,
        "device_count": lambda: 0,
        "current_device": lambda: 0,
        "get_device_name": lambda device=None: "cpu",
        "device": lambda device: nullcontext(),
        "memory_allocated": lambda device=None: 0,
        "max_memory_allocated": lambda device=None: 0,
        "memory_reserved": lambda device=None: 0,
        "max_memory_reserved": lambda device=None: 0,
    }
    quiet = ("set_device", "synchronize", "empty_cache", "reset_peak_memory_stats", "manual_seed", "manual_seed_all")
    stand_ins.update(dict.fromkeys(quiet, _nothing))
    for name, function in stand_ins.items():
        setattr(torch.cuda, name, function)
    torch.load = load_to_cpu
    torch.Generator = _Generator  # type: ignore[misc]
    torch.set_default_tensor_type = default_tensor_type
    torch.set_default_device = lambda device: default_device(replaced(device))
