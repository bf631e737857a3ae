"""What ``python -m isaacgym`` puts in place so that scripts written for NVIDIA's Isaac Gym run on today's packages.

Four small things: numpy names removed since 1.20, ``gym`` imports answered by gymnasium, folders of the user that are
called like our own top-level packages, and, only with ``--cpu``, CUDA devices read as the CPU. Nothing here is active
in a program that merely imports isaacgym.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

OUR_ROOT = Path(__file__).resolve().parent.parent
"""Folder that holds ``isaacgym`` and, beside it, our packages ``tasks`` and ``ppo``."""

OUR_ROOMS = ("tasks", "ppo")

NUMPY_NAMES: dict[str, Any] = {
    **{"bool": bool, "int": int, "float": float, "complex": complex, "object": object, "str": str, "unicode": str},
    **{"bool8": np.bool_, "int0": np.intp, "uint0": np.uintp, "object0": np.object_, "str0": np.str_},
    **{"float_": np.float64, "complex_": np.complex128, "singlecomplex": np.complex64, "cfloat": np.complex128},
    **{"longfloat": np.longdouble, "longcomplex": np.clongdouble, "clongfloat": np.clongdouble},
    **{"string_": np.bytes_, "unicode_": np.str_, "bytes0": np.bytes_, "void0": np.void},
    **{"Inf": np.inf, "Infinity": np.inf, "infty": np.inf, "PINF": np.inf, "NINF": -np.inf, "NaN": np.nan},
    **{"PZERO": 0.0, "NZERO": -0.0, "mat": np.asmatrix, "product": np.prod, "cumproduct": np.cumprod},
    **{"sometrue": np.any, "alltrue": np.all, "round_": np.round},
    "asscalar": lambda array: array.item(),
    "asfarray": lambda array, dtype=np.float64: np.asarray(array, dtype),
    "in1d": lambda first, second, **options: np.isin(np.ravel(first), second, **options),
    "row_stack": np.vstack,
    "trapz": lambda *args, **options: np.trapezoid(*args, **options),
}
"""Names that numpy has dropped since 1.20, and what they stood for."""


def restore_numpy_names() -> list[str]:
    """Put back the names that this numpy lacks; return them."""
    missing = [name for name in NUMPY_NAMES if name not in vars(np)]
    for name in missing:
        setattr(np, name, NUMPY_NAMES[name])
    return missing


class GymnasiumForGym(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers ``import gym`` and its submodules with gymnasium's, unless the old gym is installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Claim ``gym``, and the submodules of a ``gym`` that is gymnasium."""
        top, _, below = fullname.partition(".")
        if top != "gym":
            return None
        if not below and self.is_needed():
            return ModuleSpec(fullname, self, is_package=True)
        if below and getattr(sys.modules.get("gym"), "__name__", "") == "gymnasium":
            return ModuleSpec(fullname, self) if importlib.util.find_spec(f"gymnasium.{below}") else None
        return None

    def is_needed(self) -> bool:
        """Whether nothing else provides ``gym``."""
        others = (finder for finder in sys.meta_path if finder is not self)
        return all(finder.find_spec("gym", None) is None for finder in others)

    def exec_module(self, module: ModuleType) -> None:
        """Put gymnasium's module in the place of the new one."""
        sys.modules[module.__name__] = importlib.import_module("gymnasium" + module.__name__[3:])


class UsersRoomsFirst(importlib.abc.MetaPathFinder):
    """Finds the user's own ``tasks`` and ``ppo`` before ours, folders without ``__init__.py`` included."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Look everywhere but in our own folder; None leaves the ordinary way, which ends at ours."""
        if fullname not in OUR_ROOMS:
            return None
        return PathFinder.find_spec(fullname, [entry for entry in sys.path if Path(entry).resolve() != OUR_ROOT])


def install(script_folder: Path) -> list[str]:
    """Prepare the process for a script in ``script_folder``; return what was put in place, in words.

    The folder takes the first place of ``sys.path``, which ``python -m`` had given to the working directory.
    """
    if getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, str(script_folder))
    else:
        sys.path[0] = str(script_folder)
    sys.meta_path.insert(0, UsersRoomsFirst())
    done = []
    if restore_numpy_names():
        done.append("numpy names removed since 1.20 are back")
    gymnasium_for_gym = GymnasiumForGym()
    if gymnasium_for_gym.is_needed():
        sys.meta_path.insert(0, gymnasium_for_gym)
        done.append("gym is gymnasium")
    return done


def force_cpu() -> str:
    """Let code written for CUDA run on the CPU; return what was done, in words.

    TorchScript is switched off, because compiled functions would not see the replaced devices.
    """
    from isaacgym._gym_sim import FORCE_CPU_VARIABLE

    os.environ[FORCE_CPU_VARIABLE] = "1"
    import torch

    from isaacgym._cpu_for_cuda import CpuForCuda, replace_functions

    torch.jit._state.disable()
    replace_functions()
    CpuForCuda().__enter__()
    return "cuda devices are the CPU"


def asks_for_cuda(error: BaseException) -> bool:
    """Whether an exception says that CUDA is missing on this machine."""
    import torch

    if torch.cuda.is_available():
        return False
    words = ("Torch not compiled with CUDA", "No CUDA GPUs are available", "Found no NVIDIA driver", "CUDA device")
    text = str(error)
    return any(word in text for word in words)


