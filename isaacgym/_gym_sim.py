"""Gym methods on the simulation: creation, stepping, parameters, ground and terrain (API notes 5, 9.1, 9.2)."""

from __future__ import annotations

import logging
import os
import time
from copy import copy

import numpy as np
import torch

from isaacgym._enums import SIM_FLEX, SIM_PHYSX, SimType
from isaacgym._params import HeightFieldParams, PlaneParams, SimParams, TriangleMeshParams
from isaacgym.engine.scene import TriangleMesh
from isaacgym.engine.simulation import Simulation

_logger = logging.getLogger(__name__)

FORCE_CPU_VARIABLE = "GYMSCALE_FORCE_CPU"
"""Set by ``python -m isaacgym --cpu``: a script written for CUDA runs on the CPU."""


def choose_device(compute_device: int, params: SimParams) -> torch.device:
    """Device of physics and tensors: CUDA exactly when the GPU pipeline is asked for.

    Raises:
        RuntimeError: when CUDA is asked for and absent; the message names the switch.
    """
    if not params.use_gpu_pipeline or compute_device < 0:
        return torch.device("cpu")
    if os.environ.get(FORCE_CPU_VARIABLE):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise RuntimeError(
            "create_sim: use_gpu_pipeline is on but this machine has no CUDA device; set use_gpu_pipeline = False "
            "(sim_device=cpu), or run the script with: python -m isaacgym --cpu SCRIPT"
        )
    return torch.device("cuda", compute_device)


def _check_time(function: str, params: SimParams) -> None:
    """Refuse a step that does not advance time."""
    if not (params.dt > 0.0 and params.substeps >= 1):
        raise ValueError(
            f"{function}: dt is {params.dt} and substeps {params.substeps}; dt > 0 and at least 1 substep are needed"
        )


