"""Gym methods that read and set states without tensors (API notes 9.7)."""

from __future__ import annotations

import numpy as np
import torch

from isaacgym._enums import STATE_POS, STATE_VEL
from isaacgym._gym_actors import actor_of
from isaacgym._values import RIGID_CONTACT_DTYPE, DofFrame, DofState, Quat, RigidBodyState, Transform, Vec3
from isaacgym.engine import spatial
from isaacgym.engine.scene import Actor, Env
from isaacgym.engine.simulation import Simulation


def _live(actor: Actor) -> Simulation | None:
    return actor.env.scene.built


def body_rows(actor: Actor) -> np.ndarray:
    """Body states (B, 13) of the actor, env-local: from PhysX, or forward kinematics before the build."""
    sim = _live(actor)
    if sim is not None:
        live = sim.state.snapshot_bodies()[actor.body_start : actor.body_start + actor.num_bodies]
        return np.asarray(live.cpu().numpy())
    poses = actor.asset.model.forward_kinematics(actor.start_q())
    rows = np.zeros((actor.num_bodies, 13), np.float32)
    for row, pose in zip(rows, poses, strict=True):
        pos, quat = spatial.compose(actor.pose, (pose[:3] * actor.scale, pose[3:]))
        row[:3], row[3:7] = pos, quat
    return rows


def _one_per_dof(actor: Actor, values: np.ndarray) -> np.ndarray:
    """Values as float32 (D,).

    Raises:
        ValueError: when there is not one value for every DOF of the actor.
    """
    flat = np.asarray(values, np.float32).reshape(-1)
    if len(flat) != actor.num_dofs:
        raise ValueError(f"{len(flat)} values for the {actor.num_dofs} DOFs of actor {actor.name!r}")
    return flat


def body_pose(env: Env, body_handle: int) -> Transform:
    """Pose of a body (by its index in the environment), env-local; valid before the build too.

    Raises:
        IndexError: when the environment has no such body.
    """
    for actor in env.actors:
        index = body_handle - actor.env_body_start
        if 0 <= index < actor.num_bodies:
            row = [float(value) for value in body_rows(actor)[index, :7]]
            return Transform(Vec3(*row[:3]), Quat(*row[3:]))
    raise IndexError(f"env {env.index} has {env.num_bodies} bodies; there is no handle {body_handle}")


