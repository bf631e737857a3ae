"""Domain randomisation: noise on observations and actions, gravity, and the physical properties of actors."""

from __future__ import annotations

import copy
import random
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from isaacgym import gymapi  # isort: skip  (the original package wants to be imported before torch)
import numpy as np
import torch

from tasks.base.errors import TaskError
from tasks.base.sampling import Noise, Randomization, parse

if TYPE_CHECKING:
    from tasks.base.vec_task import VecTask

MAX_MATERIALS = 64000
"""PhysX holds at most this many materials."""

FIELDS = {
    "dof_properties": ("lower", "upper", "velocity", "effort", "stiffness", "damping", "friction", "armature"),
    "rigid_body_properties": ("mass",),
    "rigid_shape_properties": (
        "friction", "restitution", "rolling_friction", "torsion_friction", "compliance", "thickness",
    ),
    "tendon_properties": (
        "stiffness", "damping", "fixed_spring_rest_length", "fixed_lower_limit", "fixed_upper_limit",
    ),
}  # fmt: skip
"""Property group -> fields that can be randomised."""

_ACTORS = "task.randomization_params.actor_params"


class PropertyGroup:
    """One property group of one actor in all envs: its original and its present values, (N, elements) by field."""

    def __init__(self, actor: str, group: str, fields: dict[str, Randomization]) -> None:
        """Describe the randomised `fields` of `group`."""
        self.actor = actor
        self.group = group
        self.fields = fields
        self.original: dict[str, np.ndarray] = {}
        self.present: dict[str, np.ndarray] = {}

    def read_originals(self, task: VecTask, handles: Sequence[int]) -> None:
        """Read the values before any randomisation, once."""
        get = getattr(task.gym, f"get_actor_{self.group}")
        rows = [field_values(get(env, actor), self.fields) for env, actor in zip(task.envs, handles)]
        self.original = {field: np.array([row[field] for row in rows], dtype=np.float64) for field in self.fields}
        self.present = {field: values.copy() for field, values in self.original.items()}

    def draw(self, env: int, frame: int, rng: np.random.Generator, running: bool, all_or_nothing: bool) -> bool:
        """Draw new present values of one env; returns whether any field changes.

        Args:
            env: index of the env.
            frame: simulated frame, for schedules.
            rng: source of randomness.
            running: the simulation has started, so that setup-only fields rest.
            all_or_nothing: then the other fields of such a group rest too (Q15).
        """
        active = {f: r for f, r in self.fields.items() if not (running and r.setup_only)}
        if all_or_nothing and len(active) < len(self.fields):
            return False
        for field, randomization in active.items():
            original = self.original[field][env]
            self.present[field][env] = randomization.apply(original, randomization.sample(original.shape, frame, rng))
        return bool(active)

    def adopt(self, saved: dict[str, np.ndarray]) -> list[int]:
        """Take over saved present values; returns the envs in which they differ from those before."""
        changed = [(saved[f] != self.present[f]).any(axis=1) for f in self.fields]
        self.present = {field: saved[field].copy() for field in self.fields}
        return [int(env) for env in np.logical_or.reduce(changed).nonzero()[0]]

    def write(self, task: VecTask, env: int, actor: int) -> None:
        """Write the present values of one env into the simulation."""
        properties = getattr(task.gym, f"get_actor_{self.group}")(task.envs[env], actor)
        for field, values in self.present.items():
            set_field(properties, field, values[env])
        extra = (True,) if self.group == "rigid_body_properties" else ()  # bodies: scale the inertia with the mass
        getattr(task.gym, f"set_actor_{self.group}")(task.envs[env], actor, properties, *extra)


def field_values(properties: Any, fields: Mapping[str, Any]) -> dict[str, list[float]]:
    """Values of some fields, element by element, of a structured array or a list of objects."""
    if isinstance(properties, np.ndarray):
        return {field: [float(v) for v in properties[field]] for field in fields}
    return {field: [float(getattr(p, field)) for p in properties] for field in fields}


def set_field(properties: Any, field: str, values: np.ndarray) -> None:
    """Set one field of a structured array or of each object in a list."""
    if isinstance(properties, np.ndarray):
        properties[field] = values
        return
    for i, element in enumerate(properties):
        setattr(element, field, float(values[i]))


