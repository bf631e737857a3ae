"""Ant: a four-legged robot of eight motors runs along +x (60 observations, 8 actions)."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

from isaacgym import gymapi, gymtorch  # isort: skip  (the original package wants to be imported before torch)
import torch
from torch import Tensor

from tasks import locomotion
from tasks.base.config import asset_root
from tasks.base.vec_task import VecTask

NUM_DOFS = 8
NUM_SENSOR_VALUES = 24
DOF_POS = slice(12, 20)
DOF_VEL = slice(20, 28)
START_HEIGHT = 0.44
JOINT_LIMIT = 0.99
COLOUR = (0.97, 0.38, 0.06)


class AntWeights(NamedTuple):
    """Reward weights; the comments in `cfg/task/Ant.yaml` say what each one pays for."""

    heading: float
    up: float
    alive: float
    action: float
    energy: float
    joint_limit: float
    death: float
    termination_height: float


def ant_observations(
    root_states: Tensor,
    torso: locomotion.Torso,
    dof_pos: Tensor,
    dof_vel: Tensor,
    sensors: Tensor,
    actions: Tensor,
    out: Tensor,
) -> Tensor:
    """Fill `out` (N, 60) and return it.

    Args:
        root_states: (N, 13).
        torso: features of the same root states.
        dof_pos: (N, 8) joint positions mapped to [-1, 1].
        dof_vel: (N, 8) scaled joint velocities.
        sensors: (N, 24) scaled forces and torques of the four feet.
        actions: (N, 8) applied actions.
        out: (N, 60).
    """
    pose = torch.stack((torso.yaw, torso.roll, torso.angle_to_target, torso.up, torso.heading), dim=1)
    parts = (root_states[:, 2:3], torso.local_velocity.flatten(1), pose, dof_pos, dof_vel, sensors, actions)
    return torch.cat(parts, dim=1, out=out)


def ant_reward_terms(
    obs: Tensor, potential: Tensor, previous_potential: Tensor, actions: Tensor, weights: AntWeights
) -> dict[str, Tensor]:
    """Weighted reward terms (N,) each; their sum is the reward.

    A fallen ant gets the death cost instead of all others. Only upper joint limits are penalised.

    Args:
        obs: (N, 60) unclipped observations without noise.
        potential: (N,) potential now.
        previous_potential: (N,) potential one step ago.
        actions: (N, 8) applied actions.
        weights: from the config.
    """
    fallen = obs[:, 0] < weights.termination_height
    power = (actions * obs[:, DOF_VEL]).abs().sum(dim=1)
    at_limit = (obs[:, DOF_POS] > JOINT_LIMIT).sum(dim=1)
    terms = {
        "progress": potential - previous_potential,
        "alive": torch.full_like(potential, weights.alive),
        "upright": locomotion.upright_reward(obs[:, 10], weights.up),
        "heading": locomotion.heading_reward(obs[:, 11], weights.heading),
        "action_cost": (actions * actions).sum(dim=1) * -weights.action,
        "energy_cost": power * -weights.energy,
        "joint_limit_cost": at_limit * -weights.joint_limit,
    }
    terms = {name: term.masked_fill(fallen, 0.0) for name, term in terms.items()}
    terms["death"] = fallen * weights.death
    return terms


class Ant(VecTask):
    """Run towards a target 1 km away along +x, upright and with small effort."""

    saved_buffers: ClassVar[tuple[str, ...]] = (*VecTask.saved_buffers, "potentials", "previous_potentials")

    def __init__(self, cfg: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        """Same arguments as `VecTask`."""
        env = cfg["env"]
        env["numObservations"] = 60
        env["numActions"] = NUM_DOFS
        self.max_episode_length = int(env["episodeLength"])
        self.dof_velocity_scale = float(env["dofVelocityScale"])
        self.angular_velocity_scale = float(env["angularVelocityScale"])
        self.contact_force_scale = float(env["contactForceScale"])
        self.weights = AntWeights(
            heading=float(env["headingWeight"]),
            up=float(env["upWeight"]),
            alive=float(env["aliveReward"]),
            action=float(env["actionsCost"]),
            energy=float(env["energyCost"]),
            joint_limit=float(env["jointsAtLimitCost"]),
            death=float(env["deathCost"]),
            termination_height=float(env["terminationHeight"]),
        )
        super().__init__(cfg, *args, **kwargs)
        self._acquire_state()

    def create_scene(self) -> None:
        """Ground plane and one ant in each env."""
        locomotion.add_ground(self.gym, self.sim, self.cfg["env"]["plane"])
        options = gymapi.AssetOptions()
        options.default_dof_drive_mode = gymapi.DOF_MODE_NONE
        options.angular_damping = 0.0
        file = self.cfg["env"]["asset"]["assetFileName"]
        asset = self.gym.load_asset(self.sim, asset_root(self.cfg), file, options)
        self._dof_names = list(self.gym.get_asset_dof_names(asset))
        self.motor_efforts = locomotion.motor_efforts(self.gym, asset)
        for body, name in enumerate(self.gym.get_asset_rigid_body_names(asset)):
            if "foot" in name:
                self.gym.create_asset_force_sensor(asset, body, gymapi.Transform())
        self._create_envs(asset)

    def _create_envs(self, asset: Any) -> None:
        spacing = float(self.cfg["env"]["envSpacing"])
        lower, upper = gymapi.Vec3(-spacing, -spacing, 0.0), gymapi.Vec3(spacing, spacing, spacing)
        start = gymapi.Transform()
        start.p = gymapi.Vec3(0.0, 0.0, START_HEIGHT)
        per_row = int(math.sqrt(self.num_envs))
        self.envs, self.actors = [], []
        for i in range(self.num_envs):
            env = self.gym.create_env(self.sim, lower, upper, per_row)
            self.envs.append(env)
            self.actors.append(self.gym.create_actor(env, asset, start, "ant", i, 1, 0))
        if self.graphics_device_id >= 0:
            self._paint(self.gym.get_asset_rigid_body_count(asset))
        self.dof_properties = self.gym.get_actor_dof_properties(self.envs[-1], self.actors[-1])

    def _paint(self, num_bodies: int) -> None:
        colour = gymapi.Vec3(*COLOUR)
        for env, actor in zip(self.envs, self.actors):
            for body in range(num_bodies):
                self.gym.set_rigid_body_color(env, actor, body, gymapi.MESH_VISUAL, colour)

    def _acquire_state(self) -> None:
        gym, sim, device, n = self.gym, self.sim, self.pipeline_device, self.num_envs
        self.root_states = gymtorch.wrap_tensor(gym.acquire_actor_root_state_tensor(sim))
        self.dof_state = gymtorch.wrap_tensor(gym.acquire_dof_state_tensor(sim))
        self.sensors = gymtorch.wrap_tensor(gym.acquire_force_sensor_tensor(sim)).view(n, NUM_SENSOR_VALUES)
        gym.refresh_actor_root_state_tensor(sim)
        gym.refresh_dof_state_tensor(sim)
        self.dof_pos = self.dof_state.view(n, NUM_DOFS, 2)[..., 0]
        self.dof_vel = self.dof_state.view(n, NUM_DOFS, 2)[..., 1]
        self.initial_root_states = self.root_states.clone()
        self.initial_root_states[:, 7:] = 0.0
        self.lower_limits, self.upper_limits = locomotion.joint_limits(self.dof_properties, device)
        self.dof_scale, self.dof_offset = locomotion.unscale_coefficients(self.lower_limits, self.upper_limits)
        self.start_dof_pos = locomotion.start_positions(self.lower_limits, self.upper_limits)
        self.force_scale = torch.tensor(self.motor_efforts, device=device) * float(self.cfg["env"]["powerScale"])
        self.dof_forces = torch.zeros(n, NUM_DOFS, device=device)
        self.actions = torch.zeros(n, NUM_DOFS, device=device)
        self.start_potentials = locomotion.torso_features(self.initial_root_states, self.dt).potential
        self.potentials = torch.full((n,), -locomotion.TARGET[0] / self.dt, device=device)
        self.previous_potentials = self.potentials.clone()

    def dof_names(self) -> list[str]:
        """Names of the eight joints, in the order of actions."""
        return self._dof_names

    def pre_physics_step(self, actions: Tensor) -> None:
        """Apply joint torques of action x motor effort x power scale (N m)."""
        self.actions = actions
        torch.mul(actions, self.force_scale, out=self.dof_forces)
        self.gym.set_dof_actuation_force_tensor(self.sim, gymtorch.unwrap_tensor(self.dof_forces))

    def compute_observations(self) -> None:
        """Refresh the state and fill `obs_buf`; the potential moves on by one step."""
        self.gym.refresh_dof_state_tensor(self.sim)
        self.gym.refresh_actor_root_state_tensor(self.sim)
        self.gym.refresh_force_sensor_tensor(self.sim)
        torso = locomotion.torso_features(self.root_states, self.dt, self.angular_velocity_scale)
        self.previous_potentials.copy_(self.potentials)
        self.potentials.copy_(torso.potential)
        ant_observations(
            self.root_states,
            torso,
            torch.addcmul(self.dof_offset, self.dof_pos, self.dof_scale),
            self.dof_vel * self.dof_velocity_scale,
            self.sensors * self.contact_force_scale,
            self.actions,
            out=self.obs_buf,
        )

    def compute_reward(self) -> None:
        """Fill `rew_buf`; flag fallen ants and episodes at the time limit."""
        terms = ant_reward_terms(self.obs_buf, self.potentials, self.previous_potentials, self.actions, self.weights)
        self.rew_buf.copy_(self.sum_terms(terms))
        fallen = self.obs_buf[:, 0] < self.weights.termination_height
        self.reset_buf |= fallen | (self.progress_buf >= self.max_episode_length - 1)
        self.extras["true_objective"] = self.root_states[:, 7]

    def reset_idx(self, env_ids: Tensor) -> None:
        """Start pose at rest; joints near zero (inside their limits) with small random velocities."""
        k, device = len(env_ids), self.pipeline_device
        positions = self.start_dof_pos + torch.empty(k, NUM_DOFS, device=device).uniform_(-0.2, 0.2)
        self.dof_pos[env_ids] = torch.clamp(positions, self.lower_limits, self.upper_limits)
        self.dof_vel[env_ids] = torch.empty(k, NUM_DOFS, device=device).uniform_(-0.1, 0.1)
        actors = env_ids.to(torch.int32)
        self.gym.set_actor_root_state_tensor_indexed(
            self.sim, gymtorch.unwrap_tensor(self.initial_root_states), gymtorch.unwrap_tensor(actors), k
        )
        self.gym.set_dof_state_tensor_indexed(
            self.sim, gymtorch.unwrap_tensor(self.dof_state), gymtorch.unwrap_tensor(actors), k
        )
        self.potentials[env_ids] = self.start_potentials[env_ids]
        self.previous_potentials[env_ids] = self.start_potentials[env_ids]
