"""A picture of the terrain of AnymalTerrain from above, without a simulator.

The PNG is written with the standard library: it takes a dozen lines, and no package that tasks may import does it.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any, Mapping

import numpy as np

from tasks.base.errors import TaskError
from tasks.terrain import BORDER, HORIZONTAL_SCALE, VERTICAL_SCALE, Terrain, check_kind, draw_tiles, draw_world_seed

TILE_COLOUR = (40, 90, 200)
ENV_COLOUR = (220, 30, 30)
MARK = 3
"""Half the width of a mark, in pixels."""


def preview(env_cfg: Mapping[str, Any], num_envs: int) -> np.ndarray:
    """Draw the terrain that a task built now would get; uses up the same random numbers.

    Args:
        env_cfg: the task's `env` section.
        num_envs: number of envs, whose first places are marked.

    Returns:
        (rows, columns, 3) uint8, one pixel a cell of the height field; x to the right, y upwards.

    Raises:
        TaskError: the task has no terrain grid.
    """
    if "terrain" not in env_cfg:
        raise TaskError("terrain_preview: this task has no terrain; use task=AnymalTerrain")
    cfg = env_cfg["terrain"]
    if not check_kind(cfg["terrainType"]):
        raise TaskError("terrain_preview: env.terrain.terrainType is plane; set it to trimesh")
    terrain = Terrain(cfg, draw_world_seed())
    levels, kinds = draw_tiles(cfg, num_envs, "cpu")
    return draw(terrain, terrain.origins[levels.numpy(), kinds.numpy()])


def draw(terrain: Terrain, env_origins: np.ndarray) -> np.ndarray:
    """Draw a terrain: lit from the north-west, brighter where higher, tile origins blue, env origins (K, 3) red."""
    picture = shade(terrain.heights)
    for origins, colour in ((terrain.origins.reshape(-1, 3), TILE_COLOUR), (env_origins, ENV_COLOUR)):
        for x, y in np.unique(origins[:, :2], axis=0):
            row, column = (int(round((v + BORDER) / HORIZONTAL_SCALE)) for v in (x, y))
            picture[row - MARK : row + MARK + 1, column - MARK : column + MARK + 1] = colour
    return np.ascontiguousarray(picture.transpose(1, 0, 2)[::-1])


def shade(heights: np.ndarray) -> np.ndarray:
    """Grey picture (rows, columns, 3) uint8 of a height field (rows along x, in units of `VERTICAL_SCALE`)."""
    metres = heights.astype(np.float32) * VERTICAL_SCALE
    slope_x, slope_y = np.gradient(metres, HORIZONTAL_SCALE)
    light = 0.5 * (slope_x - slope_y)
    height = 0.25 * metres / max(float(np.abs(metres).max()), 1e-6)
    grey = np.clip(0.6 + height + 0.35 * np.tanh(light), 0.0, 1.0)
    return np.repeat((255 * grey).astype(np.uint8)[..., None], 3, axis=2)


def write_png(path: Path, picture: np.ndarray) -> None:
    """Write a picture (rows, columns, 3) uint8 as PNG; folders are made where they are missing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = picture.shape
    rows = np.zeros((height, 1 + 3 * width), dtype=np.uint8)  # every row starts with its filter: none
    rows[:, 1:] = picture.reshape(height, 3 * width)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits a channel, RGB
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 6))
        + chunk(b"IEND", b"")
    )
