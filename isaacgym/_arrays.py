"""Vectorised geometry on structured arrays (API notes, section 6, module-level helpers).

Arguments are structured arrays of any shape, broadcast against each other, or single value objects.
Quaternions are unit ones, x, y, z, w; angles are radians.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.recfunctions import structured_to_unstructured

from ._fields import Record

Array = npt.NDArray[Any]

VEC3 = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4")])
QUAT = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("w", "<f4")])
TRANSFORM = np.dtype([("p", VEC3), ("r", QUAT)])


def cross(a: Any, b: Any) -> Array:
    """Return the vector products of Vec3 arrays (or single ones), broadcast against each other."""
    return _records(np.cross(_floats(a, VEC3), _floats(b, VEC3)), VEC3)


def dot(a: Any, b: Any) -> Array:
    """Return the scalar products (float32) of Vec3 arrays (or single ones), broadcast against each other."""
    return np.asarray((_floats(a, VEC3) * _floats(b, VEC3)).sum(-1), np.float32)


def rotate(q: Any, v: Any) -> Array:
    """Return Vec3 arrays rotated by Quat arrays (or single ones), broadcast against each other."""
    return _records(rotate_floats(_floats(q, QUAT), _floats(v, VEC3)), VEC3)


def rotate_inverse(q: Any, v: Any) -> Array:
    """Return Vec3 arrays rotated by the inverse of Quat arrays (or single ones)."""
    return _records(rotate_floats(_floats(q, QUAT), _floats(v, VEC3), inverse=True), VEC3)


def transform(t: Any, v: Any) -> Array:
    """Return points (Vec3 array) moved by Transform arrays (or single ones): r * v + p."""
    pose = _floats(t, TRANSFORM)
    return _records(rotate_floats(pose[..., 3:], _floats(v, VEC3)) + pose[..., :3], VEC3)


def transform_inverse(t: Any, v: Any) -> Array:
    """Return points (Vec3 array) moved by the inverse of Transform arrays (or single ones)."""
    pose = _floats(t, TRANSFORM)
    return _records(rotate_floats(pose[..., 3:], _floats(v, VEC3) - pose[..., :3], inverse=True), VEC3)


def eulers_to_quats_zyx(eulers: Any) -> Array:
    """Return the Quat array of angles a, b, c in a Vec3 array, as ``Quat.from_euler_zyx`` (rad)."""
    return _records(euler_to_quat(_floats(eulers, VEC3)), QUAT)


def quats_to_eulers_zyx(quats: Any) -> Array:
    """Return the angles a, b, c (Vec3 array, rad) of a Quat array, as ``Quat.to_euler_zyx``."""
    return _records(quat_to_euler(_floats(quats, QUAT)), VEC3)


def rotate_floats(q: Array, v: Array, inverse: bool = False) -> Array:
    """Rotate v (..., 3) by unit quaternions q (..., 4)."""
    axis, w = (-q[..., :3] if inverse else q[..., :3]), q[..., 3:]
    twice = 2.0 * np.cross(axis, v)
    return v + w * twice + np.cross(axis, twice)


def euler_to_quat(angles: Array) -> Array:
    """Quaternions (..., 4) of Rz(c) Ry(b) Rx(a) for angles (..., 3) = a, b, c."""
    cx, cy, cz = np.moveaxis(np.cos(0.5 * angles), -1, 0)
    sx, sy, sz = np.moveaxis(np.sin(0.5 * angles), -1, 0)
    return np.stack(
        [
            sx * cy * cz - cx * sy * sz,
            cx * sy * cz + sx * cy * sz,
            cx * cy * sz - sx * sy * cz,
            cx * cy * cz + sx * sy * sz,
        ],
        axis=-1,
    )


def quat_to_euler(q: Array) -> Array:
    """Angles a, b, c (..., 3) of quaternions (..., 4), the inverse of ``euler_to_quat``.

    The half sum and half difference of a and c are read off first: with C = cos(b/2), S = sin(b/2) the pair
    (w + y, x - z) is (C + S) times cosine and sine of (a - c)/2, and (w - y, x + z) is (C - S) times those of
    (a + c)/2. Nothing cancels near b = +-pi/2, where only one of the two is defined and the other may be anything.
    """
    x, y, z, w = np.moveaxis(q, -1, 0)
    half_difference = np.arctan2(x - z, w + y)
    half_sum = np.arctan2(x + z, w - y)
    b = 2.0 * np.arctan2(np.hypot(w + y, x - z), np.hypot(w - y, x + z)) - 0.5 * np.pi
    return np.stack([_wrap(half_sum + half_difference), b, _wrap(half_sum - half_difference)], axis=-1)


def _wrap(angle: Array) -> Array:
    """Return the angles in (-pi, pi]."""
    wrapped: Array = angle - 2.0 * np.pi * np.ceil((angle - np.pi) / (2.0 * np.pi))
    return wrapped


def _floats(value: Any, dtype: np.dtype[Any]) -> Array:
    """Return components (..., n) as float64 of a value object or of a structured array of ``dtype``."""
    array = np.array(value.as_tuple(), value.dtype) if isinstance(value, Record) else np.asarray(value)
    if array.dtype != dtype:
        raise TypeError(f"an array with fields {dtype.names} is needed, got dtype {array.dtype}")
    return structured_to_unstructured(array, np.float64)


def _records(components: Array, dtype: np.dtype[Any]) -> Array:
    """Return components (..., n) as a structured array (...) of ``dtype``."""
    return np.ascontiguousarray(components, "<f4").view(dtype)[..., 0]
