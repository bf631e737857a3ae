# ruff: noqa: I001, F403, F405
"""Ants on ice with a force sensor in each foot and sensors in the joints."""

from isaacgym import gymapi, gymtorch
from isaacgym.torch_utils import *
from tasks.base import ASSETS, VecTask

import torch

STIFFNESS = 20.0


class Ant(VecTask):
    num_actions = 8
    spacing = 2.0
    ground_friction = 0.0  # else the feet, held by the ground, would carry the torso like an arch

    def load_assets(self):
        options = gymapi.AssetOptions()
        options.default_dof_drive_mode = gymapi.DOF_MODE_NONE
        options.angular_damping = 0.0
        self.asset = self.gym.load_asset(self.sim, ASSETS, "ant/ant.xml", options)
        names = self.gym.get_asset_rigid_body_names(self.asset)
        self.feet = [i for i, name in enumerate(names) if "foot" in name]
        for foot in self.feet:
            assert self.gym.create_asset_force_sensor(self.asset, foot, gymapi.Transform()) >= 0
        shapes = self.gym.get_asset_rigid_shape_properties(self.asset)
        for shape in shapes:
            shape.friction = 0.0
        self.gym.set_asset_rigid_shape_properties(self.asset, shapes)
        motors = self.gym.get_asset_actuator_properties(self.asset)
        self.effort = to_torch([motor.motor_effort for motor in motors], device=self.device)

    def fill_env(self, env, i):
        actor = self.gym.create_actor(env, self.asset, gymapi.Transform(gymapi.Vec3(0, 0, 0.6)), "ant", i, 1, 0)
        self.gym.enable_actor_dof_force_sensors(env, actor)
        props = self.gym.get_actor_dof_properties(env, actor)
        # Ankles bent to the middle of their range, held by springs.
        start = np.zeros(8, gymapi.DofState.dtype)
        start["pos"] = np.where(props["lower"] * props["upper"] > 0, 0.5 * (props["lower"] + props["upper"]), 0.0)
        self.gym.set_actor_dof_states(env, actor, start, gymapi.STATE_POS)
        props["driveMode"].fill(gymapi.DOF_MODE_POS)
        props["stiffness"].fill(STIFFNESS)
        props["damping"].fill(1.0)
        self.gym.set_actor_dof_properties(env, actor, props)
        self.stand = start["pos"]

    def acquire(self):
        sensors = gymtorch.wrap_tensor(self.gym.acquire_force_sensor_tensor(self.sim))
        assert sensors.shape == (4 * self.num_envs, 6)
        assert self.gym.get_sim_force_sensor_count(self.sim) == len(sensors)
        self.sensors = sensors.view(self.num_envs, 4, 6)
        self.joint_forces = gymtorch.wrap_tensor(self.gym.acquire_dof_force_tensor(self.sim)).view(self.num_envs, 8)
        super().acquire()

    def refresh(self):
        super().refresh()
        self.gym.refresh_force_sensor_tensor(self.sim)
        self.gym.refresh_dof_force_tensor(self.sim)

    def pre_physics_step(self, actions):
        targets = to_torch(self.stand, device=self.device).repeat(self.num_envs, 1)
        self.gym.set_dof_position_target_tensor(self.sim, gymtorch.unwrap_tensor(targets + 0.5 * actions))


task = Ant(num_envs=2)
assert float(task.sensors.abs().max()) == 0.0
assert task.effort.tolist() == [15.0] * 8
weight = sum(body.mass for body in task.gym.get_actor_rigid_body_properties(task.envs[0], 0)) * 9.81
peak = 0.0
for _ in range(120):
    task.step(torch.zeros(2, 8))
    peak = max(peak, float(task.sensors[..., :3].norm(dim=-1).max()))
standing = task.contact_forces[:, task.feet].sum(dim=1)
assert torch.allclose(standing[:, 2], torch.tensor(weight), rtol=0.05), (standing, weight)
# At rest a sensor balances; when the ant landed it felt a kick.
assert float(task.sensors[..., :3].norm(dim=-1).max()) < 0.05 * weight, task.sensors
assert peak > 0.05 * weight, (peak, weight)
# The springs of the ankles carry the ant: what pushes the tip of a foot up bends its ankle, less the foot's own weight.
ankles = [1, 3, 5, 7]
deflection = to_torch(task.stand)[ankles] - task.dof_pos[:, ankles]
torque = task.joint_forces[:, ankles]
assert torch.allclose(torque, STIFFNESS * deflection, rtol=0.05, atol=0.02), (torque, deflection)
tips = to_torch([[0.4, 0.4, 0.0], [-0.4, 0.4, 0.0], [-0.4, -0.4, 0.0], [0.4, -0.4, 0.0]], device=task.device)
state = task.rigid_body_states[:, task.feet]
arm = quat_apply(state[..., 3:7], tips.repeat(2, 1, 1))[..., :2].norm(dim=-1)
foot = task.gym.get_actor_rigid_body_properties(task.envs[0], 0)[task.feet[0]].mass * 9.81
expected = (task.contact_forces[:, task.feet, 2] - 0.5 * foot) * arm
assert torch.allclose(torque.abs(), expected, rtol=0.05), (torque, expected)
task.close()
print("ok: force_sensors")
