"""Writes a scene as one USD stage: the physics scene, the ground, and one environment of every kind.

Bodies, joints and DOFs get short prim names that encode their index (``b3``, ``d5``), so that the order in which
PhysX lists them never matters: index maps are built from the names. USD angles are degrees, everything else SI.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade

from isaacgym._params import PhysXParams, PlaneParams, SimParams
from isaacgym.engine import spatial, tendons, usd_shapes
from isaacgym.engine.asset import FLT_MAX, AssetError, Body, Joint
from isaacgym.engine.collision import ClassKey, Filtering, separated_classes
from isaacgym.engine.gpu_buffers import GpuBuffers
from isaacgym.engine.scene import Actor, Scene, TriangleMesh

SCENE_PATH = "/World/physicsScene"
ENVS_PATH = "/World/envs"
DEFAULT_MAX_VELOCITY = 100.0
"""rad/s or m/s: the cap of a joint whose file gives none."""
SPHERICAL_AXES = ("rotX", "rotY", "rotZ")


@dataclass(frozen=True)
class Prototype:
    """One environment that is written out; ``envs`` are all environments equal to it, itself first."""

    envs: tuple[int, ...]
    filtering: Filtering


@dataclass(frozen=True)
class StagePlan:
    """Everything the writer needs beside the scene itself."""

    prototypes: tuple[Prototype, ...]
    anchors: np.ndarray
    """(num_envs, 3) world position of every env's frame."""
    actor_names: Sequence[str]
    """Prim name of every actor, see ``groups.actor_prim_name``."""
    separate_everything: bool
    """True when no two bodies of the whole scene may touch: one collision group that filters itself."""
    report_contacts: bool
    gpu: GpuBuffers | None
    """Buffer capacities when physics runs on the GPU."""


def env_path(index: int) -> str:
    """Prim path of environment ``index``."""
    return f"{ENVS_PATH}/e{index}"


def hinge_axes(joints: Sequence[Joint], where: str) -> tuple[np.ndarray, list[int]]:
    """Frame of a body's joint, and the frame axis (0 x, 1 y, 2 z) that each of its DOFs turns about.

    Returns:
        rotation matrix (3, 3) whose columns are the frame's axes in the body frame, and one axis index a DOF.

    Raises:
        AssetError: when the joints cannot be one PhysX joint.
    """
    first = joints[0].axis
    if len(joints) == 1:
        return spatial.to_matrix(spatial.multiply(spatial.from_z_to(first), _X_TO_Z)), [0]
    axes = [joint.axis for joint in joints]
    orthogonal = all(abs(float(a @ b)) < 1e-3 for i, a in enumerate(axes) for b in axes[:i])
    same_anchor = all(np.allclose(joint.anchor, joints[0].anchor, atol=1e-6) for joint in joints)
    if len(joints) > 3 or not orthogonal or not same_anchor or any(joint.kind != "revolute" for joint in joints):
        raise AssetError(
            f"{where}: several joints on one body must be two or three hinges with orthogonal axes and one anchor; "
            "put a small body between them"
        )
    if len(joints) == 2:
        return np.column_stack([axes[0], axes[1], np.cross(axes[0], axes[1])]), [0, 1]
    if np.linalg.det(np.column_stack(axes)) > 0:
        return np.column_stack(axes), [0, 1, 2]
    return np.column_stack([axes[0], axes[2], axes[1]]), [0, 2, 1]


_X_TO_Z = spatial.normalized(np.array([0.0, -1.0, 0.0, 1.0]))
"""Rotation that takes x to z: followed by z-to-axis it takes x to the axis."""


def dof_prim_names(actor: Actor) -> list[str]:
    """Names under which PhysX lists the actor's DOFs, in Isaac Gym order."""
    names = []
    dof = 0
    for index, body in enumerate(actor.asset.model.bodies):
        movable = [joint for joint in body.joints if joint.is_movable]
        if len(movable) == 1:
            names.append(f"d{dof}")
        elif movable:
            _, axes = hinge_axes(movable, body.name)
            names.extend(f"m{index}:{axis}" for axis in axes)
        dof += len(movable)
    return names


