"""What Ant and Humanoid share: torso features, start pose, and the terms of running towards a far target."""

from __future__ import annotations

from typing import Any, NamedTuple

from isaacgym import gymapi  # isort: skip  (the original package wants to be imported before torch)
import torch
from torch import Tensor

from tasks.base.description import Part, Term
from tasks.base.errors import TaskError
from tasks.base.rotation import roll_yaw, rotation_matrix, to_body_frame

TARGET = (1000.0, 0.0, 0.0)
"""Point to run to (m, env frame)."""
FULL_HEADING = 0.8
"""Cosine between body x axis and target direction from which the heading reward is full."""
UPRIGHT = 0.93
"""Cosine between body z axis and vertical from which the upright reward is paid."""


TORSO_PARTS = (
    Part(1, "height of the torso", "m", "env"),
    Part(3, "linear velocity", "m/s", "torso"),
    Part(3, "angular velocity", "rad/s", "torso", "env.angularVelocityScale"),
    Part(1, "yaw", "rad", "env"),
    Part(1, "roll", "rad", "env"),
    Part(1, "elevation of the target minus yaw", "rad", "env"),
    Part(1, "torso z axis, upward component", "", "env"),
    Part(1, "torso x axis, component towards the target", "", "env"),
)
"""First part of the observation of Ant (angles not wrapped) and Humanoid (angles in (-pi, pi])."""
RUNNING_TERMS = (
    Term("progress", "metres gained towards the target / dt"),
    Term("alive", "1", "env.aliveReward"),
    Term("upright", f"1 if the upward component exceeds {UPRIGHT}", "env.upWeight"),
    Term("heading", f"min(component towards the target / {FULL_HEADING}, 1)", "env.headingWeight"),
    Term("action_cost", "sum of actions^2", "-env.actionsCost"),
)
DEATH_TERM = Term("death", "1 if the torso is too low", "env.deathCost")
RUNNING_REWARD = "Sum of the terms; a fallen robot gets `death` alone."
RUNNING_ENDS = (
    "when the torso is lower than {env.terminationHeight} m",
    "after {env.episodeLength} steps (time limit)",
)


class Weights(NamedTuple):
    """Reward weights; the comments in `cfg/task/Ant.yaml` and `Humanoid.yaml` say what each one pays for."""

    heading: float
    up: float
    alive: float
    action: float
    energy: float
    joint_limit: float
    death: float
    termination_height: float


def read_weights(env_cfg: dict[str, Any]) -> Weights:
    """Reward weights of a task's `env` section."""
    return Weights(
        heading=float(env_cfg["headingWeight"]),
        up=float(env_cfg["upWeight"]),
        alive=float(env_cfg["aliveReward"]),
        action=float(env_cfg["actionsCost"]),
        energy=float(env_cfg["energyCost"]),
        joint_limit=float(env_cfg["jointsAtLimitCost"]),
        death=float(env_cfg["deathCost"]),
        termination_height=float(env_cfg["terminationHeight"]),
    )


class Torso(NamedTuple):
    """Features of N torsos."""

    local_velocity: Tensor
    """(N, 2, 3) linear (m/s) and scaled angular (rad/s) velocity in the torso frame."""
    yaw: Tensor
    """(N,) rad in [0, 2 pi)."""
    roll: Tensor
    """(N,) rad in [0, 2 pi)."""
    angle_to_target: Tensor
    """(N,) rad, not wrapped; the elevation of the target takes the place of its azimuth, as in the reference."""
    up: Tensor
    """(N,) vertical component of the torso's z axis."""
    heading: Tensor
    """(N,) component of the torso's x axis in the horizontal direction of the target."""
    potential: Tensor
    """(N,) minus the horizontal distance to the target, over the time step (m/s)."""


