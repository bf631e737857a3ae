# ruff: noqa: I001, F403, F405
"""Resets of sub-sets while the others go on: cart-poles with episodes of different lengths."""

from isaacgym import gymapi, gymtorch
from isaacgym.torch_utils import *
from tasks.base import ASSETS, VecTask

import torch


class CartPole(VecTask):
    num_obs = 4
    num_actions = 1

    def load_assets(self):
        options = gymapi.AssetOptions()
        options.fix_base_link = True
        self.asset = self.gym.load_asset(self.sim, ASSETS, "cartpole/cartpole.urdf", options)

    def fill_env(self, env, i):
        actor = self.gym.create_actor(env, self.asset, gymapi.Transform(gymapi.Vec3(0, 0, 2.0)), "cartpole", i, 1, 0)
        props = self.gym.get_actor_dof_properties(env, actor)
        props["driveMode"][:] = [gymapi.DOF_MODE_EFFORT, gymapi.DOF_MODE_NONE]
        props["stiffness"][:] = 0.0
        props["damping"][:] = 0.0
        self.gym.set_actor_dof_properties(env, actor, props)

    def reset_idx(self, env_ids):
        start = 0.1 * (torch.arange(self.num_envs, device=self.device, dtype=torch.float) + 1.0)
        self.dof_pos[env_ids, 0] = 0.0
        self.dof_pos[env_ids, 1] = start[env_ids]
        self.dof_vel[env_ids] = 0.0
        ids = env_ids.to(dtype=torch.int32)
        self.gym.set_dof_state_tensor_indexed(
            self.sim, gymtorch.unwrap_tensor(self.dof_state), gymtorch.unwrap_tensor(ids), len(ids)
        )
        self.reset_buf[env_ids] = 0
        self.progress_buf[env_ids] = 0

    def pre_physics_step(self, actions):
        forces = torch.zeros((self.num_envs, 2), device=self.device, dtype=torch.float)
        forces[:, 0] = 20.0 * actions.squeeze(-1)
        self.gym.set_dof_actuation_force_tensor(self.sim, gymtorch.unwrap_tensor(forces))

    def post_physics_step(self):
        ids = self.reset_buf.nonzero(as_tuple=False).squeeze(-1)
        if len(ids) > 0:
            self.reset_idx(ids)
        self.obs_buf[:] = torch.stack([self.dof_pos, self.dof_vel], dim=-1).view(self.num_envs, 4)


def rollout(lengths):
    """States after 45 steps with a reset of env i every lengths[i] steps (0: never)."""
    task = CartPole(num_envs=6)
    every = torch.tensor(lengths)
    history = []
    for step in range(45):
        if step == 0:
            task.reset_buf[:] = 1
        else:
            task.reset_buf[:] = torch.where(every > 0, task.progress_buf + 1 >= every, every > 0).long()
        action = torch.sin(torch.tensor(0.3 * step)).expand(6, 1)
        obs, _, _, _ = task.step(action)
        history.append(obs.clone())
    task.close()
    return torch.stack(history)


without = rollout([0, 0, 0, 0, 0, 0])
some = rollout([0, 7, 0, 10, 0, 0])
for env in (0, 2, 4, 5):
    assert torch.equal(without[:, env], some[:, env]), f"env {env} felt the resets of others"
# A reset env starts at its own angle, at rest, in the observation of the very step.
assert torch.allclose(some[7, 1], torch.tensor([0.0, 0.0, 0.2, 0.0]))
assert torch.allclose(some[14, 1], some[7, 1])
assert torch.allclose(some[20, 3], torch.tensor([0.0, 0.0, 0.4, 0.0]))
assert not torch.equal(some[19, 3], some[20, 3])
# The poles fall: away from the side where they lean.
assert float((without[20, :, 2] - without[0, :, 2]).min()) > 0.05
print("ok: soft_reset")
