# ruff: noqa: I001, N801, D106, F403, F405
"""A robot with torque control: one class of many, told apart by its configuration."""

from isaacgym.torch_utils import *
from isaacgym import gymtorch, gymapi, gymutil

import os
import sys

import numpy as np
import torch

from .config import class_to_dict

LEGACY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TEST_ASSETS = os.path.join(LEGACY, "assets")
ASSETS = os.path.join(LEGACY, "..", "..", "assets")


def get_args(headless=True):
    args = gymutil.parse_arguments(
        description="legged robots",
        headless=True,
        custom_parameters=[{"name": "--num_envs", "type": int, "default": 0, "help": "overrides the configuration"}],
    )
    args.headless |= headless
    args.sim_device = args.sim_device_type
    if args.sim_device_type == "cuda":
        args.sim_device += ":" + str(args.compute_device_id)
    return args


class LeggedRobot:
    def __init__(self, cfg, args=None):
        self.cfg = cfg
        args = get_args() if args is None else args
        self.gym = gymapi.acquire_gym()
        self.sim_params = gymapi.SimParams()
        self.sim_params.use_gpu_pipeline = args.use_gpu_pipeline
        self.sim_params.physx.use_gpu = args.use_gpu
        self.sim_params.physx.num_subscenes = args.subscenes
        gymutil.parse_sim_config(class_to_dict(cfg.sim), self.sim_params)
        self.device = args.sim_device if self.sim_params.use_gpu_pipeline else "cpu"
        self.num_envs = args.num_envs or cfg.env.num_envs
        self.dt = cfg.control.decimation * self.sim_params.dt
        self.max_episode_length = np.ceil(cfg.env.episode_length_s / self.dt)
        graphics = -1 if args.headless else args.graphics_device_id
        self.sim = self.gym.create_sim(args.compute_device_id, graphics, args.physics_engine, self.sim_params)
        self._create_terrain()
        self._create_envs()
        self.gym.prepare_sim(self.sim)
        self.enable_viewer_sync = True
        self.viewer = None
        if not args.headless:
            self.viewer = self.gym.create_viewer(self.sim, gymapi.CameraProperties())
            self.gym.subscribe_viewer_keyboard_event(self.viewer, gymapi.KEY_ESCAPE, "QUIT")
            self.gym.subscribe_viewer_keyboard_event(self.viewer, gymapi.KEY_V, "toggle_viewer_sync")
        self._init_buffers()

    # scene
    def _create_terrain(self):
        plane_params = gymapi.PlaneParams()
        plane_params.normal = gymapi.Vec3(0.0, 0.0, 1.0)
        plane_params.static_friction = self.cfg.terrain.static_friction
        plane_params.dynamic_friction = self.cfg.terrain.dynamic_friction
        plane_params.restitution = self.cfg.terrain.restitution
        self.gym.add_ground(self.sim, plane_params)

    def _get_env_origins(self):
        """Positions of the robots; the envs themselves have no extent and lie at the origin."""
        origins = torch.zeros(self.num_envs, 3, device=self.device, requires_grad=False)
        columns = int(np.floor(np.sqrt(self.num_envs)))
        rows = int(np.ceil(self.num_envs / columns))
        xx, yy = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        origins[:, 0] = self.cfg.env.spacing * xx.flatten()[: self.num_envs]
        origins[:, 1] = self.cfg.env.spacing * yy.flatten()[: self.num_envs]
        return origins

    def _asset_options(self):
        options = gymapi.AssetOptions()
        options.default_dof_drive_mode = self.cfg.asset.default_dof_drive_mode
        options.collapse_fixed_joints = True
        options.replace_cylinder_with_capsule = True
        options.flip_visual_attachments = True
        options.fix_base_link = self.cfg.asset.fix_base_link
        options.density = 0.001
        options.angular_damping = 0.0
        options.linear_damping = 0.0
        options.max_angular_velocity = 1000.0
        options.max_linear_velocity = 1000.0
        options.armature = 0.0
        options.thickness = 0.01
        options.disable_gravity = False
        return options

    def _create_envs(self):
        cfg = self.cfg
        asset = self.gym.load_asset(self.sim, cfg.asset.folder or ASSETS, cfg.asset.file, self._asset_options())
        self.num_dof = self.gym.get_asset_dof_count(asset)
        self.num_bodies = self.gym.get_asset_rigid_body_count(asset)
        self.dof_names = self.gym.get_asset_dof_names(asset)
        self.body_names = self.gym.get_asset_rigid_body_names(asset)
        dof_props_asset = self.gym.get_asset_dof_properties(asset)
        rigid_shape_props_asset = self.gym.get_asset_rigid_shape_properties(asset)
        state = cfg.init_state
        self.base_init_state = to_torch(state.pos + state.rot + state.lin_vel + state.ang_vel, device=self.device)
        self.env_origins = self._get_env_origins()
        self.envs, self.actor_handles = [], []
        for i in range(self.num_envs):
            env = self.gym.create_env(self.sim, gymapi.Vec3(0, 0, 0), gymapi.Vec3(0, 0, 0), int(np.sqrt(self.num_envs)))
            start_pose = gymapi.Transform()
            start_pose.p = gymapi.Vec3(*(self.env_origins[i] + self.base_init_state[:3]))
            shape_props = self._process_rigid_shape_props(rigid_shape_props_asset, i)
            self.gym.set_asset_rigid_shape_properties(asset, shape_props)
            actor = self.gym.create_actor(env, asset, start_pose, cfg.asset.name, i, cfg.asset.self_collisions, 0)
            self.gym.set_actor_dof_properties(env, actor, self._process_dof_props(dof_props_asset, i))
            body_props = self._process_rigid_body_props(self.gym.get_actor_rigid_body_properties(env, actor), i)
            self.gym.set_actor_rigid_body_properties(env, actor, body_props, recomputeInertia=True)
            self.envs.append(env)
            self.actor_handles.append(actor)

    def _process_rigid_shape_props(self, props, env_id):
        return props

    def _process_rigid_body_props(self, props, env_id):
        return props

    def _process_dof_props(self, props, env_id):
        if env_id == 0:
            self.dof_pos_limits = to_torch(np.stack([props["lower"], props["upper"]], axis=-1), device=self.device)
            self.torque_limits = to_torch(props["effort"], device=self.device)
        return props

    # buffers and steps
    def _init_buffers(self):
        gym, sim = self.gym, self.sim
        self.root_states = gymtorch.wrap_tensor(gym.acquire_actor_root_state_tensor(sim))
        self.dof_state = gymtorch.wrap_tensor(gym.acquire_dof_state_tensor(sim))
        contact_forces = gymtorch.wrap_tensor(gym.acquire_net_contact_force_tensor(sim))
        self.contact_forces = contact_forces.view(self.num_envs, -1, 3)
        self.base_quat = self.root_states[:, 3:7]
        self.dof_pos = self.dof_state.view(self.num_envs, self.num_dof, 2)[..., 0]
        self.dof_vel = self.dof_state.view(self.num_envs, self.num_dof, 2)[..., 1]
        self.gravity_vec = to_torch(get_axis_params(-1.0, 2), device=self.device).repeat((self.num_envs, 1))
        self.p_gains = torch.zeros(self.num_dof, dtype=torch.float, device=self.device)
        self.d_gains = torch.zeros(self.num_dof, dtype=torch.float, device=self.device)
        self.torques = torch.zeros(self.num_envs, self.num_dof, dtype=torch.float, device=self.device)
        self.default_dof_pos = torch.zeros(self.num_dof, dtype=torch.float, device=self.device)
        for i, name in enumerate(self.dof_names):
            self.default_dof_pos[i] = self.cfg.init_state.default_joint_angles.get(name, 0.0)
            for part in self.cfg.control.stiffness:
                if part in name:
                    self.p_gains[i] = self.cfg.control.stiffness[part]
                    self.d_gains[i] = self.cfg.control.damping[part]
        self.reset_idx(torch.arange(self.num_envs, device=self.device))

    def refresh(self):
        self.gym.refresh_actor_root_state_tensor(self.sim)
        self.gym.refresh_dof_state_tensor(self.sim)
        self.gym.refresh_net_contact_force_tensor(self.sim)
        self.projected_gravity = quat_rotate_inverse(self.base_quat, self.gravity_vec)

    def reset_idx(self, env_ids):
        ids = env_ids.to(dtype=torch.int32)
        self.dof_pos[env_ids] = self.default_dof_pos
        self.dof_vel[env_ids] = 0.0
        if self.num_dof:
            self.gym.set_dof_state_tensor_indexed(
                self.sim, gymtorch.unwrap_tensor(self.dof_state), gymtorch.unwrap_tensor(ids), len(ids)
            )
        self.root_states[env_ids] = self.base_init_state
        self.root_states[env_ids, :3] += self.env_origins[env_ids]
        self.gym.set_actor_root_state_tensor_indexed(
            self.sim, gymtorch.unwrap_tensor(self.root_states), gymtorch.unwrap_tensor(ids), len(ids)
        )

    def step(self, actions):
        self.render()
        for _ in range(self.cfg.control.decimation):
            if self.num_dof:
                self.torques = self._compute_torques(actions).view(self.torques.shape)
                self.gym.set_dof_actuation_force_tensor(self.sim, gymtorch.unwrap_tensor(self.torques))
            self.gym.simulate(self.sim)
            if self.device == "cpu":
                self.gym.fetch_results(self.sim, True)
            self.gym.refresh_dof_state_tensor(self.sim)
        self.refresh()

    def _compute_torques(self, actions):
        targets = actions * self.cfg.control.action_scale + self.default_dof_pos
        torques = self.p_gains * (targets - self.dof_pos) - self.d_gains * self.dof_vel
        return torch.clip(torques, -self.torque_limits, self.torque_limits)

    def render(self, sync_frame_time=True):
        if self.viewer is None:
            return
        if self.gym.query_viewer_has_closed(self.viewer):
            sys.exit()
        for evt in self.gym.query_viewer_action_events(self.viewer):
            if evt.action == "QUIT" and evt.value > 0:
                sys.exit()
        self.gym.step_graphics(self.sim)
        self.gym.draw_viewer(self.viewer, self.sim, True)
        if sync_frame_time:
            self.gym.sync_frame_time(self.sim)

    def weight(self, env_id):
        bodies = self.gym.get_actor_rigid_body_properties(self.envs[env_id], self.actor_handles[env_id])
        return 9.81 * sum(body.mass for body in bodies)

    def close(self):
        self.gym.destroy_sim(self.sim)
