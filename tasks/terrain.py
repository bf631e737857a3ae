"""Rough terrain: a grid of tiles (rows: levels of difficulty, columns: kinds), its mesh, and height look-up."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator, Mapping, Sequence

from isaacgym import terrain_utils  # isort: skip  (the original package wants to be imported before torch)
import numpy as np
import torch
from torch import Tensor

from tasks.base.errors import TaskError

HORIZONTAL_SCALE = 0.1
"""Metres a cell."""
VERTICAL_SCALE = 0.005
"""Metres a unit of height."""
BORDER = 20.0
"""Flat border around the tiles (m)."""

_SCAN_X = 0.1 * np.array([-8, -7, -6, -5, -4, -3, -2, 2, 3, 4, 5, 6, 7, 8])
_SCAN_Y = 0.1 * np.array([-5, -4, -3, -2, -1, 1, 2, 3, 4, 5])


class Terrain:
    """Height field of `numLevels` x `numTerrains` square tiles; reproducible for a seed."""

    def __init__(self, cfg: dict[str, Any], seed: int) -> None:
        """Generate the heights.

        Args:
            cfg: the task's `env.terrain` section.
            seed: source of the random layout.

        Raises:
            TaskError: tiles are not square.
        """
        self.num_levels = int(cfg["numLevels"])
        self.num_types = int(cfg["numTerrains"])
        self.tile_length = float(cfg["mapLength"])
        if self.tile_length != float(cfg["mapWidth"]):
            raise TaskError(f"terrain tiles must be square: mapLength {cfg['mapLength']}, mapWidth {cfg['mapWidth']}")
        self.slope_threshold = float(cfg["slopeTreshold"])
        self.proportions = np.cumsum([float(p) for p in cfg["terrainProportions"]])
        self.tile_cells = int(self.tile_length / HORIZONTAL_SCALE)
        self.border_cells = int(BORDER / HORIZONTAL_SCALE)
        shape = [count * self.tile_cells + 2 * self.border_cells for count in (self.num_levels, self.num_types)]
        self.heights = np.zeros(shape, dtype=np.int16)
        """(rows, columns) in units of `VERTICAL_SCALE`; rows along x."""
        self.origins = np.zeros((self.num_levels, self.num_types, 3))
        """Centre of each tile, on the ground (m)."""
        with _global_seed(seed):
            for level in range(self.num_levels):
                for kind in range(self.num_types):
                    tile = self._graded_tile(level, kind) if cfg["curriculum"] else self._random_tile()
                    self._place(tile, level, kind)

    def _new_tile(self) -> terrain_utils.SubTerrain:
        return terrain_utils.SubTerrain(
            "terrain",
            width=self.tile_cells,
            length=self.tile_cells,
            vertical_scale=VERTICAL_SCALE,
            horizontal_scale=HORIZONTAL_SCALE,
        )

    def _graded_tile(self, level: int, kind: int) -> terrain_utils.SubTerrain:
        difficulty = level / self.num_levels
        choice = kind / self.num_types
        slope = 0.4 * difficulty
        step_height = 0.05 + 0.175 * difficulty
        limits = self.proportions
        tile = self._new_tile()
        if choice < limits[0]:
            terrain_utils.pyramid_sloped_terrain(tile, slope=-slope if choice < 0.05 else slope, platform_size=3.0)
        elif choice < limits[1]:
            terrain_utils.pyramid_sloped_terrain(tile, slope=-slope if choice < 0.15 else slope, platform_size=3.0)
            terrain_utils.random_uniform_terrain(tile, -0.1, 0.1, step=0.025, downsampled_scale=0.2)
        elif choice < limits[3]:
            height = -step_height if choice < limits[2] else step_height
            terrain_utils.pyramid_stairs_terrain(tile, step_width=0.31, step_height=height, platform_size=3.0)
        elif choice < limits[4]:
            obstacle_height = 0.025 + 0.15 * difficulty
            terrain_utils.discrete_obstacles_terrain(tile, obstacle_height, 1.0, 2.0, 40, platform_size=3.0)
        else:
            stone_size = 2.0 - 1.8 * difficulty
            terrain_utils.stepping_stones_terrain(tile, stone_size, 0.1, max_height=0.0, platform_size=3.0)
        return tile

    def _random_tile(self) -> terrain_utils.SubTerrain:
        tile = self._new_tile()
        choice = np.random.uniform(0.0, 1.0)
        if choice < 0.1:
            slope = float(np.random.choice([-0.3, -0.2, 0.0, 0.2, 0.3]))
            terrain_utils.pyramid_sloped_terrain(tile, slope=slope, platform_size=1.0)
            if np.random.choice([False, True]):
                terrain_utils.random_uniform_terrain(tile, -0.1, 0.1, step=0.05, downsampled_scale=0.2)
        elif choice < 0.6:
            height = float(np.random.choice([-0.15, 0.15]))
            terrain_utils.pyramid_stairs_terrain(tile, step_width=0.31, step_height=height, platform_size=3.0)
        else:
            terrain_utils.discrete_obstacles_terrain(tile, 0.15, 1.0, 2.0, 40, platform_size=3.0)
        return tile

    def _place(self, tile: terrain_utils.SubTerrain, level: int, kind: int) -> None:
        x = self.border_cells + level * self.tile_cells
        y = self.border_cells + kind * self.tile_cells
        self.heights[x : x + self.tile_cells, y : y + self.tile_cells] = tile.height_field_raw
        near, far = (int((self.tile_length / 2 + d) / HORIZONTAL_SCALE) for d in (-1.0, 1.0))
        ground = float(tile.height_field_raw[near:far, near:far].max()) * VERTICAL_SCALE
        self.origins[level, kind] = ((level + 0.5) * self.tile_length, (kind + 0.5) * self.tile_length, ground)

    def mesh(self) -> tuple[np.ndarray, np.ndarray]:
        """Vertices (V, 3) float32 in metres, to be moved by -`BORDER` in x and y, and triangles (T, 3) uint32."""
        return terrain_utils.convert_heightfield_to_trimesh(
            self.heights, HORIZONTAL_SCALE, VERTICAL_SCALE, self.slope_threshold
        )


def check_kind(kind: str) -> bool:
    """Whether `env.terrain.terrainType` asks for the grid of tiles.

    Raises:
        TaskError: it is neither that nor a plane.
    """
    if kind not in ("plane", "trimesh"):
        raise TaskError(f"env.terrain.terrainType is {kind!r}; allowed are plane, trimesh")
    return kind == "trimesh"


def draw_world_seed() -> int:
    """Seed of a terrain, from numpy's global generator."""
    return int(np.random.randint(2**31))


