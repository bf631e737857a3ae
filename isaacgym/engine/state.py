"""State tensors: what ``acquire_*`` hands out and ``refresh_*`` fills.

Each quantity has one persistent torch buffer, made when it is acquired; only refreshes fill it (Isaac Gym API notes
9.8). Positions are env-local: the anchor of the env (where the env's frame lies in the PhysX world) is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from isaacgym.engine.groups import ARTICULATION, STATIC, Group
from isaacgym.engine.scene import Scene


class WrittenRoots:
    """Root states that were set since the last step.

    Adding and subtracting an anchor rounds, so a refresh right after a set gives back these instead of PhysX's values.
    """

    def __init__(self, num_actors: int, device: torch.device) -> None:
        """Start with nothing written."""
        self._values = torch.zeros(num_actors, 13, device=device)
        self._rows = torch.zeros(num_actors, 1, dtype=torch.bool, device=device)
        self._active = False

    def record(self, values: torch.Tensor, actor_indices: torch.Tensor | None) -> None:
        """Remember rows of ``values`` (A, 13): all, or those of ``actor_indices``."""
        if actor_indices is None:
            self._values.copy_(values)
            self._rows.fill_(True)
        else:
            rows = actor_indices.long()
            self._values.index_copy_(0, rows, values.index_select(0, rows))
            self._rows.index_fill_(0, rows, True)
        self._active = True

    def overlay(self, buffer: torch.Tensor) -> None:
        """Put the remembered rows into ``buffer`` (A, 13)."""
        if self._active:
            torch.where(self._rows, self._values, buffer, out=buffer)

    def forget(self) -> None:
        """Forget all: a step has moved the bodies."""
        if self._active:
            self._rows.fill_(False)
            self._active = False


class State:
    """The state tensors of one simulation."""

    def __init__(self, scene: Scene, groups: Sequence[Group], anchors: np.ndarray, device: torch.device) -> None:
        """Prepare the maps; no tensor is made before it is acquired."""
        self.scene = scene
        self.groups = groups
        self.device = device
        actor_anchors = np.array([anchors[actor.env.index] for actor in scene.actors]).reshape(-1, 3)
        body_counts = torch.tensor([actor.num_bodies for actor in scene.actors], dtype=torch.int64, device=device)
        self.actor_anchors = torch.as_tensor(actor_anchors, dtype=torch.float32, device=device)
        self.body_anchors = self.actor_anchors.repeat_interleave(body_counts, dim=0)
        self.shifted = bool(np.any(actor_anchors != 0.0))
        self.written = WrittenRoots(len(scene.actors), device)
        self._root: torch.Tensor | None = None
        self._dof: torch.Tensor | None = None
        self._body: torch.Tensor | None = None
        self._dof_force: torch.Tensor | None = None

    @property
    def root(self) -> torch.Tensor:
        """(A, 13) root states: position, quaternion xyzw, linear and angular velocity; env frame, world axes."""
        if self._root is None:
            self._root = torch.zeros(len(self.scene.actors), 13, device=self.device)
            self.refresh_root()
        return self._root

    @property
    def dof(self) -> torch.Tensor:
        """(D, 2) DOF positions and velocities, rad or m."""
        if self._dof is None:
            self._dof = torch.zeros(self.scene.num_dofs, 2, device=self.device)
            self.refresh_dof()
        return self._dof

    @property
    def body(self) -> torch.Tensor:
        """(B, 13) body states, columns as in ``root``."""
        if self._body is None:
            self._body = torch.zeros(self.scene.num_bodies, 13, device=self.device)
            self.refresh_body()
        return self._body

    @property
    def dof_force(self) -> torch.Tensor:
        """(D,) generalised force at each DOF in the last step, zero where the actor's sensors are off."""
        if self._dof_force is None:
            self._dof_force = torch.zeros(self.scene.num_dofs, device=self.device)
            flags = [np.full(a.num_dofs, a.dof_force_sensors) for a in self.scene.actors]
            enabled = np.concatenate([np.zeros(0), *flags])
            self._dof_force_on = torch.as_tensor(enabled, dtype=torch.float32, device=self.device)
        return self._dof_force

    def snapshot_bodies(self) -> torch.Tensor:
        """Fresh body states (B, 13), without touching the acquired buffer."""
        body = torch.zeros(self.scene.num_bodies, 13, device=self.device)
        self._read_bodies(body)
        return body

    def snapshot_dofs(self) -> torch.Tensor:
        """Fresh DOF states (D, 2), without touching the acquired buffer."""
        dof = torch.zeros(self.scene.num_dofs, 2, device=self.device)
        self._read_dofs(dof)
        return dof

    def refresh_root(self) -> None:
        """Fill ``root`` from PhysX."""
        root = self.root
        for group in self.groups:
            group.roots.put_columns(root, slice(0, 7), group.read(group.root_pose).unsqueeze(1))
            if group.kind != STATIC:
                group.roots.put_columns(root, slice(7, 13), group.read(group.root_velocity).unsqueeze(1))
        if self.shifted:
            root[:, :3].sub_(self.actor_anchors)
        self.written.overlay(root)

    def refresh_dof(self) -> None:
        """Fill ``dof`` from PhysX."""
        self._read_dofs(self.dof)

    def _read_dofs(self, dof: torch.Tensor) -> None:
        for group in self.groups:
            if group.num_dofs:
                for column, quantity in enumerate(("DOF_POSITION", "DOF_VELOCITY")):
                    values = group.dof_order.to_gym(group.read(quantity)).unsqueeze(-1)
                    group.dofs.put_columns(dof, slice(column, column + 1), values)

    def refresh_body(self) -> None:
        """Fill ``body`` from PhysX."""
        self._read_bodies(self.body)

    def _read_bodies(self, body: torch.Tensor) -> None:
        for group in self.groups:
            if group.kind == ARTICULATION:
                pose = group.body_order.to_gym(group.read("LINK_POSE"))
                group.bodies.put_columns(body, slice(7, 13), group.body_order.to_gym(group.read("LINK_VELOCITY")))
            else:
                pose = group.read("POSE").unsqueeze(1)
                if group.kind != STATIC:
                    group.bodies.put_columns(body, slice(7, 13), group.read("VELOCITY").unsqueeze(1))
            group.bodies.put_columns(body, slice(0, 7), pose)
        if self.shifted:
            body[:, :3].sub_(self.body_anchors)

    def refresh_dof_force(self) -> None:
        """Fill ``dof_force`` from PhysX."""
        force = self.dof_force
        for group in self.groups:
            if group.num_dofs:
                group.dofs.put(force, group.dof_order.to_gym(group.read("DOF_PROJECTED_JOINT_FORCE")))
        force.mul_(self._dof_force_on)
