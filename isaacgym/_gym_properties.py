"""Gym methods that read and change properties of actors (API notes 9.6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isaacgym._gym_actors import actor_of
from isaacgym._params import ActuatorProperties, RigidBodyProperties, RigidShapeProperties, TendonProperties
from isaacgym._values import IndexRange, Vec3
from isaacgym.engine import properties
from isaacgym.engine.scene import Actor, Env


class PropertyMethods:
    """Getters return copies; setters act on one actor, before the build or between steps."""

    def get_actor_dof_properties(self, env: Env, handle: int) -> np.ndarray:
        """Return a copy of the actor's DOF properties, a structured array (D,) (API notes 6)."""
        return actor_of(env, handle).dof_props.copy()

    def set_actor_dof_properties(self, env: Env, handle: int, props: np.ndarray) -> bool:
        """Replace the actor's DOF properties; ``props`` has the fields of ``get_actor_dof_properties``."""
        actor = actor_of(env, handle)
        rows = properties.dofs_from_api(props, actor.dof_props)
        modes_changed = bool(np.any(rows["driveMode"] != actor.dof_props["driveMode"]))
        if rows.tobytes() == actor.dof_props.tobytes():
            return True
        actor.dof_props = env.scene.share(rows)
        self._changed(actor, "dof")
        if modes_changed and env.scene.built is not None:
            env.scene.built.control.modes_changed()
        return True

    def get_actor_rigid_body_properties(self, env: Env, handle: int) -> list[RigidBodyProperties]:
        """Return copies of the properties of the actor's bodies."""
        return properties.bodies_to_api(actor_of(env, handle).body_props)

    def set_actor_rigid_body_properties(
        self,
        env: Env,
        actorHandle: int,  # noqa: N803
        props: Sequence[RigidBodyProperties],
        recomputeInertia: bool = False,  # noqa: N803
    ) -> bool:
        """Replace the properties of the actor's bodies; see ``properties.bodies_from_api``."""
        actor = actor_of(env, actorHandle)
        actor.body_props = properties.bodies_from_api(props, actor.body_props, bool(recomputeInertia))
        self._changed(actor, "body")
        return True

    def get_actor_rigid_shape_properties(self, env: Env, handle: int) -> list[RigidShapeProperties]:
        """Return copies of the properties of the actor's shapes, bodies in order."""
        return properties.shapes_to_api(actor_of(env, handle).shape_props)

    def set_actor_rigid_shape_properties(self, env: Env, handle: int, props: Sequence[RigidShapeProperties]) -> bool:
        """Replace the properties of the actor's shapes; filters cannot change after the build.

        Raises:
            ValueError: when a filter changes after prepare_sim.
        """
        actor = actor_of(env, handle)
        rows = properties.rows_from_api(props, actor.shape_props)
        if env.scene.is_frozen and np.any(rows["filter"] != actor.shape_props["filter"]):
            raise ValueError("set_actor_rigid_shape_properties: filters cannot change after prepare_sim")
        actor.shape_props = rows
        self._changed(actor, "shape")
        return True

    def get_actor_tendon_properties(self, env: Env, handle: int) -> list[TendonProperties]:
        """Return copies of the properties of the actor's fixed tendons."""
        actor = actor_of(env, handle)
        return properties.tendons_to_api(actor.tendon_props, actor.asset.model)

    def set_actor_tendon_properties(self, env: Env, handle: int, props: Sequence[TendonProperties]) -> bool:
        """Replace the properties of the actor's fixed tendons."""
        actor = actor_of(env, handle)
        actor.tendon_props = properties.rows_from_api(props, actor.tendon_props)
        self._changed(actor, "tendon")
        return True

    def get_actor_actuator_properties(self, env: Env, handle: int) -> list[ActuatorProperties]:
        """Return the actuators of the actor's file."""
        made: list[ActuatorProperties] = self.get_asset_actuator_properties(actor_of(env, handle).asset)  # type: ignore[attr-defined]
        return made

    def get_actor_rigid_body_shape_indices(self, env: Env, handle: int) -> list[IndexRange]:
        """Return for every body of the actor which of its shapes are the body's."""
        made: list[IndexRange] = self.get_asset_rigid_body_shape_indices(actor_of(env, handle).asset)  # type: ignore[attr-defined]
        return made

    def enable_actor_dof_force_sensors(self, env: Env, handle: int) -> bool:
        """Let the DOF force tensor report this actor; before the tensor is acquired."""
        actor_of(env, handle).dof_force_sensors = True
        return True

    def set_rigid_body_color(self, env: Env, handle: int, body: int, mesh_type: int, color: Vec3) -> None:
        """Do nothing: there is no renderer."""

    def set_rigid_body_segmentation_id(self, env: Env, handle: int, body: int, segmentation_id: int) -> None:
        """Do nothing: there is no renderer."""

    def set_rigid_body_texture(self, env: Env, handle: int, body: int, mesh_type: int, texture: int) -> None:
        """Do nothing: there is no renderer."""

    def reset_actor_materials(self, env: Env, handle: int, mesh_type: int) -> None:
        """Do nothing: there is no renderer."""

    @staticmethod
    def _changed(actor: Actor, kind: str) -> None:
        built = actor.env.scene.built
        if built is not None:
            built.properties.mark(kind, actor)
