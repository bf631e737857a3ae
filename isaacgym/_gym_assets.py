"""Gym methods on assets (API notes 9.3, 9.4)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from copy import copy
from pathlib import Path

import numpy as np

from isaacgym._enums import (
    DOF_INVALID,
    DOF_ROTATION,
    DOF_TRANSLATION,
    JOINT_BALL,
    JOINT_FIXED,
    JOINT_PRISMATIC,
    JOINT_REVOLUTE,
    DofType,
    JointType,
)
from isaacgym._params import (
    ActuatorProperties,
    AssetOptions,
    ForceSensorProperties,
    RigidShapeProperties,
    TendonProperties,
)
from isaacgym._values import IndexRange, Transform
from isaacgym.engine import properties
from isaacgym.engine.asset import (
    Asset,
    AssetError,
    ForceSensor,
    primitive_box,
    primitive_capsule,
    primitive_sphere,
)
from isaacgym.engine.scene import SceneAsset
from isaacgym.engine.simulation import Simulation

_logger = logging.getLogger(__name__)

JOINT_TYPES = {
    "fixed": JOINT_FIXED,
    "revolute": JOINT_REVOLUTE,
    "prismatic": JOINT_PRISMATIC,
}
DOF_TYPE_NAMES = {DOF_INVALID: "Invalid", DOF_ROTATION: "Rotation", DOF_TRANSLATION: "Translation"}


def read_asset(root: str, filename: str, options: AssetOptions) -> Asset:
    """Read an asset file, the format chosen by the file's ending.

    Raises:
        AssetError: when the file is missing, of an unknown kind, or cannot be used; the message has file and line.
    """
    path = Path(root) / filename
    if not path.is_file():
        raise AssetError(f"{path}: no such asset file")
    ending = path.suffix.lower()
    if ending == ".urdf":
        from isaacgym.engine import read_urdf

        return read_urdf.load(path, options, asset_root=root)
    if ending in (".xml", ".mjcf"):
        from isaacgym.engine import read_mjcf

        return read_mjcf.load(path, options)
    raise AssetError(f"{path}: asset files end in .urdf, .xml or .mjcf, not {ending or 'without an ending'}")


class AssetMethods:
    """Loading, primitives and queries."""

    def load_asset(
        self, sim: Simulation, rootpath: str, filename: str, options: AssetOptions | None = None
    ) -> SceneAsset:
        """Load a URDF or MJCF file.

        Raises:
            AssetError: when the file cannot be used (NVIDIA's package prints and returns None instead).
        """
        model = read_asset(rootpath, filename, AssetOptions() if options is None else copy(options))
        for note in model.notes:
            _logger.warning(note)
        return SceneAsset(model, sim.params)

    def load_urdf(
        self, sim: Simulation, rootpath: str, filename: str, options: AssetOptions | None = None
    ) -> SceneAsset:
        """Load a URDF file, see ``load_asset``."""
        return self.load_asset(sim, rootpath, filename, options)

    def create_box(
        self, sim: Simulation, width: float, height: float, depth: float, options: AssetOptions | None = None
    ) -> SceneAsset:
        """Make a box with edges ``width`` (x), ``height`` (y) and ``depth`` (z), m."""
        chosen = AssetOptions() if options is None else copy(options)
        return SceneAsset(primitive_box(float(width), float(height), float(depth), chosen), sim.params)

    def create_sphere(self, sim: Simulation, radius: float, options: AssetOptions | None = None) -> SceneAsset:
        """Make a sphere, radius in m."""
        chosen = AssetOptions() if options is None else copy(options)
        return SceneAsset(primitive_sphere(float(radius), chosen), sim.params)

    def create_capsule(
        self, sim: Simulation, radius: float, width: float, options: AssetOptions | None = None
    ) -> SceneAsset:
        """Make a capsule along x whose cylindrical part is ``width`` m long."""
        chosen = AssetOptions() if options is None else copy(options)
        return SceneAsset(primitive_capsule(float(radius), float(width), chosen), sim.params)

    def get_asset_rigid_body_count(self, asset: SceneAsset) -> int:
        """Return the number of bodies."""
        return len(asset.model.bodies)

    def get_asset_rigid_body_names(self, asset: SceneAsset) -> list[str]:
        """Return the body names in tensor order."""
        return list(asset.model.body_names)

    def get_asset_rigid_body_name(self, asset: SceneAsset, index: int) -> str:
        """Return the name of one body."""
        return asset.model.body_names[index]

    def get_asset_rigid_body_dict(self, asset: SceneAsset) -> dict[str, int]:
        """Return the index of every body by name."""
        return {name: i for i, name in enumerate(asset.model.body_names)}

    def find_asset_rigid_body_index(self, asset: SceneAsset, name: str) -> int:
        """Return the index of a body, -1 where there is none."""
        return _find(asset.model.body_names, name)

    def get_asset_dof_count(self, asset: SceneAsset) -> int:
        """Return the number of DOFs."""
        return asset.model.num_dofs

    def get_asset_dof_names(self, asset: SceneAsset) -> list[str]:
        """Return the DOF names in tensor order."""
        return list(asset.model.dof_names)

    def get_asset_dof_name(self, asset: SceneAsset, index: int) -> str:
        """Return the name of one DOF."""
        return asset.model.dof_names[index]

    def get_asset_dof_dict(self, asset: SceneAsset) -> dict[str, int]:
        """Return the index of every DOF by name."""
        return {name: i for i, name in enumerate(asset.model.dof_names)}

    def find_asset_dof_index(self, asset: SceneAsset, name: str) -> int:
        """Return the index of a DOF, -1 where there is none."""
        return _find(asset.model.dof_names, name)

    def get_asset_dof_type(self, asset: SceneAsset, index: int) -> DofType:
        """Return whether a DOF turns or slides."""
        _, joint = asset.model.dof_joints[index]
        return DOF_TRANSLATION if joint.kind == "prismatic" else DOF_ROTATION

    def get_dof_type_string(self, dof_type: DofType) -> str:
        """Return the English name of a DOF type."""
        return DOF_TYPE_NAMES[DofType(int(dof_type))]

    def get_asset_dof_properties(self, asset: SceneAsset) -> np.ndarray:
        """Return a copy of the DOF properties, a structured array (D,) (API notes 6)."""
        return asset.dof_props.copy()

    def get_asset_joint_count(self, asset: SceneAsset) -> int:
        """Return the number of joints, fixed ones included."""
        return asset.joint_count

    def get_asset_joint_name(self, asset: SceneAsset, index: int) -> str:
        """Return the name of one joint."""
        return asset.model.joint_names[index]

    def get_asset_joint_names(self, asset: SceneAsset) -> list[str]:
        """Return the joint names, fixed ones included."""
        return list(asset.model.joint_names)

    def get_asset_joint_dict(self, asset: SceneAsset) -> dict[str, int]:
        """Return the index of every joint by name, fixed ones included."""
        return {name: i for i, name in enumerate(asset.model.joint_names)}

    def find_asset_joint_index(self, asset: SceneAsset, name: str) -> int:
        """Return the index of a joint, -1 where there is none."""
        return _find(asset.model.joint_names, name)

    def get_asset_joint_type(self, asset: SceneAsset, index: int) -> JointType:
        """Return the kind of a joint; several hinges of one body are one ball joint."""
        joints = [body.joints for body in asset.model.bodies if body.joints][index]
        return JOINT_BALL if len(joints) > 1 else JOINT_TYPES[joints[0].kind]

    def get_joint_type_string(self, joint_type: JointType) -> str:
        """Return the English name of a joint type."""
        return JointType(int(joint_type)).name.removeprefix("JOINT_").capitalize()

    def get_asset_rigid_body_shape_indices(self, asset: SceneAsset) -> list[IndexRange]:
        """Return for every body which of the asset's shapes are its own."""
        counts = [len(body.shapes) for body in asset.model.bodies]
        return [IndexRange(start=sum(counts[:i]), count=count) for i, count in enumerate(counts)]

    def get_asset_rigid_shape_count(self, asset: SceneAsset) -> int:
        """Return the number of collision shapes."""
        return asset.model.num_shapes

    def get_asset_rigid_shape_properties(self, asset: SceneAsset) -> list[RigidShapeProperties]:
        """Return copies of the shape properties, bodies in order."""
        return properties.shapes_to_api(asset.shape_props)

    def set_asset_rigid_shape_properties(self, asset: SceneAsset, props: Sequence[RigidShapeProperties]) -> bool:
        """Replace the shape properties for actors created from now on."""
        asset.shape_props = properties.rows_from_api(props, asset.shape_props)
        return True

    def get_asset_actuator_count(self, asset: SceneAsset) -> int:
        """Return the number of actuators in the file."""
        return len(asset.model.actuators)

    def get_asset_actuator_joint_name(self, asset: SceneAsset, index: int) -> str:
        """Return the joint that an actuator drives."""
        return asset.model.actuators[index].joint

    def get_asset_actuator_name(self, asset: SceneAsset, index: int) -> str:
        """Return the name of an actuator."""
        return asset.model.actuators[index].name

    def get_asset_actuator_properties(self, asset: SceneAsset) -> list[ActuatorProperties]:
        """Return the actuators in file order."""
        made = []
        for actuator in asset.model.actuators:
            props = ActuatorProperties()
            props.control_limited, props.force_limited = actuator.ctrl_limited, actuator.force_limited
            props.kp, props.kv = actuator.kp, actuator.kv
            props.motor_effort = actuator.gear if actuator.kind == "motor" else 0.0
            props.lower_control_limit, props.upper_control_limit = actuator.ctrl_range
            props.lower_force_limit, props.upper_force_limit = actuator.force_range
            made.append(props)
        return made

    def get_asset_tendon_count(self, asset: SceneAsset) -> int:
        """Return the number of fixed tendons."""
        return len(asset.model.tendons)

    def get_asset_tendon_name(self, asset: SceneAsset, index: int) -> str:
        """Return the name of a tendon."""
        return asset.model.tendons[index].name

    def find_asset_tendon_index(self, asset: SceneAsset, name: str) -> int:
        """Return the index of a tendon, -1 where there is none."""
        return _find([tendon.name for tendon in asset.model.tendons], name)

    def get_asset_tendon_properties(self, asset: SceneAsset) -> list[TendonProperties]:
        """Return copies of the tendon properties."""
        return properties.tendons_to_api(asset.tendon_props, asset.model)

    def set_asset_tendon_properties(self, asset: SceneAsset, props: Sequence[TendonProperties]) -> bool:
        """Replace the tendon properties for actors created from now on."""
        asset.tendon_props = properties.rows_from_api(props, asset.tendon_props)
        return True

    def get_asset_soft_body_count(self, asset: SceneAsset) -> int:
        """Return 0: there are no soft bodies."""
        return 0

    def create_asset_force_sensor(
        self, asset: SceneAsset, body_idx: int, local_pose: Transform, props: ForceSensorProperties | None = None
    ) -> int:
        """Put a force sensor on a body of every actor of the asset; -1 where the body does not exist.

        Raises:
            RuntimeError: when the asset has actors already, whose rows of the sensor tensor are fixed.
        """
        if asset.has_actors:
            raise RuntimeError(
                "create_asset_force_sensor: the asset has actors already; create its sensors before its first actor"
            )
        if not 0 <= body_idx < len(asset.model.bodies):
            return -1
        chosen = ForceSensorProperties() if props is None else props
        sensor = ForceSensor(
            body=int(body_idx),
            pos=np.array([local_pose.p.x, local_pose.p.y, local_pose.p.z]),
            quat=np.array([local_pose.r.x, local_pose.r.y, local_pose.r.z, local_pose.r.w]),
            forward_dynamics=chosen.enable_forward_dynamics_forces,
            constraint_solver=chosen.enable_constraint_solver_forces,
            world_frame=chosen.use_world_frame,
        )
        asset.model.force_sensors.append(sensor)
        return len(asset.model.force_sensors) - 1

    def debug_print_asset(self, asset: SceneAsset, outpath: str | None = None) -> None:
        """Print a summary of the asset, or write it to ``outpath``."""
        model = asset.model
        lines = [f"asset {model.name} ({model.path}): {len(model.bodies)} bodies, {model.num_dofs} DOFs"]
        for i, body in enumerate(model.bodies):
            joints = ", ".join(f"{joint.name} ({joint.kind})" for joint in body.joints) or "none"
            lines.append(
                f"  body {i} {body.name}: parent {body.parent}, mass {body.mass:g} kg, "
                f"{len(body.shapes)} shapes, joints {joints}"
            )
        text = "\n".join(lines)
        if outpath is None:
            print(text)
        else:
            Path(outpath).write_text(text + "\n", encoding="utf-8")


def _find(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else -1
