"""Writes actor properties into the built scene: masses, frictions, gains, limits, tendons.

Setters only mark an actor; ``flush`` (called before a step) writes all marked actors of a group with one call per
quantity, so that randomising thousands of environments costs a handful of native calls. All of these quantities live
on the host, also when physics runs on the GPU.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np
import torch

from isaacgym._enums import RIGID_BODY_DISABLE_GRAVITY
from isaacgym.engine import tendons
from isaacgym.engine.asset import FLT_MAX
from isaacgym.engine.groups import ARTICULATION, STATIC, Group
from isaacgym.engine.scene import Actor
from isaacgym.engine.usd_basics import effort_limit, velocity_limit

_logger = logging.getLogger(__name__)

Writer = Callable[[Group, Sequence[Actor]], dict[str, np.ndarray]]


def _dof_quantities(group: Group, actors: Sequence[Actor]) -> dict[str, np.ndarray]:
    """DOF properties of the actors as arrays (k, D, ...) in Gym's order (Isaac Gym API notes 9.6)."""
    props = np.stack([actor.dof_props for actor in actors])
    limited = props["hasLimits"]
    lower = np.where(limited, props["lower"], -FLT_MAX)
    upper = np.where(limited, props["upper"], FLT_MAX)
    if np.any(props["friction"] != 0.0):
        _warn_once("DOF friction is a coefficient in Isaac Gym; here it acts as a friction torque (N m) or force (N)")
    friction = np.stack([props["friction"], props["friction"], np.zeros_like(props["friction"])], axis=-1)
    quantities = {
        "DOF_STIFFNESS": props["stiffness"],
        "DOF_DAMPING": props["damping"],
        "DOF_MAX_FORCE": np.vectorize(effort_limit, otypes=[float])(props["effort"]),
        "DOF_MAX_VELOCITY": np.vectorize(velocity_limit, otypes=[float])(props["velocity"]),
        "DOF_ARMATURE": props["armature"],
        "DOF_FRICTION_PROPERTIES": friction,
    }
    if limited.any():
        quantities["DOF_LIMIT"] = np.stack([lower, upper], axis=-1)
    return quantities


def _body_quantities(group: Group, actors: Sequence[Actor]) -> dict[str, np.ndarray]:
    """Mass, centre of mass and inertia of the actors' bodies, (k, B, ...).

    PhysX takes the inertia about the centre of mass in the axes of the body (measured) and turns the frame of the
    centre of mass into the principal axes itself, so only the position of that frame is written.
    """
    props = np.stack([actor.body_props for actor in actors])
    gravity_off = (props["flags"] & RIGID_BODY_DISABLE_GRAVITY) != 0
    prefix = "BODY_" if group.kind == ARTICULATION else ""
    return {
        f"{prefix}MASS": props["mass"],
        f"{prefix}COM_POSE": props["com"],
        f"{prefix}INERTIA": props["inertia"].reshape(*props.shape, 9),
        f"{prefix}DISABLE_GRAVITY": gravity_off.astype(np.uint8),
    }


def _shape_quantities(group: Group, actors: Sequence[Actor]) -> dict[str, np.ndarray]:
    """Friction, restitution and offsets of the actors' shapes, (k, S, ...), in PhysX's order of shapes."""
    props = np.stack([actor.shape_props for actor in actors])[:, group.shape_order(actors[0])]
    return {
        "SHAPE_FRICTION_AND_RESTITUTION": np.stack([props["friction"], props["friction"], props["restitution"]], -1),
        "CONTACT_OFFSET": props["contact_offset"],
        "REST_OFFSET": props["rest_offset"],
    }


