"""Who may touch whom: Isaac Gym's groups and filter bits, turned into collision classes.

Two shapes of different bodies may collide when their actors' groups are equal (or one is -1), their filters share no
bit, and their bodies are not joined (Isaac Gym API notes 11). PhysX gets this as named classes: every shape belongs
to a class, and each class lists the classes it never touches.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isaacgym.engine.scene import Actor

ClassKey = tuple[int, int, int]
"""(colour, group, filter): the colour tells neighbouring envs apart (``placement.colours``); the group is -1 or the
order in which the env's groups appear, so that equal envs have equal keys."""


@dataclass(frozen=True)
class Filtering:
    """The collision rules of one environment."""

    classes: tuple[tuple[ClassKey, ...], ...]
    """For each actor, for each of its shapes, the shape's class."""
    self_collide: tuple[bool, ...]
    """For each actor, whether its own bodies may touch each other."""
    inside: bool
    """Whether anything in the env may touch anything else in it (the ground aside)."""


def may_touch(a: ClassKey, b: ClassKey) -> bool:
    """Isaac Gym's rule for two classes, for envs of one colour; other colours never touch."""
    same_group = a[1] == b[1] or -1 in (a[1], b[1])
    return a[0] == b[0] and same_group and (a[2] & b[2]) == 0


def _touches_itself(actor: Actor, keys: Sequence[ClassKey]) -> bool:
    """True when two shapes on bodies that no joint connects may touch."""
    bodies = actor.asset.shape_body
    parents = [body.parent for body in actor.asset.model.bodies]
    for first, second in itertools.combinations(range(len(keys)), 2):
        a, b = int(bodies[first]), int(bodies[second])
        joined = a == b or parents[a] == b or parents[b] == a
        if not joined and may_touch(keys[first], keys[second]):
            return True
    return False


def analyse(actors: Sequence[Actor], colour: int = 0) -> Filtering:
    """Work out classes and rules of the env that holds ``actors``."""
    order: dict[int, int] = {}
    classes = []
    for actor in actors:
        group = -1 if actor.group == -1 else order.setdefault(actor.group, len(order))
        classes.append(tuple((colour, group, int(bits)) for bits in actor.shape_props["filter"]))
    self_collide = tuple(_touches_itself(actor, keys) for actor, keys in zip(actors, classes, strict=True))
    across = any(
        may_touch(one, other) for a, b in itertools.combinations(classes, 2) for one in set(a) for other in set(b)
    )
    return Filtering(tuple(classes), self_collide, across or any(self_collide))


def signature(actors: Sequence[Actor]) -> tuple[tuple[int, bytes], ...]:
    """What of the collision rules makes two envs different prototypes: relative groups and filter bits."""
    order: dict[int, int] = {}
    return tuple(
        (
            -1 if actor.group == -1 else order.setdefault(actor.group, len(order)),
            np.ascontiguousarray(actor.shape_props["filter"]).tobytes(),
        )
        for actor in actors
    )


def separated_classes(filterings: Sequence[Filtering]) -> dict[ClassKey, list[ClassKey]]:
    """For every class of any env, the classes (itself included) that it must not touch."""
    keys = sorted({key for rules in filterings for shapes in rules.classes for key in shapes})
    return {key: [other for other in keys if not may_touch(key, other)] for key in keys}
