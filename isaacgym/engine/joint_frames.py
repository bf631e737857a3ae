"""How a body's joints become one PhysX joint, and under which names PhysX lists its DOFs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isaacgym.engine import spatial
from isaacgym.engine.asset import AssetError, Joint
from isaacgym.engine.scene import Actor


def hinge_axes(joints: Sequence[Joint], where: str) -> tuple[np.ndarray, list[int]]:
    """Frame of a body's joint, and the frame axis (0 x, 1 y, 2 z) that each of its DOFs turns about.

    Returns:
        rotation matrix (3, 3) whose columns are the frame's axes in the body frame, and one axis index a DOF.

    Raises:
        AssetError: when the joints cannot be one PhysX joint.
    """
    first = joints[0].axis
    if len(joints) == 1:
        return spatial.to_matrix(spatial.multiply(spatial.from_z_to(first), _X_TO_Z)), [0]
    axes = [joint.axis for joint in joints]
    orthogonal = all(abs(float(a @ b)) < 1e-3 for i, a in enumerate(axes) for b in axes[:i])
    same_anchor = all(np.allclose(joint.anchor, joints[0].anchor, atol=1e-6) for joint in joints)
    if len(joints) > 3 or not orthogonal or not same_anchor or any(joint.kind != "revolute" for joint in joints):
        raise AssetError(
            f"{where}: several joints on one body must be two or three hinges with orthogonal axes and one anchor; "
            "put a small body between them"
        )
    if len(joints) == 2:
        return np.column_stack([axes[0], axes[1], np.cross(axes[0], axes[1])]), [0, 1]
    if np.linalg.det(np.column_stack(axes)) > 0:
        return np.column_stack(axes), [0, 1, 2]
    return np.column_stack([axes[0], axes[2], axes[1]]), [0, 2, 1]


_X_TO_Z = spatial.normalized(np.array([0.0, -1.0, 0.0, 1.0]))
"""Rotation that takes x to z: followed by z-to-axis it takes x to the axis."""


def dof_prim_names(actor: Actor) -> list[str]:
    """Names under which PhysX lists the actor's DOFs, in Isaac Gym order."""
    names = []
    dof = 0
    for index, body in enumerate(actor.asset.model.bodies):
        movable = [joint for joint in body.joints if joint.is_movable]
        if len(movable) == 1:
            names.append(f"d{dof}")
        elif movable:
            _, axes = hinge_axes(movable, body.name)
            names.extend(f"m{index}:{axis}" for axis in axes)
        dof += len(movable)
    return names
