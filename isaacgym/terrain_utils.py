"""Procedural terrain of the Isaac Gym API (API notes, section 15).

Heights are int16 in units of ``vertical_scale``; every generator changes the terrain and returns it.
Lengths are converted to cells and heights to units with ``int()``, which truncates: 0.3 / 0.1 gives 2.
Random numbers come from numpy's global generator. Meant to be star-imported.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.random import choice
from scipy import interpolate

__all__ = [
    "SubTerrain",
    "choice",
    "convert_heightfield_to_trimesh",
    "discrete_obstacles_terrain",
    "interpolate",
    "np",
    "pyramid_sloped_terrain",
    "pyramid_stairs_terrain",
    "random_uniform_terrain",
    "sloped_terrain",
    "sqrt",
    "stairs_terrain",
    "stepping_stones_terrain",
    "wave_terrain",
]


class SubTerrain:
    """A rectangular height field."""

    def __init__(
        self,
        terrain_name: str = "terrain",
        width: int = 256,
        length: int = 256,
        vertical_scale: float = 1.0,
        horizontal_scale: float = 1.0,
    ) -> None:
        """Make a flat terrain.

        Args:
            terrain_name: any name.
            width: cells along the first axis (x).
            length: cells along the second axis (y).
            vertical_scale: m per unit of height.
            horizontal_scale: m per cell.
        """
        self.terrain_name = terrain_name
        self.vertical_scale = vertical_scale
        self.horizontal_scale = horizontal_scale
        self.width = width
        self.length = length
        self.height_field_raw: npt.NDArray[np.int16] = np.zeros((width, length), dtype=np.int16)
        """Heights (width, length) in units of ``vertical_scale``."""

    def cells(self, length: float) -> int:
        """Return a horizontal length [m] in cells, truncated."""
        return int(length / self.horizontal_scale)

    def units(self, height: float) -> int:
        """Return a height [m] in units of ``vertical_scale``, truncated."""
        return int(height / self.vertical_scale)

    def clear_platform(self, size: int) -> None:
        """Set a centred square of ``size`` cells to height 0."""
        x1, x2 = (self.width - size) // 2, (self.width + size) // 2
        y1, y2 = (self.length - size) // 2, (self.length + size) // 2
        self.height_field_raw[x1:x2, y1:y2] = 0


def random_uniform_terrain(
    terrain: SubTerrain,
    min_height: float,
    max_height: float,
    step: float = 1,
    downsampled_scale: float | None = None,
) -> SubTerrain:
    """Add noise: heights drawn on a coarse grid, interpolated linearly.

    Args:
        terrain: the terrain to change.
        min_height: smallest height, m.
        max_height: greatest height, m.
        step: difference of neighbouring height levels, m; at least ``vertical_scale``.
        downsampled_scale: spacing of the coarse grid, m; ``horizontal_scale`` if None.
    """
    spacing = terrain.horizontal_scale if downsampled_scale is None else downsampled_scale
    low, high, stride = terrain.units(min_height), terrain.units(max_height), terrain.units(step)
    if stride < 1:
        raise ValueError(f"random_uniform_terrain: step {step} is below vertical_scale {terrain.vertical_scale}")
    coarse_shape = (
        int(terrain.width * terrain.horizontal_scale / spacing),
        int(terrain.length * terrain.horizontal_scale / spacing),
    )
    coarse = np.random.choice(np.arange(low, high + stride, stride), coarse_shape)
    along_x = _resample(coarse.astype(np.float64), terrain.width)
    fine = _resample(along_x.T, terrain.length).T
    terrain.height_field_raw += np.rint(fine).astype(np.int16)
    return terrain


def _resample(values: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    """Return ``count`` rows interpolated linearly between the rows of ``values``, ends included."""
    last = values.shape[0] - 1
    position = np.linspace(0.0, last, count)
    below = np.floor(position).astype(np.int64)
    fraction = (position - below)[:, None]
    upsampled: npt.NDArray[np.float64] = (1.0 - fraction) * values[below]
    upsampled += fraction * values[np.minimum(below + 1, last)]
    return upsampled


def sloped_terrain(terrain: SubTerrain, slope: float = 1) -> SubTerrain:
    """Add a plane that rises along x with ``slope`` (m/m)."""
    height = int(slope * (terrain.horizontal_scale / terrain.vertical_scale) * terrain.width)
    rise = height * np.arange(terrain.width) / terrain.width
    terrain.height_field_raw += rise.astype(np.int16)[:, None]
    return terrain


def pyramid_sloped_terrain(terrain: SubTerrain, slope: float = 1, platform_size: float = 1.0) -> SubTerrain:
    """Add a pyramid (a pit for a negative ``slope``, m/m) that is cut off at a central platform (m)."""
    height = int(slope * (terrain.horizontal_scale / terrain.vertical_scale) * (terrain.width / 2))
    ramp_x, ramp_y = _ramp(terrain.width), _ramp(terrain.length)
    terrain.height_field_raw += (height * ramp_x[:, None] * ramp_y).astype(np.int16)

    reach = int(platform_size / terrain.horizontal_scale / 2)
    edge = int(terrain.height_field_raw[terrain.width // 2 - reach, terrain.length // 2 - reach])
    terrain.height_field_raw = np.clip(terrain.height_field_raw, min(edge, 0), max(edge, 0))
    return terrain


def _ramp(count: int) -> npt.NDArray[np.float64]:
    """Return ``count`` numbers that rise from 0 to 1 at the centre and fall again."""
    centre = count // 2
    ramp: npt.NDArray[np.float64] = (centre - np.abs(centre - np.arange(count))) / centre
    return ramp


def discrete_obstacles_terrain(
    terrain: SubTerrain,
    max_height: float,
    min_size: float,
    max_size: float,
    num_rects: int,
    platform_size: float = 1.0,
) -> SubTerrain:
    """Overwrite random rectangles with one of four heights, and a central platform with 0.

    Args:
        terrain: the terrain to change.
        max_height: greatest height and depth, m; half of it occurs too.
        min_size: smallest side of a rectangle, m.
        max_size: greatest side, m.
        num_rects: number of rectangles.
        platform_size: side of the platform, m.
    """
    height = terrain.units(max_height)
    heights = [-height, -height // 2, height // 2, height]
    sides = range(terrain.cells(min_size), terrain.cells(max_size), 4)
    for _ in range(num_rects):
        width, length = int(np.random.choice(sides)), int(np.random.choice(sides))
        i = int(np.random.choice(range(0, terrain.width - width, 4)))
        j = int(np.random.choice(range(0, terrain.length - length, 4)))
        terrain.height_field_raw[i : i + width, j : j + length] = np.random.choice(heights)
    terrain.clear_platform(terrain.cells(platform_size))
    return terrain


def wave_terrain(terrain: SubTerrain, num_waves: int = 1, amplitude: float = 1.0) -> SubTerrain:
    """Add ``num_waves`` waves along both axes with peak-to-peak ``amplitude`` (m) each."""
    if num_waves <= 0:
        return terrain
    size = int(0.5 * amplitude / terrain.vertical_scale)
    scale = terrain.length / (num_waves * np.pi * 2)
    waves = size * np.cos(np.arange(terrain.length) / scale) + size * np.sin(np.arange(terrain.width) / scale)[:, None]
    terrain.height_field_raw += waves.astype(np.int16)
    return terrain


def stairs_terrain(terrain: SubTerrain, step_width: float, step_height: float) -> SubTerrain:
    """Add stairs that rise along x; steps are ``step_width`` wide and ``step_height`` high (m)."""
    width, height = _step_cells(terrain, step_width), terrain.units(step_height)
    steps = terrain.width // width
    rise = height * (1 + np.arange(steps * width) // width)
    terrain.height_field_raw[: steps * width] += rise.astype(np.int16)[:, None]
    return terrain


def pyramid_stairs_terrain(
    terrain: SubTerrain, step_width: float, step_height: float, platform_size: float = 1.0
) -> SubTerrain:
    """Overwrite with stairs rising (or falling, for a negative height) to a central platform (m)."""
    width, rise = _step_cells(terrain, step_width), terrain.units(step_height)
    platform = terrain.cells(platform_size)
    inset = height = 0
    while min(terrain.width, terrain.length) - 2 * inset > platform:
        inset += width
        height += rise
        terrain.height_field_raw[inset : terrain.width - inset, inset : terrain.length - inset] = height
    return terrain


def _step_cells(terrain: SubTerrain, step_width: float) -> int:
    """Return the width of a stair in cells, at least 1 or an error."""
    width = terrain.cells(step_width)
    if width < 1:
        raise ValueError(f"step_width {step_width} is below horizontal_scale {terrain.horizontal_scale}")
    return width


def stepping_stones_terrain(
    terrain: SubTerrain,
    stone_size: float,
    stone_distance: float,
    max_height: float,
    platform_size: float = 1.0,
    depth: float = -10,
) -> SubTerrain:
    """Overwrite with square stones of random height in a hole, and a central platform with height 0.

    Args:
        terrain: the terrain to change.
        stone_size: side of a stone, m.
        stone_distance: gap between stones, m.
        max_height: greatest height and depth of a stone, m.
        platform_size: side of the platform, m.
        depth: height of the hole's bottom, m.
    """
    size, gap = terrain.cells(stone_size), terrain.cells(stone_distance)
    if size < 1:
        raise ValueError(f"stone_size {stone_size} is below horizontal_scale {terrain.horizontal_scale}")
    top = terrain.units(max_height)
    heights = np.arange(-top - 1, top)
    terrain.height_field_raw[:] = terrain.units(depth)
    field = terrain.height_field_raw
    rows = field.T if terrain.length >= terrain.width else field  # a view: rows of stones follow the longer axis
    for start in range(0, rows.shape[0], size + gap):
        row = rows[start : start + size]
        offset = np.random.randint(0, size)
        row[:, : max(0, offset - gap)] = np.random.choice(heights)
        for stone in range(offset, rows.shape[1], size + gap):
            row[:, stone : stone + size] = np.random.choice(heights)
    terrain.clear_platform(terrain.cells(platform_size))
    return terrain


def convert_heightfield_to_trimesh(
    height_field_raw: Any,
    horizontal_scale: float,
    vertical_scale: float,
    slope_threshold: float | None = None,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint32]]:
    """Return a triangle mesh of a height field.

    Args:
        height_field_raw: (R, C) heights in units of ``vertical_scale``.
        horizontal_scale: m per cell.
        vertical_scale: m per unit of height.
        slope_threshold: slopes above it (m/m) become vertical faces; None leaves all as they are.

    Returns:
        vertices (R C, 3) float32, row by row, and triangles (2 (R - 1) (C - 1), 3) uint32, two a cell,
        counter-clockwise seen from above.
    """
    heights = np.asarray(height_field_raw).astype(np.int64)
    rows, columns = heights.shape
    x = np.repeat(np.arange(rows, dtype=np.float64)[:, None], columns, axis=1)
    y = np.repeat(np.arange(columns, dtype=np.float64)[None, :], rows, axis=0)
    if slope_threshold is not None:
        shift_x, shift_y = _steep_shifts(heights, slope_threshold * horizontal_scale / vertical_scale)
        x += shift_x
        y += shift_y
    vertices = np.stack([x * horizontal_scale, y * horizontal_scale, heights * vertical_scale], axis=-1)

    k = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).reshape(-1)
    opposite = k + columns + 1
    triangles = np.stack([k, opposite, k + 1, k, k + columns, opposite], axis=-1)
    return vertices.reshape(-1, 3).astype(np.float32), triangles.reshape(-1, 3).astype(np.uint32)


def _steep_shifts(
    heights: npt.NDArray[np.int64], threshold: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return by how many cells vertices move along x and y so that steep faces become vertical.

    A vertex at the foot of a rise above ``threshold`` (height units a cell) moves under its top. Along an axis
    without such a rise, the diagonal neighbours decide.
    """
    move_x, move_y, corner = np.zeros_like(heights), np.zeros_like(heights), np.zeros_like(heights)
    for move, low, high in (
        (move_x, np.s_[:-1, :], np.s_[1:, :]),
        (move_y, np.s_[:, :-1], np.s_[:, 1:]),
        (corner, np.s_[:-1, :-1], np.s_[1:, 1:]),
    ):
        rise = heights[high] - heights[low]
        move[low] += rise > threshold
        move[high] -= -rise > threshold
    return move_x + corner * (move_x == 0), move_y + corner * (move_y == 0)
