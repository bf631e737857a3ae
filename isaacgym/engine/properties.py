"""Properties of bodies and shapes as structured arrays, and their API objects.

Inside the engine one actor's properties are one structured numpy array (a row a body or shape), which thousands of
actors share until a setter replaces it. The API's objects are made and read only at the border.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from isaacgym._params import RigidBodyProperties, RigidShapeProperties, TendonProperties
from isaacgym._values import Mat33, Vec3
from isaacgym.engine.asset import Asset

BODY_DTYPE = np.dtype([("mass", "f8"), ("com", "f8", 3), ("inertia", "f8", (3, 3)), ("flags", "i4")])
"""One body: kg, m in the link frame, kg m^2 about the centre of mass along link axes, RIGID_BODY_* bits."""

SHAPE_FIELDS = (
    "friction",
    "torsion_friction",
    "rolling_friction",
    "restitution",
    "compliance",
    "thickness",
    "filter",
    "contact_offset",
    "rest_offset",
)
SHAPE_DTYPE = np.dtype([(name, "i4" if name == "filter" else "f4") for name in SHAPE_FIELDS])

TENDON_FIELDS = (
    "stiffness",
    "damping",
    "limit_stiffness",
    "fixed_spring_rest_length",
    "fixed_lower_limit",
    "fixed_upper_limit",
    "is_fixed_limited",
)
TENDON_DTYPE = np.dtype([(name, "?" if name == "is_fixed_limited" else "f4") for name in TENDON_FIELDS])

MIN_MASS = 1e-6
"""Randomisation may ask for a mass of zero or less; bodies keep at least this many kg."""


def asset_bodies(asset: Asset, disable_gravity_flag: int) -> np.ndarray:
    """Body properties (B,) of BODY_DTYPE as the asset file states them."""
    rows = np.zeros(len(asset.bodies), BODY_DTYPE)
    for row, body in zip(rows, asset.bodies, strict=True):
        row["mass"], row["com"], row["inertia"] = body.mass, body.com, body.inertia
        row["flags"] = disable_gravity_flag if asset.options.disable_gravity else 0
    return rows


def asset_shapes(asset: Asset, contact_offset: float, rest_offset: float) -> np.ndarray:
    """Shape properties (S,) of SHAPE_DTYPE, body by body in file order; offsets are the simulation's."""
    rows = np.zeros(asset.num_shapes, SHAPE_DTYPE)
    shapes = [shape for body in asset.bodies for shape in body.shapes]
    for row, shape in zip(rows, shapes, strict=True):
        row["friction"], row["restitution"], row["filter"] = shape.friction, shape.restitution, shape.filter
        row["contact_offset"], row["rest_offset"] = contact_offset, rest_offset
    return rows


def asset_tendons(asset: Asset) -> np.ndarray:
    """Tendon properties (T,) of TENDON_DTYPE in file order."""
    rows = np.zeros(len(asset.tendons), TENDON_DTYPE)
    for row, tendon in zip(rows, asset.tendons, strict=True):
        row["stiffness"], row["damping"] = tendon.stiffness, tendon.damping
        row["limit_stiffness"] = tendon.limit_stiffness
        row["fixed_spring_rest_length"] = tendon.spring_length
        row["fixed_lower_limit"], row["fixed_upper_limit"] = tendon.lower, tendon.upper
        row["is_fixed_limited"] = tendon.limited
    return rows


def _inverse(matrix: np.ndarray) -> np.ndarray:
    return np.linalg.inv(matrix) if abs(np.linalg.det(matrix)) > 1e-30 else np.zeros((3, 3))


def _to_mat33(matrix: np.ndarray) -> Mat33:
    made = Mat33()
    made.x, made.y, made.z = (Vec3(*row) for row in matrix)
    return made


def _from_mat33(matrix: Mat33) -> np.ndarray:
    return np.array([[row.x, row.y, row.z] for row in (matrix.x, matrix.y, matrix.z)])


def bodies_to_api(rows: np.ndarray) -> list[RigidBodyProperties]:
    """Turn BODY_DTYPE rows into fresh API objects."""
    made = []
    for row in rows:
        props = RigidBodyProperties()
        mass = float(row["mass"])
        props.mass, props.invMass = mass, 1.0 / mass if mass > 0 else 0.0
        props.com = Vec3(*row["com"])
        props.inertia, props.invInertia = _to_mat33(row["inertia"]), _to_mat33(_inverse(row["inertia"]))
        props.flags = int(row["flags"])
        made.append(props)
    return made


def bodies_from_api(props: Sequence[RigidBodyProperties], old: np.ndarray, recompute_inertia: bool) -> np.ndarray:
    """Turn API objects into BODY_DTYPE rows.

    With ``recompute_inertia`` the inertia is the old one scaled by new mass / old mass; otherwise the objects' own.

    Raises:
        ValueError: when the number of objects is not the number of bodies.
    """
    if len(props) != len(old):
        raise ValueError(f"{len(props)} body properties for {len(old)} bodies")
    rows = old.copy()
    for row, was, item in zip(rows, old, props, strict=True):
        row["mass"] = max(item.mass, MIN_MASS)
        row["com"] = (item.com.x, item.com.y, item.com.z)
        if recompute_inertia:
            row["inertia"] = was["inertia"] * (row["mass"] / max(float(was["mass"]), MIN_MASS))
        else:
            row["inertia"] = _from_mat33(item.inertia)
        row["flags"] = item.flags
    return rows


def shapes_to_api(rows: np.ndarray) -> list[RigidShapeProperties]:
    """Turn SHAPE_DTYPE rows into fresh API objects."""
    made = []
    for row in rows:
        props = RigidShapeProperties()
        for name in SHAPE_FIELDS:
            setattr(props, name, row[name].item())
        made.append(props)
    return made


def tendons_to_api(rows: np.ndarray, asset: Asset) -> list[TendonProperties]:
    """Turn TENDON_DTYPE rows into fresh API objects."""
    made = []
    for row, tendon in zip(rows, asset.tendons, strict=True):
        props = TendonProperties(num_joints=len(tendon.joints))
        for name in TENDON_FIELDS:
            setattr(props, name, row[name].item())
        made.append(props)
    return made


def rows_from_api(props: Sequence[Any], like: np.ndarray) -> np.ndarray:
    """Turn API objects into rows of the dtype of ``like``, field by field.

    Raises:
        ValueError: when the number of objects differs from the number of rows.
    """
    if len(props) != len(like):
        raise ValueError(f"{len(props)} properties for {len(like)} items")
    rows = like.copy()
    for row, item in zip(rows, props, strict=True):
        for name in like.dtype.names or ():
            row[name] = getattr(item, name)
    return rows


def dofs_from_api(props: np.ndarray, old: np.ndarray) -> np.ndarray:
    """Copy a structured array with the DOF property fields into one of the exact dtype.

    Raises:
        ValueError: when the length differs or a field is missing.
    """
    if len(props) != len(old):
        raise ValueError(f"{len(props)} DOF properties for {len(old)} DOFs")
    rows = old.copy()
    for name in old.dtype.names or ():
        rows[name] = props[name]
    return rows