class SimMethods:
    """Creation, stepping, parameters, ground."""

    def create_sim(
        self,
        compute_device: int = 0,
        graphics_device: int = 0,
        type: SimType = SIM_FLEX,  # noqa: A002 - the API's keyword
        params: SimParams | None = None,
    ) -> Simulation:
        """Create a simulation with a copy of ``params``.

        Raises:
            NotImplementedError: for the Flex back end (which is the default of ``type``, as in NVIDIA's package).
            RuntimeError: when the GPU pipeline is asked for on a machine without CUDA.
            ValueError: when a step would not advance time.
        """
        if type != SIM_PHYSX:
            raise NotImplementedError("gymapi.Gym.create_sim: only gymapi.SIM_PHYSX is supported, Flex is not")
        params = SimParams() if params is None else copy(params)
        _check_time("create_sim", params)
        return Simulation(params, choose_device(compute_device, params))

    def prepare_sim(self, sim: Simulation) -> bool:
        """Build the scene; state tensors are valid afterwards."""
        sim.prepare()
        return True

    def simulate(self, sim: Simulation) -> None:
        """Advance by ``dt``; complete when this returns."""
        sim.simulate()

    def fetch_results(self, sim: Simulation, wait_for_latest_sim_step: bool) -> None:
        """Do nothing: ``simulate`` has waited already."""

    def destroy_sim(self, sim: Simulation) -> None:
        """Stop the simulation; a new one may be created in the same process."""
        sim.destroy()

    def get_sim_params(self, sim: Simulation) -> SimParams:
        """Return a copy of the current parameters."""
        return copy(sim.params)

    def set_sim_params(self, sim: Simulation, params: SimParams) -> None:
        """Take gravity, dt and substeps; after the build changes of other fields are ignored, with a warning.

        Raises:
            ValueError: when a step would not advance time.
        """
        _check_time("set_sim_params", params)
        sim.change_params(copy(params))

    def get_sim_dof_count(self, sim: Simulation) -> int:
        """Return the number of DOFs of all actors."""
        return sim.scene.num_dofs

    def get_sim_rigid_body_count(self, sim: Simulation) -> int:
        """Return the number of bodies of all actors."""
        return sim.scene.num_bodies

    def get_sim_actor_count(self, sim: Simulation) -> int:
        """Return the number of actors."""
        return len(sim.scene.actors)

    def get_sim_joint_count(self, sim: Simulation) -> int:
        """Return the number of joints of all actors, fixed ones included."""
        return sim.scene.num_joints

    def get_sim_force_sensor_count(self, sim: Simulation) -> int:
        """Return the number of force sensors of all actors."""
        return sim.scene.num_sensors

    def get_env_count(self, sim: Simulation) -> int:
        """Return the number of environments."""
        return len(sim.scene.envs)

    def get_frame_count(self, sim: Simulation) -> int:
        """Return the number of ``simulate`` calls so far."""
        return sim.frame_count

    def get_sim_time(self, sim: Simulation) -> float:
        """Return the simulated time, s."""
        return sim.sim_time

    def get_elapsed_time(self, sim: Simulation) -> float:
        """Return the wall-clock time since the simulation was created, s."""
        return time.monotonic() - sim.created

    def add_ground(self, sim: Simulation, params: PlaneParams) -> None:
        """Add the plane ``normal . x + distance = 0``; it collides with every actor."""
        self._must_be_open(sim, "add_ground")
        sim.scene.planes.append(copy(params))

    def add_triangle_mesh(
        self, sim: Simulation, vertices: np.ndarray, triangles: np.ndarray, params: TriangleMeshParams
    ) -> None:
        """Add a static mesh: ``vertices`` 3 x nb_vertices floats, ``triangles`` 3 x nb_triangles indices, C order.

        Raises:
            ValueError: when a size does not fit the parameters or an index has no vertex.
        """
        self._must_be_open(sim, "add_triangle_mesh")
        points = np.array(vertices, np.float32).reshape(-1, 3)
        faces = np.array(triangles, np.int64).reshape(-1, 3)
        if len(points) != params.nb_vertices or len(faces) != params.nb_triangles:
            raise ValueError(
                f"add_triangle_mesh: {len(points)} vertices and {len(faces)} triangles given, params say "
                f"nb_vertices {params.nb_vertices} and nb_triangles {params.nb_triangles}"
            )
        if len(faces) and (faces.min() < 0 or faces.max() >= len(points)):
            raise ValueError(f"add_triangle_mesh: triangle indices must lie in 0..{len(points) - 1}")
        sim.scene.meshes.append(TriangleMesh(points, faces, copy(params)))

    def add_heightfield(self, sim: Simulation, samples: np.ndarray, params: HeightFieldParams) -> None:
        """Add a height field as a static mesh, two triangles a cell.

        ``samples`` has nbColumns x nbRows values, the first index running along x (API notes 9.2): the height at
        x = i * row_scale, y = j * column_scale (seen from ``params.transform``) is ``samples[i, j] * vertical_scale``.

        Raises:
            ValueError: when the number of samples does not fit.
        """
        self._must_be_open(sim, "add_heightfield")
        count = params.nbColumns * params.nbRows
        if np.size(samples) != count or params.nbColumns < 2 or params.nbRows < 2:
            raise ValueError(
                f"add_heightfield: {np.size(samples)} samples given, nbColumns x nbRows is "
                f"{params.nbColumns} x {params.nbRows} (each at least 2)"
            )
        heights = np.asarray(samples).reshape(params.nbColumns, params.nbRows).astype(np.float64)
        mesh = TriangleMeshParams()
        mesh.transform = params.transform
        mesh.static_friction, mesh.dynamic_friction = params.static_friction, params.dynamic_friction
        mesh.restitution = params.restitution
        points, faces = heightfield_mesh(heights * params.vertical_scale, params.row_scale, params.column_scale)
        sim.scene.meshes.append(TriangleMesh(points, faces, mesh))

    @staticmethod
    def _must_be_open(sim: Simulation, what: str) -> None:
        if sim.is_built:
            raise RuntimeError(f"{what}: the simulation is prepared already; add everything before prepare_sim")


def heightfield_mesh(heights: np.ndarray, x_step: float, y_step: float) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (R*C, 3) and triangles (2(R-1)(C-1), 3), counter-clockwise from above, of ``heights`` (R, C) in m."""
    rows, columns = heights.shape
    x, y = np.meshgrid(np.arange(rows) * x_step, np.arange(columns) * y_step, indexing="ij")
    points = np.stack([x, y, heights], axis=-1).reshape(-1, 3).astype(np.float32)
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)[None, :]).reshape(-1)
    first = np.stack([corner, corner + columns + 1, corner + 1], axis=-1)
    second = np.stack([corner, corner + columns, corner + columns + 1], axis=-1)
    return points, np.stack([first, second], axis=1).reshape(-1, 3)
