"""Anymal: a quadruped follows velocity commands on flat ground (48 observations, 12 actions)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from isaacgym import gymapi, gymtorch  # isort: skip  (the original package wants to be imported before torch)
import torch
from torch import Tensor

from tasks import legged, locomotion
from tasks.base.description import Description, Part
from tasks.quadruped import NUM_DOFS, Quadruped


class AnymalScales(NamedTuple):
    """Factors of observations."""

    linear_velocity: float
    angular_velocity: float
    dof_pos: float
    dof_vel: float


def anymal_observations(
    base: legged.Base,
    commands: Tensor,
    dof_offset: Tensor,
    dof_vel: Tensor,
    actions: Tensor,
    scales: AnymalScales,
    out: Tensor,
) -> Tensor:
    """Fill `out` (N, 48) and return it.

    Args:
        base: motion of the bases.
        commands: (N, >= 3) forward and sideways velocity (m/s), yaw rate (rad/s).
        dof_offset: (N, 12) joint positions minus default positions (rad).
        dof_vel: (N, 12) joint velocities (rad/s).
        actions: (N, 12) applied actions.
        scales: factors.
        out: (N, 48).
    """
    parts = (
        base.linear * scales.linear_velocity,
        base.angular * scales.angular_velocity,
        base.gravity_rotated_forward(),
        commands[:, :2] * scales.linear_velocity,
        commands[:, 2:3] * scales.angular_velocity,
        dof_offset * scales.dof_pos,
        dof_vel * scales.dof_vel,
        actions,
    )
    return torch.cat(parts, dim=1, out=out)


def anymal_reward_terms(
    base: legged.Base, commands: Tensor, torques: Tensor, weights: dict[str, float]
) -> dict[str, Tensor]:
    """Weighted terms (N,) each; the reward is their sum, but never below 0.

    Args:
        base: motion of the bases.
        commands: (N, >= 3) forward and sideways velocity (m/s), yaw rate (rad/s).
        torques: (N, 12) measured joint torques (N m).
        weights: weight of each term.
    """
    return {
        "lin_vel_xy": legged.track_velocity(commands, base.linear) * weights["lin_vel_xy"],
        "ang_vel_z": legged.track_yaw_rate(commands, base.angular) * weights["ang_vel_z"],
        "torques": legged.squared(torques) * weights["torques"],
    }


DESCRIPTION = Description(
    summary="An ANYmal C follows commanded velocities on flat ground; commands are drawn anew in every episode.",
    observations={
        "obs": (
            *legged.VELOCITY_PARTS,
            Part(3, "downward direction turned by the base rotation, as the original has it, not its inverse"),
            *legged.COMMAND_PARTS,
            Part(12, "joint positions minus default positions", "rad", "joint", "env.learn.dofPositionScale"),
            legged.JOINT_VELOCITY_PART,
            Part(12, "actions"),
        )
    },
    action="12 numbers in [-1, 1]: joint position targets, x {env.control.actionScale} rad + default position; drives "
    "of {env.control.stiffness} N m/rad and {env.control.damping} N m s/rad in the simulator hold them.",
    reward=legged.REWARD_TEXT,
    terms=legged.TRACKING_TERMS,
    termination=(
        "when base or a thigh is touched with more than 1 N",
        "after {env.learn.episodeLength_s} s (time limit)",
    ),
    results=(
        legged.TRACKING_RESULT._replace(
            value="0.176",
            conditions="mean policy after 13.5M steps of training with 1024 environments, seed 42, 2 CPU cores; 0.275 "
            "after 7.2M; a robot that stands still scores about 1.2",
        ),
    ),
)


class Anymal(Quadruped):
    """Follow velocity commands on a plane; the simulator's position drives move the joints."""

    description = DESCRIPTION
    num_observed = 48
    collision_filter = 1
    drive_mode = gymapi.DOF_MODE_NONE

    def __init__(self, cfg: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        """Same arguments as `VecTask`."""
        super().__init__(cfg, *args, **kwargs)
        learn = self.learn
        self.max_episode_length = int(float(learn["episodeLength_s"]) / self.dt + 0.5)
        self.scales = AnymalScales(
            linear_velocity=float(learn["linearVelocityScale"]),
            angular_velocity=float(learn["angularVelocityScale"]),
            dof_pos=float(learn["dofPositionScale"]),
            dof_vel=float(learn["dofVelocityScale"]),
        )
        self.weights = {
            "lin_vel_xy": float(learn["linearVelocityXYRewardScale"]) * self.dt,
            "ang_vel_z": float(learn["angularVelocityZRewardScale"]) * self.dt,
            "torques": float(learn["torqueRewardScale"]) * self.dt,
        }
        torques = gymtorch.wrap_tensor(self.gym.acquire_dof_force_tensor(self.sim))
        self.torques = torques.view(self.num_envs, NUM_DOFS)
        self.failing_bodies = torch.tensor([self.base_index, *self.knees], device=self.pipeline_device)
        self.dof_targets = torch.zeros(self.num_envs, NUM_DOFS, device=self.pipeline_device)
        self.start_states = self.start_state.repeat(self.num_envs, 1)
        self.reset_idx(torch.arange(self.num_envs, device=self.pipeline_device))

    def create_scene(self) -> None:
        """Ground plane and one robot in each env."""
        locomotion.add_ground(self.gym, self.sim, self.cfg["env"]["plane"])
        asset = self.load_robot()
        properties = self.gym.get_asset_dof_properties(asset)
        properties["driveMode"].fill(int(gymapi.DOF_MODE_POS))
        properties["stiffness"].fill(float(self.control["stiffness"]))
        properties["damping"].fill(float(self.control["damping"]))
        spacing = float(self.cfg["env"]["envSpacing"])
        lower, upper = gymapi.Vec3(-spacing, -spacing, 0.0), gymapi.Vec3(spacing, spacing, spacing)
        pose, per_row = self.start_pose(), int(math.sqrt(self.num_envs))
        self.envs, self.actors = [], []
        for i in range(self.num_envs):
            env = self.gym.create_env(self.sim, lower, upper, per_row)
            actor = self.gym.create_actor(env, asset, pose, "anymal", i, self.collision_filter, 0)
            self.gym.set_actor_dof_properties(env, actor, properties)
            self.gym.enable_actor_dof_force_sensors(env, actor)
            self.envs.append(env)
            self.actors.append(actor)

    def count_randomize_steps(self) -> None:
        """As `VecTask`, unless the quirk Q16 is asked for: then properties are drawn once only."""
        if "Q16" not in self.quirks:
            super().count_randomize_steps()

    def pre_physics_step(self, actions: Tensor) -> None:
        """Set joint position targets: action x action scale + default angle (rad)."""
        self.actions = actions
        torch.add(self.default_dof_pos, actions, alpha=self.action_scale, out=self.dof_targets)
        self.gym.set_dof_position_target_tensor(self.sim, gymtorch.unwrap_tensor(self.dof_targets))

    def compute_observations(self) -> None:
        """Refresh the state and fill `obs_buf`."""
        self.gym.refresh_dof_state_tensor(self.sim)
        self.gym.refresh_actor_root_state_tensor(self.sim)
        self.gym.refresh_net_contact_force_tensor(self.sim)
        self.gym.refresh_dof_force_tensor(self.sim)
        self.base = legged.base_motion(self.root_states)
        dof_offset = self.dof_pos - self.default_dof_pos
        anymal_observations(
            self.base, self.commands, dof_offset, self.dof_vel, self.actions, self.scales, out=self.obs_buf
        )

    def compute_reward(self) -> None:
        """Fill `rew_buf`; flag robots that touch the ground with base or thighs, and episodes at the time limit."""
        terms = anymal_reward_terms(self.base, self.commands, self.torques, self.weights)
        torch.clamp(self.sum_terms(terms), min=0.0, out=self.rew_buf)
        self.measure({"tracking_error": legged.velocity_error(self.commands, self.base.linear)})
        fallen = legged.touching(self.contact_forces.index_select(1, self.failing_bodies)).any(dim=1)
        self.reset_buf.copy_(fallen | (self.progress_buf >= self.max_episode_length - 1))

    def reset_idx(self, env_ids: Tensor) -> None:
        """Start pose with random joints, and new commands."""
        self.reset_joints(env_ids)
        k = len(env_ids)
        actors = gymtorch.unwrap_tensor(env_ids.to(torch.int32))
        self.gym.set_actor_root_state_tensor_indexed(self.sim, gymtorch.unwrap_tensor(self.start_states), actors, k)
        ranges = self.cfg["env"]["randomCommandVelocityRanges"]
        for column, name in enumerate(("linear_x", "linear_y", "yaw")):
            low, high = ranges[name]
            self.commands[env_ids, column] = self.uniform(float(low), float(high), k)
