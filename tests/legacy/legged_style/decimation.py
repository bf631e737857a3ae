# ruff: noqa: I001, N801, D106
"""Torque control at four times the rate of the policy: a pendulum held level by a spring made of torques."""

from robots.config import RobotCfg
from robots.legged_robot import LeggedRobot, TEST_ASSETS

import torch

LEVEL = 7.848  # m g l of the rod lying level


class Cfg(RobotCfg):
    class init_state(RobotCfg.init_state):
        pos = [0.0, 0.0, 0.0]

    class control(RobotCfg.control):
        stiffness = {"hinge": 30.0}
        damping = {"hinge": 2.0}
        action_scale = 0.5
        decimation = 4

    class asset(RobotCfg.asset):
        folder = TEST_ASSETS
        file = "pendulum.urdf"
        name = "pendulum"
        fix_base_link = True


class Pendulum(LeggedRobot):
    calls = 0

    def _compute_torques(self, actions):
        self.calls += 1
        return super()._compute_torques(actions)


class Slow(Cfg):
    class control(Cfg.control):
        decimation = 1

    class sim(Cfg.sim):
        dt = 0.02


robot = Pendulum(Cfg)
assert abs(robot.dt - 0.02) < 1e-9
actions = torch.tensor([[0.0], [1.0], [-1.0], [2.0]], device=robot.device)
for _ in range(150):
    robot.step(actions)
assert robot.calls == 600
assert robot.gym.get_frame_count(robot.sim) == 600
assert abs(robot.gym.get_sim_time(robot.sim) - 3.0) < 1e-6
# Rest: the spring's torque balances gravity.
spring = 30.0 * (0.5 * actions - robot.dof_pos)
assert torch.allclose(spring, LEVEL * torch.cos(robot.dof_pos), rtol=0.01), (spring, robot.dof_pos)
assert torch.allclose(robot.torques, spring, atol=0.02)
# An action out of reach: the torque stops at the effort limit of the file.
robot.step(torch.full((4, 1), 100.0, device=robot.device))
assert bool((robot.torques == 20.0).all())
robot.close()

# Stiff torques that are stable at 5 ms are not at 20 ms: the decimation matters.
rough = []
for cfg in (Cfg, Slow):
    cfg.control.stiffness, cfg.control.damping = {"hinge": 300.0}, {"hinge": 100.0}
    robot = Pendulum(cfg)
    for _ in range(50):
        robot.step(torch.zeros(4, 1, device=robot.device))
    rough.append(float(robot.dof_vel.abs().max()))
    robot.close()
assert rough[0] < 0.01, rough
assert rough[1] > 0.3, rough
print("ok: decimation")
