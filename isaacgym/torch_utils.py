"""Batched quaternion and tensor helpers of the Isaac Gym API (API notes, section 14).

Quaternions are x, y, z, w. Every function takes CPU and CUDA tensors alike and, unless it says otherwise,
can be called from TorchScript. The module is meant to be star-imported and exports ``torch`` and ``np`` too.
"""

import math
from typing import Any

import numpy as np
import torch

__all__ = [
    "compute_heading_and_up",
    "compute_rot",
    "copysign",
    "get_axis_params",
    "get_basis_vector",
    "get_euler_xyz",
    "normalize",
    "normalize_angle",
    "np",
    "quat_apply",
    "quat_axis",
    "quat_conjugate",
    "quat_diff_rad",
    "quat_from_angle_axis",
    "quat_from_euler_xyz",
    "quat_mul",
    "quat_rotate",
    "quat_rotate_inverse",
    "quat_unit",
    "scale",
    "tensor_clamp",
    "tf_apply",
    "tf_combine",
    "tf_inverse",
    "tf_vector",
    "to_torch",
    "torch",
    "torch_rand_float",
    "torch_random_dir_2",
    "unscale",
    "unscale_np",
]


def to_torch(
    x: Any,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
    requires_grad: bool = False,
) -> torch.Tensor:
    """Return a new tensor with the values of ``x`` (numbers, sequences, arrays, tensors). Not scriptable.

    ``device`` None means "cuda:0", or "cpu" on a machine without CUDA.
    """
    if device is None:
        device = "cuda:0" if torch.cuda.is_available() else "cpu"
    if isinstance(x, torch.Tensor):
        return x.detach().to(device=device, dtype=dtype, copy=True).requires_grad_(requires_grad)
    return torch.tensor(x, dtype=dtype, device=device, requires_grad=requires_grad)


def normalize(x: torch.Tensor, eps: float = 1e-9) -> torch.Tensor:
    """Return x / max(|x|, eps) along the last dimension; zero vectors stay zero."""
    return x / x.norm(p=2, dim=-1, keepdim=True).clamp(min=eps)


def quat_mul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the Hamilton products a b (b is applied first) of quaternions (..., 4) of equal shapes."""
    assert a.shape == b.shape, "quat_mul: both arguments must have the same shape"
    u, w = a[..., :3], a[..., 3:]
    v, s = b[..., :3], b[..., 3:]
    vector = torch.addcmul(torch.addcmul(torch.linalg.cross(u, v), w, v), s, u)
    scalar = w * s - (u * v).sum(dim=-1, keepdim=True)
    return torch.cat([vector, scalar], dim=-1)


def quat_conjugate(a: torch.Tensor) -> torch.Tensor:
    """Return the conjugates of quaternions (..., 4)."""
    return torch.cat([-a[..., :3], a[..., 3:]], dim=-1)


def quat_unit(a: torch.Tensor) -> torch.Tensor:
    """Return quaternions (..., 4) scaled to unit length."""
    return normalize(a)


def quat_apply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return vectors b (..., 3) rotated by unit quaternions a (..., 4), in the shape of b."""
    q, v = a.reshape(-1, 4), b.reshape(-1, 3)
    return _rotate(q[:, :3], q[:, 3:], v).view(b.shape)


