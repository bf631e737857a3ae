# ruff: noqa: I001, N801, D106
"""Sleds with their own friction and mass in every env, both changed again while they run."""

from robots.config import RobotCfg
from robots.legged_robot import LeggedRobot, TEST_ASSETS

import numpy as np
import torch

SPEED = 2.0


class Cfg(RobotCfg):
    class env(RobotCfg.env):
        num_envs = 6

    class init_state(RobotCfg.init_state):
        pos = [0.0, 0.0, 0.05]
        lin_vel = [SPEED, 0.0, 0.0]

    class asset(RobotCfg.asset):
        folder = TEST_ASSETS
        file = "sled.urdf"
        name = "sled"

    class domain_rand:
        friction_range = [0.2, 1.0]
        added_mass_range = [-1.0, 3.0]


class Sleds(LeggedRobot):
    def _process_rigid_shape_props(self, props, env_id):
        if env_id == 0:
            low, high = self.cfg.domain_rand.friction_range
            self.friction = np.random.uniform(low, high, self.num_envs)
        for prop in props:
            prop.friction = self.friction[env_id]
        return props

    def _process_rigid_body_props(self, props, env_id):
        if env_id == 0:
            self.added = np.random.uniform(*self.cfg.domain_rand.added_mass_range, self.num_envs)
        props[0].mass += self.added[env_id]
        return props

    def slide(self):
        """Friction force over weight in the middle of the slide, and where the sleds stop."""
        self.reset_idx(torch.arange(self.num_envs, device=self.device))
        actions = torch.zeros(self.num_envs, 0, device=self.device)
        for _ in range(5):
            self.step(actions)
        drag = -self.contact_forces[:, 0, 0].clone()
        carried = self.contact_forces[:, 0, 2].clone()
        for _ in range(60):
            self.step(actions)
        return drag, carried, self.root_states[:, 0] - self.env_origins[:, 0]


def check(sleds, friction, masses):
    drag, carried, distance = sleds.slide()
    mean = 0.5 * (torch.tensor(friction, dtype=torch.float) + 1.0)  # averaged with the ground's
    weight = 9.81 * torch.tensor(masses, dtype=torch.float)
    assert torch.allclose(carried, weight, rtol=0.02), (carried, weight)
    assert torch.allclose(drag, mean * weight, rtol=0.03), (drag, mean * weight)
    assert torch.allclose(distance, SPEED**2 / (2 * 9.81 * mean), rtol=0.05), distance


np.random.seed(3)
sleds = Sleds(Cfg)
check(sleds, sleds.friction, 4.0 + sleds.added)
new_friction, new_mass = sleds.friction[::-1].copy(), np.linspace(2.0, 8.0, 6)
for i, (env, actor) in enumerate(zip(sleds.envs, sleds.actor_handles, strict=True)):
    shapes = sleds.gym.get_actor_rigid_shape_properties(env, actor)
    assert abs(shapes[0].friction - sleds.friction[i]) < 1e-6
    shapes[0].friction = new_friction[i]
    sleds.gym.set_actor_rigid_shape_properties(env, actor, shapes)
    bodies = sleds.gym.get_actor_rigid_body_properties(env, actor)
    before = bodies[0].mass, bodies[0].inertia.x.x
    bodies[0].mass = new_mass[i]
    sleds.gym.set_actor_rigid_body_properties(env, actor, bodies, recomputeInertia=True)
    after = sleds.gym.get_actor_rigid_body_properties(env, actor)[0]
    assert abs(after.inertia.x.x / before[1] - new_mass[i] / before[0]) < 1e-4  # inertia goes with mass
check(sleds, new_friction, new_mass)
sleds.close()
print("ok: randomised")
