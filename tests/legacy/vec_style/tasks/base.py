# ruff: noqa: I001, F403, F405
"""A vectorised task of the kind that projects of 2021 carried with them."""

import os

from isaacgym import gymapi, gymtorch
from isaacgym.torch_utils import *

import gym
from gym import spaces
import numpy as np
import torch

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))
TEST_ASSETS = os.path.join(ROOT, "tests", "legacy", "assets")
ASSETS = os.path.join(ROOT, "assets")


class VecTask(gym.Env):
    num_obs = 1
    num_actions = 1
    dt = 1.0 / 60.0
    substeps = 2
    spacing = 1.5
    ground_friction = 1.0
    max_episode_length = 1000

    def __init__(self, num_envs=4, device="cuda:0"):
        self.device = device
        self.num_envs = num_envs
        self.gym = gymapi.acquire_gym()
        self.obs_space = spaces.Box(np.ones(self.num_obs) * -np.Inf, np.ones(self.num_obs) * np.Inf, dtype=np.float)
        self.act_space = spaces.Box(np.ones(self.num_actions) * -1.0, np.ones(self.num_actions), dtype=np.float32)
        self.obs_buf = torch.zeros((num_envs, self.num_obs), device=device, dtype=torch.float)
        self.rew_buf = torch.zeros(num_envs, device=device, dtype=torch.float)
        self.reset_buf = torch.ones(num_envs, device=device, dtype=torch.long)
        self.progress_buf = torch.zeros(num_envs, device=device, dtype=torch.long)

        self.sim = self.gym.create_sim(0, -1, gymapi.SIM_PHYSX, self.sim_params())
        if self.sim is None:
            print("*** Failed to create sim")
            quit()
        plane = gymapi.PlaneParams()
        plane.normal = gymapi.Vec3(0.0, 0.0, 1.0)
        plane.static_friction = plane.dynamic_friction = self.ground_friction
        self.gym.add_ground(self.sim, plane)
        self.envs = []
        self.load_assets()
        lower = gymapi.Vec3(-self.spacing, -self.spacing, 0.0)
        upper = gymapi.Vec3(self.spacing, self.spacing, self.spacing)
        for i in range(num_envs):
            env = self.gym.create_env(self.sim, lower, upper, int(np.sqrt(num_envs)))
            self.fill_env(env, i)
            self.envs.append(env)
        self.gym.prepare_sim(self.sim)
        self.acquire()

    def sim_params(self):
        params = gymapi.SimParams()
        params.dt = self.dt
        params.substeps = self.substeps
        params.up_axis = gymapi.UP_AXIS_Z
        params.gravity = gymapi.Vec3(0.0, 0.0, -9.81)
        params.use_gpu_pipeline = self.device != "cpu"
        params.physx.use_gpu = True
        params.physx.solver_type = 1
        params.physx.num_position_iterations = 8
        params.physx.num_velocity_iterations = 1
        params.physx.contact_offset = 0.01
        params.physx.rest_offset = 0.0
        params.physx.max_gpu_contact_pairs = 2**20
        return params

    def acquire(self):
        gym, sim = self.gym, self.sim
        actors = gym.get_actor_count(self.envs[0])
        self.root_states = gymtorch.wrap_tensor(gym.acquire_actor_root_state_tensor(sim)).view(-1, actors, 13)
        bodies = gymtorch.wrap_tensor(gym.acquire_rigid_body_state_tensor(sim))
        self.rigid_body_states = bodies.view(self.num_envs, -1, 13)
        self.contact_forces = gymtorch.wrap_tensor(gym.acquire_net_contact_force_tensor(sim)).view(self.num_envs, -1, 3)
        self.dof_state = gymtorch.wrap_tensor(gym.acquire_dof_state_tensor(sim))
        self.num_dofs = gym.get_sim_dof_count(sim) // self.num_envs
        if self.num_dofs:
            self.dof_pos = self.dof_state.view(self.num_envs, self.num_dofs, 2)[..., 0]
            self.dof_vel = self.dof_state.view(self.num_envs, self.num_dofs, 2)[..., 1]
        self.refresh()

    def refresh(self):
        self.gym.refresh_actor_root_state_tensor(self.sim)
        self.gym.refresh_dof_state_tensor(self.sim)
        self.gym.refresh_rigid_body_state_tensor(self.sim)
        self.gym.refresh_net_contact_force_tensor(self.sim)

    def step(self, actions):
        self.pre_physics_step(torch.clamp(actions, -1.0, 1.0).to(self.device))
        self.gym.simulate(self.sim)
        if self.device == "cpu":
            self.gym.fetch_results(self.sim, True)
        self.progress_buf += 1
        self.refresh()
        self.post_physics_step()
        return self.obs_buf, self.rew_buf, self.reset_buf, {}

    def random_actions(self):
        return torch_rand_float(-1.0, 1.0, (self.num_envs, self.num_actions), device=self.device)

    def pre_physics_step(self, actions):
        pass

    def post_physics_step(self):
        pass

    def close(self):
        self.gym.destroy_sim(self.sim)
