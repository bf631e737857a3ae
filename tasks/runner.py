"""Runner: what Ant and Humanoid have in common as tasks; each adds its observation and its reward."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from isaacgym import gymapi, gymtorch  # isort: skip  (the original package wants to be imported before torch)
import torch
from torch import Tensor

from tasks import locomotion
from tasks.base.config import asset_root
from tasks.base.errors import TaskError
from tasks.base.vec_task import VecTask


class Runner(VecTask):
    """A motor-driven robot with force sensors on its feet runs towards a target 1 km away along +x."""

    saved_buffers: ClassVar[tuple[str, ...]] = (*VecTask.saved_buffers, "potentials", "previous_potentials")

    robot: ClassVar[str]
    """Name of the actor."""
    num_observed: ClassVar[int]
    """Number of observations."""
    num_dofs: ClassVar[int]
    """Number of joints, each with a motor."""
    sensor_bodies: ClassVar[tuple[str, ...]]
    """Bodies with a force sensor, in the order of their values."""
    start_height: ClassVar[float]
    """Height of the torso at the start of an episode (m)."""
    collision_filter: ClassVar[int]
    """1: the robot's bodies pass through each other, 0: they collide."""
    colour: ClassVar[tuple[float, float, float]] = (0.97, 0.38, 0.06)

    def __init__(self, cfg: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        """Same arguments as `VecTask`."""
        env = cfg["env"]
        env["numObservations"] = self.num_observed
        env["numActions"] = self.num_dofs
        self.max_episode_length = int(env["episodeLength"])
        self.angular_velocity_scale = float(env["angularVelocityScale"])
        self.dof_velocity_scale = float(env["dofVelocityScale"])
        self.contact_force_scale = float(env["contactForceScale"])
        self.weights = locomotion.read_weights(env)
        super().__init__(cfg, *args, **kwargs)
        self._acquire_state()

    # ---- scene -----------------------------------------------------------------------------------------------

    def asset_options(self) -> gymapi.AssetOptions:
        """Options of the robot's asset."""
        options = gymapi.AssetOptions()
        options.default_dof_drive_mode = gymapi.DOF_MODE_NONE
        return options

    def create_scene(self) -> None:
        """Ground plane and one robot in each env."""
        locomotion.add_ground(self.gym, self.sim, self.cfg["env"]["plane"])
        file = self.cfg["env"]["asset"]["assetFileName"]
        asset = self.gym.load_asset(self.sim, asset_root(self.cfg), file, self.asset_options())
        self._dof_names = list(self.gym.get_asset_dof_names(asset))
        self.motor_efforts = locomotion.motor_efforts(self.gym, asset)
        for name in self.sensor_bodies:
            body = self.gym.find_asset_rigid_body_index(asset, name)
            if body < 0:
                raise TaskError(f"{file} has no body {name} for a force sensor")
            self.gym.create_asset_force_sensor(asset, body, gymapi.Transform())
        self._create_envs(asset)

    def _create_envs(self, asset: Any) -> None:
        spacing = float(self.cfg["env"]["envSpacing"])
        lower, upper = gymapi.Vec3(-spacing, -spacing, 0.0), gymapi.Vec3(spacing, spacing, spacing)
        start = gymapi.Transform()
        start.p = gymapi.Vec3(0.0, 0.0, self.start_height)
        per_row = int(math.sqrt(self.num_envs))
        self.envs, self.actors = [], []
        for i in range(self.num_envs):
            env = self.gym.create_env(self.sim, lower, upper, per_row)
            actor = self.gym.create_actor(env, asset, start, self.robot, i, self.collision_filter, 0)
            self.prepare_actor(env, actor)
            self.envs.append(env)
            self.actors.append(actor)
        if self.graphics_device_id >= 0:
            self._paint(self.gym.get_asset_rigid_body_count(asset))
        self.dof_properties = self.gym.get_actor_dof_properties(self.envs[-1], self.actors[-1])

    def prepare_actor(self, env: Any, actor: int) -> None:
        """Set up a new actor."""

    def _paint(self, num_bodies: int) -> None:
        colour = gymapi.Vec3(*self.colour)
        for env, actor in zip(self.envs, self.actors):
            for body in range(num_bodies):
                self.gym.set_rigid_body_color(env, actor, body, gymapi.MESH_VISUAL, colour)

    def _acquire_state(self) -> None:
        gym, sim, device, n = self.gym, self.sim, self.pipeline_device, self.num_envs
        self.root_states = gymtorch.wrap_tensor(gym.acquire_actor_root_state_tensor(sim))
        self.dof_state = gymtorch.wrap_tensor(gym.acquire_dof_state_tensor(sim))
        sensors = gymtorch.wrap_tensor(gym.acquire_force_sensor_tensor(sim))
        self.sensors = sensors.view(n, 6 * len(self.sensor_bodies))
        gym.refresh_actor_root_state_tensor(sim)
        gym.refresh_dof_state_tensor(sim)
        self.dof_pos = self.dof_state.view(n, self.num_dofs, 2)[..., 0]
        self.dof_vel = self.dof_state.view(n, self.num_dofs, 2)[..., 1]
        self.initial_root_states = self.root_states.clone()
        self.initial_root_states[:, 7:] = 0.0
        self.lower_limits, self.upper_limits = locomotion.joint_limits(self.dof_properties, device)
        self.dof_scale, self.dof_offset = locomotion.unscale_coefficients(self.lower_limits, self.upper_limits)
        self.start_dof_pos = locomotion.start_positions(self.lower_limits, self.upper_limits)
        self.efforts = torch.tensor(self.motor_efforts, device=device)
        self.force_scale = self.efforts * float(self.cfg["env"]["powerScale"])
        self.dof_forces = torch.zeros(n, self.num_dofs, device=device)
        self.actions = torch.zeros(n, self.num_dofs, device=device)
        self.start_potentials = locomotion.torso_features(self.initial_root_states, self.dt).potential
        self.potentials = torch.full((n,), -locomotion.TARGET[0] / self.dt, device=device)
        self.previous_potentials = self.potentials.clone()

    def dof_names(self) -> list[str]:
        """Names of the joints, in the order of actions."""
        return self._dof_names

    # ---- stepping --------------------------------------------------------------------------------------------

    def pre_physics_step(self, actions: Tensor) -> None:
        """Apply joint torques of action x motor effort x power scale (N m)."""
        self.actions = actions
        torch.mul(actions, self.force_scale, out=self.dof_forces)
        self.gym.set_dof_actuation_force_tensor(self.sim, gymtorch.unwrap_tensor(self.dof_forces))

    def refresh_state(self) -> locomotion.Torso:
        """Refresh the state tensors and return the torso features; the potential moves on by one step."""
        self.gym.refresh_dof_state_tensor(self.sim)
        self.gym.refresh_actor_root_state_tensor(self.sim)
        self.gym.refresh_force_sensor_tensor(self.sim)
        torso = locomotion.torso_features(self.root_states, self.dt, self.angular_velocity_scale)
        self.previous_potentials.copy_(self.potentials)
        self.potentials.copy_(torso.potential)
        return torso

    def scaled_joints(self) -> tuple[Tensor, Tensor]:
        """Joint positions mapped to [-1, 1] between their limits, and scaled joint velocities, (N, D) each."""
        positions = torch.addcmul(self.dof_offset, self.dof_pos, self.dof_scale)
        return positions, self.dof_vel * self.dof_velocity_scale

    def reward_terms(self) -> dict[str, Tensor]:
        """Weighted reward terms (N,) of the last observation."""
        raise NotImplementedError

    def compute_reward(self) -> None:
        """Fill `rew_buf`; flag fallen robots and episodes at the time limit."""
        self.rew_buf.copy_(self.sum_terms(self.reward_terms()))
        fallen = self.obs_buf[:, 0] < self.weights.termination_height
        self.reset_buf |= fallen | (self.progress_buf >= self.max_episode_length - 1)
        self.extras["true_objective"] = self.root_states[:, 7]

    def reset_idx(self, env_ids: Tensor) -> None:
        """Start pose at rest; joints near zero (inside their limits) with small random velocities."""
        shape, device = (len(env_ids), self.num_dofs), self.pipeline_device
        positions = self.start_dof_pos + torch.empty(shape, device=device).uniform_(-0.2, 0.2)
        self.dof_pos[env_ids] = torch.clamp(positions, self.lower_limits, self.upper_limits)
        self.dof_vel[env_ids] = torch.empty(shape, device=device).uniform_(-0.1, 0.1)
        actors = gymtorch.unwrap_tensor(env_ids.to(torch.int32))
        self.gym.set_actor_root_state_tensor_indexed(
            self.sim, gymtorch.unwrap_tensor(self.initial_root_states), actors, len(env_ids)
        )
        self.gym.set_dof_state_tensor_indexed(self.sim, gymtorch.unwrap_tensor(self.dof_state), actors, len(env_ids))
        self.potentials[env_ids] = self.start_potentials[env_ids]
        self.previous_potentials[env_ids] = self.start_potentials[env_ids]
