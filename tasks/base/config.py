"""From the plain `task` config to sizes, simulation parameters, devices, paths and reference quirks."""

from __future__ import annotations

import difflib
import math
from pathlib import Path
from typing import Any, Mapping, NamedTuple

from isaacgym import gymapi
from tasks.base.errors import TaskError

ENGINES = {"physx": gymapi.SIM_PHYSX, "flex": gymapi.SIM_FLEX}
UP_AXES = {"z": gymapi.UP_AXIS_Z, "y": gymapi.UP_AXIS_Y}

FIXED_QUIRKS = {
    "Q4": "AnymalTerrain never reports time-outs",
    "Q8": "GPU physics follows the config even where the simulation runs on the CPU",
    "Q10": "AnymalTerrain simulates one step more an action than its time constants assume",
    "Q15": "a setup_only field also stops the other randomised fields of its property group",
    "Q16": "Anymal never counts towards randomisation, so its properties are drawn once only",
    "Q20": "AnymalTerrain compares each robot's distance with the commands of all robots that reset with it",
    "Q21": "with a schedule, the correlated part of scaling noise starts at 1 instead of 0",
    "Q22": "noise on observations uses the operation (additive or scaling) of the noise on actions",
    "Q30": "with several simulation steps per action on the CPU, results are fetched only after the last",
}
"""Behaviours of IsaacGymEnvs 1.5 that are corrected unless `reference_quirks` asks for them."""


def parse_device(device: str) -> tuple[str, int]:
    """Split "cuda:1" into ("cuda", 1); the id is 0 when it is left out."""
    kind, _, index = device.partition(":")
    if index and not index.isdigit():
        raise TaskError(f"device {device!r} is not of the form cpu, cuda or cuda:<number>")
    return kind, int(index or 0)


class Devices(NamedTuple):
    """Where a task's simulation runs and where its tensors live."""

    kind: str
    """"cpu" or "cuda", as given."""
    number: int
    """Number of the CUDA device, 0 on the CPU."""
    pipeline: str
    """Torch device of the state tensors and buffers."""


def select_devices(sim_device: str, sim_cfg: dict[str, Any], keep_use_gpu: bool) -> Devices:
    """Decide the devices; `sim_cfg` is brought in line with them.

    Args:
        sim_device: "cpu" or "cuda:<id>".
        sim_cfg: the task's `sim` section; a GPU pipeline without a GPU is switched off in it.
        keep_use_gpu: leave `sim.physx.use_gpu` as configured (Q8) instead of following `sim_device`.
    """
    kind, index = parse_device(sim_device)
    on_gpu = kind.lower() in ("cuda", "gpu")
    if sim_cfg["use_gpu_pipeline"] and not on_gpu:
        print(f"sim_device {sim_device} has no GPU pipeline: using the CPU pipeline")
        sim_cfg["use_gpu_pipeline"] = False
    if not keep_use_gpu:
        sim_cfg.setdefault("physx", {})["use_gpu"] = on_gpu
    return Devices(kind, index, f"cuda:{index}" if sim_cfg["use_gpu_pipeline"] else "cpu")


class Sizes(NamedTuple):
    """Numbers of a task's `env` section that every task has."""

    num_envs: int
    num_agents: int
    num_observations: int
    num_states: int
    num_actions: int
    control_freq_inv: int
    """Simulation steps an action."""
    clip_obs: float
    clip_actions: float
    render_fps: float
    """Frames a second of the viewer; below 0: as fast as control steps."""


def read_sizes(env_cfg: Mapping[str, Any]) -> Sizes:
    """Sizes of an `env` section; unset bounds are infinite."""
    for key, value in (("numEnvs", env_cfg["numEnvs"]), ("controlFrequencyInv", env_cfg.get("controlFrequencyInv", 1))):
        if int(value) < 1:
            raise TaskError(f"env.{key} is {value}; at least 1 is needed")
    return Sizes(
        num_envs=int(env_cfg["numEnvs"]),
        num_agents=int(env_cfg.get("numAgents", 1)),
        num_observations=int(env_cfg.get("numObservations", 0)),
        num_states=int(env_cfg.get("numStates", 0)),
        num_actions=int(env_cfg["numActions"]),
        control_freq_inv=int(env_cfg.get("controlFrequencyInv", 1)),
        clip_obs=float(env_cfg.get("clipObservations", math.inf)),
        clip_actions=float(env_cfg.get("clipActions", math.inf)),
        render_fps=float(env_cfg.get("renderFPS", -1)),
    )


def parse_engine(name: str) -> gymapi.SimType:
    """Physics engine of the config."""
    if name not in ENGINES:
        raise TaskError(f"physics_engine is {name!r}; allowed are {', '.join(ENGINES)}")
    return ENGINES[name]


def parse_sim_params(sim_cfg: Mapping[str, Any]) -> gymapi.SimParams:
    """Simulation parameters of a task's `sim` section (times in seconds, gravity in m/s^2)."""
    if sim_cfg["up_axis"] not in UP_AXES:
        raise TaskError(f"sim.up_axis is {sim_cfg['up_axis']!r}; allowed are 'z' and 'y'")
    params = gymapi.SimParams()
    params.dt = float(sim_cfg["dt"])
    params.substeps = int(sim_cfg.get("substeps", 2))
    params.num_client_threads = int(sim_cfg.get("num_client_threads", 0))
    params.use_gpu_pipeline = bool(sim_cfg["use_gpu_pipeline"])
    params.up_axis = UP_AXES[sim_cfg["up_axis"]]
    params.gravity = gymapi.Vec3(*(float(g) for g in sim_cfg["gravity"]))
    for key, value in sim_cfg.get("physx", {}).items():
        if not hasattr(params.physx, key):
            raise TaskError(f"sim.physx.{key} is not a PhysX parameter")
        setattr(params.physx, key, gymapi.ContactCollection(value) if key == "contact_collection" else value)
    return params


def parse_quirks(setting: Any) -> frozenset[str]:
    """Ids of the corrected behaviours that `reference_quirks` (false, true or a list of ids) switches back on."""
    if setting is None or isinstance(setting, bool):
        return frozenset(FIXED_QUIRKS) if setting else frozenset()
    ids = [setting] if isinstance(setting, str) else list(setting)
    for quirk in ids:
        if quirk not in FIXED_QUIRKS:
            near = difflib.get_close_matches(str(quirk), FIXED_QUIRKS, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            allowed = ", ".join(FIXED_QUIRKS)
            raise TaskError(f"reference_quirks: {quirk!r} cannot be chosen; {hint}(allowed: {allowed})")
    return frozenset(ids)


def asset_root(cfg: Mapping[str, Any]) -> str:
    """Folder of the asset files: `env.asset.assetRoot`, else `asset_root`, else `assets/` beside this package."""
    configured = cfg["env"].get("asset", {}).get("assetRoot") or cfg.get("asset_root")
    if configured:
        return str(configured)
    beside = Path(__file__).resolve().parents[2] / "assets"
    if not beside.is_dir():
        raise FileNotFoundError(f"no asset folder at {beside}; set env.asset.assetRoot")
    return str(beside)
