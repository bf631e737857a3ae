# ruff: noqa: I001, N801, D106
"""GPU-pipeline flag false: tensors on the CPU, a robot dropped, and resets that are visible at once."""

from isaacgym import gymutil
from robots.config import AnymalCfg
from robots.legged_robot import LeggedRobot, get_args

import torch


class Cfg(AnymalCfg):
    class env(AnymalCfg.env):
        num_envs = 2

    class init_state(AnymalCfg.init_state):
        pos = [0.0, 0.0, 2.0]

    class asset(AnymalCfg.asset):
        self_collisions = 1


args = get_args()
args.use_gpu_pipeline = False
args.sim_device = "cpu"
assert gymutil.parse_device_str("cpu") == ("cpu", 0)
robot = LeggedRobot(Cfg, args)
assert not robot.sim_params.use_gpu_pipeline
assert robot.device == "cpu"
for tensor in (robot.root_states, robot.dof_state, robot.contact_forces):
    assert tensor.device.type == "cpu"
    assert tensor.is_contiguous()
zero = torch.zeros(2, robot.num_dof)

# Free fall for 0.2 s. The legs hold their pose, so the base falls with the whole.
for _ in range(10):
    robot.step(zero)
steps = 40
fallen = 9.81 * 0.005**2 * steps * (steps + 1) / 2
assert torch.allclose(robot.root_states[:, 2], torch.tensor(2.0 - fallen), atol=2e-3), robot.root_states[:, 2]
assert torch.allclose(robot.root_states[:, 9], torch.tensor(-9.81 * 0.2), atol=0.02)
assert float(robot.contact_forces.abs().max()) == 0.0

# A reset of robot 1 is there at the next refresh, without a step; robot 0 goes on falling.
before = robot.root_states[0].clone()
robot.reset_idx(torch.tensor([1]))
robot.refresh()
assert torch.equal(robot.root_states[0], before)
assert torch.allclose(robot.root_states[1, :3], torch.tensor([3.0, 0.0, 2.0]))
assert float(robot.root_states[1, 7:].abs().max()) == 0.0
for _ in range(100):
    robot.step(zero)
force = robot.contact_forces.sum(dim=1)[:, 2]
assert torch.allclose(force, torch.tensor(robot.weight(0)), rtol=0.05), (force, robot.weight(0))
robot.close()
print("ok: cpu_pipeline")
