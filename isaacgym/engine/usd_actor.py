"""Writes one actor into a USD stage: an articulation, or a single rigid body."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from pxr import Gf, Usd, UsdGeom, UsdPhysics

from isaacgym.engine import spatial, tendons, usd_shapes
from isaacgym.engine.asset import Body, Joint
from isaacgym.engine.joint_frames import hinge_axes
from isaacgym.engine.scene import Actor
from isaacgym.engine.usd_basics import effort_limit, place, principal_axes, put, quatf, velocity_limit

if TYPE_CHECKING:
    from isaacgym.engine.usd import StageWriter

SPHERICAL_AXES = ("rotX", "rotY", "rotZ")


class ActorWriter:
    """Writes one actor: an articulation, or a single rigid body."""

    def __init__(self, stage_writer: StageWriter, actor: Actor, path: str) -> None:
        """Prepare to write ``actor`` under the prim ``path``."""
        self.owner = stage_writer
        self.stage = stage_writer.stage
        self.actor = actor
        self.model = actor.asset.model
        self.options = self.model.options
        self.path = path
        self.shape_paths: list[str] = []

    def write(self, anchor: np.ndarray, self_collide: bool) -> None:
        """Write bodies, shapes and joints at the actor's start pose; ``anchor`` is the env frame's world position."""
        UsdGeom.Xform.Define(self.stage, self.path)
        start = authored_positions(self.actor)
        poses = self.model.forward_kinematics(start)
        shape = 0
        for index, body in enumerate(self.model.bodies):
            pose = (poses[index, :3] * self.actor.scale, poses[index, 3:])
            self._write_body(index, body, spatial.compose(self.actor.pose, pose))
            for item in body.shapes:
                self._write_shape(index, shape, item)
                shape += 1
        if self._is_articulation():
            self._write_joints(start)
            self._write_root(anchor, self_collide)
        elif self.model.fixed_base:
            UsdPhysics.RigidBodyAPI(self._body_prim(0)).CreateKinematicEnabledAttr(True)
        self._write_filtered_pairs()
        self._write_tendons()

    def _is_articulation(self) -> bool:
        return self.path.rsplit("/", 1)[1].startswith("k")

    def _body_prim(self, index: int) -> Usd.Prim:
        return self.stage.GetPrimAtPath(f"{self.path}/b{index}")

    def _write_body(self, index: int, body: Body, pose: spatial.Pose) -> None:
        prim = UsdGeom.Xform.Define(self.stage, f"{self.path}/b{index}").GetPrim()
        place(prim, *pose)
        UsdPhysics.RigidBodyAPI.Apply(prim)
        props = self.actor.body_props[index]
        principal, moments = principal_axes(props["inertia"])
        mass = UsdPhysics.MassAPI.Apply(prim)
        mass.CreateMassAttr(float(props["mass"]))
        mass.CreateCenterOfMassAttr(Gf.Vec3f(*map(float, props["com"])))
        mass.CreateDiagonalInertiaAttr(Gf.Vec3f(*map(float, moments)))
        mass.CreatePrincipalAxesAttr(quatf(principal))
        prim.AddAppliedSchema("PhysxRigidBodyAPI")
        physx, options = self.owner.params.physx, self.options
        put(prim, "physxRigidBody:linearDamping", "Float", options.linear_damping)
        put(prim, "physxRigidBody:angularDamping", "Float", options.angular_damping)
        put(prim, "physxRigidBody:maxLinearVelocity", "Float", options.max_linear_velocity)
        put(prim, "physxRigidBody:maxAngularVelocity", "Float", math.degrees(options.max_angular_velocity))
        put(prim, "physxRigidBody:maxDepenetrationVelocity", "Float", physx.max_depenetration_velocity)
        put(prim, "physxRigidBody:enableGyroscopicForces", "Bool", options.enable_gyroscopic_forces)
        put(prim, "physxRigidBody:disableGravity", "Bool", bool(props["flags"] & 1))
        put(prim, "physxRigidBody:sleepThreshold", "Float", 0.0)
        put(prim, "physxRigidBody:stabilizationThreshold", "Float", 0.0)
        put(prim, "physxRigidBody:solverPositionIterationCount", "Int", physx.num_position_iterations)
        put(prim, "physxRigidBody:solverVelocityIterationCount", "Int", physx.num_velocity_iterations)
        if self.owner.plan.report_contacts:
            prim.AddAppliedSchema("PhysxContactReportAPI")
            put(prim, "physxContactReport:threshold", "Float", 0.0)

    def _write_shape(self, body: int, number: int, shape: Any) -> None:
        path = f"{self.path}/b{body}/s{number:04d}"  # PhysX lists the shapes of a body by name
        prim = usd_shapes.define(self.stage, path, shape, self.actor.scale, self.options)
        place(prim, shape.pos * self.actor.scale, shape.quat, keep_scale=True)
        props = self.actor.shape_props[number]
        self.owner.make_collider(prim, props["friction"], props["friction"], props["restitution"])
        put(prim, "physxCollision:contactOffset", "Float", float(props["contact_offset"]))
        put(prim, "physxCollision:restOffset", "Float", float(props["rest_offset"]))
        self.shape_paths.append(path)

    def _write_joints(self, start: np.ndarray) -> None:
        dof = 0
        for index, body in enumerate(self.model.bodies):
            if body.parent < 0:
                continue
            movable = [joint for joint in body.joints if joint.is_movable]
            if not movable:
                joint = UsdPhysics.FixedJoint.Define(self.stage, f"{self.path}/m{index}")
                self._connect(joint, body, index, spatial.zero3(), spatial.identity_quat())
            elif len(movable) == 1:
                self._write_single(index, body, movable[0], dof, start)
            else:
                self._write_spherical(index, body, movable, dof, start)
            dof += len(movable)

    def _connect(self, joint: UsdPhysics.Joint, body: Body, index: int, anchor: Any, turn: Any) -> None:
        """Place the joint at (anchor, turn) of the body, wherever that lies in the parent at zero position."""
        scale = self.actor.scale
        pos, quat = spatial.compose((body.pos, body.quat), (anchor, turn))
        joint.CreateBody0Rel().SetTargets([f"{self.path}/b{body.parent}"])
        joint.CreateBody1Rel().SetTargets([f"{self.path}/b{index}"])
        joint.CreateLocalPos0Attr(Gf.Vec3f(*map(float, pos * scale)))
        joint.CreateLocalRot0Attr(quatf(quat))
        joint.CreateLocalPos1Attr(Gf.Vec3f(*map(float, np.asarray(anchor) * scale)))
        joint.CreateLocalRot1Attr(quatf(turn))

    def _write_single(self, index: int, body: Body, joint: Joint, dof: int, start: np.ndarray) -> None:
        path = f"{self.path}/d{dof}"
        turning = joint.kind == "revolute"
        kind = UsdPhysics.RevoluteJoint if turning else UsdPhysics.PrismaticJoint
        prim = kind.Define(self.stage, path)
        frame, _ = hinge_axes([joint], body.name)
        self._connect(prim, body, index, joint.anchor, spatial.from_matrix(frame))
        prim.CreateAxisAttr("X")
        props = self.actor.dof_props[dof]
        if props["hasLimits"]:
            factor = 180.0 / math.pi if turning else self.actor.scale
            prim.CreateLowerLimitAttr(float(props["lower"]) * factor)
            prim.CreateUpperLimitAttr(float(props["upper"]) * factor)
        self._write_axis(prim.GetPrim(), "angular" if turning else "linear", props, float(start[dof]))

    def _write_spherical(self, index: int, body: Body, joints: list[Joint], dof: int, start: np.ndarray) -> None:
        joint = UsdPhysics.Joint.Define(self.stage, f"{self.path}/m{index}")
        frame, axes = hinge_axes(joints, f"{self.model.path}: body {body.name}")
        self._connect(joint, body, index, joints[0].anchor, spatial.from_matrix(frame))
        prim = joint.GetPrim()
        for name in ("transX", "transY", "transZ"):
            self._limit(prim, name, 1.0, -1.0)
        for axis, name in enumerate(SPHERICAL_AXES):
            if axis not in axes:
                self._limit(prim, name, 1.0, -1.0)
                continue
            which = dof + axes.index(axis)
            props = self.actor.dof_props[which]
            if props["hasLimits"]:
                self._limit(prim, name, math.degrees(props["lower"]), math.degrees(props["upper"]))
            self._write_axis(prim, name, props, float(start[which]))

    @staticmethod
    def _limit(prim: Usd.Prim, axis: str, low: float, high: float) -> None:
        limit = UsdPhysics.LimitAPI.Apply(prim, axis)
        limit.CreateLowAttr(low)
        limit.CreateHighAttr(high)

    @staticmethod
    def _write_axis(prim: Usd.Prim, axis: str, props: np.void, start: float) -> None:
        """Drive, armature, velocity limit and start position of one DOF."""
        turning = axis != "linear"
        degrees = 180.0 / math.pi if turning else 1.0
        drive = UsdPhysics.DriveAPI.Apply(prim, axis)
        drive.CreateTypeAttr("force")
        drive.CreateStiffnessAttr(float(props["stiffness"]) / degrees)
        drive.CreateDampingAttr(float(props["damping"]) / degrees)
        drive.CreateMaxForceAttr(effort_limit(float(props["effort"])))
        prim.AddAppliedSchema(f"PhysxJointAxisAPI:{axis}")
        put(prim, f"physxJointAxis:{axis}:armature", "Float", float(props["armature"]))
        speed = velocity_limit(float(props["velocity"]))
        put(prim, f"physxJointAxis:{axis}:maxJointVelocity", "Float", speed * degrees)
        prim.AddAppliedSchema(f"PhysicsJointStateAPI:{axis}")
        put(prim, f"state:{axis}:physics:position", "Float", start * degrees)

    def _write_root(self, anchor: np.ndarray, self_collide: bool) -> None:
        root = self._body_prim(0)
        if self.model.fixed_base:
            joint = UsdPhysics.FixedJoint.Define(self.stage, f"{self.path}/fix")
            joint.CreateBody1Rel().SetTargets([root.GetPath()])
            pos, quat = self.actor.pose
            joint.CreateLocalPos0Attr(Gf.Vec3f(*map(float, pos + anchor)))
            joint.CreateLocalRot0Attr(quatf(quat))
            root = joint.GetPrim()
        UsdPhysics.ArticulationRootAPI.Apply(root)
        root.AddAppliedSchema("PhysxArticulationAPI")
        physx = self.owner.params.physx
        put(root, "physxArticulation:enabledSelfCollisions", "Bool", self_collide)
        put(root, "physxArticulation:solverPositionIterationCount", "Int", physx.num_position_iterations)
        put(root, "physxArticulation:solverVelocityIterationCount", "Int", physx.num_velocity_iterations)
        put(root, "physxArticulation:sleepThreshold", "Float", 0.0)
        put(root, "physxArticulation:stabilizationThreshold", "Float", 0.0)

    def _write_filtered_pairs(self) -> None:
        for first, second in self.model.no_collide:
            pairs = UsdPhysics.FilteredPairsAPI.Apply(self._body_prim(first))
            pairs.CreateFilteredPairsRel().AddTarget(f"{self.path}/b{second}")

    def _write_tendons(self) -> None:
        for number, tendon in enumerate(self.model.tendons):
            for place_in_chain, joint in enumerate(tendons.tendon_joints(self.model, tendon)):
                prim = self.stage.GetPrimAtPath(f"{self.path}/{tendons.dof_prim(joint.dof)}")
                props = self.actor.tendon_props[number] if place_in_chain == 0 else None
                tendons.write(prim, tendons.tendon_name(number), joint, props)


def authored_positions(actor: Actor) -> np.ndarray:
    """DOF positions (D,) at which the actor is written: the start moved inside the limits.

    Building steps the scene once, and a joint that starts outside its limits explodes in that step.
    """
    start = actor.start_q()
    props = actor.dof_props
    limited = props["hasLimits"]
    return np.where(limited, np.clip(start, props["lower"], props["upper"]), start)
