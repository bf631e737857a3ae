"""AnymalTerrain: a quadruped learns to cross slopes, stairs and obstacles (188 observations, 12 actions)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from isaacgym import gymapi, gymtorch  # isort: skip  (the original package wants to be imported before torch)
import numpy as np
import torch
from torch import Tensor

from tasks import legged, locomotion, rough_walking
from tasks.quadruped import NUM_DOFS, Quadruped
from tasks.terrain import (
    BORDER,
    Terrain,
    check_kind,
    demotion_speed,
    draw_tiles,
    draw_world_seed,
    heights_at,
    next_levels,
    scan_points,
    turn_by_yaw,
)

NUM_FRICTION_BUCKETS = 100
PROMOTION_DISTANCE = 4.0
"""Distance from the tile's centre (m) that earns the next level."""
REWARD_KEYS = {
    "lin_vel_xy": "linearVelocityXYRewardScale",
    "lin_vel_z": "linearVelocityZRewardScale",
    "ang_vel_z": "angularVelocityZRewardScale",
    "ang_vel_xy": "angularVelocityXYRewardScale",
    "orient": "orientationRewardScale",
    "torques": "torqueRewardScale",
    "joint_acc": "jointAccRewardScale",
    "base_height": "baseHeightRewardScale",
    "air_time": "feetAirTimeRewardScale",
    "collision": "kneeCollisionRewardScale",
    "stumble": "feetStumbleRewardScale",
    "action_rate": "actionRateRewardScale",
    "hip": "hipRewardScale",
}
"""Reward term -> its weight in the task's `learn` section."""


