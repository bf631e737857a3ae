"""The one file that knows ovphysx and ovstage.

Everything above this file speaks of stages, bindings and steps; a change of the wheel's API is a change here only.
The wheel marks its tensor bindings as deprecated in favour of read/write sessions, but a session returns one tensor
per joint prim, which cannot serve thousands of environments; only that one warning is silenced.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

OVPHYSX_VERSION = "0.7.0"
OVSTAGE_SERIES = "0.3."
DL_CPU = 1  # kDLCPU of the DLPack standard
LOGGER_NAME = "gymscale.physx"
OVERFLOW_WORDS = ("overflow", "exceeded", "capacity", "too small")

_logger = logging.getLogger(LOGGER_NAME)
_schemas_registered = False
_living = 0
"""Runtimes that are not destroyed: settings of the process cannot change while there are any."""
_on_cuda = False
"""Whether a runtime of this process was made for CUDA."""


class RuntimeUnavailableError(RuntimeError):
    """The PhysX wheel is missing, does not fit, or cannot serve the requested device."""


def check_versions() -> None:
    """Check the installed ovphysx and ovstage wheels before any native library is loaded.

    Raises:
        RuntimeUnavailableError: one line naming the wheel, the version found and the version needed.
    """
    for name, wanted in (("ovphysx", OVPHYSX_VERSION), ("ovstage", OVSTAGE_SERIES)):
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            raise RuntimeUnavailableError(
                f"{name} is not installed; gymscale needs {name} {wanted}*: pip install gymscale again"
            ) from None
        if not found.startswith(wanted):
            raise RuntimeUnavailableError(
                f"{name} {found} is installed, gymscale needs {name} {wanted}*: pip install gymscale again"
            )


def physics_threads(requested: int) -> int:
    """Worker threads for PhysX: at most cores - 1, and none on one or two cores (they cost more than they bring)."""
    cores = os.cpu_count() or 1
    return 0 if cores <= 2 else max(0, min(int(requested), cores - 1))


class OverflowCounter(logging.Handler):
    """Counts messages of PhysX about full buffers: contacts beyond a capacity vanish without an exception."""

    def __init__(self) -> None:
        """Start at zero."""
        super().__init__(level=logging.WARNING)
        self.count = 0
        self.last = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Count the record when it speaks of a full buffer."""
        text = record.getMessage()
        if any(word in text.lower() for word in OVERFLOW_WORDS):
            self.count += 1
            self.last = text


@contextmanager
def _quiet_deprecation() -> Iterator[None]:
    """Silence the wheel's notice that bindings are deprecated, see the top of this file."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="ovphysx .* bindings are deprecated", category=DeprecationWarning)
        yield


class Binding:
    """One physical quantity of all objects that match a path pattern, read and written as one tensor.

    Attributes:
        shape: shape of the whole tensor, first dimension = number of objects.
        device: torch device on which PhysX keeps the quantity.
    """

    def __init__(self, native: Any, cuda: torch.device) -> None:
        """Wrap a native binding; ``cuda`` is the device to use when the quantity lives on the GPU."""
        self._native = native
        self.shape: tuple[int, ...] = tuple(native.shape)
        self.device = torch.device("cpu") if native.native_device.device_type.value == DL_CPU else cuda

    @property
    def paths(self) -> list[str]:
        """Prim path of every row; fetched anew each time, as most bindings never need them."""
        return list(self._native.prim_paths)

    @property
    def dof_names(self) -> list[str]:
        """Joint names in PhysX order (articulations only)."""
        return list(self._native.dof_names)

    @property
    def body_names(self) -> list[str]:
        """Link names in PhysX order (articulations only)."""
        return list(self._native.body_names)

    @property
    def num_tendons(self) -> int:
        """Number of fixed tendons of each articulation."""
        return int(self._native.fixed_tendon_count)

    def empty(self) -> torch.Tensor:
        """Return a zero tensor of the binding's shape, dtype and device."""
        dtype = torch.uint8 if "int" in str(self._native.dtype_name) else torch.float32
        return torch.zeros(self.shape, dtype=dtype, device=self.device)

    def read(self, out: torch.Tensor) -> None:
        """Fill ``out`` (contiguous, the binding's shape and device)."""
        self._native.read(out)

    def write(
        self, values: torch.Tensor, indices: torch.Tensor | None = None, mask: torch.Tensor | None = None
    ) -> None:
        """Write the full-size ``values``: all rows, those named by int32 ``indices``, or those in uint8 ``mask``."""
        self._native.write(values, indices, mask)

    def destroy(self) -> None:
        """Release the native binding."""
        self._native.destroy()


