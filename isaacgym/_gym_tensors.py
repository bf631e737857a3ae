"""Gym methods of the tensor API: acquire, refresh, set, apply (API notes 9.8 to 9.13)."""

from __future__ import annotations

import sys

import torch

from isaacgym._enums import ENV_SPACE, CoordinateSpace
from isaacgym.engine.simulation import Simulation
from isaacgym.gymtorch import Tensor


class _BadTensorError(ValueError):
    """A tensor handed to a setter has the wrong size, type or device."""


def _values(name: str, given: Tensor | torch.Tensor, count: int, device: torch.device) -> torch.Tensor:
    """Check a value tensor and return it flat."""
    tensor = given.torch if isinstance(given, Tensor) else given
    if tensor.dtype != torch.float32 or tensor.numel() != count or not tensor.is_contiguous():
        raise _BadTensorError(
            f"{name}: a contiguous float32 tensor of {count} numbers is needed, got {tensor.dtype} of "
            f"{tensor.numel()} (shape {tuple(tensor.shape)})"
        )
    if tensor.device.type != device.type:
        raise _BadTensorError(f"{name}: the tensor is on {tensor.device}, the simulation's tensors are on {device}")
    return tensor.view(-1)


def _indices(name: str, given: Tensor | torch.Tensor, count: int, sim: Simulation) -> torch.Tensor:
    """Check an index tensor and return its first ``count`` entries, flat. CUDA would have to wait for their range."""
    tensor = given.torch if isinstance(given, Tensor) else given
    if tensor.dtype != torch.int32:
        raise _BadTensorError(f"{name}: indices must be int32, got {tensor.dtype}; convert with .to(torch.int32)")
    if count > tensor.numel():
        raise _BadTensorError(f"{name}: {count} indices announced, {tensor.numel()} given")
    chosen = tensor.reshape(-1)[:count]
    if tensor.device.type != sim.device.type:
        raise _BadTensorError(f"{name}: the indices are on {tensor.device}, the simulation is on {sim.device}")
    if sim.device.type == "cpu" and count > 0:
        low, high = torch.aminmax(chosen)
        if low < 0 or high >= len(sim.scene.actors):
            wrong = int(low if low < 0 else high)
            raise _BadTensorError(f"{name}: there is no actor {wrong}; the simulation has {len(sim.scene.actors)}")
    return chosen


def _refuse(error: Exception) -> bool:
    print(f"gymapi: {error}", file=sys.stderr)
    return False


