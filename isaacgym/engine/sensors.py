"""Force sensors on articulation links (Isaac Gym API notes 9.12), from the motion of the link.

PhysX 5 has no such sensor. The total spatial force on a link is its mass times acceleration, and the part from
contacts is the net contact force; the forward-dynamics part is their difference. This is an approximation of Isaac
Gym's sensor, whose internal conventions are not published.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from isaacgym.engine.contacts import Contacts
from isaacgym.engine.groups import ARTICULATION, Blocks, Group, LinkRows
from isaacgym.engine.scene import Scene

_logger = logging.getLogger(__name__)


class _GroupSensors:
    """The sensors of one group of equal articulations."""

    def __init__(self, group: Group, device: torch.device) -> None:
        first = group.actors[0]
        sensors = first.asset.model.force_sensors
        self.group = group
        self.count = len(sensors)
        self.rows = Blocks(np.array([actor.sensor_start for actor in group.actors]), self.count, device)

        def tensor(values: Any) -> torch.Tensor:
            return torch.as_tensor(np.array(values), dtype=torch.float32, device=device)

        bodies = [sensor.body for sensor in sensors]
        self.links = torch.as_tensor([group.body_order.order[body] for body in bodies], device=device)
        self.bodies = torch.as_tensor(bodies, device=device)
        turned = any(abs(float(sensor.quat[3])) < 1.0 for sensor in sensors)
        self.frame = _rotation(tensor([sensor.quat for sensor in sensors]).unbind(-1)) if turned else None
        self.world = tensor([sensor.world_frame for sensor in sensors]) > 0
        self.any_world = any(sensor.world_frame for sensor in sensors)
        self.total_weight = tensor([float(sensor.forward_dynamics) for sensor in sensors])
        contact_weights = [float(sensor.constraint_solver) - float(sensor.forward_dynamics) for sensor in sensors]
        self.contact_weight = tensor(contact_weights)
        self.needs_contacts = any(contact_weights)
        props = np.stack([actor.body_props[bodies] for actor in group.actors])
        self.mass = tensor(props["mass"])
        inertia = tensor(props["inertia"])
        self.inertia = [[inertia[..., i, j].contiguous() for j in range(3)] for i in range(3)]
        arm = tensor(props["com"]) - tensor([sensor.pos for sensor in sensors])
        self.arm = [part.contiguous() for part in arm.unbind(-1)]
        self._some: dict[str, LinkRows] = {}
        if device.type == "cpu":
            # On the CPU a read costs by the link, so only the sensors' links are read; accelerations are faster whole.
            self._some = {name: group.bind_links(name, bodies) for name in ("POSE", "VELOCITY")}

    def planes(self, quantity: str) -> list[torch.Tensor]:
        """Components of a link quantity, (n, s) each: whole planes are far faster than many tiny vectors."""
        some = self._some.get(quantity)
        values = self.group.read(f"LINK_{quantity}").index_select(1, self.links) if some is None else some.read()
        return list(values.permute(2, 0, 1).contiguous().unbind(0))


class ForceSensors:
    """All force sensors of a simulation."""

    def __init__(self, scene: Scene, groups: Sequence[Group], contacts: Contacts, device: torch.device) -> None:
        """Prepare; nothing is read before the tensor is acquired."""
        self._scene = scene
        self._groups = groups
        self._contacts = contacts
        self._device = device
        self._buffer: torch.Tensor | None = None
        self._sensors: list[_GroupSensors] = []

    @property
    def tensor(self) -> torch.Tensor:
        """(S, 6) force (N) and torque (N m) about each sensor's origin, in its own or the world's axes."""
        if self._buffer is None:
            self._buffer = torch.zeros(self._scene.num_sensors, 6, device=self._device)
            self._sensors = [
                _GroupSensors(group, self._device)
                for group in self._groups
                if group.kind == ARTICULATION and group.actors[0].asset.model.force_sensors
            ]
            if any(g.kind != ARTICULATION and any(a.asset.model.force_sensors for a in g.actors) for g in self._groups):
                _logger.warning(
                    "force sensors on actors of a single body read zero; physx.always_use_articulations = True "
                    "makes them articulations"
                )
            if any(sensors.needs_contacts for sensors in self._sensors):
                self._contact_force = self._contacts.net_force
        return self._buffer

    def refresh(self) -> None:
        """Fill ``tensor``."""
        buffer = self.tensor
        for sensors in self._sensors:
            sensors.rows.put(buffer, self._measure(sensors))

    def _measure(self, sensors: _GroupSensors) -> torch.Tensor:
        """(n, s, 6) force and torque of one group's sensors."""
        group = sensors.group
        acceleration, velocity = sensors.planes("ACCELERATION"), sensors.planes("VELOCITY")
        turn = _rotation(sensors.planes("POSE")[3:])
        linear, angular = _inward(turn, acceleration[:3]), _inward(turn, acceleration[3:])
        spin = _inward(turn, velocity[3:])
        force = [sensors.mass * part for part in linear]
        gyro = _cross(spin, _outward(sensors.inertia, spin))
        torque = [a + b for a, b in zip(_outward(sensors.inertia, angular), gyro, strict=True)]
        if sensors.needs_contacts:
            contact = group.bodies.get(self._contact_force).index_select(1, sensors.bodies)
            touch = _inward(turn, list(contact.permute(2, 0, 1).contiguous().unbind(0)))
            force = [f * sensors.total_weight + c * sensors.contact_weight for f, c in zip(force, touch, strict=True)]
            torque = [part * sensors.total_weight for part in torque]
        torque = [a + b for a, b in zip(torque, _cross(sensors.arm, force), strict=True)]
        own = [*_inward(sensors.frame, force), *_inward(sensors.frame, torque)] if sensors.frame else [*force, *torque]
        if sensors.any_world:
            world = [*_outward(turn, force), *_outward(turn, torque)]
            own = [torch.where(sensors.world, w, o) for w, o in zip(world, own, strict=True)]
        return torch.stack(own, dim=-1)


Vector = Sequence[torch.Tensor]
"""Three components, equal shapes."""
Matrix = Sequence[Sequence[torch.Tensor]]
"""Rows of a 3 x 3 matrix, one tensor an entry."""


def _outward(matrix: Matrix, vector: Vector) -> list[torch.Tensor]:
    """Matrix times vector."""
    return [row[0] * vector[0] + row[1] * vector[1] + row[2] * vector[2] for row in matrix]


def _inward(matrix: Matrix, vector: Vector) -> list[torch.Tensor]:
    """Transposed matrix times vector."""
    return _outward(list(zip(*matrix, strict=True)), vector)


def _cross(a: Vector, b: Vector) -> list[torch.Tensor]:
    """Cross product."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _rotation(quat: Sequence[torch.Tensor]) -> Matrix:
    """Rotation matrix of a unit quaternion xyzw."""
    x, y, z, w = quat
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    )
