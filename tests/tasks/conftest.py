"""The stand-in for the simulator as a fixture, configs of tasks, and helpers for rotations."""

import math
import sys
from collections import Counter
from pathlib import Path

from isaacgym import gymapi  # isort: skip
import numpy as np
import pytest
import torch
import yaml
from omegaconf import OmegaConf

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))  # `import stand_in` whatever pytest's import mode is


@pytest.fixture
def fake_gym(monkeypatch):
    from stand_in import FakeGym

    gym = FakeGym()
    monkeypatch.setattr(gymapi, "acquire_gym", lambda: gym, raising=False)
    return gym


def read_yaml(group: str, name: str) -> dict:
    """One yaml file of cfg/ with those that its defaults list names below it."""
    content = yaml.safe_load((REPO / "cfg" / group / f"{name}.yaml").read_text())
    below = [read_yaml(group, other) for other in content.pop("defaults", []) if other != "_self_"]
    return OmegaConf.to_container(OmegaConf.merge(*below, content)) if below else content


def compose(group: str, name: str, **root) -> dict:
    """One yaml file of cfg/, resolved below a root node as the command line gives it."""
    resolvers = {
        "eq": lambda x, y: str(x).lower() == str(y).lower(),
        "contains": lambda x, y: str(x).lower() in str(y).lower(),
        "if": lambda predicate, a, b: a if predicate else b,
        "resolve_default": lambda default, arg: default if arg == "" else arg,
    }
    for key, function in resolvers.items():
        OmegaConf.register_new_resolver(key, function, replace=True)
    base = {"num_envs": "", "physics_engine": "physx", "pipeline": "cpu", "sim_device": "cpu", "num_threads": 4,
            "solver_type": 1, "num_subscenes": 4, "seed": 42, "checkpoint": "", "experiment": "", "max_iterations": "",
            "multi_gpu": False}  # fmt: skip
    tree = {**base, **root, "task": read_yaml("task", name.partition("PPO")[0])}
    if group == "train":
        tree["train"] = read_yaml("train", name)
    plain = OmegaConf.to_container(OmegaConf.create(tree), resolve=True)
    return plain[group]


@pytest.fixture
def load_cfg():
    return compose


@pytest.fixture
def make_task(fake_gym):
    """Build a task on the stand-in: env settings are keywords."""
    from tasks import registry

    def make(name, cfg=None, headless=True, **env):
        cfg = cfg or compose("task", name)
        cfg["env"].update(env)
        return registry.get(name)(cfg, "cpu", "cpu", headless=headless)

    return make


def _axis_quat(axis: int, angle: float) -> np.ndarray:
    quat = np.zeros(4)
    quat[axis], quat[3] = math.sin(angle / 2), math.cos(angle / 2)
    return quat


def _multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    vector = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.append(vector, a[3] * b[3] - a[:3] @ b[:3])


@pytest.fixture
def quat_rpy():
    """Quaternion (4,) xyzw of intrinsic yaw, pitch, roll angles, given as (roll, pitch, yaw)."""

    def build(roll, pitch, yaw):
        quat = _multiply(_multiply(_axis_quat(2, yaw), _axis_quat(1, pitch)), _axis_quat(0, roll))
        return torch.tensor(quat, dtype=torch.float32)

    return build


class SyncCounter(torch.utils._python_dispatch.TorchDispatchMode):
    """Counts the operations that make the host wait for a device."""

    WAITING = ("nonzero", "_local_scalar_dense", "masked_select", "unique", "is_nonzero", "equal")

    def __init__(self):
        super().__init__()
        self.seen = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.__name__.split(".")[0]
        if name in self.WAITING:
            self.seen[name] += 1
        if name in ("index", "index_put_", "index_put") and any(
            isinstance(i, torch.Tensor) and i.dtype in (torch.bool, torch.uint8) for i in args[1]
        ):
            self.seen["mask_index"] += 1
        return func(*args, **(kwargs or {}))


@pytest.fixture
def count_syncs():
    return SyncCounter