class AnymalTerrain(Quadruped):
    """Follow velocity commands over terrain of growing difficulty, with torques computed here.

    Resets are immediate: the observation that comes with `done` already belongs to the new episode (the terminal one
    is in `final_obs`), while velocities, gravity direction and yaw command in it are still the old ones.
    """

    description = rough_walking.DESCRIPTION
    saved_buffers: ClassVar[tuple[str, ...]] = (
        *Quadruped.saved_buffers,
        "terrain_levels",
        "terrain_types",
        "env_origins",
        "air_time",
        "last_actions",
        "last_dof_vel",
        "timeout_buf",
    )
    num_observed = 188
    collision_filter = 0
    drive_mode = gymapi.DOF_MODE_EFFORT

    def __init__(self, cfg: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        """Same arguments as `VecTask`."""
        env, learn, control = cfg["env"], cfg["env"]["learn"], cfg["env"]["control"]
        self.decimation = int(control["decimation"])
        self.step_dt = self.decimation * float(cfg["sim"]["dt"])
        self.max_episode_length_s = float(learn["episodeLength_s"])
        self.max_episode_length = int(self.max_episode_length_s / self.step_dt + 0.5)
        self.push_interval = int(float(learn["pushInterval_s"]) / self.step_dt + 0.5)
        self.stiffness, self.damping = float(control["stiffness"]), float(control["damping"])
        self.curriculum = bool(env["terrain"]["curriculum"])
        self.scales = rough_walking.Scales(
            linear_velocity=float(learn["linearVelocityScale"]),
            angular_velocity=float(learn["angularVelocityScale"]),
            dof_pos=float(learn["dofPositionScale"]),
            dof_vel=float(learn["dofVelocityScale"]),
            height=float(learn["heightMeasurementScale"]),
        )
        self.weights = {term: float(learn[key]) * self.step_dt for term, key in REWARD_KEYS.items()}
        self.world_seed = draw_world_seed()
        self.ready = False
        super().__init__(cfg, *args, **kwargs)
        self.episodes.rewards.divisor = self.max_episode_length_s
        self.reset_idx(torch.arange(self.num_envs, device=self.pipeline_device))
        self.ready = True

    def allocate_buffers(self) -> None:
        """Buffers of `VecTask`, and what this task remembers from step to step."""
        super().allocate_buffers()
        n, device = self.num_envs, self.pipeline_device
        self.scan = scan_points(device)
        self.noise = rough_walking.noise_amplitudes(self.learn, self.scales, device)
        self.knee_bodies = torch.tensor(self.knees, device=device)
        self.foot_bodies = torch.tensor(self.feet, device=device)
        self.dof_forces = torch.zeros(n, NUM_DOFS, device=device)
        self.last_actions = torch.zeros(n, NUM_DOFS, device=device)
        self.last_dof_vel = torch.zeros(n, NUM_DOFS, device=device)
        self.air_time = torch.zeros(n, len(self.feet), device=device)
        self.push_pending = False
        self.terminal: tuple[Tensor, Tensor] | None = None

    # ---- scene -----------------------------------------------------------------------------------------------

    def create_scene(self) -> None:
        """Ground and one robot in each env; on terrain the envs share one frame, elsewhere they stand apart."""
        terrain_cfg = self.cfg["env"]["terrain"]
        self.on_terrain = check_kind(terrain_cfg["terrainType"])
        if self.on_terrain:
            self._add_terrain(terrain_cfg)
        else:
            locomotion.add_ground(self.gym, self.sim, terrain_cfg)
        self._choose_origins(terrain_cfg)
        self._create_envs(self.load_robot())

    def _add_terrain(self, cfg: dict[str, Any]) -> None:
        self.terrain = Terrain(cfg, self.world_seed)
        vertices, triangles = self.terrain.mesh()
        params = gymapi.TriangleMeshParams()
        params.nb_vertices = vertices.shape[0]
        params.nb_triangles = triangles.shape[0]
        params.transform.p.x = params.transform.p.y = -BORDER
        params.static_friction = float(cfg["staticFriction"])
        params.dynamic_friction = float(cfg["dynamicFriction"])
        params.restitution = float(cfg["restitution"])
        self.gym.add_triangle_mesh(self.sim, vertices.flatten(), triangles.flatten(), params)
        self.heights = torch.tensor(self.terrain.heights, device=self.pipeline_device)
        self.tile_origins = torch.tensor(self.terrain.origins, dtype=torch.float32, device=self.pipeline_device)

    def _choose_origins(self, cfg: dict[str, Any]) -> None:
        self.terrain_levels, self.terrain_types = draw_tiles(cfg, self.num_envs, self.pipeline_device)
        self.env_origins = torch.zeros(self.num_envs, 3, device=self.pipeline_device)
        if self.on_terrain:
            self.env_origins[:] = self.tile_origins[self.terrain_levels, self.terrain_types]

    def _create_envs(self, asset: Any) -> None:
        properties = self.gym.get_asset_dof_properties(asset)
        shapes = self.gym.get_asset_rigid_shape_properties(asset)
        friction = self._draw_friction()
        spacing = 0.0 if self.on_terrain else float(self.cfg["env"]["envSpacing"])
        lower, upper = gymapi.Vec3(-spacing, -spacing, 0.0), gymapi.Vec3(spacing, spacing, spacing)
        pose, per_row = self.start_pose(), int(math.sqrt(self.num_envs))
        places = self.env_origins.cpu() + torch.rand(self.num_envs, 3) * torch.tensor([2.0, 2.0, 0.0])
        places -= torch.tensor([1.0, 1.0, 0.0])
        self.envs, self.actors = [], []
        for i in range(self.num_envs):
            env = self.gym.create_env(self.sim, lower, upper, per_row)
            if friction is not None:
                for shape in shapes:
                    shape.friction = float(friction[i % NUM_FRICTION_BUCKETS])
                self.gym.set_asset_rigid_shape_properties(asset, shapes)
            if self.on_terrain:
                pose.p = gymapi.Vec3(*places[i].tolist())
            actor = self.gym.create_actor(env, asset, pose, "anymal", i, self.collision_filter, 0)
            self.gym.set_actor_dof_properties(env, actor, properties)
            self.envs.append(env)
            self.actors.append(actor)

    def _draw_friction(self) -> np.ndarray | None:
        if not self.learn["randomizeFriction"]:
            return None
        low, high = (float(v) for v in self.learn["frictionRange"])
        return np.random.default_rng(self.world_seed).uniform(low, high, NUM_FRICTION_BUCKETS)

    # ---- stepping --------------------------------------------------------------------------------------------

    def pre_physics_step(self, actions: Tensor) -> None:
        """Hold the position targets with torques that follow the joints, renewed before each simulation step.

        The simulation step after the last torque is the caller's. With the quirk Q10 it comes on top of the
        `decimation` steps here, and the joint state observed is that before it.
        """
        self.actions = actions
        extra = "Q10" in self.quirks
        for i in range(self.decimation):
            self._apply_torques()
            if i < self.decimation - 1 or extra:
                self.gym.simulate(self.sim)
                if self.pipeline_device == "cpu":
                    self.gym.fetch_results(self.sim, True)
                self.gym.refresh_dof_state_tensor(self.sim)

    def _apply_torques(self) -> None:
        targets = torch.add(self.default_dof_pos, self.actions, alpha=self.action_scale)
        torques = self.stiffness * (targets - self.dof_pos) - self.damping * self.dof_vel
        torch.clamp(torques, -80.0, 80.0, out=self.dof_forces)
        self.gym.set_dof_actuation_force_tensor(self.sim, gymtorch.unwrap_tensor(self.dof_forces))

    def post_physics_step(self) -> None:
        """Push, reward, reset, then observe."""
        self._refresh()
        self.progress_buf += 1
        self.count_randomize_steps()
        if self.learn["pushRobots"] and (self.control_steps + 1) % self.push_interval == 0:
            self.root_states[:, 7:9] = self.uniform(-1.0, 1.0, self.num_envs, 2)
            self.push_pending = True
        self.base = legged.base_motion(self.root_states)
        self.commands[:, 2] = legged.heading_command(self.commands[:, 3], self.base.heading())
        self.check_termination()
        self.compute_reward()
        flagged = self.flagged_envs()
        self.terminal = None
        if len(flagged) > 0:
            self.terminal = (flagged, self._observe(flagged))
            self.reset_envs(flagged)
        elif self.push_pending:
            self._write_root_states(flagged)
        self.compute_observations()
        self.last_actions.copy_(self.actions)
        self.last_dof_vel.copy_(self.dof_vel)

    def _refresh(self) -> None:
        """Bring the state up to date; envs that are not finite read as zeros and are reset in this step."""
        self.gym.refresh_actor_root_state_tensor(self.sim)
        self.gym.refresh_net_contact_force_tensor(self.sim)
        if "Q10" not in self.quirks:
            self.gym.refresh_dof_state_tensor(self.sim)
        rows = [
            self.root_states,
            self.dof_state.view(self.num_envs, -1),
            self.contact_forces.flatten(1),
            self.actions,
            self.dof_forces,
        ]
        self.broken = ~torch.isfinite(torch.stack([part.sum(dim=1) for part in rows]).sum(dim=0))
        self.nonfinite_count += self.broken
        mask = self.broken.unsqueeze(1)
        for part in rows:
            part.masked_fill_(mask, 0.0)

    def check_termination(self) -> None:
        """Flag robots that touch the ground with the base (or a thigh, if that is not allowed), and old episodes."""
        fallen = legged.touching(self.contact_forces[:, self.base_index])
        if not self.learn["allowKneeContacts"]:
            fallen |= legged.touching(self.contact_forces.index_select(1, self.knee_bodies)).any(dim=1)
        self.expired = self.progress_buf >= self.max_episode_length - 1
        self.reset_buf.copy_(fallen | self.expired | self.broken)

    def time_limit_reached(self) -> Tensor:
        """Mask (N,) of episodes cut by the time limit; with the quirk Q4 it is never set."""
        return super().time_limit_reached() if "Q4" in self.quirks else self.expired & ~self.broken

    def compute_reward(self) -> None:
        """Fill `rew_buf`."""
        foot_forces = self.contact_forces.index_select(1, self.foot_bodies)
        contact = foot_forces[..., 2] > 1.0
        air_time, swing = rough_walking.swing_times(self.air_time, contact, float(self.learn["feetAirTimeStep"]))
        self.air_time.copy_(air_time)
        gait = rough_walking.Gait(
            base=self.base,
            base_height=self.root_states[:, 2],
            commands=self.commands,
            dof_offset=self.dof_pos - self.default_dof_pos,
            dof_vel=self.dof_vel,
            last_dof_vel=self.last_dof_vel,
            actions=self.actions,
            last_actions=self.last_actions,
            torques=self.dof_forces,
            knee_forces=self.contact_forces.index_select(1, self.knee_bodies),
            foot_forces=foot_forces,
            swing=swing,
        )
        torch.clamp(self.sum_terms(rough_walking.reward_terms(gait, self.weights)), min=0.0, out=self.rew_buf)
        self.measure({"tracking_error": legged.velocity_error(self.commands, self.base.linear)})
        failed = (self.reset_buf != 0) & ~(self.expired if "Q4" not in self.quirks else self.timeout_buf)
        self.rew_buf += failed * float(self.learn["terminalReward"])
        self.rew_buf.masked_fill_(self.broken, 0.0)
        self.episodes.drop(self.broken)

    def compute_observations(self) -> None:
        """Fill `obs_buf`, with uniform noise if the config asks for it."""
        self._observe(slice(None), out=self.obs_buf)
        if self.learn["addNoise"]:
            self.obs_buf.addcmul_(torch.rand_like(self.obs_buf).mul_(2.0).sub_(1.0), self.noise)

    def _observe(self, rows: Any, out: Tensor | None = None) -> Tensor:
        base = legged.Base(*(part[rows] for part in self.base))
        root_states = self.root_states[rows]
        if out is None:
            out = torch.empty(len(root_states), self.num_observations, device=self.pipeline_device)
        clearance = root_states[:, 2:3] - self._scan_heights(root_states)
        return rough_walking.observations(
            base,
            self.commands[rows],
            self.dof_pos[rows],
            self.dof_vel[rows],
            clearance,
            self.actions[rows],
            self.scales,
            out,
        )

    def _scan_heights(self, root_states: Tensor) -> Tensor:
        """Ground heights (K, 140) at the scan points of robots with the given root states (K, 13)."""
        if not self.on_terrain:
            return torch.zeros(len(root_states), rough_walking.NUM_SCAN_POINTS, device=self.pipeline_device)
        points = turn_by_yaw(root_states[:, 3:7], self.scan) + root_states[:, None, :2]
        return heights_at(self.heights, points)

    def _outputs(self) -> tuple[dict[str, Tensor], Tensor, Tensor, dict[str, Any]]:
        outputs = super()._outputs()
        if self.terminal is not None:
            ids, terminal = self.terminal
            final = outputs[0]["obs"].clone()
            final[ids.to(self.rl_device)] = terminal.clamp(-self.clip_obs, self.clip_obs).to(self.rl_device)
            self.extras["final_obs"] = final
        return outputs

    # ---- resets ----------------------------------------------------------------------------------------------

    def reset_idx(self, env_ids: Tensor) -> None:
        """Start pose on the tile of the env's level, random joints, new commands."""
        if self.ready and self.on_terrain and self.curriculum:
            self._move_levels(env_ids)
        self.reset_joints(env_ids)
        k = len(env_ids)
        self.root_states[env_ids] = self.start_state
        if self.on_terrain:
            self.root_states[env_ids, :3] += self.env_origins[env_ids]
            self.root_states[env_ids, :2] += self.uniform(-0.5, 0.5, k, 2)
        self._write_root_states(env_ids)
        self._draw_commands(env_ids)
        self.last_actions[env_ids] = 0.0
        self.last_dof_vel[env_ids] = 0.0
        self.air_time[env_ids] = 0.0

    def _write_root_states(self, env_ids: Tensor) -> None:
        """Write the roots of `env_ids`, or of all envs once after a push."""
        states = gymtorch.unwrap_tensor(self.root_states)
        if self.push_pending:
            self.gym.set_actor_root_state_tensor(self.sim, states)
            self.push_pending = False
            return
        actors = gymtorch.unwrap_tensor(env_ids.to(torch.int32))
        self.gym.set_actor_root_state_tensor_indexed(self.sim, states, actors, len(env_ids))

    def _draw_commands(self, env_ids: Tensor) -> None:
        """New forward and sideways velocity and heading; small velocities turn the whole command to 0."""
        ranges = self.cfg["env"]["randomCommandVelocityRanges"]
        for column, name in ((0, "linear_x"), (1, "linear_y"), (3, "yaw")):
            low, high = ranges[name]
            self.commands[env_ids, column] = self.uniform(float(low), float(high), len(env_ids))
        speed = torch.linalg.vector_norm(self.commands[env_ids, :2], dim=1, keepdim=True)
        self.commands[env_ids] *= speed > 0.25

    def _move_levels(self, env_ids: Tensor) -> None:
        """Promote robots that came far, demote those that fell behind their command."""
        distance = torch.linalg.vector_norm(self.root_states[env_ids, :2] - self.env_origins[env_ids, :2], dim=1)
        speed = demotion_speed(self.commands[env_ids], per_env="Q20" not in self.quirks)
        demoted = distance < speed * self.max_episode_length_s * 0.25
        promoted = distance > PROMOTION_DISTANCE
        levels = next_levels(self.terrain_levels[env_ids], demoted, promoted, self.terrain.num_levels)
        self.terrain_levels[env_ids] = levels
        self.env_origins[env_ids] = self.tile_origins[levels, self.terrain_types[env_ids]]

    def episode_report(self) -> dict[str, Tensor]:
        """As `VecTask`, with the mean terrain level of all envs."""
        return {**super().episode_report(), "terrain_level": self.terrain_levels.float().mean()}

    # ---- snapshots -------------------------------------------------------------------------------------------

    def get_state(self) -> dict[str, Any]:
        """As `VecTask`, with the seed that terrain and friction were drawn from."""
        return {**super().get_state(), "world_seed": self.world_seed}

    def set_state(self, state: dict[str, Any]) -> None:
        """As `VecTask`.

        Raises:
            ValueError: terrain and friction were drawn from another seed.
        """
        if state["world_seed"] != self.world_seed:
            raise ValueError("terrain and friction differ from the saved run's: resume with the seed of the first run")
        super().set_state(state)
