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
