"""Checkpoints: one file of tensors and plain types, written atomically, read with `weights_only=True`."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

FORMAT = "gymscale-ppo-1"
_PLAIN = (bool, int, float, str, bytes, type(None), torch.Tensor)


class CheckpointError(Exception):
    """A checkpoint cannot be read, written or used here; the message is one line."""


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Replace `path` by the new content in one step; a crash or a full disk leaves the old file whole.

    Raises:
        CheckpointError: if the content holds something that could not be read back, or the disk refuses it.
    """
    _check_plain(content, "")
    temporary = path.with_name(path.name + ".tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            torch.save({"format": FORMAT, **content}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except (OSError, RuntimeError) as error:
        temporary.unlink(missing_ok=True)
        raise CheckpointError(f"{path}: cannot be written: {_one_line(error)}") from error


def read(path: str | Path) -> dict[str, Any]:
    """Load a checkpoint onto the CPU.

    Raises:
        CheckpointError: if the file is missing, truncated or something else than a checkpoint of this format.
    """
    path = Path(path)
    if not path.is_file():
        others = sorted(other.name for other in path.parent.glob("*.pth"))
        there = f"; in its folder there are {', '.join(others[:5])}" if others else ""
        raise CheckpointError(f"{path}: no such checkpoint file{there}")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError) as error:
        raise CheckpointError(f"{path}: truncated or not a checkpoint ({_one_line(error)[:80]})") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise CheckpointError(f"{path}: expected format {FORMAT!r}, found {found!r}")
    return content


def remove_old(folder: Path, keep: int) -> None:
    """Delete all but the `keep` newest of the periodic checkpoints `ep_N.pth`."""
    periodic = [path for path in folder.glob("ep_*.pth") if path.stem[3:].isdigit()]
    for path in sorted(periodic, key=lambda path: int(path.stem[3:]))[:-keep]:
        path.unlink(missing_ok=True)


def check_signature(saved: Mapping[str, Any], current: Mapping[str, Any]) -> None:
    """Compare a checkpoint's environment signature with the environment at hand.

    Raises:
        CheckpointError: naming what differs.
    """
    differences = [
        f"{key}: checkpoint {saved.get(key)!r}, environment {current.get(key)!r}"
        for key in sorted({*saved, *current})
        if saved.get(key) != current.get(key)
    ]
    if differences:
        raise CheckpointError("the checkpoint is of another task: " + "; ".join(differences))


def all_finite(state: Mapping[str, Any]) -> bool:
    """Whether every floating-point tensor of a (nested) state dict is finite."""
    return all(
        all_finite(value)
        if isinstance(value, Mapping)
        else not (torch.is_tensor(value) and value.is_floating_point() and not torch.isfinite(value).all())
        for value in state.values()
    )


def _check_plain(value: Any, where: str) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            _check_plain(item, f"{where}.{key}" if where else str(key))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _check_plain(item, f"{where}[{index}]")
    elif type(value) not in _PLAIN and not isinstance(value, torch.Tensor):
        raise CheckpointError(f"{where}: {type(value).__name__} cannot be stored in a checkpoint")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
