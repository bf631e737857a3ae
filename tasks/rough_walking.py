"""Observation and reward of walking on rough terrain, as functions of plain tensors."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tasks import legged

NUM_SCAN_POINTS = 140
WANTED_CLEARANCE = 0.5
"""Height of the base above the ground (m) that is observed as 0."""
WANTED_BASE_HEIGHT = 0.52
"""Height of the base (m, absolute) that costs nothing."""
WANTED_AIR_TIME = 0.5
"""Duration of a swing (s) from which a touchdown is rewarded."""


class Scales(NamedTuple):
    """Factors of observations."""

    linear_velocity: float
    angular_velocity: float
    dof_pos: float
    dof_vel: float
    height: float


class Gait(NamedTuple):
    """What the reward of one step looks at."""

    base: legged.Base
    base_height: Tensor
    """(N,) m."""
    commands: Tensor
    """(N, 4) forward and sideways velocity (m/s), yaw rate (rad/s), heading (rad)."""
    dof_offset: Tensor
    """(N, 12) joint positions minus default positions (rad)."""
    dof_vel: Tensor
    """(N, 12) rad/s."""
    last_dof_vel: Tensor
    """(N, 12) rad/s, one control step ago."""
    actions: Tensor
    """(N, 12)."""
    last_actions: Tensor
    """(N, 12), one control step ago."""
    torques: Tensor
    """(N, 12) N m."""
    knee_forces: Tensor
    """(N, 4, 3) contact forces on the thighs (N)."""
    foot_forces: Tensor
    """(N, 4, 3) contact forces on the feet (N)."""
    swing: Tensor
    """(N,) sum over the feet that touch down now of swing time - `WANTED_AIR_TIME` (s)."""


def observations(
    base: legged.Base,
    commands: Tensor,
    dof_pos: Tensor,
    dof_vel: Tensor,
    clearance: Tensor,
    actions: Tensor,
    scales: Scales,
    out: Tensor,
) -> Tensor:
    """Fill `out` (N, 188) and return it.

    Args:
        base: motion of the bases.
        commands: (N, >= 3) forward and sideways velocity (m/s), yaw rate (rad/s).
        dof_pos: (N, 12) joint positions (rad), absolute.
        dof_vel: (N, 12) joint velocities (rad/s).
        clearance: (N, 140) height of the base above the scanned points (m).
        actions: (N, 12) applied actions.
        scales: factors.
        out: (N, 188).
    """
    parts = (
        base.linear * scales.linear_velocity,
        base.angular * scales.angular_velocity,
        base.gravity(),
        commands[:, :2] * scales.linear_velocity,
        commands[:, 2:3] * scales.angular_velocity,
        dof_pos * scales.dof_pos,
        dof_vel * scales.dof_vel,
        torch.clamp(clearance - WANTED_CLEARANCE, -1.0, 1.0) * scales.height,
        actions,
    )
    return torch.cat(parts, dim=1, out=out)


def swing_times(air_time: Tensor, contact: Tensor, dt: float) -> tuple[Tensor, Tensor]:
    """Advance the feet's swing timers by one step.

    Args:
        air_time: (N, 4) time since each foot left the ground (s).
        contact: (N, 4) bool, feet on the ground now.
        dt: step (s).

    Returns:
        New timers (N, 4), and for each robot the sum over feet that touch down of swing time - `WANTED_AIR_TIME`.
    """
    touchdown = (air_time > 0.0) & contact
    advanced = air_time + dt
    swing = ((advanced - WANTED_AIR_TIME) * touchdown).sum(dim=1)
    return advanced * ~contact, swing


def reward_terms(gait: Gait, weights: dict[str, float]) -> dict[str, Tensor]:
    """Weighted terms (N,) each; the reward is their sum, but never below 0."""
    base, foot_forces = gait.base, gait.foot_forces
    foot_slip = torch.linalg.vector_norm(foot_forces[..., :2], dim=-1) > 5.0
    moving = torch.linalg.vector_norm(gait.commands[:, :2], dim=1) > 0.1
    terms = {
        "lin_vel_xy": legged.track_velocity(gait.commands, base.linear),
        "lin_vel_z": base.linear[:, 2] ** 2,
        "ang_vel_z": legged.track_yaw_rate(gait.commands, base.angular),
        "ang_vel_xy": legged.squared(base.angular[:, :2]),
        "orient": legged.squared(base.gravity()[:, :2]),
        "torques": legged.squared(gait.torques),
        "joint_acc": legged.squared(gait.last_dof_vel - gait.dof_vel),
        "base_height": (gait.base_height - WANTED_BASE_HEIGHT) ** 2,
        "air_time": gait.swing * moving,
        "collision": legged.touching(gait.knee_forces).sum(dim=1),
        "stumble": (foot_slip & (foot_forces[..., 2].abs() < 1.0)).sum(dim=1),
        "action_rate": legged.squared(gait.last_actions - gait.actions),
        "hip": gait.dof_offset[:, ::3].abs().sum(dim=1),
    }
    return {name: term * weights[name] for name, term in terms.items()}


def noise_amplitudes(learn: dict[str, float], scales: Scales, device: str) -> Tensor:
    """Amplitude (188,) of the uniform noise on each observation, from the task's `learn` section."""
    parts = (
        (3, learn["linearVelocityNoise"] * scales.linear_velocity),
        (3, learn["angularVelocityNoise"] * scales.angular_velocity),
        (3, learn["gravityNoise"]),
        (3, 0.0),
        (12, learn["dofPositionNoise"] * scales.dof_pos),
        (12, learn["dofVelocityNoise"] * scales.dof_vel),
        (NUM_SCAN_POINTS, learn["heightMeasurementNoise"] * scales.height),
        (12, 0.0),
    )
    amplitudes = [amplitude for count, amplitude in parts for _ in range(count)]
    return torch.tensor(amplitudes, device=device) * float(learn["noiseLevel"])
