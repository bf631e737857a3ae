"""Collision elements of URDF files -> shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from isaacgym.engine import inertia, meshes, spatial, xmlfile
from isaacgym.engine.asset import Shape
from isaacgym.engine.inertia import MassProperties
from isaacgym.engine.spatial import Pose
from isaacgym.engine.xmlfile import Element, Item

KINDS = ("box", "sphere", "cylinder", "capsule", "mesh")


def origin(parent: Element) -> Pose:
    """Pose written in the <origin> child, identity where there is none."""
    element = parent.find("origin")
    if element is None:
        return spatial.identity_pose()
    item = Item(element)
    return item.vector("xyz", 3, (0, 0, 0)), spatial.from_rpy(*item.vector("rpy", 3, (0, 0, 0)))


def read(
    element: Element, default_name: str, folder: Path, asset_root: Path | None, options: Any, notes: list[str]
) -> list[Shape]:
    """The shapes of a <collision> element: one, or several for a mesh taken hull by hull."""
    geometry = element.find("geometry")
    found = list(xmlfile.elements(geometry)) if geometry is not None else []
    if len(found) != 1:
        raise xmlfile.error(element, f"<collision> needs one <geometry> with one of {', '.join(KINDS)}")
    item = Item(found[0])
    if item.tag not in KINDS:
        raise item.error(f"unknown geometry <{item.tag}>; allowed is {', '.join(KINDS)}")
    name = element.get("name") or default_name
    pos, quat = origin(element)
    if item.tag == "mesh":
        return _mesh(item, name, (pos, quat), folder, asset_root, options, notes)
    shape = Shape(item.tag, name, pos, quat)
    if item.tag == "box":
        shape.size = tuple(float(edge) / 2 for edge in item.vector("size", 3))
    elif item.tag == "sphere":
        shape.size = (item.number("radius"),)
    else:
        shape.size = (item.number("radius"), item.number("length") / 2)
        if options.replace_cylinder_with_capsule:
            shape.kind = "capsule"
    if min(shape.size) <= 0:
        raise item.error(f"<{item.tag}> of size {shape.size}; positive lengths are needed")
    return [shape]


def _mesh(
    item: Item, name: str, pose: Pose, folder: Path, asset_root: Path | None, options: Any, notes: list[str]
) -> list[Shape]:
    try:
        parts = meshes.load_parts(meshes.resolve(item.required("filename"), folder, asset_root))
    except (FileNotFoundError, ValueError) as problem:
        raise item.error(str(problem)) from None
    scale = item.vector("scale", 3, (1, 1, 1))
    return from_parts([meshes.scaled(part, scale) for part in parts], name, pose, options, item.where, notes)


def from_parts(
    parts: list[meshes.Mesh], name: str, pose: Pose, options: Any, place: str, notes: list[str]
) -> list[Shape]:
    """Shapes of a mesh collider: one hull, a hull for each part, or the mesh to be decomposed (API notes 8.5)."""
    if options.vhacd_enabled and not options.convex_decomposition_from_submeshes:
        return [Shape("decomposition", name, *pose, mesh=meshes.joined(parts))]
    if not options.convex_decomposition_from_submeshes:
        parts = [meshes.joined(parts)]
    shapes = []
    for index, (vertices, _) in enumerate(parts):
        solid, was_flat = meshes.hull(vertices)
        if was_flat:
            notes.append(f"{place}: mesh of '{name}' is flat: a box of at least {2 * meshes.FLAT:g} m is used")
        shapes.append(Shape("hull", name if len(parts) == 1 else f"{name}_{index}", *pose, mesh=solid))
    return shapes


def solid(shape: Shape, density: float) -> MassProperties:
    """Mass properties of a shape in the frame of its body; a mesh with holes counts as its convex hull."""
    mesh = shape.mesh
    if shape.kind == "decomposition" and mesh is not None and not meshes.is_closed(mesh):
        mesh = meshes.hull(mesh[0])[0]
    used = float(density if shape.density is None else shape.density)
    return inertia.of_shape(shape.kind, shape.size, mesh, used).moved(shape.pos, np.asarray(shape.quat))
