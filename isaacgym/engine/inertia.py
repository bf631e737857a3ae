"""Mass, centre of mass and inertia of primitive shapes and closed meshes, and how to move and add them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isaacgym.engine import spatial
from isaacgym.engine.spatial import Array


@dataclass(frozen=True)
class MassProperties:
    """Mass (kg), centre of mass (3,) and inertia (3, 3) about that centre, in the axes of one frame."""

    mass: float
    com: Array
    inertia: Array

    def moved(self, pos: Array, quat: Array) -> MassProperties:
        """The same matter, seen from the frame in which its own frame stands at (pos, quat)."""
        turn = spatial.to_matrix(quat)
        return MassProperties(self.mass, pos + turn @ self.com, turn @ self.inertia @ turn.T)

    def scaled_to(self, mass: float) -> MassProperties:
        """The same geometry with another mass; raises ValueError when there is no mass to scale."""
        if self.mass <= 0:
            raise ValueError("a massless shape cannot be scaled")
        return MassProperties(mass, self.com, self.inertia * (mass / self.mass))

    def about(self, point: Array) -> Array:
        """Inertia (3, 3) about ``point`` by the parallel-axis rule."""
        return self.inertia + _point_inertia(self.mass, self.com - point)


def nothing() -> MassProperties:
    """No matter at all."""
    return MassProperties(0.0, np.zeros(3), np.zeros((3, 3)))


def merge(parts: Sequence[MassProperties]) -> MassProperties:
    """The rigid union of parts given in one frame; overlaps count twice."""
    mass = sum(part.mass for part in parts)
    if mass <= 0:
        return nothing()
    com = sum((part.mass * part.com for part in parts), np.zeros(3)) / mass
    return MassProperties(mass, com, sum((part.about(com) for part in parts), np.zeros((3, 3))))


def _point_inertia(mass: float, offset: Array) -> Array:
    """Inertia (3, 3) about the origin of a point mass at ``offset``."""
    return mass * (float(offset @ offset) * np.eye(3) - np.outer(offset, offset))


def _centred(mass: float, diagonal: tuple[float, float, float]) -> MassProperties:
    return MassProperties(mass, np.zeros(3), np.diag(diagonal))


def of_sphere(radius: float, density: float) -> MassProperties:
    """A solid sphere."""
    mass = density * 4 / 3 * np.pi * radius**3
    i = 0.4 * mass * radius**2
    return _centred(mass, (i, i, i))


def of_box(half: Sequence[float], density: float) -> MassProperties:
    """A solid box of half extents (3)."""
    x, y, z = half
    mass = density * 8 * x * y * z
    return _centred(mass, (mass / 3 * (y * y + z * z), mass / 3 * (x * x + z * z), mass / 3 * (x * x + y * y)))


def of_ellipsoid(radii: Sequence[float], density: float) -> MassProperties:
    """A solid ellipsoid of radii (3)."""
    x, y, z = radii
    mass = density * 4 / 3 * np.pi * x * y * z
    return _centred(mass, (mass / 5 * (y * y + z * z), mass / 5 * (x * x + z * z), mass / 5 * (x * x + y * y)))


def of_cylinder(radius: float, half_length: float, density: float) -> MassProperties:
    """A solid cylinder along z."""
    mass = density * np.pi * radius**2 * 2 * half_length
    side = mass * (radius**2 / 4 + half_length**2 / 3)
    return _centred(mass, (side, side, mass * radius**2 / 2))


def of_capsule(radius: float, half_length: float, density: float) -> MassProperties:
    """A solid capsule along z whose cylindrical part is 2 * half_length long."""
    rod = of_cylinder(radius, half_length, density)
    caps = of_sphere(radius, density)
    # a half sphere has its centre of mass 3/8 r off its flat face
    spread = half_length**2 + 2 * half_length * radius * 3 / 8
    side = rod.inertia[0, 0] + caps.inertia[0, 0] + caps.mass * spread
    return _centred(rod.mass + caps.mass, (side, side, rod.inertia[2, 2] + caps.inertia[2, 2]))


def of_mesh(vertices: Array, triangles: np.ndarray, density: float, is_closed: bool = True) -> MassProperties:
    """A solid bounded by a mesh with outward triangles (all turned inside out is accepted).

    Adds up the tetrahedra between the triangles and their centre, with the sign that the winding gives. A mesh that
    is not closed has no inside: its tetrahedra all count as positive, as MuJoCo counts them. Raises ValueError when
    the mesh holds no volume.
    """
    centre = _surface_centre(vertices, triangles)
    volumes, sums, _ = _tetrahedra(vertices - centre, triangles, is_closed)
    volume = float(volumes.sum())
    if abs(volume) <= 1e-12 * float(np.prod(np.ptp(vertices, axis=0)) or 1.0):
        raise ValueError("the mesh encloses no volume")
    com = centre + np.einsum("i,ij->j", volumes, sums) / (4 * volume)
    volumes, sums, corners = _tetrahedra(vertices - com, triangles, is_closed)
    second = np.einsum("i,ij,ik->jk", volumes, sums, sums) + np.einsum("i,ikj,ikl->jl", volumes, corners, corners)
    second = density * np.sign(volume) * second / 20  # second moments of the solid about its centre
    return MassProperties(density * abs(float(volumes.sum())), com, np.trace(second) * np.eye(3) - second)


def _surface_centre(vertices: Array, triangles: np.ndarray) -> Array:
    """Centre (3,) of the surface of a mesh."""
    corners = vertices[triangles]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    total = float(areas.sum())
    return corners.mean(axis=(0, 1)) if total <= 0 else np.asarray(areas @ corners.mean(axis=1) / total)


def _tetrahedra(vertices: Array, triangles: np.ndarray, signed: bool) -> tuple[Array, Array, Array]:
    """Volumes (T,), sums of the corners (T, 3), corners (T, 3, 3) of the tetrahedra between triangles and origin."""
    corners = vertices[triangles]
    volumes = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6
    return volumes if signed else np.abs(volumes), corners.sum(axis=1), corners


def of_shape(kind: str, size: Sequence[float], mesh: tuple[Array, np.ndarray] | None, density: float) -> MassProperties:
    """Mass properties of a collision shape (see asset.Shape) in its own frame."""
    if kind == "sphere":
        return of_sphere(size[0], density)
    if kind == "box":
        return of_box(size, density)
    if kind == "capsule":
        return of_capsule(size[0], size[1], density)
    if kind == "cylinder":
        return of_cylinder(size[0], size[1], density)
    if mesh is None:
        raise ValueError(f"a {kind} shape needs a mesh")
    return of_mesh(mesh[0], mesh[1], density)


def principal_moments(tensor: Array) -> Array:
    """Moments (3,) of an inertia tensor, ascending."""
    return np.asarray(np.linalg.eigvalsh((tensor + tensor.T) / 2), dtype=np.float64)


def breaks_triangle_rule(tensor: Array) -> bool:
    """True when no real body has these moments: the largest exceeds the sum of the others."""
    low, middle, high = principal_moments(tensor)
    return bool(high > (low + middle) * (1 + 1e-6))


def made_physical(tensor: Array) -> Array:
    """The tensor shifted by the smallest multiple of the unit matrix that makes its moments those of a real body."""
    low, middle, high = principal_moments(tensor)
    shift = max(0.0, high - low - middle, -2 * low)
    return tensor + (shift + 1e-3 * abs(high) * (shift > 0)) * np.eye(3)