class StageWriter:
    """Writes one stage. Use: ``StageWriter(scene, plan).save(path)``."""

    def __init__(self, scene: Scene, plan: StagePlan) -> None:
        """Write the whole scene into memory."""
        self.scene = scene
        self.plan = plan
        self.params: SimParams = scene.params
        self.stage = Usd.Stage.CreateInMemory()
        UsdGeom.SetStageUpAxis(self.stage, UsdGeom.Tokens.z)
        UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)
        UsdPhysics.SetStageKilogramsPerUnit(self.stage, 1.0)
        self.stage.SetDefaultPrim(UsdGeom.Xform.Define(self.stage, "/World").GetPrim())
        UsdGeom.Xform.Define(self.stage, ENVS_PATH)
        self._materials: dict[tuple[float, float, float], UsdShade.Material] = {}
        self._members: dict[ClassKey, list[str]] = {}
        self._write_scene(self.params.physx)
        for plane in scene.planes:
            self._write_plane(plane)
        for number, mesh in enumerate(scene.meshes):
            self._write_mesh(number, mesh)
        for prototype in plan.prototypes:
            self._write_env(prototype)
        self._write_collision_groups()

    def save(self, path: Path) -> None:
        """Export the stage; the ending (.usda or .usdc) chooses the format."""
        self.stage.GetRootLayer().Export(str(path))

    def _write_scene(self, physx: PhysXParams) -> None:
        scene = UsdPhysics.Scene.Define(self.stage, SCENE_PATH)
        gravity = np.array([self.params.gravity.x, self.params.gravity.y, self.params.gravity.z])
        direction, magnitude = split_gravity(gravity)
        scene.CreateGravityDirectionAttr(Gf.Vec3f(*direction))
        scene.CreateGravityMagnitudeAttr(magnitude)
        prim = scene.GetPrim()
        prim.AddAppliedSchema("PhysxSceneAPI")
        on_gpu = self.plan.gpu is not None
        put(prim, "physxScene:enableGPUDynamics", "Bool", on_gpu)
        put(prim, "physxScene:broadphaseType", "Token", "GPU" if on_gpu else "MBP")
        put(prim, "physxScene:enableSceneQuerySupport", "Bool", False)
        put(prim, "physxScene:solverType", "Token", "TGS" if physx.solver_type == 1 else "PGS")
        put(prim, "physxScene:timeStepsPerSecond", "UInt", round(self.params.substeps / self.params.dt))
        put(prim, "physxScene:disableSleeping", "Bool", True)
        # Without it, what happens in one env changes the last bits of the others.
        put(prim, "physxScene:enableEnhancedDeterminism", "Bool", True)
        # Isaac Gym integrates gravity once a step; PhysX 5 by default spreads it over the TGS iterations.
        put(prim, "physxScene:enableExternalForcesEveryIteration", "Bool", False)
        put(prim, "physxScene:bounceThreshold", "Float", physx.bounce_threshold_velocity)
        put(prim, "physxScene:frictionOffsetThreshold", "Float", physx.friction_offset_threshold)
        put(prim, "physxScene:frictionCorrelationDistance", "Float", physx.friction_correlation_distance)
        if self.plan.gpu is not None:
            for name, kind, value in self.plan.gpu.attributes():
                put(prim, f"physxScene:{name}", kind, value)

    def _write_plane(self, params: PlaneParams) -> None:
        number = len(self.stage.GetPrimAtPath("/World").GetChildren())
        plane = UsdGeom.Plane.Define(self.stage, f"/World/plane{number}")
        plane.CreateAxisAttr("Z")
        normal = spatial.normalized(np.array([params.normal.x, params.normal.y, params.normal.z]))
        place(plane.GetPrim(), -params.distance * normal, spatial.from_z_to(normal))
        self._make_collider(plane.GetPrim(), params.static_friction, params.dynamic_friction, params.restitution)

    def _write_mesh(self, number: int, mesh: TriangleMesh) -> None:
        prim = usd_shapes.define_mesh(self.stage, f"/World/terrain{number}", mesh.vertices, mesh.triangles)
        pose = mesh.params.transform
        place(prim, np.array([pose.p.x, pose.p.y, pose.p.z]), np.array([pose.r.x, pose.r.y, pose.r.z, pose.r.w]))
        UsdPhysics.MeshCollisionAPI.Apply(prim).CreateApproximationAttr(UsdPhysics.Tokens.none)
        params = mesh.params
        self._make_collider(prim, params.static_friction, params.dynamic_friction, params.restitution)

    def _make_collider(self, prim: Usd.Prim, static: float, dynamic: float, restitution: float) -> None:
        UsdPhysics.CollisionAPI.Apply(prim)
        prim.AddAppliedSchema("PhysxCollisionAPI")
        put(prim, "physxCollision:contactOffset", "Float", self.params.physx.contact_offset)
        put(prim, "physxCollision:restOffset", "Float", self.params.physx.rest_offset)
        material = self._material(static, dynamic, restitution)
        UsdShade.MaterialBindingAPI.Apply(prim).Bind(material, materialPurpose="physics")

    def _material(self, static: float, dynamic: float, restitution: float) -> UsdShade.Material:
        """One material a distinct triple: PhysX has room for about 64 thousand."""
        key = (float(static), float(dynamic), float(restitution))
        if key not in self._materials:
            material = UsdShade.Material.Define(self.stage, f"/World/materials/m{len(self._materials)}")
            physics = UsdPhysics.MaterialAPI.Apply(material.GetPrim())
            physics.CreateStaticFrictionAttr(key[0])
            physics.CreateDynamicFrictionAttr(key[1])
            physics.CreateRestitutionAttr(key[2])
            self._materials[key] = material
        return self._materials[key]

    def _write_env(self, prototype: Prototype) -> None:
        index = prototype.envs[0]
        env = self.scene.envs[index]
        path = env_path(index)
        place(UsdGeom.Xform.Define(self.stage, path).GetPrim(), self.plan.anchors[index], spatial.identity_quat())
        rules = prototype.filtering
        for actor, classes, self_collide in zip(env.actors, rules.classes, rules.self_collide, strict=True):
            writer = ActorWriter(self, actor, f"{path}/{self.plan.actor_names[actor.index]}")
            writer.write(self.plan.anchors[index], self_collide)
            for shape_path, key in zip(writer.shape_paths, classes, strict=True):
                self._members.setdefault(key, []).append(shape_path)

    def _write_collision_groups(self) -> None:
        """Group the shapes by class where any two classes are kept apart."""
        if self.plan.separate_everything:
            everything = [path for paths in self._members.values() for path in paths]
            self._write_group("all", everything, ["all"])
            return
        apart = separated_classes([prototype.filtering for prototype in self.plan.prototypes])
        names = {key: f"c{number}" for number, key in enumerate(apart)}
        if any(apart.values()):
            for key, others in apart.items():
                self._write_group(names[key], self._members.get(key, []), [names[other] for other in others])

    def _write_group(self, name: str, members: Sequence[str], apart: Sequence[str]) -> None:
        group = UsdPhysics.CollisionGroup.Define(self.stage, f"/World/collision_groups/{name}")
        group.GetCollidersCollectionAPI().CreateIncludesRel().SetTargets([Sdf.Path(path) for path in members])
        targets = [Sdf.Path(f"/World/collision_groups/{other}") for other in apart]
        group.CreateFilteredGroupsRel().SetTargets(targets)


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
        path = f"{self.path}/b{body}/s{number}"
        prim = usd_shapes.define(self.stage, path, shape, self.actor.scale, self.options)
        place(prim, shape.pos * self.actor.scale, shape.quat, keep_scale=True)
        props = self.actor.shape_props[number]
        self.owner._make_collider(prim, props["friction"], props["friction"], props["restitution"])
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


