"""Contact masks, excludes and pairs of MJCF files -> filter bits of the shapes."""

from __future__ import annotations

from itertools import combinations

from isaacgym.engine import filters
from isaacgym.engine.asset import Body
from isaacgym.engine.filters import Pair
from isaacgym.engine.mjcf_geoms import Geom
from isaacgym.engine.mjcf_model import Model
from isaacgym.engine.xmlfile import Item


def names_in_pairs(model: Model) -> set[str]:
    """Names of the geoms that an explicit <pair> lets touch, whatever their masks."""
    pairs = [Item(element) for element in model.section("contact") if element.tag == "pair"]
    return {item.required(end) for item in pairs for end in ("geom1", "geom2")}


def apply(model: Model, bodies: list[Body], geoms: list[Geom], notes: list[str]) -> list[Pair]:
    """Sets the filter bits of all shapes and returns the pairs of bodies that bits do not keep apart.

    ``geoms`` holds the geom of each shape, in shape order. Bits stand for contype, conaffinity and <pair>; the
    returned pairs are the <exclude>s, and what a 32nd bit would have been needed for.
    """
    body_of = [index for index, body in enumerate(bodies) for _ in body.shapes]
    excluded = _excludes(model, bodies, notes)
    touching = _pairs(model, geoms, notes)
    forbidden: set[Pair] = set()
    free: set[Pair] = set()
    for a, b in combinations(range(len(geoms)), 2):
        joined = filters.ordered(body_of[a], body_of[b])
        if _never_meet(bodies, *joined) or joined in excluded:
            free.add((a, b))
        elif (a, b) not in touching and filters.masks_forbid(_masks(geoms[a]), _masks(geoms[b])):
            forbidden.add((a, b))
    words, left = filters.assign_bits(len(geoms), forbidden, free)
    for shape, word in zip((shape for body in bodies for shape in body.shapes), words, strict=True):
        shape.filter = word
    if left:
        notes.append(f"{model.path}: contact masks need more than {filters.MAX_BITS} bits: whole bodies kept apart")
    return sorted(excluded | set(filters.body_pairs(left, body_of)))


def _masks(geom: Geom) -> tuple[int, int]:
    return geom.contype, geom.conaffinity


def _never_meet(bodies: list[Body], a: int, b: int) -> bool:
    """True for one body, or two that a joint connects: the engine lets them pass through each other anyway."""
    return a == b or bodies[b].parent == a or bodies[a].parent == b


def _excludes(model: Model, bodies: list[Body], notes: list[str]) -> set[Pair]:
    index = {body.name: i for i, body in enumerate(bodies)}
    found = set()
    for item in (Item(element) for element in model.section("contact") if element.tag == "exclude"):
        names = [item.required("body1"), item.required("body2")]
        unknown = [name for name in names if name not in index]
        if unknown:
            notes.append(f"{item.where}: exclude dropped: '{unknown[0]}' is no body of the actor")
        elif not _never_meet(bodies, index[names[0]], index[names[1]]):
            found.add(filters.ordered(index[names[0]], index[names[1]]))
    return found


def _pairs(model: Model, geoms: list[Geom], notes: list[str]) -> set[Pair]:
    """Pairs of shape indices that a <pair> lets touch."""
    shapes: dict[str, list[int]] = {}
    for index, geom in enumerate(geoms):
        shapes.setdefault(geom.name, []).append(index)
    found = set()
    for item in (Item(element) for element in model.section("contact") if element.tag == "pair"):
        names = [item.required("geom1"), item.required("geom2")]
        unknown = [name for name in names if name not in shapes]
        if unknown:
            notes.append(f"{item.where}: pair dropped: '{unknown[0]}' is no geom of the actor")
            continue
        found |= {filters.ordered(a, b) for a in shapes[names[0]] for b in shapes[names[1]]}
    return found
