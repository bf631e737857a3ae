"""Debug geometry made of lines (API notes, section 13.4). Making it needs no viewer, drawing is up to the gym."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._values import Transform, Vec3

Array = npt.NDArray[Any]
Color = Sequence[float]

RED, GREEN, BLUE = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


class LineGeometry:
    """Base of line geometries; a subclass supplies ``vertices`` and ``colors``."""

    def vertices(self) -> Array:
        """Return the end points, (num_lines, 2) of ``Vec3.dtype``."""
        raise NotImplementedError(f"{type(self).__name__}.vertices")

    def colors(self) -> Array:
        """Return the colours, (num_lines,) of ``Vec3.dtype`` with components in 0..1."""
        raise NotImplementedError(f"{type(self).__name__}.colors")

    def num_lines(self) -> int:
        """Return the number of lines."""
        return int(self.vertices().shape[0])

    def instance_verts(self, pose: Transform | None = None) -> Array:
        """Return the end points moved by ``pose``."""
        return self.vertices() if pose is None else pose.transform_points(self.vertices())


class _Lines(LineGeometry):
    """Lines held as arrays."""

    def __init__(self, points: Array, colors: Array, pose: Transform | None) -> None:
        """Keep end points (num_lines, 2, 3), moved by ``pose``, and colours (num_lines, 3)."""
        verts = _as_vec3(points)
        self.verts = verts if pose is None else pose.transform_points(verts)
        self._colors = _as_vec3(colors)

    def vertices(self) -> Array:
        """Return the end points, (num_lines, 2) of ``Vec3.dtype``."""
        return self.verts

    def colors(self) -> Array:
        """Return the colours, (num_lines,) of ``Vec3.dtype``."""
        return self._colors


class AxesGeometry(_Lines):
    """Three lines along x (red), y (green) and z (blue)."""

    def __init__(self, scale: float = 1.0, pose: Transform | None = None) -> None:
        """Make axes of length ``scale``."""
        points = np.zeros((3, 2, 3))
        points[:, 1] = scale * np.eye(3)
        super().__init__(points, np.array([RED, GREEN, BLUE]), pose)


class WireframeBBoxGeometry(_Lines):
    """The twelve edges of a box given by its corners."""

    def __init__(self, bbox: Any, pose: Transform | None = None, color: Color | None = None) -> None:
        """Make a box from ``bbox``: lowest and highest corner, 2 x 3 numbers (array, tensor or lists)."""
        limits = np.array([[float(value) for value in corner] for corner in bbox])
        edges = []
        for axis in range(3):
            others = [i for i in range(3) if i != axis]
            for sides in itertools.product((0, 1), repeat=2):
                edge = np.empty((2, 3))
                edge[:, axis] = limits[:, axis]
                for other, side in zip(others, sides, strict=True):
                    edge[:, other] = limits[side, other]
                edges.append(edge)
        super().__init__(np.stack(edges), np.tile(color or RED, (12, 1)), pose)


class WireframeBoxGeometry(WireframeBBoxGeometry):
    """The twelve edges of a box about the origin."""

    def __init__(
        self,
        xdim: float = 1.0,
        ydim: float = 1.0,
        zdim: float = 1.0,
        pose: Transform | None = None,
        color: Color | None = None,
    ) -> None:
        """Make a box with the given edge lengths."""
        half = 0.5 * np.array([xdim, ydim, zdim], dtype=float)
        super().__init__([-half, half], pose, color)


class WireframeSphereGeometry(_Lines):
    """Circles of longitude and latitude, 2 * num_lats * num_lons lines."""

    def __init__(
        self,
        radius: float = 1.0,
        num_lats: int = 8,
        num_lons: int = 8,
        pose: Transform | None = None,
        color: Color | None = None,
        color2: Color | None = None,
    ) -> None:
        """Make a sphere about the origin; ``color2`` (default: ``color``) is that of the circles of latitude."""
        polar, azimuth = np.meshgrid(
            np.pi * np.arange(num_lons + 1) / num_lons, 2.0 * np.pi * np.arange(num_lats + 1) / num_lats
        )
        grid = radius * np.stack(
            [np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), np.cos(polar)], axis=-1
        )
        start = grid[:-1, :-1]
        along_meridian = np.stack([start, grid[:-1, 1:]], axis=-2)
        along_parallel = np.stack([start, grid[1:, :-1]], axis=-2)
        points = np.stack([along_meridian, along_parallel], axis=2).reshape(-1, 2, 3)
        first = color or RED
        colors = np.tile([first, color2 or first], (num_lats * num_lons, 1))
        super().__init__(points, colors, pose)


def draw_lines(geom: LineGeometry, gym: Any, viewer: Any, env: Any, pose: Transform) -> None:
    """Draw ``geom`` at ``pose``, in the frame of ``env`` or of the world if ``env`` is None."""
    vertices = geom.instance_verts(pose)
    gym.add_lines(viewer, env, len(vertices), vertices, geom.colors())


def draw_line(p1: Vec3, p2: Vec3, color: Vec3, gym: Any, viewer: Any, env: Any) -> None:
    """Draw a line between two points, in the frame of ``env`` or of the world if ``env`` is None."""
    vertices = np.array([[p1.as_tuple(), p2.as_tuple()]], Vec3.dtype)
    gym.add_lines(viewer, env, 1, vertices, np.array([color.as_tuple()], Vec3.dtype))


def _as_vec3(components: Array) -> Array:
    """Return components (..., 3) as an array (...) of ``Vec3.dtype``."""
    return np.ascontiguousarray(components, "<f4").view(Vec3.dtype)[..., 0]
