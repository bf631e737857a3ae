"""Setters: root and DOF states, drive targets and actuation forces, for all actors or for chosen ones.

Values come in Gym's order and env frame, full size, and reach PhysX at once: what is set before a step is visible to
that step, and a refresh in between gives it back (Isaac Gym API notes 9.9).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from isaacgym._enums import DOF_MODE_EFFORT, DOF_MODE_NONE, DOF_MODE_POS, DOF_MODE_VEL
from isaacgym.engine.groups import STATIC, Group
from isaacgym.engine.scene import Scene
from isaacgym.engine.state import State

TARGETS = {
    "DOF_ACTUATION_FORCE": (DOF_MODE_NONE, DOF_MODE_EFFORT),
    "DOF_POSITION_TARGET": (DOF_MODE_POS,),
    "DOF_VELOCITY_TARGET": (DOF_MODE_VEL,),
}
"""Which drive modes listen to which quantity; a DOF in another mode gets zero."""


class Control:
    """Writes states and targets of one simulation."""

    def __init__(self, scene: Scene, groups: Sequence[Group], state: State) -> None:
        """Keep what the setters need."""
        self.scene = scene
        self.groups = groups
        self.state = state
        self._listening: dict[str, torch.Tensor | None] = {}
        self._forces: torch.Tensor | None = None
        self._one_step: torch.Tensor | None = None
        self.modes_changed()

    def modes_changed(self) -> None:
        """Recompute which DOFs listen to which target after drive modes changed."""
        modes = np.concatenate([actor.dof_props["driveMode"] for actor in self.scene.actors] or [np.zeros(0, int)])
        for quantity, accepted in TARGETS.items():
            listening = np.isin(modes, [int(mode) for mode in accepted])
            mask = torch.as_tensor(listening, dtype=torch.float32, device=self.state.device)
            self._listening[quantity] = None if listening.all() else mask

    def set_root(self, values: torch.Tensor, actor_indices: torch.Tensor | None) -> None:
        """Set root states from ``values`` (A, 13), of all actors or of ``actor_indices`` (int32)."""
        self.state.written.record(values, actor_indices)
        pose = values[:, :7].clone()
        if self.state.shifted:
            pose[:, :3] += self.state.actor_anchors
        pose[:, 3:] = torch.nn.functional.normalize(pose[:, 3:], dim=1)
        velocity = values[:, 7:]
        for group in self.groups:
            group.write(group.root_pose, group.roots.get(pose).squeeze(1), actor_indices)
            if group.kind != STATIC:
                group.write(group.root_velocity, group.roots.get(velocity.contiguous()).squeeze(1), actor_indices)

    def set_dof(self, values: torch.Tensor, actor_indices: torch.Tensor | None) -> None:
        """Set DOF positions and velocities from ``values`` (D, 2)."""
        for group in self.groups:
            if group.num_dofs:
                blocks = group.dofs.get(values)
                for column, quantity in enumerate(("DOF_POSITION", "DOF_VELOCITY")):
                    group.write(quantity, group.dof_order.to_physx(blocks[..., column]), actor_indices)

    def set_target(self, quantity: str, values: torch.Tensor, actor_indices: torch.Tensor | None) -> None:
        """Set a quantity of ``TARGETS`` from ``values`` (D,): N m or N, rad or m, rad/s or m/s."""
        mask = self._listening[quantity]
        if mask is not None:
            values = values * mask
        for group in self.groups:
            if group.num_dofs:
                group.write(quantity, group.dof_order.to_physx(group.dofs.get(values)), actor_indices)

    def add_efforts(self, first_dof: int, efforts: np.ndarray) -> None:
        """Add efforts (N m or N) to DOFs from row ``first_dof`` on, for the next step only."""
        if self._one_step is None:
            self._one_step = torch.zeros(self.scene.num_dofs, device=self.state.device)
        values = torch.as_tensor(efforts, dtype=torch.float32, device=self.state.device)
        self._one_step[first_dof : first_dof + len(values)] += values

    def before_step(self) -> None:
        """Apply the one-step efforts on top of the persistent forces."""
        if self._one_step is not None:
            forces = self._gather("DOF_ACTUATION_FORCE")
            self.set_target("DOF_ACTUATION_FORCE", forces + self._one_step, None)
            self._forces = forces

    def after_step(self) -> None:
        """Take the one-step efforts back."""
        if self._forces is not None:
            self.set_target("DOF_ACTUATION_FORCE", self._forces, None)
            self._forces = self._one_step = None

    def _gather(self, quantity: str) -> torch.Tensor:
        """Current values (D,) of a target quantity in Gym's order."""
        values = torch.zeros(self.scene.num_dofs, device=self.state.device)
        for group in self.groups:
            if group.num_dofs:
                group.dofs.put(values, group.dof_order.to_gym(group.read(quantity)))
        return values
