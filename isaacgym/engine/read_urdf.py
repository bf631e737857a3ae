"""URDF files -> Asset (Isaac Gym API notes 9.3): links, joints, collision shapes; visuals and plug-ins are ignored."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from isaacgym.engine import inertia, massing, spatial, urdf_shapes, xmlfile
from isaacgym.engine.asset import FLT_MAX, Asset, AssetError, Body, Joint, Shape
from isaacgym.engine.inertia import MassProperties
from isaacgym.engine.spatial import Pose
from isaacgym.engine.xmlfile import Element, Item

JOINT_KINDS = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "fixed": "fixed"}


@dataclass
class _Inbound:
    """A joint of the file, with its parent and child links and the child's pose in the parent."""

    item: Item
    name: str
    type: str
    parent: str
    child: str
    pose: Pose
    keep: bool
    """The fixed joint is marked dont_collapse."""


@dataclass
class _Link:
    """A link of the file, later with the links merged into it."""

    item: Item
    name: str
    matter: list[MassProperties] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)
    zero_mass: tuple[str, str, float] | None = None
    """(place, name, mass) where a mass <= 0 is written for a link with shapes."""
    children: list[_Inbound] = field(default_factory=list)


def load(path: str | Path, options: Any, asset_root: str | Path | None = None) -> Asset:
    """Reads a URDF file; raises AssetError with file:line for what it cannot use."""
    reader = _Reader(Path(path), options, Path(asset_root) if asset_root is not None else None)
    return reader.read()