class StateMethods:
    """One actor at a time; the tensor methods are the fast way."""

    def get_actor_dof_states(self, env: Env, handle: int, flags: int) -> np.ndarray:
        """Return a structured array (D,) of DofState; fields not asked for by ``flags`` are 0."""
        actor = actor_of(env, handle)
        rows = self._dof_rows(actor)
        made = np.zeros(actor.num_dofs, DofState.dtype)
        if flags & STATE_POS:
            made["pos"] = rows[:, 0]
        if flags & STATE_VEL:
            made["vel"] = rows[:, 1]
        return made

    def set_actor_dof_states(self, env: Env, handle: int, states: np.ndarray, flags: int) -> bool:
        """Set positions and velocities (as ``flags`` says) of one actor; before the build, its start state."""
        actor = actor_of(env, handle)
        if len(states) != actor.num_dofs:
            raise ValueError(f"set_actor_dof_states: {len(states)} states for {actor.num_dofs} DOFs")
        rows = self._dof_rows(actor)
        if flags & STATE_POS:
            rows[:, 0] = states["pos"]
        if flags & STATE_VEL:
            rows[:, 1] = states["vel"]
        sim = _live(actor)
        if sim is None:
            actor.start_dofs = rows
            return True
        full = sim.state.snapshot_dofs()
        full[actor.dof_start : actor.dof_start + actor.num_dofs] = torch.as_tensor(rows, device=full.device)
        sim.control.set_dof(full, torch.tensor([actor.index], dtype=torch.int32, device=full.device))
        return True

    @staticmethod
    def _dof_rows(actor: Actor) -> np.ndarray:
        """(D, 2) current or start positions and velocities."""
        sim = _live(actor)
        if sim is not None:
            rows = sim.state.snapshot_dofs()[actor.dof_start : actor.dof_start + actor.num_dofs]
            return rows.cpu().numpy().copy()
        start = actor.start_dofs
        return np.zeros((actor.num_dofs, 2), np.float32) if start is None else start.astype(np.float32)

    def get_actor_rigid_body_states(self, env: Env, handle: int, flags: int) -> np.ndarray:
        """Return a structured array (B,) of RigidBodyState, env-local; parts not asked for are 0."""
        rows = body_rows(actor_of(env, handle)).copy()
        if not flags & STATE_POS:
            rows[:, :7] = 0.0
        if not flags & STATE_VEL:
            rows[:, 7:] = 0.0
        return np.ascontiguousarray(rows, np.float32).view(RigidBodyState.dtype).reshape(-1)

    def get_rigid_transform(self, env: Env, body_handle: int) -> Transform:
        """Return the pose of a body (by its index in the environment), env-local; valid before prepare_sim too."""
        return body_pose(env, body_handle)

    def get_dof_frame(self, env: Env, dof_handle: int) -> DofFrame:
        """Return origin and unit axis of a DOF (by its index in the environment) in the env frame."""
        for actor in env.actors:
            index = dof_handle - actor.env_dof_start
            if 0 <= index < actor.num_dofs:
                body, joint = actor.asset.model.dof_joints[index]
                row = body_rows(actor)[body].astype(np.float64)
                frame = DofFrame()
                frame.origin = Vec3(*(row[:3] + spatial.rotate(row[3:7], joint.anchor * actor.scale)))
                frame.axis = Vec3(*spatial.rotate(row[3:7], joint.axis))
                return frame
        raise IndexError(f"env {env.index} has {env.num_dofs} DOFs; there is no handle {dof_handle}")

    def set_actor_dof_position_targets(self, env: Env, handle: int, targets: np.ndarray) -> bool:
        """Set the position targets (D,) of one actor, rad or m."""
        return self._set_targets(actor_of(env, handle), "DOF_POSITION_TARGET", targets)

    def set_actor_dof_velocity_targets(self, env: Env, handle: int, targets: np.ndarray) -> bool:
        """Set the velocity targets (D,) of one actor, rad/s or m/s."""
        return self._set_targets(actor_of(env, handle), "DOF_VELOCITY_TARGET", targets)

    @staticmethod
    def _set_targets(actor: Actor, quantity: str, targets: np.ndarray) -> bool:
        sim = env_sim(actor.env)
        full = torch.zeros(sim.scene.num_dofs, device=sim.device)
        values = torch.as_tensor(_one_per_dof(actor, targets), device=sim.device)
        full[actor.dof_start : actor.dof_start + actor.num_dofs] = values
        sim.control.set_target(quantity, full, torch.tensor([actor.index], dtype=torch.int32, device=sim.device))
        return True

    def apply_actor_dof_efforts(self, env: Env, handle: int, efforts: np.ndarray) -> bool:
        """Add efforts (D,), N m or N, to one actor's DOFs for the next step; several calls add up."""
        actor = actor_of(env, handle)
        sim = env_sim(env)
        sim.control.add_efforts(actor.dof_start, _one_per_dof(actor, efforts))
        return True

    def get_rigid_contacts(self, sim: Simulation) -> np.ndarray:
        """Return all contacts of the last step as rows of RIGID_CONTACT_DTYPE; slow: net forces have a tensor.

        Body indices are those in the env, -1 for ground and terrain (whose env is -1 too); friction fields are 0.
        """
        sim.prepare()
        return sim.contact_list.read() if sim.frame_count else np.zeros(0, RIGID_CONTACT_DTYPE)

    def get_env_rigid_contacts(self, env: Env) -> np.ndarray:
        """Return the contacts of one environment, see ``get_rigid_contacts``."""
        rows = self.get_rigid_contacts(env_sim(env))
        return rows[(rows["env0"] == env.index) | (rows["env1"] == env.index)]


def env_sim(env: Env) -> Simulation:
    """Return the simulation of an environment, building it when that has not been done."""
    sim: Simulation = env.scene.owner
    sim.prepare()
    return sim