class Randomizer:
    """Applies `task.randomization_params`: everything once before the simulation starts, then at resets.

    Noise and gravity change after `frequency` simulated frames; an env's properties change when it is reset after
    `frequency` control steps. Values are always drawn around the original ones.
    """

    def __init__(self, task: VecTask, params: Mapping[str, Any]) -> None:
        """Read and check the description.

        Raises:
            TaskError: it is incomplete or has unknown keys or values.
        """
        for key in params:
            if key not in ("frequency", "observations", "actions", "sim_params", "actor_params"):
                raise TaskError(f"task.randomization_params.{key} is unknown")
        if "actor_params" not in params:
            raise TaskError("task.randomization_params.actor_params is missing")
        self.task = task
        self.frequency = int(params.get("frequency", 1))
        self.rng = np.random.default_rng(np.random.randint(2**31))
        self.last_frame = -1
        self.first = True
        self._read_noise(params)
        self._read_sim_params(params.get("sim_params") or {})
        self._read_actors(params["actor_params"])

    def _read_noise(self, params: Mapping[str, Any]) -> None:
        described = {
            name: parse(f"task.randomization_params.{name}", params[name], noise=True)
            for name in ("observations", "actions")
            if params.get(name)
        }
        shared = list(described.values())[-1].operation if described and "Q22" in self.task.quirks else None
        legacy = "Q21" in self.task.quirks
        self.noise = {name: Noise(d, shared or d.operation, legacy) for name, d in described.items()}

    def _read_sim_params(self, params: Mapping[str, Any]) -> None:
        for key in params:
            if key not in ("gravity", "rest_offset"):
                raise TaskError(f"task.randomization_params.sim_params.{key} cannot be randomised")
        self.sim_params = {k: parse(f"task.randomization_params.sim_params.{k}", v) for k, v in params.items()}
        self.original_gravity: np.ndarray | None = None
        self.present_sim: dict[str, list[float]] = {}

    def _read_actors(self, actors: Mapping[str, Any]) -> None:
        self.groups: list[PropertyGroup] = []
        self.scales: dict[str, Randomization] = {}
        self.present_scale: dict[str, np.ndarray] = {}
        self.coloured: list[str] = []
        for actor, groups in actors.items():
            for group, fields in groups.items():
                where = f"{_ACTORS}.{actor}.{group}"
                if group == "color":
                    self.coloured.append(actor)
                elif group == "scale":
                    self.scales[actor] = parse(where, fields)
                elif group not in FIELDS:
                    raise TaskError(f"{where} is unknown; allowed are color, scale, {', '.join(FIELDS)}")
                else:
                    for field in fields:
                        if field not in FIELDS[group]:
                            raise TaskError(f"{where}.{field} is unknown; allowed are {', '.join(FIELDS[group])}")
                    parsed = {f: parse(f"{where}.{f}", d) for f, d in fields.items()}
                    self.groups.append(PropertyGroup(actor, group, parsed))
        self.actor_names = list(actors)

    def apply(self) -> None:
        """Randomise what is due now."""
        frame = self.task.frame_count
        first = self.first
        envs = range(self.task.num_envs) if first else self._due_envs()
        if first:
            self._start()
        if first or frame - self.last_frame >= self.frequency:
            self.last_frame = frame
            for noise in self.noise.values():
                noise.refresh(frame)
            self._draw_sim_params(frame)
        for env in envs:
            self._randomize_env(env, frame, running=not first)
        self.first = False

    def _start(self) -> None:
        task = self.task
        self.handles = {name: [task.gym.find_actor_handle(env, name) for env in task.envs] for name in self.actor_names}
        for name, handles in self.handles.items():
            if min(handles) < 0:
                raise TaskError(f"{_ACTORS}.{name}: there is no actor of this name")
        self._check_materials()
        for group in self.groups:
            group.read_originals(task, self.handles[group.actor])
        self.present_scale = {name: np.ones(task.num_envs) for name in self.scales}

    def _check_materials(self) -> None:
        buckets, shapes = 0, 0
        for group in self.groups:
            if group.group != "rigid_shape_properties":
                continue
            counts = [group.fields[f].num_buckets for f in ("restitution", "friction") if f in group.fields]
            counts = [count for count in counts if count]
            buckets += int(np.prod(counts)) if counts else 0
            count_shapes = self.task.gym.get_actor_rigid_shape_count
            shapes += sum(count_shapes(e, a) for e, a in zip(self.task.envs, self.handles[group.actor]))
        if buckets > MAX_MATERIALS or (buckets == 0 and shapes > MAX_MATERIALS):
            raise TaskError(
                f"randomised friction and restitution need {buckets or shapes} materials, PhysX has {MAX_MATERIALS}: "
                "set num_buckets of both so that their product is small"
            )

    def _due_envs(self) -> list[int]:
        due = (self.task.randomize_buf >= self.frequency) & (self.task.reset_buf != 0)
        self.task.randomize_buf.masked_fill_(due, 0)
        return [int(i) for i in due.nonzero().squeeze(-1).tolist()]

    def _draw_sim_params(self, frame: int) -> None:
        if not self.sim_params:
            return
        if self.original_gravity is None:
            gravity = self.task.gym.get_sim_params(self.task.sim).gravity
            self.original_gravity = np.array([gravity.x, gravity.y, gravity.z])
        if "gravity" in self.sim_params:
            randomization = self.sim_params["gravity"]
            change = randomization.sample((3,), frame, self.rng)
            self.present_sim["gravity"] = randomization.apply(self.original_gravity, change).tolist()
        if "rest_offset" in self.sim_params:
            self.present_sim["rest_offset"] = self.sim_params["rest_offset"].sample((1,), frame, self.rng).tolist()
        self._write_sim_params()

    def _write_sim_params(self) -> None:
        params = self.task.gym.get_sim_params(self.task.sim)
        if "gravity" in self.present_sim:
            params.gravity = gymapi.Vec3(*self.present_sim["gravity"])
        if "rest_offset" in self.present_sim:
            params.physx.rest_offset = self.present_sim["rest_offset"][0]
        self.task.gym.set_sim_params(self.task.sim, params)

    def _randomize_env(self, env: int, frame: int, running: bool) -> None:
        gym, handle = self.task.gym, self.task.envs[env]
        if self.task.graphics_device_id >= 0:
            for name in self.coloured:
                actor = self.handles[name][env]
                for body in range(gym.get_actor_rigid_body_count(handle, actor)):
                    colour = gymapi.Vec3(random.uniform(0, 1), random.uniform(0, 1), random.uniform(0, 1))
                    gym.set_rigid_body_color(handle, actor, body, gymapi.MESH_VISUAL, colour)
        for name, randomization in self.scales.items():
            if not (running and randomization.setup_only):
                change = randomization.sample((1,), frame, self.rng)
                self.present_scale[name][env] = randomization.apply(np.ones(1), change)[0]
                gym.set_actor_scale(handle, self.handles[name][env], float(self.present_scale[name][env]))
        all_or_nothing = "Q15" in self.task.quirks
        for group in self.groups:
            if group.draw(env, frame, self.rng, running, all_or_nothing):
                group.write(self.task, env, self.handles[group.actor][env])

    def get_state(self) -> dict[str, Any]:
        """Generator, schedule position, noise and every present value, as plain types and tensors."""
        return {
            "rng": copy.deepcopy(self.rng.bit_generator.state),
            "last_frame": self.last_frame,
            "noise": {name: noise.get_state() for name, noise in self.noise.items()},
            "sim_params": copy.deepcopy(self.present_sim),
            "scale": {name: torch.from_numpy(values).clone() for name, values in self.present_scale.items()},
            "groups": [{f: torch.from_numpy(v).clone() for f, v in group.present.items()} for group in self.groups],
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned, into the running simulation too.

        Raises:
            ValueError: the actors were scaled otherwise, which a running simulation cannot change.
        """
        if not all(np.array_equal(values, state["scale"][name].numpy()) for name, values in self.present_scale.items()):
            raise ValueError("actor scales differ from the saved ones: resume with the seed of the first run")
        self.rng.bit_generator.state = state["rng"]
        self.last_frame = state["last_frame"]
        for name, noise in self.noise.items():
            noise.set_state(state["noise"][name])
        self.present_sim = copy.deepcopy(state["sim_params"])
        if self.present_sim:
            self._write_sim_params()
        for group, saved in zip(self.groups, state["groups"]):
            for env in group.adopt({field: values.numpy() for field, values in saved.items()}):
                group.write(self.task, env, self.handles[group.actor][env])