def _tendon_quantities(group: Group, actors: Sequence[Actor]) -> dict[str, np.ndarray]:
    """Fixed tendon properties of the actors, (k, T, ...), in PhysX's order of tendons."""
    order = tendons.physx_order(actors[0].asset.model)
    props = np.stack([actor.tendon_props for actor in actors])[:, order]
    limited = props["is_fixed_limited"]
    lower = np.where(limited, props["fixed_lower_limit"], -FLT_MAX)
    upper = np.where(limited, props["fixed_upper_limit"], FLT_MAX)
    return {
        "FIXED_TENDON_STIFFNESS": props["stiffness"],
        "FIXED_TENDON_DAMPING": props["damping"],
        "FIXED_TENDON_LIMIT_STIFFNESS": props["limit_stiffness"],
        "FIXED_TENDON_REST_LENGTH": props["fixed_spring_rest_length"],
        "FIXED_TENDON_LIMIT": np.stack([lower, upper], axis=-1),
    }


KINDS: dict[str, tuple[Writer, str]] = {
    "dof": (_dof_quantities, "dof_props"),
    "body": (_body_quantities, "body_props"),
    "shape": (_shape_quantities, "shape_props"),
    "tendon": (_tendon_quantities, "tendon_props"),
}
"""For each kind of property: who makes the arrays, and the actor's attribute that holds it."""

_warned: set[str] = set()


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        _logger.warning(text)


class LiveProperties:
    """Pending property changes of a built simulation."""

    def __init__(self, groups: Sequence[Group]) -> None:
        """Index the actors and mark those whose properties differ from what was written into the stage."""
        self._groups = groups
        self._place = {id(actor): (group, row) for group in groups for row, actor in enumerate(group.actors)}
        self._pending: dict[tuple[int, str], dict[int, Actor]] = {}
        for group in groups:
            for kind, (_, attribute) in KINDS.items():
                arrays = {id(getattr(actor, attribute)) for actor in group.actors}
                if len(arrays) > 1:
                    for actor in group.actors:
                        self.mark(kind, actor)

    def mark(self, kind: str, actor: Actor) -> None:
        """Remember that the properties of this kind of the actor changed."""
        group, row = self._place[id(actor)]
        if len(getattr(actor, KINDS[kind][1])):
            self._pending.setdefault((self._groups.index(group), kind), {})[row] = actor

    def flush(self) -> None:
        """Write everything that was marked."""
        for (number, kind), rows in self._pending.items():
            self._write(self._groups[number], kind, rows)
        self._pending.clear()

    def _write(self, group: Group, kind: str, rows: dict[int, Actor]) -> None:
        """Write the marked rows of one group; single bodies go by the order of their shapes, which assets share."""
        if group.kind == STATIC and kind == "body":
            return
        parts: dict[bytes, dict[int, Actor]] = {}
        for row, actor in rows.items():
            key = group.shape_order(actor).tobytes() if kind == "shape" else b""
            parts.setdefault(key, {})[row] = actor
        for part in parts.values():
            for quantity, array in KINDS[kind][0](group, list(part.values())).items():
                self._put(group, quantity, array, list(part))

    @staticmethod
    def _put(group: Group, quantity: str, array: np.ndarray, rows: Sequence[int]) -> None:
        """Write ``array`` (k, columns, ...) into the given rows of a binding; what it leaves out stays as it is."""
        where = torch.as_tensor(list(rows), dtype=torch.int32)
        stage = group.read(quantity)
        if quantity.startswith("DOF_"):
            array = array[:, group.dof_order.physx_order]
        elif quantity.startswith("BODY_"):
            array = array[:, group.body_order.physx_order]
        values = torch.as_tensor(np.array(array, np.float32, order="C", ndmin=1).copy(), dtype=stage.dtype)
        if group.kind != ARTICULATION and not quantity.startswith(("SHAPE", "CONTACT", "REST")):
            values = values.squeeze(1)
        target = stage[where.long()]
        current = target[tuple(slice(size) for size in values.shape)]
        if torch.equal(current, values):
            return
        current.copy_(values)
        stage[where.long()] = target
        group.binding(quantity).write(stage, where)
