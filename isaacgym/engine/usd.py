"""Writes a scene as one USD stage: the physics scene, the ground, and one environment of every kind.

Bodies, joints and DOFs get short prim names that encode their index (``b3``, ``d5``), so that the order in which
PhysX lists them never matters: index maps are built from the names. USD angles are degrees, everything else SI.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade

from isaacgym._params import PhysXParams, PlaneParams, SimParams
from isaacgym.engine import spatial, usd_shapes
from isaacgym.engine.collision import ClassKey, Filtering, separated_classes
from isaacgym.engine.gpu_buffers import GpuBuffers
from isaacgym.engine.scene import Scene, TriangleMesh
from isaacgym.engine.usd_actor import ActorWriter
from isaacgym.engine.usd_basics import ENVS_PATH, SCENE_PATH, env_path, place, put, split_gravity


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
        self.make_collider(plane.GetPrim(), params.static_friction, params.dynamic_friction, params.restitution)

    def _write_mesh(self, number: int, mesh: TriangleMesh) -> None:
        prim = usd_shapes.define_mesh(self.stage, f"/World/terrain{number}", mesh.vertices, mesh.triangles)
        pose = mesh.params.transform
        place(prim, np.array([pose.p.x, pose.p.y, pose.p.z]), np.array([pose.r.x, pose.r.y, pose.r.z, pose.r.w]))
        UsdPhysics.MeshCollisionAPI.Apply(prim).CreateApproximationAttr(UsdPhysics.Tokens.none)
        params = mesh.params
        self.make_collider(prim, params.static_friction, params.dynamic_friction, params.restitution)

    def make_collider(self, prim: Usd.Prim, static: float, dynamic: float, restitution: float) -> None:
        """Let ``prim`` collide, with the simulation's offsets and a material of these coefficients."""
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