class ContactBinding:
    """Net contact force of every sensor body in the last step."""

    def __init__(self, native: Any, device: torch.device) -> None:
        """Wrap a native contact binding."""
        self._native = native
        self.paths: list[str] = list(native.sensor_paths)
        self.normal = torch.zeros(len(self.paths), 3, device=device)
        self.friction = torch.zeros(len(self.paths), 3, device=device)

    def read(self) -> None:
        """Fill ``normal`` and ``friction``, both (S, 3), newton, world axes."""
        self._native.read_net_normal_forces(self.normal)
        self._native.read_net_friction_forces(self.friction)

    def destroy(self) -> None:
        """Release the native binding."""
        self._native.destroy()


class ContactListBinding:
    """Every single contact of all sensor bodies in the last step, up to a capacity.

    Attributes:
        paths: prim path of every sensor.
        force: (C,) normal force, N; on the sensor it acts along ``normal``.
        position: (C, 3) m, PhysX world.
        normal: (C, 3).
        separation: (C,) m, negative where the surfaces overlap.
        layout: (S, 2) number of contacts of every sensor, and the row of the first one.
    """

    def __init__(self, native: Any, device: torch.device) -> None:
        """Wrap a native contact binding made with a capacity."""
        self._native = native
        self.paths: list[str] = list(native.sensor_paths)
        self.capacity = int(native.max_contact_data_count)
        self._force, self._separation = (torch.zeros(self.capacity, 1, device=device) for _ in range(2))
        self.force, self.separation = self._force[:, 0], self._separation[:, 0]
        self.position, self.normal = (torch.zeros(self.capacity, 3, device=device) for _ in range(2))
        self.layout = torch.zeros(len(self.paths), 2, dtype=torch.int32, device=device)
        self._actors = torch.zeros(self.capacity, 2, dtype=torch.int64, device=device)

    def read(self) -> int:
        """Fill the attributes; return the number of contacts, more than ``capacity`` where some were left out."""
        return int(
            self._native.read_raw_contact_data(
                self._force, self.position, self.normal, self._separation, self.layout, self._actors
            )
        )

    def others(self, count: int) -> list[str]:
        """Prim paths of what the sensors touch, in the first ``count`` contacts."""
        return list(self._native.get_other_actor_paths_from_ids(self._actors[:count, 1].contiguous()))

    def destroy(self) -> None:
        """Release the native binding."""
        self._native.destroy()