def quat_rotate(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return vectors v (N, 3) rotated by unit quaternions q (N, 4)."""
    return _rotate(q[:, :3], q[:, 3:], v)


def quat_rotate_inverse(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return vectors v (N, 3) rotated by the inverses of unit quaternions q (N, 4)."""
    return _rotate(q[:, :3], -q[:, 3:], v)


def _rotate(u: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Rotate v (N, 3) by unit quaternions with vector part u (N, 3) and scalar part w (N, 1)."""
    twice = 2.0 * torch.linalg.cross(u, v)
    return torch.addcmul(v, w, twice) + torch.linalg.cross(u, twice)


def quat_from_angle_axis(angle: torch.Tensor, axis: torch.Tensor) -> torch.Tensor:
    """Return the rotations by angle (N) [rad] about axis (N, 3), which need not be unit vectors."""
    half = (0.5 * angle).unsqueeze(-1)
    return normalize(torch.cat([normalize(axis) * half.sin(), half.cos()], dim=-1))


def normalize_angle(x: torch.Tensor) -> torch.Tensor:
    """Return angles [rad] wrapped to [-pi, pi]."""
    return torch.atan2(torch.sin(x), torch.cos(x))


def tf_inverse(q: torch.Tensor, t: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the inverses of poses (q, t): (q*, -(q* t))."""
    inverse = quat_conjugate(q)
    return inverse, -quat_apply(inverse, t)


def tf_apply(q: torch.Tensor, t: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return points v (N, 3) moved by poses (q, t)."""
    return quat_apply(q, v) + t


def tf_vector(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return vectors v (N, 3) rotated by q (N, 4)."""
    return quat_apply(q, v)


def tf_combine(
    q1: torch.Tensor, t1: torch.Tensor, q2: torch.Tensor, t2: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the products of poses (q1, t1) and (q2, t2); the second is applied first."""
    return quat_mul(q1, q2), quat_apply(q1, t2) + t1


def get_basis_vector(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return vectors v (N, 3) rotated by q (N, 4)."""
    return quat_rotate(q, v)


def quat_axis(q: torch.Tensor, axis: int = 0) -> torch.Tensor:
    """Return the rotated unit vectors (N, 3) of the given axis (0 x, 1 y, 2 z)."""
    basis = torch.zeros(q.shape[0], 3, dtype=q.dtype, device=q.device)
    basis[:, axis] = 1
    return quat_rotate(q, basis)


def get_axis_params(
    value: float, axis_idx: int, x_value: float = 0.0, dtype: Any = float, n_dims: int = 3
) -> list[float]:
    """Return ``n_dims`` numbers: ``value`` at ``axis_idx``, zero elsewhere, then element 0 set to ``x_value``.

    So ``axis_idx`` 0 gives ``x_value``, not ``value``. Not scriptable.
    """
    if not 0 <= axis_idx < n_dims:
        raise ValueError(f"get_axis_params: axis_idx {axis_idx} is outside 0..{n_dims - 1}")
    params = np.zeros(n_dims, dtype=dtype)
    params[axis_idx] = value
    params[0] = x_value
    values: list[float] = params.tolist()
    return values


def copysign(a: float, b: torch.Tensor) -> torch.Tensor:
    """Return abs(a) with the signs of b; zero where b is zero."""
    return abs(a) * torch.sign(b)


def get_euler_xyz(q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return roll, pitch and yaw (N each) [rad] of quaternions (N, 4), each in [0, 2 pi).

    The rotation is yaw about z after pitch about y after roll about x.
    """
    x, y, z, w = q[:, 0], q[:, 1], q[:, 2], q[:, 3]
    xx, yy, zz, ww = x * x, y * y, z * z, w * w
    roll = torch.atan2(2.0 * (w * x + y * z), ww - xx - yy + zz)
    pitch = torch.asin(torch.clamp(2.0 * (w * y - z * x), -1.0, 1.0))
    yaw = torch.atan2(2.0 * (w * z + x * y), ww + xx - yy - zz)
    turn = 2.0 * math.pi
    return roll % turn, pitch % turn, yaw % turn


def quat_from_euler_xyz(roll: torch.Tensor, pitch: torch.Tensor, yaw: torch.Tensor) -> torch.Tensor:
    """Return the quaternions (N, 4) of yaw about z after pitch about y after roll about x [rad]."""
    cr, sr = torch.cos(0.5 * roll), torch.sin(0.5 * roll)
    cp, sp = torch.cos(0.5 * pitch), torch.sin(0.5 * pitch)
    cy, sy = torch.cos(0.5 * yaw), torch.sin(0.5 * yaw)
    cc, cs, sc, ss = cy * cp, cy * sp, sy * cp, sy * sp
    return torch.stack([cc * sr - ss * cr, cs * cr + sc * sr, sc * cr - cs * sr, cc * cr + ss * sr], dim=-1)


def torch_rand_float(lower: float, upper: float, shape: tuple[int, int], device: str) -> torch.Tensor:
    """Return numbers drawn uniformly from [lower, upper), from torch's global generator."""
    return (upper - lower) * torch.rand(shape, device=device) + lower


def torch_random_dir_2(shape: tuple[int, int], device: str) -> torch.Tensor:
    """Return random unit vectors (cos, sin) of angles uniform in (-pi, pi); shape is (N, 1) or (N, M)."""
    angle = torch_rand_float(-math.pi, math.pi, shape, device).squeeze(-1)
    return torch.stack([torch.cos(angle), torch.sin(angle)], dim=-1)


def tensor_clamp(t: torch.Tensor, min_t: torch.Tensor, max_t: torch.Tensor) -> torch.Tensor:
    """Return t limited element-wise to the bounds min_t and max_t."""
    return torch.max(torch.min(t, max_t), min_t)


def scale(x: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor) -> torch.Tensor:
    """Map [-1, 1] linearly to [lower, upper]."""
    return 0.5 * (x + 1.0) * (upper - lower) + lower


def unscale(x: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor) -> torch.Tensor:
    """Map [lower, upper] linearly to [-1, 1]."""
    return (2.0 * x - upper - lower) / (upper - lower)


def unscale_np(x: Any, lower: Any, upper: Any) -> Any:
    """Map [lower, upper] linearly to [-1, 1], for numpy arrays and numbers. Not scriptable."""
    return (2.0 * x - upper - lower) / (upper - lower)


def quat_diff_rad(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the angles in [0, pi] between rotations a and b, quaternions (N, 4)."""
    difference = quat_mul(a, quat_conjugate(b))
    return 2.0 * torch.asin(torch.clamp(difference[:, :3].norm(p=2, dim=-1), max=1.0))


def compute_heading_and_up(
    torso_rotation: torch.Tensor,
    inv_start_rot: torch.Tensor,
    to_target: torch.Tensor,
    vec0: torch.Tensor,
    vec1: torch.Tensor,
    up_idx: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return how a torso is turned relative to its start.

    Args:
        torso_rotation: (N, 4) current rotations.
        inv_start_rot: (N, 4) inverses of the start rotations.
        to_target: (N, 3) vectors towards the target.
        vec0: (N, 3) heading vectors at the start.
        vec1: (N, 3) up vectors at the start.
        up_idx: index of the world's up axis.

    Returns:
        torso rotations relative to the start (N, 4), up projections (N), heading projections on the target
        direction (N), up vectors (N, 3), heading vectors (N, 3).
    """
    torso = quat_mul(torso_rotation, inv_start_rot)
    up = get_basis_vector(torso, vec1)
    heading = get_basis_vector(torso, vec0)
    return torso, up[:, up_idx], (heading * normalize(to_target)).sum(dim=-1), up, heading


def compute_rot(
    torso_quat: torch.Tensor,
    velocity: torch.Tensor,
    ang_velocity: torch.Tensor,
    targets: torch.Tensor,
    torso_positions: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return a torso's motion in its own frame.

    Args:
        torso_quat: (N, 4) rotations.
        velocity: (N, 3) linear velocities, world axes.
        ang_velocity: (N, 3) angular velocities, world axes.
        targets: (N, 3) target positions.
        torso_positions: (N, 3) positions.

    Returns:
        local linear velocities (N, 3), local angular velocities (N, 3), roll, pitch, yaw (N each, in [0, 2 pi)),
        and the angles to the target (N), atan2 of the offsets along z and x less the yaw.
    """
    local_velocity = quat_rotate_inverse(torso_quat, velocity)
    local_ang_velocity = quat_rotate_inverse(torso_quat, ang_velocity)
    roll, pitch, yaw = get_euler_xyz(torso_quat)
    offset = targets - torso_positions
    angle_to_target = torch.atan2(offset[:, 2], offset[:, 0]) - yaw
    return local_velocity, local_ang_velocity, roll, pitch, yaw, angle_to_target
