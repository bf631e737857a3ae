"""Net contact forces of all bodies (Isaac Gym API notes 9.11)."""

from __future__ import annotations

import re

import torch

from isaacgym._enums import CC_ALL_SUBSTEPS, CC_NEVER
from isaacgym.engine.runtime import ContactBinding, Runtime
from isaacgym.engine.scene import Actor, Scene
from isaacgym.engine.usd_basics import ENVS_PATH

BODIES = f"{ENVS_PATH}/*/*/b*"
_PATH = re.compile(rf"{ENVS_PATH}/e(\d+)/[krs]\d+_(\d+)/b(\d+)")


def body_of(path: str, scene: Scene) -> tuple[Actor, int] | None:
    """Actor and body index of a prim path, None for ground and terrain."""
    match = _PATH.fullmatch(path)
    return None if match is None else (scene.envs[int(match[1])].actors[int(match[2])], int(match[3]))


class Contacts:
    """Collects contact forces after every substep, once somebody has acquired the tensor."""

    def __init__(self, scene: Scene, runtime: Runtime) -> None:
        """Nothing is bound or read before ``net_force`` is asked for."""
        self._scene = scene
        self._runtime = runtime
        self._mode = scene.params.physx.contact_collection
        self._binding: ContactBinding | None = None
        self._buffer: torch.Tensor | None = None

    @property
    def net_force(self) -> torch.Tensor:
        """(B, 3) net contact force on each body in the last step, newton, world axes."""
        if self._buffer is None:
            self._buffer = torch.zeros(self._scene.num_bodies, 3, device=self._runtime.device)
            self._sum = torch.zeros_like(self._buffer)
            self._bind()
        return self._buffer

    @property
    def is_bound(self) -> bool:
        """Whether forces are collected."""
        return self._binding is not None

    def _bind(self) -> None:
        if self._mode != CC_NEVER and self._scene.num_bodies:
            self._binding = self._runtime.bind_contacts([BODIES])
            rows = [self._row_of(path) for path in self._binding.paths]
            self._rows = torch.as_tensor(rows, dtype=torch.int64, device=self._runtime.device)

    def _row_of(self, path: str) -> int:
        found = body_of(path, self._scene)
        if found is None:
            raise RuntimeError(f"PhysX lists {path}, which is no body of this scene")
        return found[0].body_start + found[1]

    def collect(self, substep: int) -> None:
        """Read the forces of the substep just made, if they are wanted."""
        if self._binding is None:
            return
        last = substep == self._scene.params.substeps - 1
        if self._mode != CC_ALL_SUBSTEPS and not last:
            return
        self._binding.read()
        if substep == 0 or self._mode != CC_ALL_SUBSTEPS:
            self._sum.zero_()
        self._sum.index_add_(0, self._rows, self._binding.normal)
        self._sum.index_add_(0, self._rows, self._binding.friction)

    def refresh(self) -> None:
        """Fill ``net_force``: the last substep's force, or the mean over the substeps."""
        force = self.net_force
        force.copy_(self._sum)
        if self._mode == CC_ALL_SUBSTEPS:
            force.div_(self._scene.params.substeps)