def draw_tiles(cfg: Mapping[str, Any], num_envs: int, device: str) -> tuple[Tensor, Tensor]:
    """Draw the first level and the kind (num_envs,) int64 each of every env's tile."""
    highest = int(cfg["maxInitMapLevel"]) if cfg["curriculum"] else int(cfg["numLevels"]) - 1
    levels = torch.randint(0, highest + 1, (num_envs,), device=device)
    return levels, torch.randint(0, int(cfg["numTerrains"]), (num_envs,), device=device)


@contextmanager
def _global_seed(seed: int) -> Iterator[None]:
    """Seed numpy's global generator, which the terrain functions draw from, and put it back afterwards."""
    before = np.random.get_state()
    np.random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(before)


def scan_points(device: str) -> Tensor:
    """Points (140, 2) around the robot at which the ground's height is observed (m, base frame, x slow, y fast)."""
    x, y = np.meshgrid(_SCAN_X, _SCAN_Y, indexing="ij")
    return torch.tensor(np.stack([x.ravel(), y.ravel()], axis=1), dtype=torch.float32, device=device)


def turn_by_yaw(quat: Tensor, points: Tensor) -> Tensor:
    """Points (P, 2) turned by the twist about z of each quaternion (N, 4): (N, P, 2)."""
    z, w = quat[:, 2:3], quat[:, 3:4]
    norm = (z * z + w * w).clamp(min=1e-9)
    cos, sin = (w * w - z * z) / norm, 2.0 * z * w / norm
    x, y = points[:, 0], points[:, 1]
    return torch.stack((cos * x - sin * y, sin * x + cos * y), dim=-1)


def heights_at(heights: Tensor, points: Tensor) -> Tensor:
    """Ground height (m) at world points (..., 2): the lower of a cell's first and opposite corner.

    Args:
        heights: (rows, columns) int16 height field.
        points: (..., 2) metres; points outside are moved to the edge.
    """
    cells = ((points + BORDER) / HORIZONTAL_SCALE).long()
    row = cells[..., 0].clamp(0, heights.shape[0] - 2)
    column = cells[..., 1].clamp(0, heights.shape[1] - 2)
    return torch.minimum(heights[row, column], heights[row + 1, column + 1]) * VERTICAL_SCALE


def next_levels(levels: Tensor, demoted: Tensor, promoted: Tensor, num_levels: int) -> Tensor:
    """Levels (K,) after demotion and promotion (K,) bool; the last level is followed by level 0."""
    moved = levels - demoted.long() + promoted.long()
    return torch.remainder(moved.clamp(min=0), num_levels)


def demotion_speed(commands: Tensor, per_env: bool) -> Tensor:
    """Commanded speed (K,) or () that decides about demotion: each env's own, or the norm over all of them."""
    speeds: Sequence[int] = (1,) if per_env else (0, 1)
    return torch.linalg.vector_norm(commands[:, :2], dim=tuple(speeds))
