# ruff: noqa: I001, F403, F405
"""A hand whose last finger joints have no motor: tendons couple them to their neighbours."""

from isaacgym import gymapi, gymtorch
from isaacgym.torch_utils import *
from tasks.base import ASSETS, VecTask

import torch

COUPLED = ["robot0:T_FFJ1c", "robot0:T_MFJ1c", "robot0:T_RFJ1c", "robot0:T_LFJ1c"]


class Hand(VecTask):
    num_actions = 20

    def load_assets(self):
        options = gymapi.AssetOptions()
        options.fix_base_link = True
        options.disable_gravity = True
        options.thickness = 0.001
        options.angular_damping = 0.01
        options.use_physx_armature = True
        options.default_dof_drive_mode = gymapi.DOF_MODE_NONE
        self.asset = self.gym.load_asset(self.sim, ASSETS, "shadow_hand/shadow_hand.xml", options)
        gym, asset = self.gym, self.asset
        tendons = gym.get_asset_tendon_properties(asset)
        for i in range(gym.get_asset_tendon_count(asset)):
            if gym.get_asset_tendon_name(asset, i) in COUPLED:
                tendons[i].limit_stiffness = 30
                tendons[i].damping = 0.1
        gym.set_asset_tendon_properties(asset, tendons)
        motors = [gym.get_asset_actuator_joint_name(asset, i) for i in range(gym.get_asset_actuator_count(asset))]
        self.actuated = [gym.find_asset_dof_index(asset, name) for name in motors]
        self.lower = to_torch(gym.get_asset_dof_properties(asset)["lower"], device=self.device)
        self.upper = to_torch(gym.get_asset_dof_properties(asset)["upper"], device=self.device)
        assert len(self.actuated) == 20
        assert gym.get_asset_dof_count(asset) == 24

    def fill_env(self, env, i):
        pose = gymapi.Transform(gymapi.Vec3(0.0, 0.0, 0.5))
        hand = self.gym.create_actor(env, self.asset, pose, "hand", i, -1, 0)
        assert self.gym.get_actor_tendon_count(env, hand) == 4
        props = self.gym.get_actor_dof_properties(env, hand)
        assert int((props["driveMode"] == gymapi.DOF_MODE_POS).sum()) == 20  # the file's position actuators say so

    def pre_physics_step(self, actions):
        targets = torch.zeros((self.num_envs, 24), device=self.device)
        targets[:, self.actuated] = scale(actions, self.lower[self.actuated], self.upper[self.actuated])
        self.gym.set_dof_position_target_tensor(self.sim, gymtorch.unwrap_tensor(targets))


task = Hand(num_envs=2)
names = task.gym.get_asset_dof_names(task.asset)
first = [names.index(f"robot0:{finger}FJ1") for finger in "FMRL"]
last = [names.index(f"robot0:{finger}FJ0") for finger in "FMRL"]
actions = torch.zeros(2, 20)
for bend in (0.2, -0.8):
    for row, dof in enumerate(task.actuated):
        actions[:, row] = bend if dof in first else unscale(torch.zeros(1), task.lower[dof], task.upper[dof])
    for _ in range(90):
        task.step(actions)
    wanted = scale(torch.tensor(bend), task.lower[first], task.upper[first])
    assert torch.allclose(task.dof_pos[:, first], wanted.expand(2, 4), atol=0.02), task.dof_pos[:, first]
    length = 0.00705 * task.dof_pos[:, last] - 0.00805 * task.dof_pos[:, first]
    assert float(length.abs().max()) < 0.001 + 1e-5, length
assert float(task.dof_pos[:, last].min()) > 0.03  # pulled along, not left behind
task.close()
print("ok: tendon_hand")
