# ruff: noqa: I001, F403, F405
"""Pick up a cube with damped least squares on the Jacobian."""

from isaacgym import gymapi, gymtorch
from isaacgym.torch_utils import *
from tasks.base import TEST_ASSETS, VecTask

import torch

CUBE = 0.04


def orientation_error(desired, current):
    """Rotation vector, for small errors, that turns current into desired."""
    q = quat_mul(desired, quat_conjugate(current))
    return 2.0 * q[:, :3] * torch.sign(q[:, 3]).unsqueeze(-1)


class Pick(VecTask):
    num_obs = 1
    num_actions = 7

    def load_assets(self):
        options = gymapi.AssetOptions()
        options.fix_base_link = True
        options.disable_gravity = True
        options.armature = 0.01
        self.arm = self.gym.load_asset(self.sim, TEST_ASSETS, "arm_gripper.urdf", options)
        loose = gymapi.AssetOptions()
        loose.density = 1000
        self.cube = self.gym.create_box(self.sim, CUBE, CUBE, CUBE, loose)
        self.props = self.gym.get_asset_dof_properties(self.arm)
        self.props["driveMode"][:] = gymapi.DOF_MODE_POS
        self.props["stiffness"][:5] = 400.0
        self.props["damping"][:5] = 40.0
        self.props["stiffness"][5:] = 800.0
        self.props["damping"][5:] = 40.0

    def fill_env(self, env, i):
        self.handle = self.gym.create_actor(env, self.arm, gymapi.Transform(), "arm", i, 1)
        self.gym.set_actor_dof_properties(env, self.handle, self.props)
        start = np.zeros(7, gymapi.DofState.dtype)
        start["pos"] = [0.0, 0.5, 1.2, 1.3, 0.0, 0.04, 0.04]
        self.gym.set_actor_dof_states(env, self.handle, start, gymapi.STATE_ALL)
        pose = gymapi.Transform(gymapi.Vec3(0.42 + 0.02 * i, 0.03 * i - 0.05, 0.5 * CUBE))
        self.gym.create_actor(env, self.cube, pose, "cube", i, 2)

    def acquire(self):
        super().acquire()
        jacobian = gymtorch.wrap_tensor(self.gym.acquire_jacobian_tensor(self.sim, "arm"))
        assert jacobian.shape == (self.num_envs, 7, 6, 7)
        row = self.gym.get_actor_joint_dict(self.envs[0], self.handle)["joint5_roll"]
        self.jacobian = jacobian[:, row, :, :5]
        self.hand = self.gym.find_actor_rigid_body_handle(self.envs[0], self.handle, "hand")
        self.cube_body = self.gym.find_actor_rigid_body_index(self.envs[0], 1, "box", gymapi.DOMAIN_ENV)
        self.down = to_torch([0.0, 1.0, 0.0, 0.0], device=self.device).repeat(self.num_envs, 1)
        self.targets = self.dof_pos.clone()

    def move(self, goal, width, steps):
        """Move the point between the finger tips to goal (n, 3), fingers at width."""
        reach = to_torch([0.0, 0.0, 0.08], device=self.device).repeat(self.num_envs, 1)
        for _ in range(steps):
            self.gym.refresh_jacobian_tensors(self.sim)
            hand = self.rigid_body_states[:, self.hand]
            tip = hand[:, :3] + quat_apply(hand[:, 3:7], reach)
            error = torch.cat([goal - tip, orientation_error(self.down, hand[:, 3:7])], dim=-1).unsqueeze(-1)
            transposed = self.jacobian.transpose(1, 2)
            damping = torch.eye(6, device=self.device) * 0.05**2
            change = transposed @ torch.inverse(self.jacobian @ transposed + damping) @ error
            self.targets[:, :5] = self.dof_pos[:, :5] + 0.5 * change.squeeze(-1)
            self.targets[:, 5:] = width
            self.gym.set_dof_position_target_tensor(self.sim, gymtorch.unwrap_tensor(self.targets))
            self.step(torch.zeros(self.num_envs, 7))
        hand = self.rigid_body_states[:, self.hand]
        return hand[:, :3] + quat_apply(hand[:, 3:7], reach)


task = Pick()
cube = task.root_states[:, 1, :3].clone()
above = cube + torch.tensor([0.0, 0.0, 0.12])
tip = task.move(above, 0.04, 60)
assert float((tip - above).norm(dim=-1).max()) < 0.01, tip - above
tip = task.move(cube, 0.04, 40)
assert float((tip - cube).norm(dim=-1).max()) < 0.01, tip - cube
task.move(cube, 0.0, 20)
assert torch.allclose(task.dof_pos[:, 5:], torch.tensor(CUBE / 2), atol=2e-3), task.dof_pos[:, 5:]
tip = task.move(above, 0.0, 60)
assert torch.allclose(task.root_states[:, 1, 2], tip[:, 2], atol=0.01), (task.root_states[:, 1, :3], tip)
assert float(task.root_states[:, 1, 2].min()) > 0.12
task.close()
print("ok: arm_jacobian")
