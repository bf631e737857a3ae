"""Joints of MJCF bodies -> Joint records, and which of them one physical joint can carry."""

from __future__ import annotations

from typing import Any

import numpy as np

from isaacgym.engine import spatial
from isaacgym.engine.asset import FLT_MAX, Joint
from isaacgym.engine.mjcf_model import Model
from isaacgym.engine.spatial import Pose
from isaacgym.engine.xmlfile import Item

KINDS = ("hinge", "slide", "ball", "free")


def read(model: Model, item: Item, kind: str, name: str, frame: Pose, options: Any) -> list[Joint]:
    """The DOFs of one joint element that stands in ``frame`` of its body: one, or three for a ball."""
    anchor = frame[0] + spatial.rotate(frame[1], item.vector("pos", 3, (0, 0, 0)))
    if kind == "ball":
        joints = [Joint(f"{name}:{k}", "revolute", spatial.rotate(frame[1], np.eye(3)[k]), anchor) for k in range(3)]
    else:
        axis = item.vector("axis", 3, (0, 0, 1))
        if not np.any(axis):
            raise item.error(f"the axis of joint '{name}' is zero")
        axis = spatial.rotate(frame[1], spatial.normalized(axis))
        joints = [Joint(name, "revolute" if kind == "hinge" else "prismatic", axis, anchor)]
    for joint in joints:
        joint.stiffness = item.number("stiffness", 0.0)
        joint.damping = item.number("damping", 0.0)
        joint.friction = item.number("frictionloss", 0.0)
        joint.armature = item.number("armature", 0.0)
        joint.armature += float(options.armature) if options.use_physx_armature else 0.0
        joint.drive_mode = int(options.default_dof_drive_mode)
        _limit(model, item, kind, joint)
        if model.is_limited(item, "actuatorfrclimited", "actuatorfrcrange"):
            joint.effort = float(np.abs(item.vector("actuatorfrcrange", 2)).max())
    return joints


def _limit(model: Model, item: Item, kind: str, joint: Joint) -> None:
    """Position limits in radians or metres, from the position in which the file draws the body."""
    unit = 1.0 if kind == "slide" else model.compiler.angle
    if item.number("springref", 0.0) * unit and joint.stiffness:
        model.notes.append(f"{item.where}: springref of joint '{joint.name}' dropped: its spring rests at zero")
    if np.any(item.numbers("springdamper")):
        model.notes.append(f"{item.where}: springdamper of joint '{joint.name}' dropped; use stiffness and damping")
    if not model.is_limited(item, "limited", "range"):
        return
    if not item.has("range"):
        model.notes.append(f"{item.where}: joint '{joint.name}' is limited but has no range: not limited")
        return
    low, high = item.vector("range", 2) * unit
    if low > high:
        raise item.error(f"range of joint '{joint.name}': {low:g} is above {high:g}")
    shift = item.number("ref", 0.0) * unit
    if shift:
        model.notes.append(f"{item.where}: ref of joint '{joint.name}' moved into its limits: it is drawn at zero")
    joint.has_limits = True
    joint.lower, joint.upper = (-high, high) if kind == "ball" else (low - shift, high - shift)
    joint.lower, joint.upper = max(joint.lower, -FLT_MAX), min(joint.upper, FLT_MAX)


def groups(joints: list[Joint]) -> list[list[Joint]]:
    """Consecutive joints in groups that one joint of the engine can carry.

    That is a single joint, or up to three hinges through one point with axes at right angles (API notes 9.3).
    """
    result: list[list[Joint]] = []
    for joint in joints:
        if result and _fits(joint, result[-1]):
            result[-1].append(joint)
        else:
            result.append([joint])
    return result


def _fits(joint: Joint, group: list[Joint]) -> bool:
    return len(group) < 3 and all(
        other.kind == joint.kind == "revolute"
        and abs(float(other.axis @ joint.axis)) < 1e-4
        and np.allclose(other.anchor, joint.anchor, atol=1e-6)
        for other in group
    )
