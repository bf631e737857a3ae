"""How deep a block lies inside the shapes of a hand, by geometry alone (no help from the simulator)."""

from pathlib import Path

from isaacgym import gymtorch  # isort: skip
import numpy as np
import torch

from isaacgym import gymapi
from isaacgym.engine import read_mjcf, read_urdf
from isaacgym.torch_utils import quat_rotate, quat_rotate_inverse


def hand_shapes(path: Path):
    """(body index, shape) of every collision shape of an asset file with its fixed joints merged."""
    options = gymapi.AssetOptions()
    options.collapse_fixed_joints = True
    asset = (read_urdf if path.suffix == ".urdf" else read_mjcf).load(path, options)
    return [(index, shape) for index, body in enumerate(asset.bodies) for shape in body.shapes]


def surface_points(edge: float, per_side: int = 15) -> torch.Tensor:
    """Points (P, 3) on the surface of a cube."""
    ticks = np.linspace(-edge / 2, edge / 2, per_side)
    grid = np.stack(np.meshgrid(ticks, ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 3)
    on_surface = np.isclose(np.abs(grid).max(axis=1), edge / 2)
    return torch.tensor(grid[on_surface], dtype=torch.float32)


def signed_distance(shape, points: torch.Tensor) -> torch.Tensor:
    """Distance (...,) of points (..., 3) in the shape's frame to its surface, negative inside."""
    if shape.kind == "box":
        outside = points.abs() - torch.tensor(shape.size, dtype=torch.float32)
        return outside.clamp(min=0).norm(dim=-1) + outside.amax(dim=-1).clamp(max=0)
    radius, half = (shape.size[0], 0.0) if shape.kind == "sphere" else shape.size
    if shape.kind == "cylinder":
        gaps = torch.stack((points[..., :2].norm(dim=-1) - radius, points[..., 2].abs() - half), dim=-1)
        return gaps.clamp(min=0).norm(dim=-1) + gaps.amax(dim=-1).clamp(max=0)
    assert shape.kind in ("capsule", "sphere")
    along = points[..., 2].clamp(-half, half)
    return torch.cat((points[..., :2], (points[..., 2] - along)[..., None]), dim=-1).norm(dim=-1) - radius


class Penetration:
    """Measures a running hand task."""

    def __init__(self, task, hand_file: Path, edge: float) -> None:
        self.task = task
        self.shapes = hand_shapes(hand_file)
        self.points = surface_points(edge)
        bodies = gymtorch.wrap_tensor(task.gym.acquire_rigid_body_state_tensor(task.sim))
        self.bodies = bodies.view(task.num_envs, -1, 13)

    def depth(self) -> torch.Tensor:
        """Deepest point (N,) of every block inside the hand (m), 0 where they are apart."""
        task, n, p = self.task, self.task.num_envs, len(self.points)
        task.gym.refresh_rigid_body_state_tensor(task.sim)
        thing = task.actors[:, 1]
        points = quat_rotate(thing[:, 3:7].repeat_interleave(p, 0), self.points.repeat(n, 1)).view(n, p, 3)
        points = points + thing[:, None, :3]
        deepest = torch.zeros(n)
        for index, shape in self.shapes:
            body = self.bodies[:, index]
            local = (points - body[:, None, :3]).reshape(-1, 3)
            local = quat_rotate_inverse(body[:, 3:7].repeat_interleave(p, 0), local)
            local = local - torch.tensor(shape.pos, dtype=torch.float32)
            quat = torch.tensor(shape.quat, dtype=torch.float32).repeat(n * p, 1)
            local = quat_rotate_inverse(quat, local).view(n, p, 3)
            deepest = torch.maximum(deepest, -signed_distance(shape, local).amin(dim=1))
        return deepest
