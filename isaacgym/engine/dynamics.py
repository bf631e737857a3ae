"""Jacobians and mass matrices of articulations (Isaac Gym API notes 9.13)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from isaacgym.engine.groups import ARTICULATION, Group
from isaacgym.engine.scene import Scene

ROOT_COLUMNS = 6
"""A floating base comes first: linear xyz, angular xyz."""


class Dynamics:
    """Jacobian and mass matrix tensors, by actor name."""

    def __init__(self, scene: Scene, groups: Sequence[Group], device: torch.device) -> None:
        """Nothing is read before a tensor is acquired."""
        self._scene = scene
        self._groups = groups
        self._device = device
        self._jacobians: dict[str, tuple[Group, torch.Tensor]] = {}
        self._masses: dict[str, tuple[Group, torch.Tensor]] = {}

    def jacobian(self, name: str) -> torch.Tensor | None:
        """Jacobians of the actors of that name, linear rows before angular rows, world axes.

        (envs, links - 1, 6, D) with a fixed base, (envs, links, 6, D + 6) with a floating one. None unless every env
        holds exactly one such actor and all of them are equal.
        """
        if name not in self._jacobians:
            group = self._group_of(name)
            if group is None:
                return None
            model = group.actors[0].asset.model
            fixed = int(model.fixed_base)
            shape = (len(group.actors), group.num_bodies - fixed, 6, group.num_dofs + ROOT_COLUMNS * (1 - fixed))
            self._jacobians[name] = (group, torch.zeros(shape, device=self._device))
            self.refresh_jacobians()
        return self._jacobians[name][1]

    def mass_matrix(self, name: str) -> torch.Tensor | None:
        """Joint space mass matrices (envs, D, D) of the actors of that name, armature included; None as above."""
        if name not in self._masses:
            group = self._group_of(name)
            if group is None:
                return None
            shape = (len(group.actors), group.num_dofs, group.num_dofs)
            self._masses[name] = (group, torch.zeros(shape, device=self._device))
            self.refresh_mass_matrices()
        return self._masses[name][1]

    def _group_of(self, name: str) -> Group | None:
        named = [actor for actor in self._scene.actors if actor.name == name]
        envs = {actor.env.index for actor in named}
        for group in self._groups:
            if group.kind == ARTICULATION and {a.index for a in group.actors} == {a.index for a in named}:
                return group if len(envs) == len(named) == len(self._scene.envs) else None
        return None

    def refresh_jacobians(self) -> None:
        """Fill the acquired Jacobians: PhysX's rows and columns in Gym's order, envs in order."""
        for group, out in self._jacobians.values():
            fixed = out.shape[1] != group.num_bodies
            raw = group.read("JACOBIAN").view(len(group.actors), out.shape[1], 6, out.shape[3])
            links = [i - 1 for i in group.body_order.order[1:]] if fixed else group.body_order.order
            out[self._env_rows(group)] = raw[:, links][..., self._columns(group, fixed)]

    def refresh_mass_matrices(self) -> None:
        """Fill the acquired mass matrices."""
        for group, out in self._masses.values():
            fixed = group.actors[0].asset.model.fixed_base
            columns = self._columns(group, fixed)[0 if fixed else ROOT_COLUMNS :]
            raw = group.read("MASS_MATRIX")
            out[self._env_rows(group)] = raw[:, columns][:, :, columns]

    @staticmethod
    def _columns(group: Group, fixed: bool) -> list[int]:
        """PhysX column of every Gym column."""
        offset = 0 if fixed else ROOT_COLUMNS
        return list(range(offset)) + [offset + column for column in group.dof_order.order]

    @staticmethod
    def _env_rows(group: Group) -> torch.Tensor:
        return torch.tensor([actor.env.index for actor in group.actors], device=group.device)