class Runtime:
    """One attached PhysX scene. Order of calls: ``__init__``, ``clone``..., ``warmup``, then bindings and steps."""

    def __init__(self, usd_path: Path, device: torch.device, num_threads: int) -> None:
        """Start PhysX and load the stage.

        Args:
            usd_path: the stage to load.
            device: where physics runs; a CUDA device selects GPU dynamics with tensors kept on the GPU.
            num_threads: worker threads, see ``physics_threads``; ignored while another runtime is alive.

        Raises:
            RuntimeUnavailableError: when the wheel does not fit or the device cannot be had.
        """
        check_versions()
        import warp

        warp.config.quiet = True
        import ovphysx
        import ovstage

        self._ovstage = ovstage
        self._tensor_type = ovphysx.types.TensorType
        self.device = device
        self.overflow = OverflowCounter()
        self._route_log(ovphysx)
        global _living
        self._physx = self._create(ovphysx, device, num_threads)
        _living += 1
        self._register_schemas(ovphysx)
        self._ordinal = 1
        self._stage = ovstage.Stage(f"gymscale-{id(self)}")
        ovstage.population.open_usd(self._stage, str(usd_path), ordinal=1, domains=ovstage.PopulationDomain.PHYSICS)
        self._stage.advance_write_floor(ordinal=1).wait()
        self._physx.wait_task(self._physx.attach_ovstage(self._stage, read_ordinal=1))
        self._physx.wait_all()

    def _route_log(self, ovphysx: Any) -> None:
        """Send native log lines to Python's logging: stdout belongs to the program."""
        ovphysx.enable_default_log_output(False)
        ovphysx.enable_python_logging(LOGGER_NAME, min_severity=ovphysx.types.LogLevel.WARNING)
        _logger.propagate = bool(_logger.handlers) or logging.getLogger().hasHandlers()
        _logger.addHandler(self.overflow)

    @staticmethod
    def _create(ovphysx: Any, device: torch.device, num_threads: int) -> Any:
        global _on_cuda
        if ovphysx.PhysX.get_cpu_mode() if device.type == "cuda" else _on_cuda:
            other = "CPU" if device.type == "cuda" else "GPU"
            raise RuntimeUnavailableError(f"this process already runs PhysX on the {other}; use one process for each")
        if not _living:
            ovphysx.set_global_config(ovphysx.GlobalConfigKey.NUM_THREADS, physics_threads(num_threads))
        if device.type == "cpu":
            if not ovphysx.PhysX.get_cpu_mode():
                ovphysx.PhysX.set_cpu_mode(True)
            return ovphysx.PhysX()
        _on_cuda = True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            # DirectGPU: tensors stay on the device. There is no other way yet to ask for it than the legacy config.
            config = ovphysx.PhysXConfig(carbonite_overrides={"/physics/suppressReadback": True})
            return ovphysx.PhysX(config=config, active_cuda_gpus=str(device.index or 0))

    @staticmethod
    def _register_schemas(ovphysx: Any) -> None:
        global _schemas_registered
        if _schemas_registered:
            return
        import ovstage

        root = metadata.distribution("physx-usd-schemas")
        paths = [
            str(root.locate_file(f"physx_usd_schemas/{module}/resources"))
            for module in ("PhysxSchema", "OmniUsdPhysicsDeformableSchema")
        ]
        ovstage.population.register_usd_schemas([*paths, str(ovphysx.newton_schema_root())])
        _schemas_registered = True

    def clone(
        self,
        source: str,
        targets: Sequence[str],
        anchors: Sequence[Sequence[float]],
        env_ids: Sequence[int] | None,
    ) -> None:
        """Copy the prim tree ``source`` to every target, anchored at world poses (x, y, z, qx, qy, qz, qw)."""
        ids = None if env_ids is None else list(env_ids)
        self._physx.clone(source, list(targets), anchor_transforms=list(anchors), env_ids=ids)
        self._physx.wait_all()

    def warmup(self) -> None:
        """Let PhysX allocate its structures. This steps the scene: callers restore the start state afterwards."""
        self._physx.warmup()
        self._physx.wait_all()

    def step(self, dt: float) -> None:
        """Advance the scene by one PhysX step of ``dt`` seconds and wait for it."""
        self._physx.step_sync(dt)

    def bind(self, quantity: str, pattern: str) -> Binding:
        """Bind ``quantity`` (a TensorType name) of all objects matching ``pattern``.

        Raises:
            RuntimeError: when nothing matches.
        """
        with _quiet_deprecation():
            native = self._physx.create_tensor_binding(
                pattern=pattern, tensor_type=getattr(self._tensor_type, quantity), raise_if_empty=True
            )
        return Binding(native, self.device)

    def bind_paths(self, quantity: str, paths: Sequence[str]) -> Binding:
        """Bind ``quantity`` of the objects at the given prim paths, one row each."""
        with _quiet_deprecation():
            native = self._physx.create_tensor_binding(
                prim_paths=list(paths), tensor_type=getattr(self._tensor_type, quantity), raise_if_empty=True
            )
        return Binding(native, self.device)

    def bind_contacts(self, patterns: Sequence[str]) -> ContactBinding:
        """Bind the net contact forces of all bodies that match one of the patterns."""
        with _quiet_deprecation():
            native = self._physx.create_contact_binding(sensor_patterns=list(patterns))
        return ContactBinding(native, self.device)

    def bind_contact_list(self, patterns: Sequence[str], capacity: int) -> ContactListBinding:
        """Bind up to ``capacity`` single contacts of all bodies that match one of the patterns."""
        with _quiet_deprecation():
            native = self._physx.create_contact_binding(sensor_patterns=list(patterns), max_contact_data_count=capacity)
        return ContactListBinding(native, self.device)

    def update_kinematics(self) -> None:
        """Recompute link poses and velocities from root and joint state, without a step."""
        self._physx.update_articulations_kinematic()

    def set_gravity(self, direction: Sequence[float], magnitude: float, scene_path: str) -> None:
        """Change gravity between steps (m/s^2)."""
        import numpy as np

        self._ordinal += 1
        paths = self._ovstage.PathDictionary(self._stage)
        with (
            paths.create_path_list_from_strings([scene_path]) as scene,
            self._stage.query_from_path_list(scene) as query,
        ):
            self._stage.write_attribute(
                query, "physics:gravityMagnitude", self._ordinal, np.array([magnitude], np.float32), is_array=False
            ).wait()
            self._stage.write_attribute(
                query, "physics:gravityDirection", self._ordinal, np.array([direction], np.float32), is_array=False
            ).wait()
        self._stage.advance_write_floor(ordinal=self._ordinal).wait()
        self._physx.wait_task(self._physx.update_from_ovstage(self._ordinal, self._ordinal))

    def destroy(self) -> None:
        """Detach the stage and stop PhysX."""
        self._physx.wait_task(self._physx.detach_ovstage())
        self._stage.destroy()
        self._physx.destroy()
        global _living
        _living -= 1
        _logger.removeHandler(self.overflow)
