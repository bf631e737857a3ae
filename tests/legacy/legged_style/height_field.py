# ruff: noqa: I001, N801, D106
"""Quadrupeds with a free base on the platforms of a height field."""

from isaacgym import gymapi, terrain_utils
from robots.config import AnymalCfg
from robots.legged_robot import LeggedRobot

import numpy as np
import torch

HORIZONTAL, VERTICAL = 0.25, 0.005
TILE = 5.0
SLOPES = [0.0, 0.2, 0.4, -0.3]


class Terrain:
    """Two by two pyramids with a border around them."""

    border = 8

    def __init__(self):
        cells = int(TILE / HORIZONTAL)
        size = 2 * (cells + self.border)
        self.raw = np.zeros((size, size), dtype=np.int16)
        self.origins = np.zeros((len(SLOPES), 3))
        for i, slope in enumerate(SLOPES):
            tile = terrain_utils.SubTerrain("terrain", cells, cells, VERTICAL, HORIZONTAL)
            terrain_utils.pyramid_sloped_terrain(tile, slope=slope, platform_size=2.0)
            row, column = self.border + cells * (i // 2), self.border + cells * (i % 2)
            self.raw[row : row + cells, column : column + cells] = tile.height_field_raw
            self.origins[i, :2] = TILE * (i // 2 + 0.5), TILE * (i % 2 + 0.5)
            self.origins[i, 2] = tile.height_field_raw[cells // 2, cells // 2] * VERTICAL


class Cfg(AnymalCfg):
    class terrain(AnymalCfg.terrain):
        mesh_type = "heightfield"


class Robot(LeggedRobot):
    def _create_terrain(self):
        self.terrain = Terrain()
        hf_params = gymapi.HeightFieldParams()
        hf_params.column_scale = hf_params.row_scale = HORIZONTAL
        hf_params.vertical_scale = VERTICAL
        hf_params.nbRows, hf_params.nbColumns = self.terrain.raw.shape
        hf_params.transform.p.x = hf_params.transform.p.y = -Terrain.border * HORIZONTAL
        hf_params.static_friction = self.cfg.terrain.static_friction
        hf_params.dynamic_friction = self.cfg.terrain.dynamic_friction
        hf_params.restitution = self.cfg.terrain.restitution
        self.gym.add_heightfield(self.sim, self.terrain.raw, hf_params)

    def _get_env_origins(self):
        return torch.from_numpy(self.terrain.origins).to(self.device).to(torch.float)


robot = Robot(Cfg)
assert np.ptp(robot.terrain.origins[:, 2]) > 0.5
for _ in range(75):
    robot.step(torch.zeros(robot.num_envs, robot.num_dof, device=robot.device))
# All stand alike, each on the height of its own platform, and the ground carries exactly their weight.
height = robot.root_states[:, 2] - robot.env_origins[:, 2]
assert float(height.max() - height.min()) < 5e-3, height
assert 0.45 < float(height.mean()) < 0.65, height
assert float((robot.root_states[:, :2] - robot.env_origins[:, :2]).abs().max()) < 0.05
assert float(robot.projected_gravity[:, 2].max()) < -0.999
force = robot.contact_forces.sum(dim=1)[:, 2]
assert torch.allclose(force, torch.tensor(robot.weight(0)), rtol=0.03), (force, robot.weight(0))
robot.close()
print("ok: height_field")
