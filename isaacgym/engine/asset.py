"""The engine-neutral description of a robot or object: what a file says, before any simulator sees it.

Numbers are float64 in SI units (m, kg, s, rad), quaternions are xyzw, frames are right-handed. Bodies and DOFs
stand in Isaac Gym's order (Isaac Gym API notes 3.4): depth-first, parents before children, URDF siblings
alphabetical by joint name, MJCF siblings in document order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from isaacgym._values import DOF_PROPERTIES_DTYPE
from isaacgym.engine import inertia, spatial
from isaacgym.engine.spatial import Array

FLT_MAX = float(np.finfo(np.float32).max)
"""Stands for "no limit" in joint limits, efforts and velocities."""


class AssetError(ValueError):
    """An asset file cannot be used: the message is ``path:line: what is wrong; what is allowed``."""


@dataclass
class Shape:
    """One collision shape, placed in the frame of its body."""

    kind: str
    """sphere, capsule, cylinder, box, hull (convex), trimesh (static only) or decomposition (to be cut into hulls)."""
    name: str
    pos: Array = field(default_factory=spatial.zero3)
    """(3,) of the shape's frame in the body frame."""
    quat: Array = field(default_factory=spatial.identity_quat)
    """(4,) of the shape's frame in the body frame."""
    size: tuple[float, ...] = ()
    """sphere (radius,); capsule and cylinder (radius, half length without caps) along local z; box half extents (3)."""
    mesh: tuple[Array, np.ndarray] | None = None
    """(vertices (V, 3), triangles (T, 3) of vertex indices) of hull, trimesh and decomposition."""
    friction: float = 1.0
    restitution: float = 0.0
    filter: int = 0
    """Shapes that share a bit never touch."""
    density: float | None = None
    """kg/m3 written in the file for this shape, None where it says nothing."""


@dataclass
class Joint:
    """One movable axis (one DOF) of a body, or the weld of a body to its parent."""

    name: str
    kind: str
    """revolute, prismatic or fixed. A ball joint arrives as three revolute joints ``name:0..2`` about x, y, z."""
    axis: Array = field(default_factory=lambda: np.array([1.0, 0.0, 0.0]))
    """(3,) unit vector in the body frame."""
    anchor: Array = field(default_factory=spatial.zero3)
    """(3,) a point of the axis in the body frame."""
    has_limits: bool = False
    lower: float = -FLT_MAX
    upper: float = FLT_MAX
    effort: float = FLT_MAX
    velocity: float = FLT_MAX
    stiffness: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    armature: float = 0.0
    drive_mode: int = 0
    """Value of DofDriveMode: 0 none, 1 position, 2 velocity, 3 effort."""

    @property
    def is_movable(self) -> bool:
        """True when the joint is a DOF."""
        return self.kind != "fixed"


@dataclass
class Body:
    """One rigid body; its frame in the frame of the parent body is (pos, quat) when all joints are at zero."""

    name: str
    parent: int
    """Index of the parent body, -1 for the root."""
    pos: Array = field(default_factory=spatial.zero3)
    quat: Array = field(default_factory=spatial.identity_quat)
    joints: list[Joint] = field(default_factory=list)
    """Empty for the root; one fixed joint for a welded body; n movable joints for n DOFs."""
    mass: float = 0.0
    com: Array = field(default_factory=spatial.zero3)
    """(3,) centre of mass in the body frame."""
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))
    """(3, 3) about the centre of mass, along the body axes, kg m2."""
    shapes: list[Shape] = field(default_factory=list)


@dataclass
class Actuator:
    """One actuator of an MJCF file, in file order."""

    name: str
    joint: str
    """Name of the DOF it drives."""
    kind: str
    """motor, position, velocity or general."""
    gear: float = 1.0
    kp: float = 0.0
    kv: float = 0.0
    ctrl_limited: bool = False
    ctrl_range: tuple[float, float] = (0.0, 0.0)
    force_limited: bool = False
    force_range: tuple[float, float] = (0.0, 0.0)


@dataclass
class Tendon:
    """One fixed tendon: its length is ``sum(coef * q)`` over the named joints."""

    name: str
    joints: list[str]
    coefs: list[float]
    stiffness: float = 0.0
    damping: float = 0.0
    limit_stiffness: float = 1.0
    spring_length: float = 0.0
    limited: bool = False
    lower: float = 0.0
    upper: float = 0.0


@dataclass
class ForceSensor:
    """A force sensor on a body, at (pos, quat) in the body frame (Isaac Gym API notes 9.12)."""

    body: int
    pos: Array = field(default_factory=spatial.zero3)
    quat: Array = field(default_factory=spatial.identity_quat)
    forward_dynamics: bool = True
    constraint_solver: bool = True
    world_frame: bool = False


