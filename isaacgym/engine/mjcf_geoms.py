"""Geoms of MJCF files -> collision shapes and mass properties."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isaacgym.engine import inertia, meshes, spatial, urdf_shapes
from isaacgym.engine.asset import Shape
from isaacgym.engine.inertia import MassProperties
from isaacgym.engine.meshes import Mesh
from isaacgym.engine.mjcf_model import Model
from isaacgym.engine.spatial import Array, Pose
from isaacgym.engine.xmlfile import Item

KINDS = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
SIZE_NUMBERS = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
MESH_INERTIAS = ("legacy", "convex", "exact", "shell")
FROMTO_NUMBERS = {"capsule": 1, "cylinder": 1, "ellipsoid": 2, "box": 2}


@dataclass
class Geom:
    """One geom of a body: its shape parameters, its contact masks, and how to weigh it."""

    item: Item
    name: str
    kind: str
    pose: Pose
    size: tuple[float, ...]
    mesh: str
    contype: int
    conaffinity: int
    group: float


class GeomReader:
    """Turns geoms into shapes; mesh files are read only when a shape or a mass needs them."""

    def __init__(self, model: Model, options: Any) -> None:
        self.model = model
        self.options = options
        self._mesh_items: dict[str, Item] = {}
        self._meshes: dict[str, list[Mesh]] = {}
        for element in model.section("asset"):
            if element.tag == "mesh":
                item = model.item(element)
                name = item.text("name") or Path(item.text("file") or "").stem
                self._mesh_items[name] = item

    def read(self, item: Item, frame: Pose, default_name: str) -> Geom:
        """The geom of an element that stands in ``frame``; raises AssetError for a type that no body can carry."""
        kind = item.text("type", "sphere") or "sphere"
        if kind not in KINDS:
            raise item.error(f"geom type '{kind}' on a body; allowed is {', '.join(KINDS)}")
        pose = self.model.pose(item)
        size: tuple[float, ...] = ()
        if kind != "mesh":
            if item.has("mesh"):
                raise item.error(f'a {kind} fitted to a mesh is not supported; give its size, or type="mesh"')
            size, pose = self._size(item, kind, pose)
        return Geom(
            item,
            item.text("name") or default_name,
            kind,
            spatial.compose(frame, pose),
            size,
            item.required("mesh") if kind == "mesh" else "",
            int(item.number("contype", 1)),
            int(item.number("conaffinity", 1)),
            item.number("group", 0),
        )

    def _size(self, item: Item, kind: str, pose: Pose) -> tuple[tuple[float, ...], Pose]:
        """Size as in asset.Shape (ellipsoid: radii) and the pose, which a fromto overrides."""
        size = item.numbers("size")
        size = np.zeros(0) if size is None else size
        uses_fromto = "fromto" in item.own or (item.has("fromto") and "pos" not in item.own)
        if uses_fromto and kind in FROMTO_NUMBERS:
            ends = item.vector("fromto", 6)
            start, end = ends[:3], ends[3:]
            if np.allclose(start, end):
                raise item.error("fromto of a geom has both ends in one place")
            pose = ((start + end) / 2, spatial.from_z_to(start - end))
            across = size[: FROMTO_NUMBERS[kind]]
            if kind in ("box", "ellipsoid") and len(across) == 1:
                across = np.repeat(across, 2)
            size = np.append(across, float(np.linalg.norm(end - start)) / 2)
        needed = SIZE_NUMBERS[kind]
        if len(size) < needed or np.any(size[:needed] <= 0):
            raise item.error(f"size of a {kind} geom is {list(map(float, size))}; {needed} positive numbers are needed")
        return tuple(float(value) for value in size[:needed]), pose

    # ---- meshes

    def _mesh(self, geom: Geom) -> list[Mesh]:
        """Parts of the geom's mesh in the geom's frame."""
        if geom.mesh not in self._mesh_items:
            raise geom.item.error(f"geom '{geom.name}' names the mesh '{geom.mesh}', which is not an asset")
        if geom.mesh not in self._meshes:
            self._meshes[geom.mesh] = self._load(self._mesh_items[geom.mesh])
        return self._meshes[geom.mesh]

    def _load(self, item: Item) -> list[Mesh]:
        written = item.numbers("vertex")
        if written is not None:
            parts = [self._inline(item, written)]
        else:
            try:
                parts = meshes.load_parts(self._find(item.required("file")))
            except (FileNotFoundError, ValueError) as problem:
                raise item.error(str(problem)) from None
        scale = item.vector("scale", 3, (1, 1, 1))
        w, x, y, z = item.vector("refquat", 4, (1, 0, 0, 0))
        pos, quat = spatial.inverse((item.vector("refpos", 3, (0, 0, 0)), spatial.normalized(np.array([x, y, z, w]))))
        return [
            (pos + spatial.rotate(quat, vertices), triangles)
            for vertices, triangles in (meshes.scaled(part, scale) for part in parts)
        ]

    def _inline(self, item: Item, numbers: Array) -> Mesh:
        vertices = numbers.reshape(-1, 3)
        faces = item.numbers("face")
        return meshes.hull(vertices)[0] if faces is None else (vertices, faces.astype(np.int64).reshape(-1, 3))

    def _find(self, name: str) -> Path:
        compiler = self.model.compiler
        name = Path(name).name if compiler.strippath else name
        folder = self.model.path.parent
        try:
            return meshes.resolve(str(Path(compiler.meshdir) / name), folder)
        except FileNotFoundError:
            return meshes.resolve(name, folder)

    # ---- shapes and masses

    def shapes(self, geom: Geom, notes: list[str]) -> list[Shape]:
        """The collision shapes of a geom: one, or several for a mesh taken part by part."""
        friction = geom.item.numbers("friction")
        density = geom.item.number("density") if geom.item.has("density") else None
        if geom.kind == "mesh":
            parts = self._mesh(geom)
            found = urdf_shapes.from_parts(parts, geom.name, geom.pose, self.options, geom.item.where, notes)
        elif geom.kind == "ellipsoid":
            found = [Shape("hull", geom.name, *geom.pose, mesh=meshes.ellipsoid(np.array(geom.size)))]
        else:
            becomes_capsule = geom.kind == "cylinder" and self.options.replace_cylinder_with_capsule
            found = [Shape("capsule" if becomes_capsule else geom.kind, geom.name, *geom.pose, size=geom.size)]
        for shape in found:
            shape.density = density
            shape.friction = float(friction[0]) if friction is not None and len(friction) else 1.0
        return found

    def matter(self, geom: Geom) -> MassProperties:
        """Mass properties of a geom in the frame of its body, from its mass or its density."""
        low, high = self.model.compiler.inertiagrouprange
        if not low <= geom.group <= high:
            return inertia.nothing()
        density = geom.item.number("density", float(self.options.density))
        mass = geom.item.number("mass") if geom.item.has("mass") else None
        if mass == 0 or (mass is None and density == 0):
            return inertia.nothing()
        solid = self._solid(geom, 1.0 if mass is not None else density)
        return (solid if mass is None else solid.scaled_to(mass)).moved(*geom.pose)

    def _solid(self, geom: Geom, density: float) -> MassProperties:
        if geom.kind == "ellipsoid":
            return inertia.of_ellipsoid(geom.size, density)
        if geom.kind != "mesh":
            return inertia.of_shape(geom.kind, geom.size, None, density)
        vertices, triangles = meshes.joined(self._mesh(geom))
        method = self._mesh_items[geom.mesh].choice("inertia", MESH_INERTIAS, "legacy")
        if method == "convex":
            vertices, triangles = meshes.hull(vertices)[0]
        try:
            return inertia.of_mesh(vertices, triangles, density, is_closed=method not in ("legacy", "shell"))
        except ValueError as problem:
            raise geom.item.error(f"mass of mesh '{geom.mesh}': {problem}") from None
