"""Rotation helpers for hot paths; quaternions are (x, y, z, w) of unit length."""

from __future__ import annotations

import math

import torch
from torch import Tensor

TWO_PI = 2.0 * math.pi


def rotation_matrix(quat: Tensor) -> Tensor:
    """Matrices (N, 3, 3) of unit quaternions (N, 4): they turn body vectors into world vectors."""
    x, y, z, w = quat.unbind(-1)
    x2, y2, z2 = x + x, y + y, z + z
    xx, yy, zz = x * x2, y * y2, z * z2
    xy, xz, yz = x * y2, x * z2, y * z2
    wx, wy, wz = w * x2, w * y2, w * z2
    rows = (1.0 - (yy + zz), xy - wz, xz + wy, xy + wz, 1.0 - (xx + zz), yz - wx, xz - wy, yz + wx, 1.0 - (xx + yy))
    return torch.stack(rows, dim=-1).view(-1, 3, 3)


def to_body_frame(rotation: Tensor, vectors: Tensor) -> Tensor:
    """World vectors (N, K, 3) in the frame of the bodies whose matrices are `rotation` (N, 3, 3)."""
    return torch.bmm(vectors, rotation)


def roll_yaw(rotation: Tensor) -> tuple[Tensor, Tensor]:
    """Roll and yaw (N,) in [0, 2 pi) of intrinsic yaw-pitch-roll angles, from matrices (N, 3, 3)."""
    roll = torch.atan2(rotation[:, 2, 1], rotation[:, 2, 2])
    yaw = torch.atan2(rotation[:, 1, 0], rotation[:, 0, 0])
    return torch.remainder(roll, TWO_PI), torch.remainder(yaw, TWO_PI)


def relative_rotation(quat: Tensor, reference: Tensor) -> Tensor:
    """Rotation (N, 4) that turns `reference` (N, 4) into `quat` (N, 4), in world axes: quat x conjugate(reference)."""
    vector, w = quat[:, :3], quat[:, 3:]
    other, other_w = reference[:, :3], reference[:, 3:]
    turned = other_w * vector - w * other - torch.linalg.cross(vector, other)
    return torch.cat((turned, w * other_w + (vector * other).sum(dim=1, keepdim=True)), dim=1)


def rotation_angle(quat: Tensor) -> Tensor:
    """Angle (N,) in [0, pi] of rotations (N, 4)."""
    return 2.0 * torch.asin(torch.linalg.vector_norm(quat[:, :3], dim=1).clamp(max=1.0))


def turn_x_then(axis: str, first: Tensor, second: Tensor) -> Tensor:
    """Quaternions (N, 4) of a turn by `first` (N,) about x times one by `second` (N,) about `axis`, "y" or "z"."""
    sin_x, cos_x = torch.sin(first / 2), torch.cos(first / 2)
    sin_other, cos_other = torch.sin(second / 2), torch.cos(second / 2)
    if axis == "y":
        parts = (sin_x * cos_other, cos_x * sin_other, sin_x * sin_other, cos_x * cos_other)
    else:
        parts = (sin_x * cos_other, -sin_x * sin_other, cos_x * sin_other, cos_x * cos_other)
    return torch.stack(parts, dim=1)