class TensorMethods:
    """Persistent buffers out, full-size tensors in; see API notes 1 for the rules."""

    def acquire_actor_root_state_tensor(self, sim: Simulation) -> Tensor:
        """Return the root states (num_actors, 13): position, quaternion xyzw, linear and angular velocity."""
        sim.prepare()
        return Tensor(sim.state.root, own_data=True)

    def refresh_actor_root_state_tensor(self, sim: Simulation) -> bool:
        """Fill the root state tensor."""
        sim.prepare()
        sim.state.refresh_root()
        return True

    def acquire_dof_state_tensor(self, sim: Simulation) -> Tensor:
        """Return the DOF states (num_dofs, 2): position, velocity."""
        sim.prepare()
        return Tensor(sim.state.dof, own_data=True)

    def refresh_dof_state_tensor(self, sim: Simulation) -> bool:
        """Fill the DOF state tensor."""
        sim.prepare()
        sim.state.refresh_dof()
        return True

    def acquire_rigid_body_state_tensor(self, sim: Simulation) -> Tensor:
        """Return the body states (num_bodies, 13), columns as in the root states; read-only."""
        sim.prepare()
        return Tensor(sim.state.body, own_data=True)

    def refresh_rigid_body_state_tensor(self, sim: Simulation) -> bool:
        """Fill the body state tensor."""
        sim.prepare()
        sim.state.refresh_body()
        return True

    def acquire_dof_force_tensor(self, sim: Simulation) -> Tensor:
        """Return the DOF forces (num_dofs,); zero for actors without enable_actor_dof_force_sensors."""
        sim.prepare()
        return Tensor(sim.state.dof_force, own_data=True)

    def refresh_dof_force_tensor(self, sim: Simulation) -> bool:
        """Fill the DOF force tensor; before the first step it stays zero."""
        sim.prepare()
        if sim.frame_count:  # PhysX's warm-up leaves forces of no meaning
            sim.state.refresh_dof_force()
        return True

    def acquire_net_contact_force_tensor(self, sim: Simulation) -> Tensor:
        """Return the net contact forces (num_bodies, 3), N, world axes."""
        sim.prepare()
        return Tensor(sim.contacts.net_force, own_data=True)

    def refresh_net_contact_force_tensor(self, sim: Simulation) -> bool:
        """Fill the net contact force tensor."""
        sim.prepare()
        sim.contacts.refresh()
        return True

    def acquire_force_sensor_tensor(self, sim: Simulation) -> Tensor:
        """Return the force sensor readings (num_sensors, 6): force N, torque N m (approximate, API notes 9.12)."""
        sim.prepare()
        return Tensor(sim.sensors.tensor, own_data=True)

    def refresh_force_sensor_tensor(self, sim: Simulation) -> bool:
        """Fill the force sensor tensor; before the first step it stays zero."""
        sim.prepare()
        if sim.frame_count:  # PhysX's warm-up leaves accelerations of no meaning
            sim.sensors.refresh()
        return True

    def acquire_jacobian_tensor(self, sim: Simulation, name: str) -> Tensor | None:
        """Return the Jacobians of the actors of that name (API notes 9.13), None unless each env has an equal one."""
        sim.prepare()
        found = sim.dynamics.jacobian(name)
        return None if found is None else Tensor(found, own_data=True)

    def refresh_jacobian_tensors(self, sim: Simulation) -> bool:
        """Fill all acquired Jacobians."""
        sim.prepare()
        sim.dynamics.refresh_jacobians()
        return True

    def acquire_mass_matrix_tensor(self, sim: Simulation, name: str) -> Tensor | None:
        """Return the mass matrices (num_envs, D, D) of the actors of that name, None as for Jacobians."""
        sim.prepare()
        found = sim.dynamics.mass_matrix(name)
        return None if found is None else Tensor(found, own_data=True)

    def refresh_mass_matrix_tensors(self, sim: Simulation) -> bool:
        """Fill all acquired mass matrices."""
        sim.prepare()
        sim.dynamics.refresh_mass_matrices()
        return True

    def set_actor_root_state_tensor(self, sim: Simulation, states: Tensor) -> bool:
        """Set all root states from a (num_actors, 13) tensor."""
        return self._set_root("set_actor_root_state_tensor", sim, states, None, 0)

    def set_actor_root_state_tensor_indexed(
        self, sim: Simulation, states: Tensor, actor_indices: Tensor, count: int
    ) -> bool:
        """Set the root states of the actors named by the first ``count`` int32 indices; ``states`` is full size."""
        return self._set_root("set_actor_root_state_tensor_indexed", sim, states, actor_indices, count)

    def set_dof_state_tensor(self, sim: Simulation, states: Tensor) -> bool:
        """Set all DOF states from a (num_dofs, 2) tensor."""
        return self._set_dof("set_dof_state_tensor", sim, states, None, 0)

    def set_dof_state_tensor_indexed(self, sim: Simulation, states: Tensor, actor_indices: Tensor, count: int) -> bool:
        """Set the DOF states of the actors named by the indices; ``states`` is full size."""
        return self._set_dof("set_dof_state_tensor_indexed", sim, states, actor_indices, count)

    def set_dof_actuation_force_tensor(self, sim: Simulation, forces: Tensor) -> bool:
        """Set the forces (N) or torques (N m) of all DOFs; they stay until set again."""
        return self._set_target("set_dof_actuation_force_tensor", "DOF_ACTUATION_FORCE", sim, forces, None, 0)

    def set_dof_actuation_force_tensor_indexed(
        self, sim: Simulation, forces: Tensor, actor_indices: Tensor, count: int
    ) -> bool:
        """Set forces or torques of the DOFs of the actors named by the indices."""
        name = "set_dof_actuation_force_tensor_indexed"
        return self._set_target(name, "DOF_ACTUATION_FORCE", sim, forces, actor_indices, count)

    def set_dof_position_target_tensor(self, sim: Simulation, targets: Tensor) -> bool:
        """Set the position targets (rad, m) of all DOFs; only those in DOF_MODE_POS listen."""
        return self._set_target("set_dof_position_target_tensor", "DOF_POSITION_TARGET", sim, targets, None, 0)

    def set_dof_position_target_tensor_indexed(
        self, sim: Simulation, targets: Tensor, actor_indices: Tensor, count: int
    ) -> bool:
        """Set the position targets of the DOFs of the actors named by the indices."""
        name = "set_dof_position_target_tensor_indexed"
        return self._set_target(name, "DOF_POSITION_TARGET", sim, targets, actor_indices, count)

    def set_dof_velocity_target_tensor(self, sim: Simulation, targets: Tensor) -> bool:
        """Set the velocity targets (rad/s, m/s) of all DOFs; only those in DOF_MODE_VEL listen."""
        return self._set_target("set_dof_velocity_target_tensor", "DOF_VELOCITY_TARGET", sim, targets, None, 0)

    def set_dof_velocity_target_tensor_indexed(
        self, sim: Simulation, targets: Tensor, actor_indices: Tensor, count: int
    ) -> bool:
        """Set the velocity targets of the DOFs of the actors named by the indices."""
        name = "set_dof_velocity_target_tensor_indexed"
        return self._set_target(name, "DOF_VELOCITY_TARGET", sim, targets, actor_indices, count)

    def _set_root(self, name: str, sim: Simulation, states: Tensor, indices: Tensor | None, count: int) -> bool:
        sim.prepare()
        try:
            values = _values(name, states, 13 * len(sim.scene.actors), sim.device).view(-1, 13)
            chosen = None if indices is None else _indices(name, indices, count, sim)
        except _BadTensorError as error:
            return _refuse(error)
        if chosen is None or len(chosen):
            sim.control.set_root(values, chosen)
        return True

    def _set_dof(self, name: str, sim: Simulation, states: Tensor, indices: Tensor | None, count: int) -> bool:
        sim.prepare()
        try:
            values = _values(name, states, 2 * sim.scene.num_dofs, sim.device).view(-1, 2)
            chosen = None if indices is None else _indices(name, indices, count, sim)
        except _BadTensorError as error:
            return _refuse(error)
        if chosen is None or len(chosen):
            sim.control.set_dof(values, chosen)
        return True

    def _set_target(
        self, name: str, quantity: str, sim: Simulation, given: Tensor, indices: Tensor | None, count: int
    ) -> bool:
        sim.prepare()
        try:
            values = _values(name, given, sim.scene.num_dofs, sim.device)
            chosen = None if indices is None else _indices(name, indices, count, sim)
        except _BadTensorError as error:
            return _refuse(error)
        if chosen is None or len(chosen):
            sim.control.set_target(quantity, values, chosen)
        return True

    def apply_rigid_body_force_tensors(
        self,
        sim: Simulation,
        forceTensor: Tensor | None = None,  # noqa: N803
        torqueTensor: Tensor | None = None,  # noqa: N803
        space: CoordinateSpace = ENV_SPACE,
    ) -> bool:
        """Add forces (N) at the centres of mass and torques (N m), (num_bodies, 3) each, to the next step."""
        return self._apply("apply_rigid_body_force_tensors", sim, forceTensor, torqueTensor, None, space)

    def apply_rigid_body_force_at_pos_tensors(
        self,
        sim: Simulation,
        forceTensor: Tensor,  # noqa: N803
        posTensor: Tensor | None = None,  # noqa: N803
        space: CoordinateSpace = ENV_SPACE,
    ) -> bool:
        """Add forces (num_bodies, 3) acting at positions (num_bodies, 3) in the space given to the next step."""
        return self._apply("apply_rigid_body_force_at_pos_tensors", sim, forceTensor, None, posTensor, space)

    @staticmethod
    def _apply(
        name: str,
        sim: Simulation,
        force: Tensor | None,
        torque: Tensor | None,
        pos: Tensor | None,
        space: CoordinateSpace,
    ) -> bool:
        sim.prepare()
        count = 3 * sim.scene.num_bodies
        try:
            parts = [None if part is None else _values(name, part, count, sim.device) for part in (force, torque, pos)]
        except _BadTensorError as error:
            return _refuse(error)
        sim.forces.add(parts[0], parts[1], parts[2], int(space))
        return True
