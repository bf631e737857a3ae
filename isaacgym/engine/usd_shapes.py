"""Collision shapes as USD prims."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, Vt

from isaacgym.engine.asset import Shape


def define(stage: Usd.Stage, path: str, shape: Shape, scale: float, options: Any) -> Usd.Prim:
    """Define the prim of a shape, without pose and material."""
    size = [value * scale for value in shape.size]
    if shape.kind == "sphere":
        sphere = UsdGeom.Sphere.Define(stage, path)
        sphere.CreateRadiusAttr(size[0])
        return sphere.GetPrim()
    if shape.kind == "capsule":
        capsule = UsdGeom.Capsule.Define(stage, path)
        capsule.CreateRadiusAttr(size[0])
        capsule.CreateHeightAttr(2.0 * size[1])
        capsule.CreateAxisAttr("Z")
        return capsule.GetPrim()
    if shape.kind == "box":
        box = UsdGeom.Cube.Define(stage, path)
        box.CreateSizeAttr(2.0)
        box.AddScaleOp().Set(Gf.Vec3f(*map(float, size)))
        return box.GetPrim()
    if shape.kind == "cylinder":
        return _convex(stage, path, _cylinder_points(size[0], size[1], int(options.slices_per_cylinder)), None)
    if shape.mesh is None:
        raise ValueError(f"shape {shape.name!r} of kind {shape.kind!r} has no mesh")
    vertices, triangles = shape.mesh
    if shape.kind == "hull":
        return _convex(stage, path, np.asarray(vertices) * scale, triangles)
    prim = define_mesh(stage, path, np.asarray(vertices) * scale, triangles)
    approximation = UsdPhysics.Tokens.none if shape.kind == "trimesh" else UsdPhysics.Tokens.convexDecomposition
    UsdPhysics.MeshCollisionAPI.Apply(prim).CreateApproximationAttr(approximation)
    if shape.kind == "decomposition":
        _set_decomposition(prim, options.vhacd_params)
    return prim


def define_mesh(stage: Usd.Stage, path: str, vertices: np.ndarray, triangles: np.ndarray) -> Usd.Prim:
    """Define a triangle mesh prim from (V, 3) vertices and (T, 3) indices."""
    mesh = UsdGeom.Mesh.Define(stage, path)
    mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(vertices, np.float32)))
    indices = np.ascontiguousarray(triangles, np.int32).reshape(-1)
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(indices))
    mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(indices) // 3, 3, np.int32)))
    return mesh.GetPrim()


def _convex(stage: Usd.Stage, path: str, points: np.ndarray, triangles: np.ndarray | None) -> Usd.Prim:
    """Define a mesh that PhysX takes as its convex hull; without triangles the hull itself is computed here."""
    if triangles is None:
        from scipy.spatial import ConvexHull

        triangles = ConvexHull(points).simplices
    prim = define_mesh(stage, path, points, triangles)
    UsdPhysics.MeshCollisionAPI.Apply(prim).CreateApproximationAttr(UsdPhysics.Tokens.convexHull)
    return prim


def _cylinder_points(radius: float, half_length: float, slices: int) -> np.ndarray:
    """Corner points of a prism with ``slices`` side faces around z."""
    angles = [2.0 * math.pi * i / slices for i in range(slices)]
    ring = [(radius * math.cos(a), radius * math.sin(a)) for a in angles]
    return np.array([(x, y, z) for z in (-half_length, half_length) for x, y in ring])


def _set_decomposition(prim: Usd.Prim, vhacd: Any) -> None:
    """V-HACD's parameters in PhysX's terms; the two algorithms do not give the same hulls."""
    prim.AddAppliedSchema("PhysxConvexDecompositionCollisionAPI")
    prefix = "physxConvexDecompositionCollision"
    for name, kind, value in (
        ("maxConvexHulls", "Int", int(vhacd.max_convex_hulls)),
        ("hullVertexLimit", "Int", min(64, int(vhacd.max_num_vertices_per_ch))),
        ("voxelResolution", "Int", int(vhacd.resolution)),
    ):
        prim.CreateAttribute(f"{prefix}:{name}", getattr(Sdf.ValueTypeNames, kind)).Set(value)
