"""Rotations and rigid poses in numpy: quaternions are xyzw, angles radians, vectors metres.

A quaternion is an array (4,), a pose is the pair ``(pos (3,), quat (4,))`` that maps points of the
inner frame into the outer one: ``outer = pos + rotate(quat, inner)``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Pose = tuple[Array, Array]


def vector(values: ArrayLike) -> Array:
    """A fresh float64 array of the given numbers."""
    return np.array(values, dtype=np.float64)


def zero3() -> Array:
    """The zero vector (3,)."""
    return np.zeros(3)


def identity_quat() -> Array:
    """The quaternion (4,) that does not rotate."""
    return np.array([0.0, 0.0, 0.0, 1.0])


def identity_pose() -> Pose:
    """The pose at the origin without rotation."""
    return zero3(), identity_quat()


def multiply(a: Array, b: Array) -> Array:
    """Hamilton product a*b (4,): rotate by b first, then by a."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return np.array(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ]
    )


def conjugate(q: Array) -> Array:
    """The inverse (4,) of a unit quaternion."""
    return np.array([-q[0], -q[1], -q[2], q[3]])


def normalized(q: Array) -> Array:
    """The vector or quaternion scaled to length 1; raises ValueError when its length is zero."""
    length = float(np.linalg.norm(q))
    if length < 1e-12:
        raise ValueError("a zero vector has no direction")
    return q / length


def to_matrix(q: Array) -> Array:
    """Rotation matrix (3, 3) of a unit quaternion."""
    x, y, z, w = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def from_matrix(m: Array) -> Array:
    """Unit quaternion (4,) of a rotation matrix (3, 3)."""
    k = np.array(
        [
            [m[0, 0] - m[1, 1] - m[2, 2], 0, 0, 0],
            [m[0, 1] + m[1, 0], m[1, 1] - m[0, 0] - m[2, 2], 0, 0],
            [m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], m[2, 2] - m[0, 0] - m[1, 1], 0],
            [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], m[0, 0] + m[1, 1] + m[2, 2]],
        ]
    )
    _, vectors = np.linalg.eigh(k)
    q = vectors[:, -1]
    return q if q[3] >= 0 else -q


def rotate(q: Array, v: Array) -> Array:
    """The vector v (3,) or rows of vectors (N, 3) turned by q."""
    return v @ to_matrix(q).T


def from_axis_angle(axis: ArrayLike, angle: float) -> Array:
    """Quaternion (4,) of a turn by ``angle`` about ``axis`` (normalised here)."""
    unit = normalized(vector(axis))
    return np.append(unit * np.sin(angle / 2), np.cos(angle / 2))


def from_rotation_vector(rotation: Array) -> Array:
    """Quaternion (4,) of the exponential map of a rotation vector (3,)."""
    angle = float(np.linalg.norm(rotation))
    if angle < 1e-12:
        return normalized(np.append(rotation / 2, 1.0))
    return from_axis_angle(rotation, angle)


def from_rpy(roll: float, pitch: float, yaw: float) -> Array:
    """Quaternion (4,) of turns about the fixed axes x, y, z (URDF's rpy)."""
    return from_euler((roll, pitch, yaw), "XYZ")


def from_euler(angles: ArrayLike, sequence: str) -> Array:
    """Quaternion (4,) of three turns; lower case turns with the body, capitals about fixed axes."""
    q = identity_quat()
    for angle, letter in zip(vector(angles), sequence, strict=True):
        turn = from_axis_angle(np.eye(3)["xyz".index(letter.lower())], angle)
        q = multiply(q, turn) if letter.islower() else multiply(turn, q)
    return q


def from_z_to(direction: ArrayLike) -> Array:
    """The shortest turn (4,) that takes the z axis to ``direction``."""
    d = normalized(vector(direction))
    if d[2] < -1 + 1e-12:
        return np.array([1.0, 0.0, 0.0, 0.0])
    return normalized(np.array([-d[1], d[0], 0.0, 1 + d[2]]))


def compose(outer: Pose, inner: Pose) -> Pose:
    """The pose of ``inner`` seen from the frame in which ``outer`` is given."""
    return outer[0] + rotate(outer[1], inner[0]), multiply(outer[1], inner[1])


def inverse(pose: Pose) -> Pose:
    """The pose that undoes ``pose``."""
    q = conjugate(pose[1])
    return -rotate(q, pose[0]), q