@dataclass
class Asset:
    """A robot or object read from a file or made from a primitive; body 0 is the root."""

    name: str
    path: str
    bodies: list[Body]
    fixed_base: bool = False
    root_pos: Array = field(default_factory=spatial.zero3)
    """(3,) pose of the root written in the file (MJCF); zero for URDF and primitives."""
    root_quat: Array = field(default_factory=spatial.identity_quat)
    actuators: list[Actuator] = field(default_factory=list)
    tendons: list[Tendon] = field(default_factory=list)
    no_collide: list[tuple[int, int]] = field(default_factory=list)
    """Pairs of body indices that must not touch and whose filter bits do not say so already."""
    spatial_tendons: int = 0
    force_sensors: list[ForceSensor] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What the reader dropped, guessed or finds odd: one line ``path:line: text`` each."""
    options: Any = None
    """The AssetOptions it was loaded with."""

    @cached_property
    def dof_joints(self) -> list[tuple[int, Joint]]:
        """(body index, joint) of every DOF, in Isaac Gym order."""
        return [(i, joint) for i, body in enumerate(self.bodies) for joint in body.joints if joint.is_movable]

    @cached_property
    def num_dofs(self) -> int:
        """Number of DOFs."""
        return len(self.dof_joints)

    @cached_property
    def dof_names(self) -> list[str]:
        """Names of the DOFs, which are the names of their joints in the file."""
        return [joint.name for _, joint in self.dof_joints]

    @cached_property
    def body_names(self) -> list[str]:
        """Names of the bodies."""
        return [body.name for body in self.bodies]

    @cached_property
    def joint_names(self) -> list[str]:
        """Names of the inbound joints of bodies 1, 2, ..., fixed ones too; the first hinge where a body has several."""
        return [body.joints[0].name for body in self.bodies if body.joints]

    @cached_property
    def num_shapes(self) -> int:
        """Number of collision shapes over all bodies."""
        return sum(len(body.shapes) for body in self.bodies)

    def forward_kinematics(self, q: np.ndarray | None = None) -> np.ndarray:
        """Poses (B, 7) as xyz + xyzw of the body frames, with the root body at the origin.

        ``q`` (num_dofs,) defaults to zeros. The coordinates of a body with two or three hinges are the components
        of its rotation vector along the hinge axes, as in Isaac Gym (API notes 9.3), not successive turns.
        """
        values = np.zeros(self.num_dofs) if q is None else np.asarray(q, dtype=np.float64).reshape(-1)
        if len(values) != self.num_dofs:
            raise ValueError(f"{self.name}: {len(values)} joint values for {self.num_dofs} DOFs")
        poses: list[spatial.Pose] = []
        first = 0
        for body in self.bodies:
            outer = poses[body.parent] if body.parent >= 0 else spatial.identity_pose()
            home = (body.pos, body.quat) if body.parent >= 0 else spatial.identity_pose()
            movable = [joint for joint in body.joints if joint.is_movable]
            motion = _joint_motion(movable, values[first : first + len(movable)])
            poses.append(spatial.compose(outer, spatial.compose(home, motion)))
            first += len(movable)
        return np.array([np.concatenate(pose) for pose in poses])

    def dof_properties(self) -> np.ndarray:
        """A fresh structured array (num_dofs,) of DOF_PROPERTIES_DTYPE (Isaac Gym API notes 6 and 9.3)."""
        props = np.zeros(self.num_dofs, dtype=DOF_PROPERTIES_DTYPE)
        for row, (_, joint) in zip(props, self.dof_joints, strict=True):
            row["hasLimits"] = joint.has_limits
            row["lower"] = joint.lower
            row["upper"] = joint.upper
            row["driveMode"] = joint.drive_mode
            row["velocity"] = joint.velocity
            row["effort"] = joint.effort
            row["stiffness"] = joint.stiffness
            row["damping"] = joint.damping
            row["friction"] = joint.friction
            row["armature"] = joint.armature
        return props


def _joint_motion(joints: list[Joint], q: np.ndarray) -> spatial.Pose:
    """Motion of a body frame, seen from its place at zero, for its joint values q (one for each joint)."""
    rotation, shift, anchor = spatial.zero3(), spatial.zero3(), spatial.zero3()
    for joint, value in zip(joints, q, strict=True):
        if joint.kind == "prismatic":
            shift = shift + joint.axis * value
        else:
            rotation = rotation + joint.axis * value
            anchor = joint.anchor
    turn = spatial.from_rotation_vector(rotation)
    return shift + anchor - spatial.rotate(turn, anchor), turn


def primitive_box(width: float, height: float, depth: float, options: Any) -> Asset:
    """A box of full edge lengths width (x), height (y), depth (z)."""
    _require_positive("box", width=width, height=height, depth=depth)
    return _primitive(Shape("box", "box", size=(width / 2, height / 2, depth / 2)), options)


def primitive_sphere(radius: float, options: Any) -> Asset:
    """A sphere."""
    _require_positive("sphere", radius=radius)
    return _primitive(Shape("sphere", "sphere", size=(radius,)), options)


def primitive_capsule(radius: float, width: float, options: Any) -> Asset:
    """A capsule along x whose cylindrical part is ``width`` long."""
    _require_positive("capsule", radius=radius, width=width)
    along_x = spatial.from_z_to([1.0, 0.0, 0.0])
    return _primitive(Shape("capsule", "capsule", quat=along_x, size=(radius, width / 2)), options)


def _require_positive(kind: str, **lengths: float) -> None:
    for name, value in lengths.items():
        if not value > 0:
            raise AssetError(f"<{kind}>: {name} is {value}; a positive length is needed")


def _primitive(shape: Shape, options: Any) -> Asset:
    """One body with one shape, mass from options.density; the body is named after the shape."""
    props = inertia.of_shape(shape.kind, shape.size, shape.mesh, float(options.density)).moved(shape.pos, shape.quat)
    body = Body(shape.name, -1, mass=props.mass, com=props.com, inertia=props.inertia, shapes=[shape])
    if not options.use_physx_armature:
        body.inertia = body.inertia + float(options.armature) * np.eye(3)
    return Asset(shape.name, f"<{shape.kind}>", [body], fixed_base=bool(options.fix_base_link), options=options)
