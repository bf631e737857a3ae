"""Force sensors on articulation links (Isaac Gym API notes 9.12), from the motion of the link.

PhysX 5 has no such sensor. The total spatial force on a link is its mass times acceleration, and the part from
contacts is the net contact force; the forward-dynamics part is their difference. This is an approximation of Isaac
Gym's sensor, whose internal conventions are not published.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from isaacgym.engine.contacts import Contacts
from isaacgym.engine.groups import ARTICULATION, Blocks, Group
from isaacgym.engine.scene import Scene
from isaacgym.torch_utils import quat_rotate, quat_rotate_inverse


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
        self.links = torch.as_tensor(bodies, device=device)
        self.pos = tensor([sensor.pos for sensor in sensors])
        self.quat = tensor([sensor.quat for sensor in sensors])
        self.world = tensor([sensor.world_frame for sensor in sensors]).view(1, -1, 1) > 0
        self.any_world = any(sensor.world_frame for sensor in sensors)
        self.total_weight = tensor([float(sensor.forward_dynamics) for sensor in sensors]).view(1, -1, 1)
        contact_weights = [float(sensor.constraint_solver) - float(sensor.forward_dynamics) for sensor in sensors]
        self.contact_weight = tensor(contact_weights).view(1, -1, 1)
        self.needs_contacts = any(contact_weights)
        props = np.stack([actor.body_props[bodies] for actor in group.actors])
        self.mass = tensor(props["mass"]).unsqueeze(-1)
        self.com = tensor(props["com"])
        self.inertia = tensor(props["inertia"])


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

        def links(quantity: str) -> torch.Tensor:
            return group.body_order.to_gym(group.read(quantity)).index_select(1, sensors.links)

        acceleration, velocity, quat = links("LINK_ACCELERATION"), links("LINK_VELOCITY"), links("LINK_POSE")[..., 3:]
        shape = quat.shape[:2]
        flat = quat.reshape(-1, 4)

        def to_link(vectors: torch.Tensor) -> torch.Tensor:
            return quat_rotate_inverse(flat, vectors.reshape(-1, 3)).view(*shape, 3)

        force = to_link(acceleration[..., :3]) * sensors.mass
        spin, turn = to_link(velocity[..., 3:]), to_link(acceleration[..., 3:])
        momentum = torch.einsum("nsij,nsj->nsi", sensors.inertia, spin)
        torque = torch.einsum("nsij,nsj->nsi", sensors.inertia, turn) + torch.cross(spin, momentum, dim=-1)
        force, torque = force * sensors.total_weight, torque * sensors.total_weight
        if sensors.needs_contacts:
            contact = group.bodies.get(self._contact_force).index_select(1, sensors.links)
            force = force + to_link(contact) * sensors.contact_weight
        torque = torque + torch.cross(sensors.com - sensors.pos, force, dim=-1)
        local = sensors.quat.expand(*shape, 4).reshape(-1, 4)

        def to_sensor(vectors: torch.Tensor) -> torch.Tensor:
            own = quat_rotate_inverse(local, vectors.reshape(-1, 3)).view(*shape, 3)
            if not sensors.any_world:
                return own
            return torch.where(sensors.world, quat_rotate(flat, vectors.reshape(-1, 3)).view(*shape, 3), own)

        return torch.cat([to_sensor(force), to_sensor(torque)], dim=-1)
