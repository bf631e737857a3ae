"""From what a file says about mass, and from shapes, to the mass properties a body gets; and what looks wrong there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from isaacgym.engine import inertia
from isaacgym.engine.asset import AssetError, Body
from isaacgym.engine.inertia import MassProperties
from isaacgym.engine.spatial import Array

TINY_MASS = 1e-3
"""kg of a body that has neither a mass nor shapes (frames for sensors, empty roots)."""
TINY_INERTIA = 1e-6
"""kg m2 about each axis of such a body."""
LARGE_RATIO = 1e3
"""Mass ratio of a body to its child, either way, above which contacts and joints become soft."""


def of_written(
    mass: float,
    com: Array,
    tensor: Array | None,
    geometry: MassProperties,
    options: Any,
    place: str,
    name: str,
    notes: list[str],
) -> MassProperties:
    """Mass properties of a link with a written positive mass.

    ``tensor`` (3, 3) about ``com`` is None or zero where the file gives none: it then comes from the shapes, scaled
    to the mass, or from a ball of 1000 kg/m3. ``options.override_com`` and ``override_inertia`` take com and tensor
    from the shapes in any case.
    """
    shaped = geometry.scaled_to(mass) if geometry.mass > 0 else None
    if tensor is None or not np.any(tensor):
        if shaped is not None:
            notes.append(f"{place}: '{name}' has a mass but no inertia: inertia computed from its shapes")
            tensor = shaped.inertia
        else:
            notes.append(f"{place}: '{name}' has a mass but no inertia and no shapes: inertia of a ball of water")
            radius = (mass / (4 / 3 * np.pi * 1000)) ** (1 / 3)
            tensor = inertia.of_sphere(radius, 1000).inertia
    elif inertia.principal_moments(tensor)[0] <= 0:
        notes.append(f"{place}: inertia of '{name}' is not positive: raised to the nearest tensor a real body can have")
        tensor = inertia.made_physical(tensor)
    if shaped is not None and options.override_com:
        com = shaped.com
    if shaped is not None and options.override_inertia:
        tensor = shaped.inertia
    return MassProperties(mass, com, tensor)


def finish(body: Body, parts: Sequence[MassProperties], options: Any, place: str, notes: list[str]) -> None:
    """Gives a body the sum of its parts, or a tiny mass where there is none; adds link armature where asked for."""
    total = inertia.merge(parts)
    if total.mass <= 0:
        notes.append(f"{place}: '{body.name}' has neither mass nor shapes: {TINY_MASS} kg assumed")
        total = MassProperties(TINY_MASS, total.com, TINY_INERTIA * np.eye(3))
    body.mass, body.com, body.inertia = total.mass, total.com, total.inertia
    if not options.use_physx_armature:
        body.inertia = body.inertia + float(options.armature) * np.eye(3)


def massless_error(place: str, name: str, mass: float) -> AssetError:
    """The error for a moving link with shapes whose mass is written as zero or less."""
    return AssetError(
        f"{place}: mass {mass:g} of '{name}', which has collision shapes and can move; "
        "needed is a positive mass, no mass at all (it then follows from the shapes), or a fixed base"
    )


def lint(bodies: Sequence[Body], place: str) -> list[str]:
    """Notes on inertias, mass ratios and joint limits that make a simulation weak or immobile."""
    impossible = [body.name for body in bodies if inertia.breaks_triangle_rule(body.inertia)]
    notes = []
    if impossible:
        notes.append(f"{place}: inertias kept though no real body has them: {', '.join(impossible)}")
    for body in bodies:
        if body.parent >= 0:
            parent = bodies[body.parent]
            if TINY_MASS < min(body.mass, parent.mass) < max(body.mass, parent.mass) / LARGE_RATIO:
                notes.append(
                    f"{place}: '{body.name}' ({body.mass:.3g} kg) on '{parent.name}' ({parent.mass:.3g} kg): "
                    "a mass ratio this large simulates poorly"
                )
        for joint in body.joints:
            if joint.is_movable and joint.has_limits and joint.lower == joint.upper:
                notes.append(f"{place}: joint '{joint.name}' cannot move: both limits are {joint.lower:g}")
            if joint.is_movable and (joint.effort <= 0 or joint.velocity <= 0):
                notes.append(f"{place}: joint '{joint.name}' has a zero effort or velocity limit: taken as unlimited")
    return notes