def torso_features(root_states: Tensor, dt: float, angular_velocity_scale: float = 1.0) -> Torso:
    """Features of root states (N, 13); `dt` is the simulation step in seconds."""
    to_target_x = TARGET[0] - root_states[:, 0]
    to_target_y = TARGET[1] - root_states[:, 1]
    distance = torch.hypot(to_target_x, to_target_y)
    rotation = rotation_matrix(root_states[:, 3:7])
    roll, yaw = roll_yaw(rotation)
    local_velocity = to_body_frame(rotation, root_states[:, 7:13].view(-1, 2, 3))
    local_velocity[:, 1] *= angular_velocity_scale
    along = rotation[:, 0, 0] * to_target_x + rotation[:, 1, 0] * to_target_y
    return Torso(
        local_velocity=local_velocity,
        yaw=yaw,
        roll=roll,
        angle_to_target=torch.atan2(TARGET[2] - root_states[:, 2], to_target_x) - yaw,
        up=rotation[:, 2, 2],
        heading=along / distance.clamp(min=1e-9),
        potential=-distance / dt,
    )


def heading_reward(heading: Tensor, weight: float) -> Tensor:
    """`weight` when facing the target within FULL_HEADING, proportionally less (or negative) otherwise."""
    return torch.clamp(heading / FULL_HEADING, max=1.0) * weight


def upright_reward(up: Tensor, weight: float) -> Tensor:
    """`weight` while the torso is upright."""
    return (up > UPRIGHT) * weight


def running_terms(
    obs: Tensor, progress: Tensor, actions: Tensor, costs: dict[str, Tensor], weights: Weights
) -> dict[str, Tensor]:
    """Weighted reward terms (N,) each, of a robot that runs: the common ones and its own `costs`.

    Args:
        obs: (N, >= 12) unclipped observations without noise, whose first numbers are those of the torso.
        progress: (N,) potential gained in the step.
        actions: (N, A) applied actions.
        costs: weighted terms (N,) of the robot's own, not positive.
        weights: from the config.
    """
    fallen = obs[:, 0] < weights.termination_height
    terms = {
        "progress": progress,
        "alive": torch.full_like(progress, weights.alive),
        "upright": upright_reward(obs[:, 10], weights.up),
        "heading": heading_reward(obs[:, 11], weights.heading),
        "action_cost": (actions * actions).sum(dim=1) * -weights.action,
        **costs,
    }
    terms = {name: term.masked_fill(fallen, 0.0) for name, term in terms.items()}
    terms["death"] = fallen * weights.death
    return terms


def unscale_coefficients(lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """Factor and offset (D,) that map joint positions from [lower, upper] to [-1, 1]."""
    span = upper - lower
    return 2.0 / span, -(upper + lower) / span


def start_positions(lower: Tensor, upper: Tensor) -> Tensor:
    """Zero, moved into the joint limits (D,)."""
    return torch.clamp(torch.zeros_like(lower), lower, upper)


def joint_limits(dof_properties: Any, device: str) -> tuple[Tensor, Tensor]:
    """Lower and upper joint limits (D,), swapped where an asset lists them the wrong way round."""
    limits = torch.tensor([[float(p["lower"]), float(p["upper"])] for p in dof_properties], device=device)
    return limits.amin(dim=1), limits.amax(dim=1)


def motor_efforts(gym: Any, asset: Any) -> list[float]:
    """Effort of the motor on each DOF of `asset` (N m per unit of action), matched by joint name.

    Raises:
        TaskError: a DOF has no motor.
    """
    properties = gym.get_asset_actuator_properties(asset)
    by_joint = {gym.get_asset_actuator_joint_name(asset, i): p.motor_effort for i, p in enumerate(properties)}
    names = gym.get_asset_dof_names(asset)
    missing = [name for name in names if name not in by_joint]
    if missing:
        raise TaskError(f"the asset has no motor on: {', '.join(missing)}")
    return [float(by_joint[name]) for name in names]


def add_ground(gym: Any, sim: Any, plane_cfg: dict[str, float]) -> None:
    """Add the z-up ground plane with the friction and restitution of a task's `env.plane` section."""
    plane = gymapi.PlaneParams()
    plane.normal = gymapi.Vec3(0.0, 0.0, 1.0)
    plane.static_friction = float(plane_cfg["staticFriction"])
    plane.dynamic_friction = float(plane_cfg["dynamicFriction"])
    plane.restitution = float(plane_cfg["restitution"])
    gym.add_ground(sim, plane)
