"""Gym methods on environments and actors: creation, counts, names, indices (API notes 9.5)."""

from __future__ import annotations

import logging

import numpy as np

from isaacgym._enums import DOMAIN_ACTOR, DOMAIN_ENV, DOMAIN_SIM, IndexDomain
from isaacgym._values import Transform, Vec3
from isaacgym.engine.scene import Actor, Env, SceneAsset
from isaacgym.engine.simulation import Simulation

_logger = logging.getLogger(__name__)


def _index(actor_level: int, env_level: int, sim_level: int, domain: IndexDomain) -> int:
    """Pick the index for a domain."""
    by_domain = {DOMAIN_ACTOR: actor_level, DOMAIN_ENV: env_level, DOMAIN_SIM: sim_level}
    return by_domain[IndexDomain(int(domain))]


def actor_of(env: Env, handle: int) -> Actor:
    """Return the actor with this handle.

    Raises:
        IndexError: when the environment has no such actor.
    """
    if not 0 <= handle < len(env.actors):
        raise IndexError(f"env {env.index} has {len(env.actors)} actors; there is no handle {handle}")
    return env.actors[handle]


class ActorMethods:
    """Creation and bookkeeping."""

    def create_env(self, sim: Simulation, lower: Vec3, upper: Vec3, num_per_row: int) -> Env:
        """Append an environment; cells of size upper - lower tile the ground, ``num_per_row`` in a row."""
        if sim.is_built:
            raise RuntimeError("create_env: the simulation is prepared already; create all envs before prepare_sim")
        return sim.scene.add_env(lower, upper, num_per_row)

    def get_env_origin(self, env: Env) -> Vec3:
        """Return the position of the env frame in the world."""
        return Vec3(*env.origin)

    def create_actor(
        self,
        env: Env,
        asset: SceneAsset,
        pose: Transform,
        name: str | None = None,
        group: int = -1,
        filter: int = -1,  # noqa: A002 - the API's keyword
        segmentationId: int = 0,  # noqa: N803
    ) -> int:
        """Append an actor to the environment created last and return its handle, the index in the environment.

        ``pose`` is in the env frame. Actors of equal ``group`` (or -1) may collide unless their shapes' ``filter``
        bits meet; a filter of -1 keeps the asset's own bits (API notes 11).
        """
        if asset is None:
            raise ValueError("create_actor: asset is None; did load_asset fail?")
        return env.scene.add_actor(env, asset, pose, name, int(group), int(filter), int(segmentationId)).slot

    def begin_aggregate(self, env: Env, max_bodies: int, max_shapes: int, self_collisions: bool) -> bool:
        """Open an aggregate: only a hint about sizes; collisions follow groups and filters."""
        env.aggregate = (env.num_bodies + int(max_bodies), env.num_shapes + int(max_shapes))
        return True

    def end_aggregate(self, env: Env) -> bool:
        """Close an aggregate; warn when it holds more than was announced."""
        if env.aggregate is None:
            return False
        if env.num_bodies > env.aggregate[0] or env.num_shapes > env.aggregate[1]:
            _logger.warning("env %d: the aggregate holds more bodies or shapes than begin_aggregate said", env.index)
        env.aggregate = None
        return True

    def get_actor_count(self, env: Env) -> int:
        """Return the number of actors in the environment."""
        return len(env.actors)

    def get_env_rigid_body_count(self, env: Env) -> int:
        """Return the number of bodies in the environment."""
        return env.num_bodies

    def get_env_dof_count(self, env: Env) -> int:
        """Return the number of DOFs in the environment."""
        return env.num_dofs

    def get_env_joint_count(self, env: Env) -> int:
        """Return the number of joints in the environment, fixed ones included."""
        return env.num_joints

    def get_actor_handle(self, env: Env, index: int) -> int:
        """Return the handle of the index-th actor, -1 where there is none."""
        return index if 0 <= index < len(env.actors) else -1

    def find_actor_handle(self, env: Env, name: str) -> int:
        """Return the handle of the first actor of that name, -1 where there is none."""
        return next((actor.slot for actor in env.actors if actor.name == name), -1)

    def get_actor_name(self, env: Env, handle: int) -> str:
        """Return the actor's name."""
        return actor_of(env, handle).name

    def get_actor_index(self, env: Env, handle: int, domain: IndexDomain) -> int:
        """Return the actor's index in the environment or simulation."""
        actor = actor_of(env, handle)
        return _index(0, actor.slot, actor.index, domain)

    def find_actor_index(self, env: Env, name: str, domain: IndexDomain) -> int:
        """Return the index of the first actor of that name, -1 where there is none."""
        handle = self.find_actor_handle(env, name)
        return -1 if handle < 0 else self.get_actor_index(env, handle, domain)

    def get_actor_asset(self, env: Env, handle: int) -> SceneAsset:
        """Return the asset the actor was made from."""
        return actor_of(env, handle).asset

    def get_actor_rigid_body_count(self, env: Env, handle: int) -> int:
        """Return the number of bodies of the actor."""
        return actor_of(env, handle).num_bodies

    def get_actor_rigid_body_names(self, env: Env, handle: int) -> list[str]:
        """Return the actor's body names in tensor order."""
        return list(actor_of(env, handle).asset.model.body_names)

    def get_actor_rigid_body_dict(self, env: Env, handle: int) -> dict[str, int]:
        """Return the index of every body by name, inside the actor."""
        return {name: i for i, name in enumerate(actor_of(env, handle).asset.model.body_names)}

    def get_actor_rigid_body_index(self, env: Env, handle: int, rigid_body: int, domain: IndexDomain) -> int:
        """Return the index of the actor's rigid_body-th body, -1 where there is none."""
        actor = actor_of(env, handle)
        if not 0 <= rigid_body < actor.num_bodies:
            return -1
        return _index(rigid_body, actor.env_body_start + rigid_body, actor.body_start + rigid_body, domain)

    def find_actor_rigid_body_index(self, env: Env, handle: int, name: str, domain: IndexDomain) -> int:
        """Return the index of a body by name, -1 where there is none."""
        names = actor_of(env, handle).asset.model.body_names
        return self.get_actor_rigid_body_index(env, handle, names.index(name), domain) if name in names else -1

    def get_actor_rigid_body_handle(self, env: Env, handle: int, index: int) -> int:
        """Return the handle of a body: its index in the environment; -1 where there is none."""
        return self.get_actor_rigid_body_index(env, handle, index, DOMAIN_ENV)

    def find_actor_rigid_body_handle(self, env: Env, handle: int, name: str) -> int:
        """Return the handle of a body by name, -1 where there is none."""
        return self.find_actor_rigid_body_index(env, handle, name, DOMAIN_ENV)

    def get_actor_root_rigid_body_handle(self, env: Env, handle: int) -> int:
        """Return the handle of the actor's root body."""
        return self.get_actor_rigid_body_handle(env, handle, 0)

    def get_actor_dof_count(self, env: Env, handle: int) -> int:
        """Return the number of DOFs of the actor."""
        return actor_of(env, handle).num_dofs

    def get_actor_dof_names(self, env: Env, handle: int) -> list[str]:
        """Return the actor's DOF names in tensor order."""
        return list(actor_of(env, handle).asset.model.dof_names)

    def get_actor_dof_dict(self, env: Env, handle: int) -> dict[str, int]:
        """Return the index of every DOF by name, inside the actor."""
        return {name: i for i, name in enumerate(actor_of(env, handle).asset.model.dof_names)}

    def get_actor_dof_index(self, env: Env, handle: int, dof: int, domain: IndexDomain) -> int:
        """Return the index of the actor's dof-th DOF, -1 where there is none."""
        actor = actor_of(env, handle)
        if not 0 <= dof < actor.num_dofs:
            return -1
        return _index(dof, actor.env_dof_start + dof, actor.dof_start + dof, domain)

    def find_actor_dof_index(self, env: Env, handle: int, name: str, domain: IndexDomain) -> int:
        """Return the index of a DOF by name, -1 where there is none."""
        names = actor_of(env, handle).asset.model.dof_names
        return self.get_actor_dof_index(env, handle, names.index(name), domain) if name in names else -1

    def get_actor_dof_handle(self, env: Env, handle: int, index: int) -> int:
        """Return the handle of a DOF: its index in the environment; -1 where there is none."""
        return self.get_actor_dof_index(env, handle, index, DOMAIN_ENV)

    def find_actor_dof_handle(self, env: Env, handle: int, name: str) -> int:
        """Return the handle of a DOF by name, -1 where there is none."""
        return self.find_actor_dof_index(env, handle, name, DOMAIN_ENV)

    def get_actor_joint_count(self, env: Env, handle: int) -> int:
        """Return the number of joints of the actor, fixed ones included."""
        return actor_of(env, handle).asset.joint_count

    def get_actor_joint_names(self, env: Env, handle: int) -> list[str]:
        """Return the actor's joint names, fixed ones included."""
        return list(actor_of(env, handle).asset.model.joint_names)

    def get_actor_joint_dict(self, env: Env, handle: int) -> dict[str, int]:
        """Return the index of every joint by name, fixed ones included."""
        return {name: i for i, name in enumerate(actor_of(env, handle).asset.model.joint_names)}

    def get_actor_rigid_shape_count(self, env: Env, handle: int) -> int:
        """Return the number of collision shapes of the actor."""
        return actor_of(env, handle).asset.model.num_shapes

    def get_actor_actuator_count(self, env: Env, handle: int) -> int:
        """Return the number of actuators in the actor's file."""
        return len(actor_of(env, handle).asset.model.actuators)

    def get_actor_tendon_count(self, env: Env, handle: int) -> int:
        """Return the number of fixed tendons of the actor."""
        return len(actor_of(env, handle).asset.model.tendons)

    def get_actor_soft_body_count(self, env: Env, handle: int) -> int:
        """Return 0: there are no soft bodies."""
        return 0

    def get_actor_force_sensor_count(self, env: Env, handle: int) -> int:
        """Return the number of force sensors of the actor."""
        return len(actor_of(env, handle).asset.model.force_sensors)

    def set_actor_scale(self, env: Env, handle: int, scale: float) -> bool:
        """Scale shapes, joint offsets and sliding limits; mass grows with the cube. Only before prepare_sim."""
        actor = actor_of(env, handle)
        factor = float(np.asarray(scale).reshape(-1)[0])
        if env.scene.is_frozen:
            _logger.warning("set_actor_scale: the scale cannot change after prepare_sim; nothing was done")
            return False
        if not factor > 0:
            raise ValueError(f"set_actor_scale: the scale is {factor}; a positive number is needed")
        ratio = factor / actor.scale
        rows = actor.body_props.copy()
        rows["mass"] *= ratio**3
        rows["com"] *= ratio
        rows["inertia"] *= ratio**5
        actor.body_props = rows
        actor.scale = factor
        return True

    def get_actor_scale(self, env: Env, handle: int) -> float:
        """Return the actor's scale."""
        return actor_of(env, handle).scale
