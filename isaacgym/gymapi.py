"""The Isaac Gym API: value types, enumerations, parameters and the ``Gym`` object.

``acquire_gym()`` returns the one ``Gym`` of the process. Its methods are grouped by topic in ``_gym_*.py``.
"""

from __future__ import annotations

from typing import Any

from isaacgym._enums import *  # noqa: F403
from isaacgym._gym_actors import ActorMethods
from isaacgym._gym_assets import AssetMethods
from isaacgym._gym_graphics import GraphicsMethods, Viewer
from isaacgym._gym_properties import PropertyMethods
from isaacgym._gym_sim import SimMethods
from isaacgym._gym_states import StateMethods
from isaacgym._gym_tensors import TensorMethods
from isaacgym._gym_unsupported import NAMES, refuse
from isaacgym._params import *  # noqa: F403
from isaacgym._values import *  # noqa: F403
from isaacgym.engine.asset import AssetError
from isaacgym.engine.scene import Env
from isaacgym.engine.scene import SceneAsset as Asset
from isaacgym.engine.simulation import Simulation as Sim
from isaacgym.gymtorch import Tensor

__all_types__ = (Asset, AssetError, Env, Sim, Tensor, Viewer)


class Gym(SimMethods, AssetMethods, ActorMethods, PropertyMethods, StateMethods, TensorMethods, GraphicsMethods):
    """All functions of the API; unsupported ones raise NotImplementedError when called."""

    def __getattr__(self, name: str) -> Any:
        """Return a function that refuses, for the API's unsupported names; anything else does not exist."""
        if name in NAMES:
            return refuse(name)
        raise AttributeError(f"gymapi.Gym has no method {name!r}")


_gym: Gym | None = None


def acquire_gym(*_: Any) -> Gym:
    """Return the process-wide ``Gym``."""
    global _gym
    if _gym is None:
        _gym = Gym()
    return _gym


def carb_init(config: str = "") -> bool:
    """Do nothing; NVIDIA's package loads its framework here."""
    return True
