"""Mesh files for collision shapes: finding them, reading them, and their convex hulls.

A mesh is the pair (vertices (V, 3) float64, triangles (T, 3) int64). obj and stl are read through trimesh, dae by
collada.py. Materials, normals and textures are ignored.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import trimesh
from scipy.spatial import QhullError

from isaacgym.engine import collada
from isaacgym.engine.spatial import Array

Mesh = tuple[Array, np.ndarray]

FORMATS = (".obj", ".stl", ".dae")
FLAT = 1e-3
"""Half thickness (m) given to meshes that are flat."""


def resolve(filename: str, folder: Path, asset_root: Path | None = None) -> Path:
    """The file meant by ``filename`` in an asset that lies in ``folder``.

    A leading ``scheme://`` is stripped. Tried in turn: the folder, each of its parents, the asset root, the folders of
    ROS_PACKAGE_PATH; then the same without the package name, for checkouts under another name. Raises
    FileNotFoundError that lists where it looked.
    """
    scheme, found, rest = filename.partition("://")
    name = rest if found else filename
    if Path(name).is_absolute() and (not found or scheme == "file"):
        if Path(name).is_file():
            return Path(name)
        raise FileNotFoundError(f"no file {name}")
    name = name.lstrip("/")
    here = folder.resolve()
    folders = [here, *here.parents, *([asset_root.resolve()] if asset_root else []), *_ros_package_folders()]
    names = [name]
    if scheme == "package" and "/" in name:
        names.append(name.split("/", 1)[1])
    for candidate in (place / each for each in names for place in folders):
        if candidate.is_file():
            return candidate.resolve()
    raise FileNotFoundError(f"no file '{name}' in {here}, its parents, the asset root or ROS_PACKAGE_PATH")


def _ros_package_folders() -> list[Path]:
    entries = [Path(entry) for entry in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if entry]
    return [folder for entry in entries for folder in (entry, entry.parent)]


def load_parts(path: Path) -> list[Mesh]:
    """Sub-meshes of a file (objects or groups of an obj, geometries of a dae); raises ValueError when unreadable."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"mesh format '{suffix}' of {path.name}; allowed is {', '.join(FORMATS)}")
    try:
        if suffix == ".dae":
            parts = collada.load(path)
        else:
            options = {"split_objects": True, "split_groups": True} if suffix == ".obj" else {}
            scene = trimesh.load_scene(str(path), process=False, skip_materials=True, **options)
            parts = [(np.array(m.vertices, dtype=np.float64), np.array(m.faces)) for m in _meshes_of(scene)]
    except (OSError, KeyError, IndexError, TypeError) as problem:
        raise ValueError(f"mesh {path.name} cannot be read: {problem}") from None
    parts = [part for part in parts if len(part[1])]
    if not parts:
        raise ValueError(f"mesh {path.name} has no triangles")
    return parts


def _meshes_of(scene: trimesh.Scene) -> list[trimesh.Trimesh]:
    return [mesh for mesh in scene.dump() if isinstance(mesh, trimesh.Trimesh)]


def joined(parts: list[Mesh]) -> Mesh:
    """All parts as one mesh."""
    starts = np.cumsum([0] + [len(vertices) for vertices, _ in parts[:-1]])
    triangles = [faces + start for (_, faces), start in zip(parts, starts, strict=True)]
    return np.concatenate([vertices for vertices, _ in parts]), np.concatenate(triangles)


def scaled(mesh: Mesh, scale: Array) -> Mesh:
    """The mesh with its axes scaled (3,); an odd number of mirrored axes turns the triangles over again."""
    vertices, triangles = mesh
    return vertices * scale, triangles[:, ::-1] if np.prod(scale) < 0 else triangles


def hull(vertices: Array) -> tuple[Mesh, bool]:
    """The convex hull of points (N, 3), and whether they were so flat that the hull is their thickened bounding box."""
    try:
        solid = trimesh.convex.convex_hull(np.asarray(vertices))
        if solid.volume > 1e-15:
            return (np.array(solid.vertices, dtype=np.float64), np.array(solid.faces)), False
    except (QhullError, ValueError):
        pass
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    extents = np.maximum(high - low, 2 * FLAT)
    box = trimesh.creation.box(extents=extents)
    return (np.array(box.vertices) + (low + high) / 2, np.array(box.faces)), True


def is_closed(mesh: Mesh) -> bool:
    """True when every edge has two triangles, so that the mesh bounds a solid."""
    welded = trimesh.Trimesh(mesh[0], mesh[1], process=True)
    return bool(welded.is_watertight and welded.is_winding_consistent)


def ellipsoid(radii: Array) -> Mesh:
    """A convex mesh of 162 points on an ellipsoid."""
    ball = trimesh.creation.icosphere(subdivisions=2, radius=1.0)
    return np.array(ball.vertices) * radii, np.array(ball.faces)
