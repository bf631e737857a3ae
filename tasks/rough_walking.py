"""Observation and reward of walking on rough terrain, as functions of plain tensors."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tasks import legged
from tasks.base.description import Description, Part, Result, Term

NUM_SCAN_POINTS = 140
WANTED_CLEARANCE = 0.5
"""Height of the base above the ground (m) that is observed as 0."""
WANTED_BASE_HEIGHT = 0.52
"""Height of the base (m, absolute) that costs nothing."""
WANTED_AIR_TIME = 0.5
"""Duration of a swing (s) from which a touchdown is rewarded."""


TRAINING_COMMAND = "python scripts/train.py task=AnymalTerrain num_envs=512 max_iterations=814"

DESCRIPTION = Description(
    summary="An ANYmal C follows commanded velocities and headings over slopes, stairs and obstacles. Robots that walk "
    "far move on to harder terrain, those that fall behind their command to easier terrain. Observations are noisy "
    "(`env.learn.addNoise`), and every {env.learn.pushInterval_s} s all robots get a random horizontal velocity.",
    observations={
        "obs": (
            *legged.VELOCITY_PARTS,
            Part(3, "direction of gravity", "", "base"),
            *legged.COMMAND_PARTS,
            Part(12, "joint positions", "rad", "joint", "env.learn.dofPositionScale"),
            legged.JOINT_VELOCITY_PART,
            Part(
                NUM_SCAN_POINTS,
                f"height above 14 x 10 points around the base minus {WANTED_CLEARANCE}, within -1 and 1",
                "m",
                "base, turned by yaw only",
                "env.learn.heightMeasurementScale",
            ),
            Part(12, "actions"),
        )
    },
    action="12 numbers, not clipped: joint position targets, x {env.control.actionScale} rad + default position. "
    "{env.control.decimation} times an action the task computes torques of {env.control.stiffness} N m/rad and "
    "{env.control.damping} N m s/rad, at most 80 N m.",
    reward=legged.REWARD_TEXT,
    terms=(
        *legged.TRACKING_TERMS,
        Term("lin_vel_z", "(vertical velocity)^2", "env.learn.linearVelocityZRewardScale"),
        Term("ang_vel_xy", "(roll and pitch rate)^2", "env.learn.angularVelocityXYRewardScale"),
        Term("orient", "(horizontal part of gravity's direction)^2", "env.learn.orientationRewardScale"),
        Term("joint_acc", "sum of (change of joint velocity)^2", "env.learn.jointAccRewardScale"),
        Term("base_height", f"(height of the base - {WANTED_BASE_HEIGHT})^2", "env.learn.baseHeightRewardScale"),
        Term(
            "air_time",
            f"sum over feet that touch down of swing time - {WANTED_AIR_TIME} s, unless the command is below 0.1 m/s",
            "env.learn.feetAirTimeRewardScale",
        ),
        Term("collision", "thighs touched with more than 1 N", "env.learn.kneeCollisionRewardScale"),
        Term(
            "stumble",
            "feet pushed sideways with more than 5 N and carrying less than 1 N",
            "env.learn.feetStumbleRewardScale",
        ),
        Term("action_rate", "sum of (change of action)^2", "env.learn.actionRateRewardScale"),
        Term("hip", "sum of abs(hip position - default)", "env.learn.hipRewardScale"),
    ),
    termination=(
        "when the base is touched with more than 1 N (a thigh too, if `env.learn.allowKneeContacts` is false)",
        "after {env.learn.episodeLength_s} s (time limit)",
    ),
    results=(
        legged.TRACKING_RESULT,
        Result("mean terrain level after 10M steps (`episode/terrain_level`)", TRAINING_COMMAND),
    ),
)


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
