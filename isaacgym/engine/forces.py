"""External forces and torques on bodies, for the next step only (Isaac Gym API notes 9.10)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from isaacgym._enums import ENV_SPACE, LOCAL_SPACE
from isaacgym.engine.groups import ARTICULATION, STATIC, Group
from isaacgym.engine.scene import Scene
from isaacgym.engine.state import State
from isaacgym.torch_utils import quat_rotate


class ExternalForces:
    """Adds up the forces asked for and hands them to PhysX before every substep of the next step."""

    def __init__(self, scene: Scene, groups: Sequence[Group], state: State) -> None:
        """Nothing is allocated before the first force."""
        self._scene = scene
        self._groups = groups
        self._state = state
        self._force: torch.Tensor | None = None
        self._active = False

    def add(
        self, force: torch.Tensor | None, torque: torch.Tensor | None, pos: torch.Tensor | None, space: int
    ) -> None:
        """Add forces and torques, (B, 3) each, newton and N m, to those of the next step.

        ``pos`` (B, 3) is where the forces act, in the space given; without it they act at the centres of mass.
        """
        count = self._scene.num_bodies
        if self._force is None:
            self._force = torch.zeros(count, 3, device=self._state.device)
            self._torque = torch.zeros(count, 3, device=self._state.device)
        body = self._state.snapshot_bodies()
        quat = body[:, 3:7]
        if force is not None:
            force = force.view(count, 3)
            force = quat_rotate(quat, force) if space == LOCAL_SPACE else force
            self._force += force
            if pos is not None:
                arm = self._arm(body, pos.view(count, 3), space)
                self._torque += torch.cross(arm, force, dim=1)
        if torque is not None:
            torque = torque.view(count, 3)
            self._torque += quat_rotate(quat, torque) if space == LOCAL_SPACE else torque
        self._active = True

    def _arm(self, body: torch.Tensor, pos: torch.Tensor, space: int) -> torch.Tensor:
        """Vectors (B, 3) from the centres of mass to the points of attack, world axes."""
        com = np.concatenate([actor.body_props["com"] for actor in self._scene.actors])
        com_local = torch.as_tensor(com, dtype=torch.float32, device=self._state.device)
        if space == LOCAL_SPACE:
            return quat_rotate(body[:, 3:7], pos - com_local)
        if space != ENV_SPACE:
            pos = pos - self._world_offset()
        return pos - (body[:, :3] + quat_rotate(body[:, 3:7], com_local))

    def _world_offset(self) -> torch.Tensor:
        """(B, 3) env origins: points in the global frame minus these are env-local."""
        origins = [np.repeat(actor.env.origin[None], actor.num_bodies, axis=0) for actor in self._scene.actors]
        return torch.as_tensor(np.concatenate(origins), dtype=torch.float32, device=self._state.device)

    def write(self) -> None:
        """Hand the forces to PhysX, which consumes them in one substep."""
        if not self._active or self._force is None:
            return
        for group in self._groups:
            if group.kind == STATIC:
                continue
            articulated = group.kind == ARTICULATION
            quantity = "LINK_WRENCH" if articulated else "WRENCH"
            wrench = group.stage(quantity).zero_().view(len(group.actors), group.num_bodies, 9)
            com = self._com_world(group)
            for columns, values in ((slice(0, 3), self._force), (slice(3, 6), self._torque)):
                wrench[..., columns] = group.body_order.to_physx(group.bodies.get(values))
            wrench[..., 6:9] = group.body_order.to_physx(com)
            group.binding(quantity).write(group.stage(quantity))

    def _com_world(self, group: Group) -> torch.Tensor:
        """(n, B, 3) centres of mass of a group's bodies in the PhysX world, Gym's order."""
        pose = group.read("LINK_POSE") if group.kind == ARTICULATION else group.read("POSE").unsqueeze(1)
        pose = group.body_order.to_gym(pose)
        com = np.stack([actor.body_props["com"] for actor in group.actors])
        local = torch.as_tensor(com, dtype=torch.float32, device=pose.device)
        return pose[..., :3] + quat_rotate(pose[..., 3:].reshape(-1, 4), local.reshape(-1, 3)).view_as(local)

    def clear(self) -> None:
        """Drop the forces after a step."""
        if self._active and self._force is not None:
            self._force.zero_()
            self._torque.zero_()
            self._active = False
