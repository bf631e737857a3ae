"""Where environments lie in the PhysX world, and how they are kept apart.

On CUDA, PhysX isolates environments by id, so all of them lie at the same place and coordinates stay small. On the CPU
nothing isolates them: they get cells of their own on the ground plane, or, where nothing inside an environment may
touch anything else in it, one collision group that filters itself. Bodies that leave their cell meet only bodies of
their own colour, so that an env's neighbours are never touched (how far around, ``colours`` says).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from isaacgym._enums import UP_AXIS_Z
from isaacgym.engine.scene import Actor, Env, Scene

CELL_GRID = 0.25
"""Cells are multiples of this (m): sums of positions and such anchors lose no bits near the origin."""
FREE_MARGIN = 1.0
MAX_GROUPS = 32
"""Collision groups that PhysX handles fast: with more, every clone call takes 20 times as long (measured)."""
MAX_PROTOTYPES = 32
"""Environments written out rather than cloned; with more, every clone call takes ten times as long (measured)."""

FAST_CLONE = 130
"""Copies in a clone call from which on PhysX clones in 1 ms a copy; below, 0.4 ms for each prototype (measured)."""
NEAREST = 3
"""Cells between envs of one colour, at least, that are not given up for fast cloning."""


def needs_true_place(scene: Scene) -> bool:
    """True when the ground is not the same everywhere, so that environments must lie where the user put them."""
    normals = {(round(p.normal.x, 6), round(p.normal.y, 6), round(p.normal.z, 6)) for p in scene.planes}
    return bool(scene.meshes) or len(normals) > 1


def anchors(scene: Scene, device: torch.device) -> np.ndarray:
    """World positions (num_envs, 3) of the env frames inside PhysX."""
    if needs_true_place(scene):
        return np.array([env.origin for env in scene.envs]).reshape(-1, 3)
    count = len(scene.envs)
    if device.type == "cuda" or count == 0:
        return np.zeros((count, 3))
    up, first, second = _ground_axes(scene)
    column, row = _cells(count)
    flat = (column[:, None] * first + row[:, None] * second) * _cell(scene.envs)
    # A tilted plane stands in the world: an env keeps its own height over it.
    height = np.array([env.origin for env in scene.envs]) @ up
    return flat + height[:, None] * up


def colours(count: int, num_classes: int, num_kinds: int) -> np.ndarray:
    """Colour (count,) of every env's cell, such that no two envs in a square of cells have the same.

    The square's edge is as large as MAX_GROUPS allows when every colour needs ``num_classes`` collision groups (five
    cells for one class, two for eight) and MAX_PROTOTYPES when it needs ``num_kinds`` prototypes; from NEAREST cells
    on it grows only if each colour has enough envs for FAST_CLONE.
    """
    limit = min(MAX_GROUPS // max(1, num_classes), MAX_PROTOTYPES // max(1, num_kinds))
    enough = max(NEAREST, math.isqrt(count // FAST_CLONE))
    block = max(1, min(math.isqrt(limit), enough))
    column, row = _cells(count)
    return column % block + block * (row % block)


def _cells(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Column and row of every env in a square grid around the origin."""
    side = math.ceil(math.sqrt(count))
    index = np.arange(count)
    return index % side - side // 2, index // side - side // 2


def _ground_axes(scene: Scene) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unit normal of the ground, and two orthogonal directions along which the ground does not change."""
    up = np.array([0.0, 0.0, 1.0]) if scene.params.up_axis == UP_AXIS_Z else np.array([0.0, 1.0, 0.0])
    if scene.planes:
        normal = scene.planes[0].normal
        up = np.array([normal.x, normal.y, normal.z])
    up = up / np.linalg.norm(up)
    helper = np.eye(3)[int(np.argmin(np.abs(up)))]
    first = np.cross(up, helper)
    first = first / np.linalg.norm(first)
    return up, first, np.cross(up, first)


def _cell(envs: Sequence[Env]) -> float:
    """Edge of a cell (m): room for the largest environment's bodies around its origin."""
    kinds = {tuple(actor.asset.uid for actor in env.actors): env for env in envs}
    reach = max((_reach(actor) for env in kinds.values() for actor in env.actors), default=0.0)
    wanted = max((float(max(env.extent[0], env.extent[1])) for env in kinds.values()), default=0.0)
    several = any(len(env.actors) > 1 for env in kinds.values())
    edge = max(2.0 * reach + FREE_MARGIN, wanted if several else 0.0)
    return math.ceil(edge / CELL_GRID) * CELL_GRID


def _reach(actor: Actor) -> float:
    """Horizontal distance from the env origin that the actor's bodies and shapes reach at the start."""
    model = actor.asset.model
    poses = model.forward_kinematics(actor.start_q())
    far = 0.0
    for pose, body in zip(poses, model.bodies, strict=True):
        for shape in body.shapes:
            if shape.mesh is not None:
                size = float(np.max(np.linalg.norm(shape.mesh[0], axis=1)))
            else:
                size = float(np.linalg.norm(shape.size))
            far = max(far, float(np.linalg.norm(pose[:3])) + float(np.linalg.norm(shape.pos)) + size)
    return far * actor.scale + float(np.linalg.norm(actor.pose[0][:2]))
