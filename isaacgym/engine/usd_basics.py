"""Small pieces of USD authoring: attributes, poses, units and limits in the form PhysX reads."""

from __future__ import annotations

from typing import Any

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom

from isaacgym.engine import spatial
from isaacgym.engine.asset import FLT_MAX

SCENE_PATH = "/World/physicsScene"
ENVS_PATH = "/World/envs"
DEFAULT_MAX_VELOCITY = 100.0
"""rad/s or m/s: the cap of a joint whose file gives none."""


def env_path(index: int) -> str:
    """Prim path of environment ``index``."""
    return f"{ENVS_PATH}/e{index}"


def put(prim: Usd.Prim, name: str, kind: str, value: Any) -> None:
    """Set an attribute of a schema that pxr has no class for."""
    prim.CreateAttribute(name, getattr(Sdf.ValueTypeNames, kind)).Set(value)


def quatf(q: np.ndarray) -> Gf.Quatf:
    """Turn an xyzw quaternion into USD's."""
    return Gf.Quatf(float(q[3]), float(q[0]), float(q[1]), float(q[2]))


def place(prim: Usd.Prim, pos: np.ndarray, quat: np.ndarray, keep_scale: bool = False) -> None:
    """Give a prim its pose in its parent; ``keep_scale`` keeps the scale op that the shape already has."""
    form = UsdGeom.Xformable(prim)
    scale = prim.GetAttribute("xformOp:scale").Get() if keep_scale else None
    form.ClearXformOpOrder()
    form.AddTranslateOp().Set(Gf.Vec3d(*map(float, pos)))
    form.AddOrientOp().Set(quatf(np.asarray(quat)))
    if scale is not None:
        form.AddScaleOp().Set(scale)


def principal_axes(inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quaternion (4,) of the principal axes in the body frame, and the moments (3,) about them, kg m^2."""
    if np.allclose(inertia, np.diag(np.diag(inertia)), rtol=0, atol=1e-12 * max(1e-9, float(np.trace(inertia)))):
        return spatial.identity_quat(), np.diag(inertia)
    moments, axes = np.linalg.eigh(inertia)
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    return spatial.from_matrix(axes), moments


def split_gravity(gravity: np.ndarray) -> tuple[list[float], float]:
    """Direction (unit) and magnitude (m/s^2); no gravity points down."""
    magnitude = float(np.linalg.norm(gravity))
    direction = gravity / magnitude if magnitude > 0 else np.array([0.0, 0.0, -1.0])
    return [float(value) for value in direction], magnitude


def effort_limit(effort: float) -> float:
    """Drive force limit for PhysX: an effort of zero or less means unlimited."""
    return effort if 0 < effort < FLT_MAX else FLT_MAX


def velocity_limit(velocity: float) -> float:
    """Joint speed limit for PhysX (rad/s or m/s)."""
    return velocity if 0 < velocity < FLT_MAX else DEFAULT_MAX_VELOCITY
