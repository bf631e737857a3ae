"""Finds out which compute devices exist, without importing torch."""

from __future__ import annotations

import ctypes
import importlib.util
import re
import runpy
from pathlib import Path


class DeviceError(ValueError):
    """A device was asked for that this machine or this torch build does not have; the message is one line."""


def cuda_device_count() -> int:
    """Return how many CUDA devices the driver shows (CUDA_VISIBLE_DEVICES respected); 0 without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def torch_cuda_version() -> str | None:
    """Return the CUDA version the installed torch was built for, or None for a CPU build or no torch at all."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    version_file = Path(spec.origin).parent / "version.py"
    return runpy.run_path(str(version_file)).get("cuda") if version_file.is_file() else None


def cuda_reason() -> tuple[int, str]:
    """Return the number of usable CUDA devices and, when it is 0, the reason in a few words."""
    count = cuda_device_count()
    if count == 0:
        return 0, "this machine shows no CUDA device"
    if torch_cuda_version() is None:
        return 0, "the installed torch is a CPU build"
    return count, ""


def resolve(sim_device: str, rl_device: str) -> tuple[str, str]:
    """Turn `auto` into a device and check that the named ones exist.

    Args:
        sim_device: auto, cpu, cuda or cuda:N; auto takes cuda:0 where it exists.
        rl_device: The same; auto takes the resolved sim_device.

    Returns:
        Both devices as cpu or cuda:N.

    Raises:
        DeviceError: A device that is misspelt or missing; the message says how to switch.
    """
    for key, name in (("sim_device", sim_device), ("rl_device", rl_device)):
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", name):
            raise DeviceError(f"{key} must be auto, cpu or cuda:N, got '{name}'")
    if sim_device == "auto":
        sim_device = "cuda:0" if cuda_reason()[0] else "cpu"
    if rl_device == "auto":
        rl_device = sim_device
    return existing("sim_device", sim_device), existing("rl_device", rl_device)


def existing(key: str, name: str) -> str:
    """Return a device name with its index, after checking that the device is there.

    Raises:
        DeviceError: It is not.
    """
    if name == "cpu":
        return name
    count, reason = cuda_reason()
    index = int(name.partition(":")[2] or 0)
    if count == 0:
        raise DeviceError(f"{key}={name}: {reason}; to run without one add: sim_device=cpu rl_device=cpu")
    if index >= count:
        shown = ", ".join(f"cuda:{i}" for i in range(count))
        raise DeviceError(f"{key}={name}: no such device; this machine has {shown}")
    return f"cuda:{index}"
