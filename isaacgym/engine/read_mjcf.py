"""MJCF files -> Asset (Isaac Gym API notes 9.3): one body tree with its joints, shapes, masses, actuators, tendons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from isaacgym.engine import inertia, massing, mjcf_contacts, mjcf_drives, mjcf_joints, spatial, xmlfile
from isaacgym.engine.asset import Asset, AssetError, Body, Joint, Shape
from isaacgym.engine.inertia import MassProperties
from isaacgym.engine.mjcf_geoms import Geom, GeomReader
from isaacgym.engine.mjcf_model import Model
from isaacgym.engine.spatial import Pose
from isaacgym.engine.xmlfile import Element, Item

HARMLESS = ("site", "camera", "light")
MULTIPLYING = ("composite", "flexcomp", "replicate", "attach", "plugin")
DROPPED_SECTIONS = ("equality", "deformable")
IGNORED_SECTIONS = (
    "compiler", "option", "size", "visual", "statistic", "default", "asset", "worldbody", "contact", "tendon",
    "actuator", "sensor", "keyframe", "custom", "extension",
)  # fmt: skip
WORLD = "world"
"""Name of the fixed root body that carries a robot whose first body has joints other than a free one."""


@dataclass
class _Node:
    """One <body> of the file with its own content, frames already resolved."""

    item: Item
    name: str
    pose: Pose
    joints: list[Joint] = field(default_factory=list)
    is_free: bool = False
    geoms: list[Geom] = field(default_factory=list)
    inertial: Item | None = None
    children: list[_Node] = field(default_factory=list)

    def has_joints(self) -> bool:
        """True when this body or one below it can move."""
        return self.is_free or bool(self.joints) or any(child.has_joints() for child in self.children)


def load(path: str | Path, options: Any) -> Asset:
    """Reads an MJCF file; raises AssetError with file:line for what it cannot use."""
    return _Reader(Path(path), options).read()


class _Reader:
    """State of one load."""

    def __init__(self, path: Path, options: Any) -> None:
        self.options = options
        self.model = Model(path)
        self.notes = self.model.notes
        self.geoms = GeomReader(self.model, options)
        self.bodies: list[Body] = []
        self.shape_geoms: list[Geom] = []
        """The geom of every collision shape, in shape order."""
        self.paired = mjcf_contacts.names_in_pairs(self.model)
        self._names: Counter[str] = Counter()

    def read(self) -> Asset:
        """The whole way from file to asset."""
        world, trees = self._read_world()
        root = self._choose(trees)
        asset = Asset(self.model.root.get("model", self.model.path.stem), str(self.model.path), self.bodies)
        asset.fixed_base = bool(self.options.fix_base_link) or not root.is_free
        parent = -1
        if root.joints:
            self._add_body(Body(WORLD, -1), world, moving=False)
            self.notes[:] = [note for note in self.notes if f"'{WORLD}' has neither mass nor shapes" not in note]
            parent = 0
        else:
            asset.root_pos, asset.root_quat = root.pose
            root.pose = spatial.identity_pose()
            self._note_dropped_world(world)
        self._emit(root, parent, moving=not asset.fixed_base)
        self._scale_total_mass()
        asset.no_collide = mjcf_contacts.apply(self.model, self.bodies, self.shape_geoms, self.notes)
        mjcf_drives.read(self.model, asset, self.options, self.notes)
        self._note_sections()
        self.notes += massing.lint(self.bodies, str(self.model.path))
        asset.notes, asset.options = self.notes, self.options
        return asset

    # ---- reading the tree

    def _read_world(self) -> tuple[_Node, list[_Node]]:
        """The static geoms of the world as one node, and the trees below it."""
        world = _Node(Item(self.model.root), WORLD, spatial.identity_pose())
        for element in self.model.section_elements("worldbody"):
            world.item = Item(element)
            self._read_content(world, element, spatial.identity_pose(), None)
        if not world.children:
            raise world.item.error("the file has no <body>; at least one in <worldbody> is needed")
        trees, world.children = world.children, []
        return world, trees

    def _read_content(self, node: _Node, parent: Element, frame: Pose, childclass: str | None) -> None:
        """Adds what stands in a body (or in a frame of it) to its node."""
        for element in self.model.children(parent):
            if element.tag == "body":
                node.children.append(self._read_body(element, frame, childclass))
            elif element.tag == "geom":
                self._read_geom(node, self.model.item(element, childclass), frame)
            elif element.tag in ("joint", "freejoint"):
                self._read_joint(node, self.model.item(element, childclass), frame)
            elif element.tag == "inertial":
                node.inertial = Item(element)
            elif element.tag == "frame":
                item = Item(element)
                inner = spatial.compose(frame, self.model.pose(item))
                self._read_content(node, element, inner, element.get("childclass") or childclass)
            elif element.tag in MULTIPLYING:
                raise xmlfile.error(element, f"<{element.tag}> is not supported; write its bodies out")
            elif element.tag not in HARMLESS:
                raise xmlfile.error(element, f"unknown element <{element.tag}> in a body")

    def _read_body(self, element: Element, frame: Pose, childclass: str | None) -> _Node:
        item = Item(element)
        name = self._unique(item.text("name"), "body", item)
        node = _Node(item, name, spatial.compose(frame, self.model.pose(item)))
        self._read_content(node, element, spatial.identity_pose(), element.get("childclass") or childclass)
        return node

    def _unique(self, written: str | None, kind: str, item: Item) -> str:
        """The written name, which must be new, or a numbered one."""
        self._names[kind] += 1
        name = written or f"{kind}{self._names[kind] - 1}"
        if self._names[f"{kind} {name}"]:
            raise item.error(f"a second {kind} named '{name}'")
        self._names[f"{kind} {name}"] += 1
        return name

    def _read_geom(self, node: _Node, item: Item, frame: Pose) -> None:
        kind = item.text("type", "sphere")
        if node.name == WORLD and node.item.tag == "worldbody" and kind in ("plane", "hfield", "sdf"):
            if kind != "plane":
                self.notes.append(f"{item.where}: static {kind} geom dropped; terrain is added by the program")
            return
        node.geoms.append(self.geoms.read(item, frame, f"{node.name}_geom{len(node.geoms)}"))

    def _read_joint(self, node: _Node, item: Item, frame: Pose) -> None:
        kind = "free" if item.tag == "freejoint" else item.choice("type", mjcf_joints.KINDS, "hinge")
        if node.item.tag == "worldbody":
            raise item.error("a joint in <worldbody>; joints belong to bodies")
        name = self._unique(item.text("name"), "joint", item)
        if kind == "free":
            node.is_free = True
        else:
            node.joints += mjcf_joints.read(self.model, item, kind, name, frame, self.options)

    # ---- choosing the actor

    def _choose(self, trees: list[_Node]) -> _Node:
        """The first tree that floats, else the first that moves, else the first; nested free joints are refused."""
        for node in (below for tree in trees for below in _descendants(tree)):
            if node.is_free:
                raise node.item.error(
                    f"body '{node.name}' inside another has a free joint; only a top body may have one"
                )
        ranked = sorted(trees, key=lambda tree: (not tree.is_free, not tree.has_joints()))
        chosen = ranked[0]
        if chosen.is_free and chosen.joints:
            raise chosen.item.error(f"body '{chosen.name}' has a free joint and others; a free joint stands alone")
        for tree in trees:
            if tree is not chosen:
                self.notes.append(f"{tree.item.where}: tree '{tree.name}' dropped; the actor is '{chosen.name}'")
        return chosen

    def _note_dropped_world(self, world: _Node) -> None:
        for geom in world.geoms:
            if geom.contype or geom.conaffinity:
                self.notes.append(f"{geom.item.where}: static geom '{geom.name}' of the world dropped")

    # ---- writing bodies

    def _emit(self, node: _Node, parent: int, moving: bool) -> None:
        """Appends the bodies of a node, then its children, depth-first in document order."""
        groups = mjcf_joints.groups(node.joints)
        if len(groups) > 1:
            names = ", ".join(joint.name for joint in node.joints)
            self.notes.append(
                f"{node.item.where}: the joints {names} of '{node.name}' do not make one joint (up to three hinges "
                f"through one point at right angles do): {len(groups) - 1} light bodies put between them"
            )
        pose = node.pose
        for group in groups[:-1]:
            between = Body(f"{node.name}:{group[0].name}", parent, *pose, joints=group)
            between.mass = massing.TINY_MASS
            between.inertia = massing.TINY_INERTIA * np.eye(3)
            parent, pose = len(self.bodies), spatial.identity_pose()
            self.bodies.append(between)
        joints = groups[-1] if groups else [Joint(f"{node.name}_fixed", "fixed")] if parent >= 0 else []
        moving = moving or bool(node.joints)
        index = len(self.bodies)
        self._add_body(Body(node.name, parent, *pose, joints=joints), node, moving)
        for child in node.children:
            self._emit(child, index, moving)

    def _add_body(self, body: Body, node: _Node, moving: bool) -> None:
        for geom in node.geoms:
            if geom.contype or geom.conaffinity or geom.item.text("name") in self.paired:
                shapes = self.geoms.shapes(geom, self.notes)
                body.shapes += shapes
                self.shape_geoms += [geom] * len(shapes)
        matter = self._matter(node)
        if body.shapes and inertia.merge(matter).mass <= 0:
            if moving:
                raise massing.massless_error(node.item.where, node.name, 0.0)
            matter = [_solid(shape, self.options.density) for shape in body.shapes]
        massing.finish(body, matter, self.options, node.item.where, self.notes)
        self._bound(body)
        self.bodies.append(body)

    def _matter(self, node: _Node) -> list[MassProperties]:
        """Mass properties from <inertial>, or from the geoms, as the compiler options say."""
        compiler = self.model.compiler
        item = node.inertial
        if item is None or compiler.inertiafromgeom == "true":
            if item is None and compiler.inertiafromgeom == "false" and node.geoms:
                self.notes.append(f"{node.item.where}: '{node.name}' has no <inertial>: mass computed from its geoms")
            return [self.geoms.matter(geom) for geom in node.geoms]
        mass = item.number("mass")
        if mass <= 0:
            return []
        needs_geometry = self.options.override_com or self.options.override_inertia
        needs_geometry = needs_geometry or not (item.has("diaginertia") or item.has("fullinertia"))
        geometry = inertia.merge([self.geoms.matter(geom) for geom in node.geoms] if needs_geometry else [])
        com, quat = self.model.pose(item)
        turn = spatial.to_matrix(quat)
        tensor = _tensor(item)
        tensor = turn @ tensor @ turn.T if tensor is not None else None
        return [massing.of_written(mass, com, tensor, geometry, self.options, item.where, node.name, self.notes)]

    def _bound(self, body: Body) -> None:
        """The compiler's lower bounds on mass and inertia, and its balancing of impossible tensors."""
        compiler = self.model.compiler
        body.mass = max(body.mass, compiler.boundmass)
        low = float(inertia.principal_moments(body.inertia)[0])
        if low < compiler.boundinertia:
            body.inertia = body.inertia + (compiler.boundinertia - low) * np.eye(3)
        if compiler.balanceinertia and inertia.breaks_triangle_rule(body.inertia):
            body.inertia = float(np.trace(body.inertia)) / 3 * np.eye(3)

    def _scale_total_mass(self) -> None:
        weighty = [body for body in self.bodies if body.mass > massing.TINY_MASS]
        wanted, total = self.model.compiler.settotalmass, sum(body.mass for body in weighty)
        if wanted > 0:
            for body in weighty:
                body.mass *= wanted / total
                body.inertia = body.inertia * (wanted / total)

    def _note_sections(self) -> None:
        for element in self.model.children(self.model.root):
            if element.tag in DROPPED_SECTIONS:
                kinds = Counter(str(child.tag) for child in self.model.children(element))
                listed = ", ".join(f"{tag} x{count}" for tag, count in sorted(kinds.items()))
                self.notes.append(f"{xmlfile.where(element)}: <{element.tag}> dropped: {listed or 'empty'}")
            elif element.tag not in IGNORED_SECTIONS:
                self.notes.append(f"{xmlfile.where(element)}: unknown section <{element.tag}> dropped")


def _descendants(node: _Node) -> Iterator[_Node]:
    for child in node.children:
        yield child
        yield from _descendants(child)


def _solid(shape: Shape, density: float) -> MassProperties:
    used = float(density if shape.density is None else shape.density)
    return inertia.of_shape(shape.kind, shape.size, shape.mesh, used).moved(shape.pos, shape.quat)


def _tensor(item: Item) -> spatial.Array | None:
    """The 3x3 tensor of an <inertial> element in its own axes."""
    if item.has("fullinertia"):
        xx, yy, zz, xy, xz, yz = item.vector("fullinertia", 6)
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if item.has("diaginertia"):
        return np.diag(item.vector("diaginertia", 3))
    return None


__all__ = ["AssetError", "load"]
