"""Groups of equal actors and the maps between PhysX's rows and Isaac Gym's.

PhysX serves a quantity as one tensor over all objects of a group, rows in the order of the clone calls and columns
breadth-first; Isaac Gym wants env-major rows and depth-first columns (Isaac Gym API notes 3.4). A ``Group`` hides the
difference: its methods take and give Gym's order. Maps are built once, by name.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Sequence

import numpy as np
import torch

from isaacgym.engine.joint_frames import dof_prim_names
from isaacgym.engine.runtime import Binding, Runtime
from isaacgym.engine.scene import Actor, Scene
from isaacgym.engine.usd_basics import ENVS_PATH

_logger = logging.getLogger(__name__)

ARTICULATION, RIGID, STATIC = "k", "r", "s"
_PATH = re.compile(rf"{ENVS_PATH}/e(\d+)/([krs])(\d+)_(\d+)")


def actor_kind(actor: Actor, always_articulations: bool) -> str:
    """What an actor becomes: an articulation, a free rigid body, or a body that only setters move."""
    if actor.asset.is_articulation or (always_articulations and not actor.asset.model.fixed_base):
        return ARTICULATION
    return STATIC if actor.asset.model.fixed_base else RIGID


def actor_prim_name(kind: str, recipe: int, slot: int) -> str:
    """Prim name of an actor; equal actors share the kind and recipe number, which makes them one group."""
    return f"{kind}{recipe}_{slot}"


class Blocks:
    """Where the equal-sized blocks of a group's actors lie in a global tensor.

    Where the blocks are evenly spaced (equal envs: the usual case) a strided view of the tensor serves, and nothing
    is gathered or scattered.
    """

    def __init__(self, starts: np.ndarray, width: int, device: torch.device) -> None:
        """Block i covers rows ``starts[i]`` to ``starts[i] + width``."""
        self.count, self.width = len(starts), width
        steps = np.unique(np.diff(starts)) if len(starts) > 1 else np.array([width])
        self._even = len(steps) == 1 and steps[0] >= width
        self._first, self._step = int(starts[0]), int(steps[0])
        rows = (starts[:, None] + np.arange(width)[None, :]).reshape(-1)
        self._rows = torch.as_tensor(rows, dtype=torch.int64, device=device)

    def view(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Strided view (count, width, *rest) of a contiguous ``tensor`` (rows, *rest), None where there is none."""
        if not self._even:
            return None
        rest = tensor.shape[1:]
        row = math.prod(rest)
        inner = [math.prod(rest[i + 1 :]) for i in range(len(rest))]
        offset = tensor.storage_offset() + self._first * row
        return tensor.as_strided((self.count, self.width, *rest), (self._step * row, row, *inner), offset)

    def get(self, tensor: torch.Tensor) -> torch.Tensor:
        """Blocks (count, width, *rest) of ``tensor``: a view where possible."""
        view = self.view(tensor)
        if view is not None:
            return view
        return tensor.index_select(0, self._rows).view(self.count, self.width, *tensor.shape[1:])

    def put(self, tensor: torch.Tensor, values: torch.Tensor) -> None:
        """Store ``values`` (count, width, *rest) into ``tensor``."""
        view = self.view(tensor)
        if view is not None:
            view.copy_(values)
        else:
            tensor.index_copy_(0, self._rows, values.reshape(self.count * self.width, *tensor.shape[1:]))

    def put_columns(self, tensor: torch.Tensor, columns: slice, values: torch.Tensor) -> None:
        """Store ``values`` (count, width, c) into the given columns of ``tensor`` (rows, C)."""
        view = self.view(tensor)
        if view is not None:
            view[..., columns].copy_(values)
        else:
            tensor[:, columns].index_copy_(0, self._rows, values.reshape(self.count * self.width, -1))


class Permutation:
    """A fixed reordering of columns; the identity costs nothing."""

    def __init__(self, order: Sequence[int], device: torch.device) -> None:
        """``order[i]`` is the PhysX column of Gym's column i."""
        self.order = list(order)
        self.is_identity = self.order == list(range(len(self.order)))
        self._to_gym = torch.as_tensor(self.order, dtype=torch.int64, device=device)
        self._to_physx = torch.argsort(self._to_gym)
        self.physx_order = np.argsort(np.array(self.order, dtype=np.int64))
        """Gym column of every PhysX column, for host arrays."""

    def to_gym(self, values: torch.Tensor) -> torch.Tensor:
        """Reorder dimension 1 from PhysX's order to Gym's."""
        return values if self.is_identity else values.index_select(1, self._to_gym)

    def to_physx(self, values: torch.Tensor) -> torch.Tensor:
        """Reorder dimension 1 from Gym's order to PhysX's."""
        return values if self.is_identity else values.index_select(1, self._to_physx)


