"""Quantities and reward terms of walking robots, as functions of plain tensors."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from tasks.base.description import Part, Result, Term
from tasks.base.rotation import rotation_matrix, to_body_frame

TRACKING_WIDTH = 0.25
"""Squared error at which a tracking reward has fallen to 1/e (m^2/s^2 or rad^2/s^2)."""


VELOCITY_PARTS = (
    Part(3, "linear velocity", "m/s", "base", "env.learn.linearVelocityScale"),
    Part(3, "angular velocity", "rad/s", "base", "env.learn.angularVelocityScale"),
)
COMMAND_PARTS = (
    Part(2, "commanded forward and sideways velocity", "m/s", "base", "env.learn.linearVelocityScale"),
    Part(1, "commanded yaw rate", "rad/s", "base", "env.learn.angularVelocityScale"),
)
JOINT_VELOCITY_PART = Part(12, "joint velocities", "rad/s", "joint", "env.learn.dofVelocityScale")
REWARD_TEXT = "Weights are per second: a step counts dt x weight. The sum is never below 0."
TRACKING_TERMS = (
    Term(
        "lin_vel_xy",
        f"exp(-(velocity error)^2 / {TRACKING_WIDTH}), forward and sideways",
        "env.learn.linearVelocityXYRewardScale",
    ),
    Term("ang_vel_z", f"exp(-(yaw rate error)^2 / {TRACKING_WIDTH})", "env.learn.angularVelocityZRewardScale"),
    Term("torques", "sum of joint torques^2", "env.learn.torqueRewardScale"),
)
TRACKING_RESULT = Result(
    "mean distance between commanded and actual velocity over 256 episodes (`tracking_error`, m/s)",
    "python scripts/play.py checkpoint=... num_envs=256 num_episodes=256",
)


class Base(NamedTuple):
    """Motion of N robot bases, in their own frames."""

    rotation: Tensor
    """(N, 3, 3) from base to world."""
    linear: Tensor
    """(N, 3) velocity (m/s)."""
    angular: Tensor
    """(N, 3) velocity (rad/s)."""

    def gravity(self) -> Tensor:
        """Direction of gravity (N, 3)."""
        return -self.rotation[:, 2]

    def gravity_rotated_forward(self) -> Tensor:
        """Gravity turned by the base rotation instead of by its inverse (N, 3), as the flat Anymal observes it."""
        return -self.rotation[:, :, 2]

    def heading(self) -> Tensor:
        """Horizontal direction of the base x axis (N,), rad."""
        return torch.atan2(self.rotation[:, 1, 0], self.rotation[:, 0, 0])


def base_motion(root_states: Tensor) -> Base:
    """Motion of the bases with root states (N, 13)."""
    rotation = rotation_matrix(root_states[:, 3:7])
    local = to_body_frame(rotation, root_states[:, 7:13].view(-1, 2, 3))
    return Base(rotation, local[:, 0], local[:, 1])


def velocity_error(commands: Tensor, linear: Tensor) -> Tensor:
    """Distance (N,) in m/s between commanded (N, >= 2) and actual horizontal velocity (N, 3) in the base frame."""
    return torch.linalg.vector_norm(commands[:, :2] - linear[:, :2], dim=1)


def track_velocity(commands: Tensor, linear: Tensor) -> Tensor:
    """1 where the horizontal velocity (N, 3) is the commanded one (N, >= 2), less elsewhere."""
    error = commands[:, :2] - linear[:, :2]
    return torch.exp((error * error).sum(dim=1) / -TRACKING_WIDTH)


def track_yaw_rate(commands: Tensor, angular: Tensor) -> Tensor:
    """1 where the yaw rate (N, 3)[2] is the commanded one (N, >= 3)[2], less elsewhere."""
    error = commands[:, 2] - angular[:, 2]
    return torch.exp(error * error / -TRACKING_WIDTH)


def squared(values: Tensor) -> Tensor:
    """Sum of squares (N,) of (N, K)."""
    return (values * values).sum(dim=1)


def wrap_to_pi(angle: Tensor) -> Tensor:
    """The same angle in (-pi, pi]."""
    turned = torch.remainder(angle, 2.0 * math.pi)
    return torch.where(turned > math.pi, turned - 2.0 * math.pi, turned)


def heading_command(target: Tensor, heading: Tensor) -> Tensor:
    """Yaw rate (N,) that turns `heading` towards `target` (rad), at most 1 rad/s."""
    return torch.clamp(0.5 * wrap_to_pi(target - heading), -1.0, 1.0)


def touching(forces: Tensor, threshold: float = 1.0) -> Tensor:
    """Mask (N, K) of bodies with a contact force (N, K, 3) above `threshold` (N)."""
    return torch.linalg.vector_norm(forces, dim=-1) > threshold
