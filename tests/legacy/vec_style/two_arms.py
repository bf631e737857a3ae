# ruff: noqa: I001, F403, F405
"""Two articulations in one env: an arm that holds a pose and a cart with a pole, each driven by actor index."""

from isaacgym import gymapi, gymtorch
from isaacgym.torch_utils import *
from tasks.base import ASSETS, TEST_ASSETS, VecTask

import torch

PUSH = 3.0


class Pair(VecTask):
    num_actions = 9
    substeps = 16  # momentum of the swinging pole: the error falls with the step

    def load_assets(self):
        options = gymapi.AssetOptions()
        options.fix_base_link = True
        options.disable_gravity = True
        self.arm = self.gym.load_asset(self.sim, TEST_ASSETS, "arm_gripper.urdf", options)
        plain = gymapi.AssetOptions()
        plain.fix_base_link = True
        self.cart = self.gym.load_asset(self.sim, ASSETS, "cartpole/cartpole.urdf", plain)
        self.arms, self.carts = [], []

    def fill_env(self, env, i):
        pose = gymapi.Transform(p=gymapi.Vec3(0.0, 0.0, 2.0))
        cart = self.gym.create_actor(env, self.cart, pose, "cart", i, 1)
        props = self.gym.get_actor_dof_properties(env, cart)
        props["driveMode"] = (gymapi.DOF_MODE_EFFORT, gymapi.DOF_MODE_NONE)
        props["stiffness"].fill(0.0)
        props["damping"].fill(0.0)
        self.gym.set_actor_dof_properties(env, cart, props)
        arm = self.gym.create_actor(env, self.arm, gymapi.Transform(p=gymapi.Vec3(1.0, 0.0, 0.0)), "arm", i, 1)
        props = self.gym.get_actor_dof_properties(env, arm)
        props["driveMode"].fill(gymapi.DOF_MODE_POS)
        props["stiffness"].fill(300.0)
        props["damping"].fill(30.0)
        self.gym.set_actor_dof_properties(env, arm, props)
        self.carts.append(self.gym.get_actor_index(env, cart, gymapi.DOMAIN_SIM))
        self.arms.append(self.gym.find_actor_index(env, "arm", gymapi.DOMAIN_SIM))

    def indexed(self, setter, tensor, actors):
        ids = to_torch(actors, dtype=torch.int32, device=self.device)
        assert setter(self.sim, gymtorch.unwrap_tensor(tensor), gymtorch.unwrap_tensor(ids), len(ids))


task = Pair(num_envs=3)
gym = task.gym
assert (task.carts, task.arms) == ([0, 2, 4], [1, 3, 5])
assert gym.get_actor_dof_names(task.envs[0], 0) == ["slider_to_cart", "cart_to_pole"]
assert gym.find_actor_dof_handle(task.envs[1], 1, "joint1_yaw") == 2

# Arms of envs 0 and 2 get a target; the garbage in the cart's columns must not matter.
targets = torch.full((3, 9), 77.0, device=task.device)
targets[:, 2:] = to_torch([0.4, 0.3, 0.5, -0.3, 0.2, 0.01, 0.02])
task.indexed(gym.set_dof_position_target_tensor_indexed, targets, [task.arms[0], task.arms[2]])
forces = torch.full((3, 9), 55.0, device=task.device)
forces[:, 0], forces[:, 1] = PUSH, 0.0
task.indexed(gym.set_dof_actuation_force_tensor_indexed, forces, task.carts)
for _ in range(60):
    task.step(torch.zeros(3, 9))
assert torch.allclose(task.dof_pos[0, 2:], targets[0, 2:], atol=5e-3), task.dof_pos[0]
assert torch.allclose(task.dof_pos[2, 2:], targets[2, 2:], atol=5e-3)
assert float(task.dof_pos[1, 2:].abs().max()) < 1e-3

# Horizontal momentum of cart and pole: force times time, whatever the pole does.
masses = [body.mass for body in gym.get_actor_rigid_body_properties(task.envs[0], 0)]
momentum = masses[1] * task.rigid_body_states[:, 1, 8] + masses[2] * task.rigid_body_states[:, 2, 8]
assert torch.allclose(momentum, torch.tensor(PUSH * 1.0), rtol=0.02), momentum

# A reset of one cart leaves its arm and the other envs alone.
before = task.dof_state.clone().view(3, 9, 2)
fresh = torch.full((3, 9, 2), 33.0, device=task.device)
fresh[1, :2] = torch.tensor([[0.5, 0.0], [0.1, 0.0]])
task.indexed(gym.set_dof_state_tensor_indexed, fresh, [task.carts[1]])
task.refresh()
after = task.dof_state.view(3, 9, 2)
assert torch.allclose(after[1, :2], fresh[1, :2])
assert torch.equal(after[0], before[0])
assert torch.equal(after[2], before[2])
assert torch.equal(after[1, 2:], before[1, 2:])
task.close()
print("ok: two_arms")