def put(prim: Usd.Prim, name: str, kind: str, value: Any) -> None:
    """Set an attribute of a schema that pxr has no class for."""
    prim.CreateAttribute(name, getattr(Sdf.ValueTypeNames, kind)).Set(value)


def quatf(q: np.ndarray) -> Gf.Quatf:
    """Turn an xyzw quaternion into USD's."""
    return Gf.Quatf(float(q[3]), float(q[0]), float(q[1]), float(q[2]))


def place(prim: Usd.Prim, pos: np.ndarray, quat: np.ndarray, keep_scale: bool = False) -> None:
    """Give a prim its pose in its parent; ``keep_scale`` keeps the scale op that the shape already has."""
    form = UsdGeom.Xformable(prim)
    scale = prim.GetAttribute("xformOp:scale").Get() if keep_scale else None
    form.ClearXformOpOrder()
    form.AddTranslateOp().Set(Gf.Vec3d(*map(float, pos)))
    form.AddOrientOp().Set(quatf(np.asarray(quat)))
    if scale is not None:
        form.AddScaleOp().Set(scale)


def principal_axes(inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quaternion (4,) of the principal axes in the body frame, and the moments (3,) about them, kg m^2."""
    if np.allclose(inertia, np.diag(np.diag(inertia)), rtol=0, atol=1e-12 * max(1e-9, float(np.trace(inertia)))):
        return spatial.identity_quat(), np.diag(inertia)
    moments, axes = np.linalg.eigh(inertia)
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    return spatial.from_matrix(axes), moments


def split_gravity(gravity: np.ndarray) -> tuple[list[float], float]:
    """Direction (unit) and magnitude (m/s^2); no gravity points down."""
    magnitude = float(np.linalg.norm(gravity))
    direction = gravity / magnitude if magnitude > 0 else np.array([0.0, 0.0, -1.0])
    return [float(value) for value in direction], magnitude


def effort_limit(effort: float) -> float:
    """Drive force limit for PhysX: an effort of zero or less means unlimited."""
    return effort if 0 < effort < FLT_MAX else FLT_MAX


def velocity_limit(velocity: float) -> float:
    """Joint speed limit for PhysX (rad/s or m/s)."""
    return velocity if 0 < velocity < FLT_MAX else DEFAULT_MAX_VELOCITY


def authored_positions(actor: Actor) -> np.ndarray:
    """DOF positions (D,) at which the actor is written: the start moved inside the limits.

    Building steps the scene once, and a joint that starts outside its limits explodes in that step.
    """
    start = actor.start_q()
    props = actor.dof_props
    limited = props["hasLimits"]
    return np.where(limited, np.clip(start, props["lower"], props["upper"]), start)
