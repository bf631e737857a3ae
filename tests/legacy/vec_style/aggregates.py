# ruff: noqa: I001, F403, F405
"""A vec-task with aggregates: an arm, a table and a ball in each env."""

from isaacgym import gymapi, gymtorch
from isaacgym.torch_utils import *
from tasks.base import TEST_ASSETS, VecTask

import torch

TABLE = (0.6, 0.8, 0.3)
RADIUS = 0.05


class Balance(VecTask):
    num_obs = 17
    num_actions = 7

    def load_assets(self):
        options = gymapi.AssetOptions()
        options.fix_base_link = True
        options.disable_gravity = True
        options.default_dof_drive_mode = int(gymapi.DOF_MODE_POS)
        self.arm = self.gym.load_asset(self.sim, TEST_ASSETS, "arm_gripper.urdf", options)
        fixed = gymapi.AssetOptions()
        fixed.fix_base_link = True
        self.table = self.gym.create_box(self.sim, *TABLE, fixed)
        loose = gymapi.AssetOptions()
        loose.density = 400
        self.ball = self.gym.create_sphere(self.sim, RADIUS, loose)
        self.dof_props = self.gym.get_asset_dof_properties(self.arm)
        self.dof_props["driveMode"].fill(gymapi.DOF_MODE_POS)
        self.dof_props["stiffness"].fill(400.0)
        self.dof_props["damping"].fill(40.0)
        self.lower = to_torch(self.dof_props["lower"], device=self.device)
        self.upper = to_torch(self.dof_props["upper"], device=self.device)

    def fill_env(self, env, i):
        assets = (self.arm, self.table, self.ball)
        bodies = sum(self.gym.get_asset_rigid_body_count(asset) for asset in assets)
        shapes = sum(self.gym.get_asset_rigid_shape_count(asset) for asset in assets)
        assert (bodies, shapes) == (10, 5)
        self.gym.begin_aggregate(env, bodies, shapes, True)
        arm = self.gym.create_actor(env, self.arm, gymapi.Transform(), "arm", i, 1, 0)
        self.gym.set_actor_dof_properties(env, arm, self.dof_props)
        pose = gymapi.Transform()
        pose.p = gymapi.Vec3(0.8, 0.0, 0.5 * TABLE[2])
        self.gym.create_actor(env, self.table, pose, "table", i, 0, 0)
        pose.p.z = TABLE[2] + RADIUS + 0.05
        ball = self.gym.create_actor(env, self.ball, pose, "ball", i, 0, 0)
        self.gym.set_rigid_body_color(env, ball, 0, gymapi.MESH_VISUAL_AND_COLLISION, gymapi.Vec3(1, 0, 0))
        self.gym.end_aggregate(env)

    def pre_physics_step(self, actions):
        # The arm moves above and behind the table only.
        self.targets = scale(0.1 * actions, self.lower, self.upper)
        self.gym.set_dof_position_target_tensor(self.sim, gymtorch.unwrap_tensor(self.targets))

    def post_physics_step(self):
        self.obs_buf[:, :7] = unscale(self.dof_pos, self.lower, self.upper)
        self.obs_buf[:, 7:14] = 0.1 * self.dof_vel
        self.obs_buf[:, 14:] = self.root_states[:, 2, :3]
        self.rew_buf[:], self.reset_buf[:] = ball_reward(
            self.root_states[:, 2, :3], self.progress_buf, TABLE[2], self.max_episode_length
        )


@torch.jit.script
def ball_reward(ball, progress, table: float, length: int):
    height = ball[:, 2] - table
    reward = torch.exp(-100.0 * torch.square(height - 0.05))
    done = torch.where(height < 0.0, torch.ones_like(progress), torch.zeros_like(progress))
    return reward, torch.where(progress >= length - 1, torch.ones_like(done), done)


task = Balance()
for _ in range(60):
    obs, reward, done, _ = task.step(task.random_actions())
assert obs.shape == (4, 17)
assert bool(torch.isfinite(obs).all())
assert int(done.sum()) == 0
assert torch.allclose(task.root_states[:, 2, 2], torch.tensor(TABLE[2] + RADIUS), atol=2e-3)
assert float(reward.min()) > 0.99
weight = 400 * 4 / 3 * np.pi * RADIUS**3 * 9.81
assert torch.allclose(task.contact_forces[:, -1, 2], torch.tensor(weight, dtype=torch.float), rtol=0.03)
for _ in range(60):
    task.step(torch.zeros(4, 7))
# The shoulder's range is symmetric, so that zero action means zero: the arm stands upright again.
assert float(task.dof_pos[:, :2].abs().max()) < 0.02
task.close()
print("ok: aggregates")
