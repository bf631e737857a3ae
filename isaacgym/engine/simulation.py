"""One simulation: the described scene, its build into PhysX, and the steps.

The build is lazy (``prepare``): equal environments are written once and cloned, then the start state is restored,
because PhysX's warm-up steps the scene.
"""

from __future__ import annotations

import logging
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from isaacgym._params import SimParams
from isaacgym.engine import collision, placement
from isaacgym.engine.contact_list import ContactList
from isaacgym.engine.contacts import Contacts
from isaacgym.engine.control import Control
from isaacgym.engine.dynamics import Dynamics
from isaacgym.engine.forces import ExternalForces
from isaacgym.engine.gpu_buffers import GpuBuffers, capacities
from isaacgym.engine.groups import ARTICULATION, Group, actor_kind, actor_prim_name
from isaacgym.engine.live_properties import LiveProperties
from isaacgym.engine.runtime import Runtime
from isaacgym.engine.scene import Actor, Env, Scene
from isaacgym.engine.sensors import ForceSensors
from isaacgym.engine.state import State
from isaacgym.engine.usd import Prototype, StagePlan, StageWriter
from isaacgym.engine.usd_basics import ENVS_PATH, SCENE_PATH, env_path, split_gravity

_logger = logging.getLogger(__name__)


class Simulation:
    """What ``create_sim`` returns. Attributes that exist only after the build are made by ``prepare``."""

    def __init__(self, params: SimParams, device: torch.device) -> None:
        """Record the parameters; PhysX starts at the build."""
        self.params = params
        self.device = device
        self.scene = Scene(params)
        self.scene.owner = self
        self.frame_count = 0
        self.sim_time = 0.0
        self.created = time.monotonic()
        self.runtime: Runtime | None = None
        self._overflows = 0
        self._destroyed = False
        self._ignored: set[str] = set()

    @property
    def is_built(self) -> bool:
        """True after ``prepare``."""
        return self.runtime is not None

    def prepare(self) -> None:
        """Build the scene, if that has not been done.

        Raises:
            RuntimeError: when the simulation has been destroyed.
        """
        if self.runtime is None:
            if self._destroyed:
                raise RuntimeError("the simulation has been destroyed; create a new one with create_sim")
            try:
                self._build()
            except BaseException:
                self.destroy()
                raise

    def _build(self) -> None:
        scene = self.scene
        scene.is_frozen = True
        self.anchors = placement.anchors(scene, self.device)
        plan = self._plan()
        if plan.gpu is not None:
            _logger.info("GPU buffers: %s", plan.gpu)
        with tempfile.TemporaryDirectory(prefix="gymscale-") as folder:
            path = Path(folder) / "scene.usdc"
            StageWriter(scene, plan).save(path)
            self.runtime = Runtime(path, self.device, self.params.physx.num_threads)
        for prototype in plan.prototypes:
            self._clone(prototype)
        self.runtime.warmup()
        self.groups = self._make_groups(plan)
        self.state = State(scene, self.groups, self.anchors, self.device)
        self.control = Control(scene, self.groups, self.state)
        self.contacts = Contacts(scene, self.runtime)
        self.contact_list = ContactList(scene, self.runtime, self.state, self.contacts)
        self.sensors = ForceSensors(scene, self.groups, self.contacts, self.device)
        self.forces = ExternalForces(scene, self.groups, self.state)
        self.dynamics = Dynamics(scene, self.groups, self.device)
        self.properties = LiveProperties(self.groups)
        self.properties.flush()
        self._write_start_state()

    def _plan(self) -> StagePlan:
        """Sort the environments into kinds and decide how they are kept apart."""
        scene = self.scene
        assets: dict[int, int] = {}
        kinds = [actor_kind(actor, self.params.physx.always_use_articulations) for actor in scene.actors]
        names = [
            actor_prim_name(kind, assets.setdefault(actor.asset.uid, len(assets)), actor.slot)
            for kind, actor in zip(kinds, scene.actors, strict=True)
        ]
        rules: dict[Any, collision.Filtering] = {}
        for env in scene.envs:
            key = self._env_key(env)
            if key not in rules:
                rules[key] = collision.analyse(env.actors)
        inside = any(rule.inside for rule in rules.values())
        separate = self._separate_everything(inside)
        coloured = inside and not separate and self.device.type == "cpu"
        classes = {key for rule in rules.values() for shapes in rule.classes for key in shapes}
        colours = placement.colours(len(scene.envs), len(classes) if coloured else placement.MAX_GROUPS, len(rules))
        families: dict[Any, list[int]] = {}
        for env in scene.envs:
            families.setdefault((int(colours[env.index]), self._env_key(env)), []).append(env.index)
        prototypes = tuple(
            Prototype(tuple(envs), collision.analyse(scene.envs[envs[0]].actors, colour))
            for (colour, _), envs in families.items()
        )
        return StagePlan(
            prototypes=prototypes,
            anchors=self.anchors,
            actor_names=names,
            separate_everything=separate,
            report_contacts=int(self.params.physx.contact_collection) != 0,
            gpu=self._gpu_buffers(),
        )

    @staticmethod
    def _env_key(env: Env) -> Any:
        """Environments with equal keys may be clones of each other; everything else is written after the build."""
        actors = tuple((a.asset.uid, a.scale, a.dof_props["hasLimits"].tobytes()) for a in env.actors)
        return actors, collision.signature(env.actors)

    def _separate_everything(self, inside: bool) -> bool:
        """Whether one collision group that filters itself serves; ``inside``: bodies of one env may touch."""
        if self.device.type == "cuda" or not placement.needs_true_place(self.scene):
            return not inside
        if inside and len(self.scene.envs) > 1:
            _logger.warning(
                "robots of different envs share one terrain on the CPU: all collisions between moving bodies are "
                "switched off, self-collision included; collisions with the terrain stay (CUDA has no such limit)"
            )
        return len(self.scene.envs) > 1 or not inside

    def _gpu_buffers(self) -> GpuBuffers | None:
        if self.device.type != "cuda":
            return None
        shapes = sum(env.num_shapes for env in self.scene.envs)
        physx = self.params.physx
        return capacities(shapes, physx.max_gpu_contact_pairs, physx.default_buffer_size_multiplier)

    def _clone(self, prototype: Prototype) -> None:
        assert self.runtime is not None
        source, *targets = prototype.envs
        if not targets:
            return
        poses = [(*map(float, self.anchors[index]), 0.0, 0.0, 0.0, 1.0) for index in targets]
        ids = targets if self.device.type == "cuda" else None
        self.runtime.clone(env_path(source), [env_path(index) for index in targets], poses, ids)

    def _make_groups(self, plan: StagePlan) -> list[Group]:
        """One group for every articulated asset, one for all free single bodies and one for all static ones."""
        assert self.runtime is not None
        firsts: dict[str, Actor] = {}
        for name, actor in zip(plan.actor_names, self.scene.actors, strict=True):
            kind = name[0]
            firsts.setdefault(name.rsplit("_", 1)[0] + "_*" if kind == ARTICULATION else f"{kind}*", actor)
        return [
            Group(self.runtime, pattern[0], f"{ENVS_PATH}/*/{pattern}/b0", self.scene, actor)
            for pattern, actor in firsts.items()
        ]

    def _write_start_state(self) -> None:
        """Put every actor where the user created it, at rest."""
        actors = self.scene.actors
        if not actors:
            return
        root = np.zeros((len(actors), 13), np.float32)
        root[:, :3] = [actor.pose[0] for actor in actors]
        root[:, 3:7] = [actor.pose[1] for actor in actors]
        self.control.set_root(torch.as_tensor(root, device=self.device), None)
        if self.scene.num_dofs:
            rest = [np.zeros((actor.num_dofs, 2)) if actor.start_dofs is None else actor.start_dofs for actor in actors]
            dofs = torch.as_tensor(np.concatenate(rest), dtype=torch.float32, device=self.device)
            self.control.set_dof(dofs, None)

    def simulate(self) -> None:
        """Advance by dt: ``substeps`` PhysX steps of dt / substeps."""
        self.prepare()
        assert self.runtime is not None
        self.properties.flush()
        self.control.before_step()
        self.contact_list.grow()
        substeps = max(1, self.params.substeps)
        for substep in range(substeps):
            self.forces.write()
            self.runtime.step(self.params.dt / substeps)
            self.contacts.collect(substep)
        self.forces.clear()
        self.control.after_step()
        self.state.written.forget()
        self.frame_count += 1
        self.sim_time += self.params.dt
        self._report_overflow()

    def _report_overflow(self) -> None:
        assert self.runtime is not None
        overflow = self.runtime.overflow
        if overflow.count > self._overflows:
            self._overflows = overflow.count
            _logger.error(
                "PhysX dropped contacts (message %d): %s; raise sim.physx.max_gpu_contact_pairs or "
                "sim.physx.default_buffer_size_multiplier",
                overflow.count,
                overflow.last,
            )

    def change_params(self, params: SimParams) -> None:
        """Take gravity, dt and substeps from ``params``; the rest was fixed by the build."""
        gravity = (params.gravity.x, params.gravity.y, params.gravity.z)
        changed = gravity != (self.params.gravity.x, self.params.gravity.y, self.params.gravity.z)
        self.params.gravity, self.params.dt, self.params.substeps = params.gravity, params.dt, params.substeps
        if self.runtime is None:
            self.params.physx = params.physx
            self.params.up_axis = params.up_axis
            return
        if changed:
            direction, magnitude = split_gravity(np.array(gravity))
            self.runtime.set_gravity(direction, magnitude, SCENE_PATH)
        self._tell_ignored(params)

    def _tell_ignored(self, params: SimParams) -> None:
        """Warn, once for each, of parameters in ``params`` that differ from those of the build."""
        old, new = self.params.physx, params.physx
        ignored = {f"physx.{name}" for name in old.field_names() if getattr(old, name) != getattr(new, name)}
        if params.up_axis != self.params.up_axis:
            ignored.add("up_axis")
        if fresh := sorted(ignored - self._ignored):
            _logger.warning("set_sim_params: after prepare_sim this cannot change and is ignored: %s", ", ".join(fresh))
            self._ignored.update(fresh)

    def destroy(self) -> None:
        """Stop PhysX; the simulation cannot be used afterwards."""
        self._destroyed = True
        if self.runtime is not None:
            self.runtime.destroy()
            self.runtime = None