class _Reader:
    """State of one load: the links by name and the notes."""

    def __init__(self, path: Path, options: Any, asset_root: Path | None) -> None:
        self.path = path
        self.options = options
        self.asset_root = asset_root
        self.notes: list[str] = []
        self.links: dict[str, _Link] = {}

    def read(self) -> Asset:
        """The whole way from file to asset."""
        root = xmlfile.parse(self.path)
        if root.tag != "robot":
            raise xmlfile.error(root, f"the root element is <{root.tag}>; a URDF file has <robot>")
        joints = self._read_tree(root)
        base = self._find_base(joints)
        for link in self.links.values():
            link.children.sort(key=lambda joint: joint.name.encode())
        if self.options.collapse_fixed_joints:
            self._collapse(base)
        bodies: list[Body] = []
        self._emit(base, None, -1, not self.options.fix_base_link, bodies)
        self.notes += massing.lint(bodies, str(self.path))
        return Asset(
            name=root.get("name", self.path.stem),
            path=str(self.path),
            bodies=bodies,
            fixed_base=bool(self.options.fix_base_link),
            notes=self.notes,
            options=self.options,
        )

    # ---- reading

    def _read_tree(self, root: Element) -> list[_Inbound]:
        dropped: Counter[str] = Counter()
        joints: dict[str, _Inbound] = {}
        for element in xmlfile.elements(root):
            if element.tag == "link":
                link = self._read_link(Item(element))
                if link.name in self.links:
                    raise link.item.error(f"a second link named '{link.name}'")
                self.links[link.name] = link
            elif element.tag == "joint":
                joint = self._read_joint(Item(element))
                if joint.name in joints:
                    raise joint.item.error(f"a second joint named '{joint.name}'")
                joints[joint.name] = joint
            elif "xacro" in str(element.tag):
                raise xmlfile.error(element, "a xacro macro; expand the file with xacro first")
            elif element.tag != "material":
                dropped[str(element.tag)] += 1
        if not self.links:
            raise xmlfile.error(root, "the robot has no <link>")
        if dropped:
            listed = ", ".join(f"{tag} x{count}" for tag, count in sorted(dropped.items()))
            self.notes.append(f"{xmlfile.where(root)}: ignored: {listed}")
        self._connect(list(joints.values()))
        return list(joints.values())

    def _connect(self, joints: list[_Inbound]) -> None:
        taken: dict[str, str] = {}
        for joint in joints:
            for link in (joint.parent, joint.child):
                if link not in self.links:
                    raise joint.item.error(f"joint '{joint.name}' names the link '{link}', which does not exist")
            if joint.child in taken:
                raise joint.item.error(
                    f"link '{joint.child}' is the child of '{taken[joint.child]}' already; a tree is needed"
                )
            taken[joint.child] = joint.name
            self.links[joint.parent].children.append(joint)

    def _read_link(self, item: Item) -> _Link:
        link = _Link(item, item.required("name"))
        for index, element in enumerate(item.element.iterfind("collision")):
            default = f"{link.name}_collision{index}"
            link.shapes += urdf_shapes.read(
                element, default, self.path.parent, self.asset_root, self.options, self.notes
            )
        link.matter = self._read_matter(link)
        return link

    def _read_matter(self, link: _Link) -> list[MassProperties]:
        """What the link weighs before anything is merged into it; empty for a mere frame."""
        geometry = inertia.merge([urdf_shapes.solid(shape, self.options.density) for shape in link.shapes])
        element = link.item.element.find("inertial")
        mass_element = element.find("mass") if element is not None else None
        if mass_element is None:
            if geometry.mass <= 0:
                return []
            self.notes.append(f"{link.item.where}: '{link.name}' has no mass: computed from its shapes")
            return [geometry]
        place, mass = xmlfile.where(mass_element), Item(mass_element).number("value")
        if mass <= 0:
            if geometry.mass > 0:
                link.zero_mass = (place, link.name, mass)
            return []
        pos, quat = urdf_shapes.origin(element)
        tensor = _tensor(element.find("inertia"))
        turn = spatial.to_matrix(quat)
        tensor = turn @ tensor @ turn.T if tensor is not None else None
        return [massing.of_written(mass, pos, tensor, geometry, self.options, place, link.name, self.notes)]

    def _read_joint(self, item: Item) -> _Inbound:
        name = item.required("name")
        ends = {}
        for end in ("parent", "child"):
            element = item.element.find(end)
            if element is None:
                raise item.error(f"joint '{name}' has no <{end}>")
            ends[end] = Item(element).required("link")
        kind = item.choice("type", (*JOINT_KINDS, "floating"), "")
        if item.element.find("mimic") is not None:
            self.notes.append(f"{item.where}: joint '{name}' mimics another: not enforced, it is an ordinary DOF")
        return _Inbound(
            item, name, kind, ends["parent"], ends["child"], urdf_shapes.origin(item.element), item.has("dont_collapse")
        )

    def _find_base(self, joints: list[_Inbound]) -> _Link:
        """The alphabetically first link without parent, or the child of the floating joint below it."""
        children = {joint.child for joint in joints}
        bases = sorted((name for name in self.links if name not in children), key=str.encode)
        if not bases:
            raise AssetError(f"{self.path}: every link is the child of another; one link without a parent is needed")
        base = self.links[bases[0]]
        if len(bases) > 1:
            place = self.links[bases[1]].item.where
            self.notes.append(f"{place}: not connected to '{base.name}', dropped: {', '.join(bases[1:])}")
        if [joint.type for joint in base.children] == ["floating"] and not base.shapes and not base.matter:
            base = self.links[base.children[0].child]
        for joint in joints:
            if joint.type == "floating" and joint.child != base.name:
                raise joint.item.error("a floating joint between links; only one below an empty root link is allowed")
        return base

    # ---- collapsing fixed joints

    def _collapse(self, link: _Link) -> None:
        """Merges fixed children without dont_collapse into the link, leaves first (API notes 9.3)."""
        kept: list[_Inbound] = []
        for joint in link.children:
            child = self.links[joint.child]
            self._collapse(child)
            if joint.type != "fixed" or joint.keep:
                kept.append(joint)
                continue
            link.matter += [part.moved(*joint.pose) for part in child.matter]
            for shape in child.shapes:
                shape.pos, shape.quat = spatial.compose(joint.pose, (shape.pos, shape.quat))
                link.shapes.append(shape)
            link.zero_mass = link.zero_mass or child.zero_mass
            for grandchild in child.children:
                grandchild.pose = spatial.compose(joint.pose, grandchild.pose)
                kept.append(grandchild)
        link.children = sorted(kept, key=lambda joint: joint.name.encode())

    # ---- writing bodies

    def _emit(self, link: _Link, inbound: _Inbound | None, parent: int, moving: bool, bodies: list[Body]) -> None:
        """Appends the body of a link and then its children, depth-first."""
        body = Body(link.name, parent, shapes=link.shapes)
        if inbound is not None:
            body.pos, body.quat = inbound.pose
            body.joints = [self._joint(inbound)]
            moving = moving or body.joints[0].is_movable
        if not link.matter and link.zero_mass is not None:
            if moving:
                raise massing.massless_error(*link.zero_mass)
            link.matter = [urdf_shapes.solid(shape, self.options.density) for shape in link.shapes]
        massing.finish(body, link.matter, self.options, link.item.where, self.notes)
        index = len(bodies)
        bodies.append(body)
        for joint in link.children:
            self._emit(self.links[joint.child], joint, index, moving, bodies)

    def _joint(self, inbound: _Inbound) -> Joint:
        joint = Joint(inbound.name, JOINT_KINDS[inbound.type])
        if not joint.is_movable:
            return joint
        parts = {tag: inbound.item.element.find(tag) for tag in ("axis", "limit", "dynamics")}
        axis = Item(parts["axis"]).vector("xyz", 3, (1, 0, 0)) if parts["axis"] is not None else joint.axis
        if not np.any(axis):
            raise xmlfile.error(parts["axis"], f"the axis of joint '{joint.name}' is zero")
        joint.axis = spatial.normalized(axis)
        joint.drive_mode = int(self.options.default_dof_drive_mode)
        joint.armature = float(self.options.armature) if self.options.use_physx_armature else 0.0
        if parts["dynamics"] is not None:
            joint.damping = Item(parts["dynamics"]).number("damping", 0.0)
            joint.friction = Item(parts["dynamics"]).number("friction", 0.0)
        if parts["limit"] is not None:
            self._limit(joint, Item(parts["limit"]), inbound.type)
        return joint

    def _limit(self, joint: Joint, limit: Item, joint_type: str) -> None:
        joint.effort = limit.number("effort", FLT_MAX)
        joint.velocity = limit.number("velocity", FLT_MAX)
        if joint_type == "continuous" or not (limit.has("lower") or limit.has("upper")):
            return
        joint.has_limits = True
        joint.lower, joint.upper = limit.number("lower", -FLT_MAX), limit.number("upper", FLT_MAX)
        if joint.lower > joint.upper:
            raise limit.error(f"joint '{joint.name}': lower limit {joint.lower:g} is above the upper {joint.upper:g}")


def _tensor(element: Element | None) -> spatial.Array | None:
    """The 3x3 tensor of an <inertia> element."""
    if element is None:
        return None
    item = Item(element)
    xx, yy, zz = (item.number(name, 0.0) for name in ("ixx", "iyy", "izz"))
    xy, xz, yz = (item.number(name, 0.0) for name in ("ixy", "ixz", "iyz"))
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