class LinkRows:
    """A quantity of some bodies of every articulation of a group."""

    def __init__(self, binding: Binding, num_actors: int) -> None:
        """Wrap a binding whose rows are actor by actor."""
        self._binding = binding
        self._rows = binding.empty()
        self._blocks = self._rows.view(num_actors, -1, self._rows.shape[1])

    def read(self) -> torch.Tensor:
        """Read into one buffer (actors, bodies, components) and return that."""
        self._binding.read(self._rows)
        return self._blocks


class Group:
    """All actors of one recipe (articulations), or all free or all static single bodies."""

    def __init__(self, runtime: Runtime, kind: str, pattern: str, scene: Scene, first: Actor) -> None:
        """Bind the poses of everything that matches ``pattern`` and build the maps from the paths found.

        Args:
            runtime: the attached scene.
            kind: ARTICULATION, RIGID or STATIC.
            pattern: prim path pattern of the root bodies.
            scene: the described scene.
            first: any actor of the group.
        """
        self.kind = kind
        self.pattern = pattern
        self.device = runtime.device
        self._runtime = runtime
        self._bindings: dict[str, Binding] = {}
        self._stages: dict[str, torch.Tensor] = {}
        self._shape_orders: dict[int, np.ndarray] = {}
        paths = self.binding("ROOT_POSE" if kind == ARTICULATION else "POSE").paths
        self.actors = [self._actor_of(path, scene) for path in paths]
        actor_rows = np.array([actor.index for actor in self.actors])
        self.roots = Blocks(actor_rows, 1, self.device)
        self.actor_rows = torch.as_tensor(actor_rows, device=self.device)
        self.row_of_actor = torch.full((len(scene.actors),), -1, dtype=torch.int32, device=self.device)
        rows = torch.arange(len(self.actors), dtype=torch.int32, device=self.device)
        self.row_of_actor[self.actor_rows] = rows
        self.num_dofs, self.num_bodies = first.num_dofs, first.num_bodies
        self.bodies = Blocks(np.array([a.body_start for a in self.actors]), self.num_bodies, self.device)
        if self.num_dofs:
            self.dofs = Blocks(np.array([a.dof_start for a in self.actors]), self.num_dofs, self.device)
        self._map_columns(first)

    @staticmethod
    def _actor_of(path: str, scene: Scene) -> Actor:
        match = _PATH.match(path)
        if match is None:
            raise RuntimeError(f"PhysX lists {path}, which is no actor of this scene")
        return scene.envs[int(match[1])].actors[int(match[4])]

    def _map_columns(self, first: Actor) -> None:
        """Build the column permutations from prim names (``b3``, ``d5``), never from an assumed order."""
        self.body_order = Permutation(range(self.num_bodies), self.device)
        self.dof_order = Permutation(range(self.num_dofs), self.device)
        if self.kind != ARTICULATION:
            return
        native = self.binding("ROOT_POSE")
        expected = len(first.asset.model.tendons)
        if native.num_tendons != expected:
            raise RuntimeError(f"{first.asset.model.path}: PhysX built {native.num_tendons} of {expected} tendons")
        bodies = native.body_names
        self.body_order = Permutation([bodies.index(f"b{i}") for i in range(self.num_bodies)], self.device)
        if self.num_dofs:
            dofs = native.dof_names
            self.dof_order = Permutation([dofs.index(name) for name in dof_prim_names(first)], self.device)

    def binding(self, quantity: str) -> Binding:
        """Return the binding of a quantity, made when first asked for: what is never asked for costs nothing."""
        if quantity not in self._bindings:
            prefix = "ARTICULATION_" if self.kind == ARTICULATION else "RIGID_BODY_"
            self._bindings[quantity] = self._runtime.bind(prefix + quantity, self.pattern)
        return self._bindings[quantity]

    def stage(self, quantity: str) -> torch.Tensor:
        """Return the buffer through which a quantity is read and written, made once."""
        if quantity not in self._stages:
            self._stages[quantity] = self.binding(quantity).empty()
        return self._stages[quantity]

    def read(self, quantity: str) -> torch.Tensor:
        """Read a quantity into its stage and return that, PhysX's order."""
        values = self.stage(quantity)
        self.binding(quantity).read(values)
        return values

    def bind_links(self, quantity: str, bodies: Sequence[int]) -> LinkRows:
        """Bind a rigid body quantity of some bodies (Gym's numbers) of every articulation."""
        actors = [path.rsplit("/", 1)[0] for path in self.binding("ROOT_POSE").paths]
        paths = [f"{actor}/b{body}" for actor in actors for body in bodies]
        binding = self._runtime.bind_paths(f"RIGID_BODY_{quantity}", paths)
        if binding.paths != paths:
            raise RuntimeError(f"PhysX lists the links of {self.pattern} in an order of its own")
        return LinkRows(binding, len(actors))

    def shape_order(self, actor: Actor) -> np.ndarray:
        """Gym shape index of every PhysX shape of an actor: links in PhysX's order, the shapes of a link in file order.

        A mesh that PhysX decomposes is one shape in Gym and several in PhysX.
        """
        asset = actor.asset
        if asset.uid not in self._shape_orders:
            links = [self.body_order.order.index(i) for i in range(self.num_bodies)]
            counts = [self._pieces(actor, link) for link in links]
            self._shape_orders[asset.uid] = np.concatenate([np.zeros(0, np.int64), *counts])
        return self._shape_orders[asset.uid]

    def _pieces(self, actor: Actor, body: int) -> np.ndarray:
        """Gym shape index of every PhysX shape of one body."""
        shapes = np.flatnonzero(actor.asset.shape_body == body)
        kinds = [shape.kind for shape in actor.asset.model.bodies[body].shapes]
        cut = kinds.count("decomposition")
        if not cut:
            return shapes
        root = self.binding(self.root_pose).paths[self.actors.index(actor)]
        path = f"{root.rsplit('/', 1)[0]}/b{body}"
        binding = self._runtime.bind_paths("RIGID_BODY_SHAPE_FRICTION_AND_RESTITUTION", [path])
        total = binding.shape[1]
        binding.destroy()
        found = total - (len(kinds) - cut)
        if cut > 1:
            _logger.warning(
                "%s: PhysX cuts %d meshes of body %d into %d pieces; that each has as many is assumed when properties "
                "of single shapes are set",
                *(actor.asset.model.path, cut, body, found),
            )
        pieces = [len(part) for part in np.array_split(np.arange(found), cut)]
        repeats = [pieces.pop(0) if kind == "decomposition" else 1 for kind in kinds]
        return np.repeat(shapes, repeats)

    @property
    def root_pose(self) -> str:
        """Name of the root pose quantity."""
        return "ROOT_POSE" if self.kind == ARTICULATION else "POSE"

    @property
    def root_velocity(self) -> str:
        """Name of the root velocity quantity."""
        return "ROOT_VELOCITY" if self.kind == ARTICULATION else "VELOCITY"

    def rows_of(self, actor_indices: torch.Tensor) -> torch.Tensor:
        """Rows (int32) of those ``actor_indices`` that belong to the group. CUDA synchronises: use ``mask_of``."""
        rows = self.row_of_actor.index_select(0, actor_indices.long())
        return rows[rows >= 0]

    def mask_of(self, actor_indices: torch.Tensor) -> torch.Tensor:
        """Mark (uint8) the group's rows named by ``actor_indices``, without a synchronisation."""
        chosen = torch.zeros(len(self.row_of_actor), dtype=torch.uint8, device=self.device)
        chosen.index_fill_(0, actor_indices.long(), 1)
        return chosen.index_select(0, self.actor_rows)

    def write(self, quantity: str, values: torch.Tensor, actor_indices: torch.Tensor | None) -> None:
        """Write ``values`` (full size, PhysX's order): all rows, or those of the given actors."""
        binding = self.binding(quantity)
        values = values.contiguous()
        if actor_indices is None:
            binding.write(values)
        elif self.device.type == "cuda":
            binding.write(values, mask=self.mask_of(actor_indices).to(binding.device))
        else:
            rows = self.rows_of(actor_indices)
            if len(rows):
                binding.write(values, rows)
