"""The list of single contacts (Isaac Gym API notes 9.7), for debugging; net forces are in ``contacts``."""

from __future__ import annotations

import logging

import numpy as np

from isaacgym._enums import CC_NEVER
from isaacgym._values import RIGID_CONTACT_DTYPE
from isaacgym.engine.contacts import BODIES, Contacts, body_of
from isaacgym.engine.runtime import ContactListBinding, Runtime
from isaacgym.engine.scene import Scene
from isaacgym.engine.state import State

_logger = logging.getLogger(__name__)

MIN_CAPACITY = 256
CONTACTS_PER_BODY = 16
NOBODY = (-1, -1, -1)


class ContactList:
    """Reads the contacts of the last substep; nothing is bound before the first read."""

    def __init__(self, scene: Scene, runtime: Runtime, state: State, net_force: Contacts) -> None:
        """Keep what a read needs."""
        self._net_force = net_force
        self._grown = 0
        self._scene = scene
        self._runtime = runtime
        self._state = state
        self._binding: ContactListBinding | None = None

    def read(self) -> np.ndarray:
        """Contacts as a structured array of RIGID_CONTACT_DTYPE, each pair of bodies once.

        ``body0`` and ``body1`` are indices in the env (-1: ground or terrain, env -1), ``normal`` points from body 0
        to body 1 (world axes), ``lambda`` is the normal force (N), positions are in the frames of the bodies (of the
        world for ground and terrain). PhysX does not report what the other fields hold: they are 0.
        """
        if self._scene.params.physx.contact_collection == CC_NEVER or not self._scene.num_bodies:
            return np.zeros(0, RIGID_CONTACT_DTYPE)
        count, binding = self._read()
        sensors = np.array([self._ids(path) for path in binding.paths], np.int64).reshape(-1, 3)
        rows, first = _rows_of(binding.layout.cpu().numpy(), count)
        second = np.array([self._ids(path) for path in binding.others(count)], np.int64).reshape(-1, 3)[rows]
        # A pair of bodies appears in the list of either: the one with the lower number keeps it.
        kept = (second[:, 2] < 0) | (sensors[first, 2] < second[:, 2])
        return self._rows(binding, rows[kept], sensors[first[kept]], second[kept])

    def _read(self) -> tuple[int, ContactListBinding]:
        """Read the list of the last step; what does not fit is left out, with a warning, and fits from then on.

        PhysX keeps contacts for bindings that were made before the step, and for the first one of a scene.
        """
        if self._binding is None:
            if self._net_force.is_bound:
                _logger.warning("rigid contacts are listed from now on: this first list, of a past step, is empty")
            self._bind(max(MIN_CAPACITY, CONTACTS_PER_BODY * self._scene.num_bodies))
        assert self._binding is not None
        binding = self._binding
        count = binding.read()
        if count > binding.capacity:
            _logger.warning("%d of %d rigid contacts are listed; from the next step on all", binding.capacity, count)
            self._grown = 2 * count
        return min(count, binding.capacity), binding

    def grow(self) -> None:
        """Make room, before a step, for what did not fit after the last one."""
        if self._grown:
            self._bind(self._grown)
            self._grown = 0

    def _bind(self, capacity: int) -> None:
        if self._binding is not None:
            self._binding.destroy()
        self._binding = self._runtime.bind_contact_list([BODIES], capacity)

    def _ids(self, path: str) -> tuple[int, int, int]:
        """Env, body in the env and body in the simulation of a prim path."""
        found = body_of(path, self._scene)
        if found is None:
            return NOBODY
        actor, body = found
        return actor.env.index, actor.env_body_start + body, actor.body_start + body

    def _rows(self, binding: ContactListBinding, rows: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Fill the list from the chosen rows of PhysX's; ``first`` and ``second`` are (n, 3) as in ``_ids``."""
        made = np.zeros(len(rows), RIGID_CONTACT_DTYPE)
        made["env0"], made["body0"] = first[:, 0], first[:, 1]
        made["env1"], made["body1"] = second[:, 0], second[:, 1]
        force = binding.force.cpu().numpy()[rows]
        made["lambda"] = np.abs(force)
        made["initial_overlap"] = -binding.separation.cpu().numpy()[rows]
        towards_second = -np.where(force < 0.0, -1.0, 1.0)[:, None] * binding.normal.cpu().numpy()[rows]
        position = binding.position.cpu().numpy()[rows].astype(np.float64)
        bodies = self._state.snapshot_bodies()[:, :7]
        bodies[:, :3] += self._state.body_anchors
        # One more row, for ground and terrain: the world's own frame. Index -1 is the last row.
        frames = np.vstack([bodies.cpu().numpy(), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]])
        local = [_to_local(frames[ids[:, 2]], position) for ids in (first, second)]
        for name, vectors in (("local_pos0", local[0]), ("local_pos1", local[1]), ("normal", towards_second)):
            for axis, component in zip("xyz", vectors.T, strict=True):
                made[name][axis] = component
        return made


def _rows_of(layout: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and sensor of every contact, sensor by sensor; ``layout`` (S, 2): number of contacts, first row."""
    sensors = np.repeat(np.arange(len(layout)), layout[:, 0])
    starts = np.repeat(layout[:, 1], layout[:, 0])
    within = np.arange(len(sensors)) - np.repeat(np.cumsum(layout[:, 0]) - layout[:, 0], layout[:, 0])
    rows = starts + within
    return rows[rows < count], sensors[rows < count]


def _to_local(frames: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points (n, 3) in the frames (n, 7) of bodies."""
    offset, axis = points - frames[:, :3], -frames[:, 3:6]
    twice = 2.0 * np.cross(axis, offset)
    return offset + frames[:, 6:] * twice + np.cross(axis, twice)
