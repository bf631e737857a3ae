"""What the user described before the build: assets, environments, actors, ground. Nothing here touches PhysX."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isaacgym._enums import RIGID_BODY_DISABLE_GRAVITY, UP_AXIS_Z
from isaacgym._params import PlaneParams, SimParams, TriangleMeshParams
from isaacgym._values import Transform, Vec3
from isaacgym.engine import spatial
from isaacgym.engine.asset import Asset
from isaacgym.engine.properties import asset_bodies, asset_shapes, asset_tendons

_uids = itertools.count()


class SceneAsset:
    """An asset as the simulation sees it: the file's model plus what setters changed since it was loaded.

    Actors take the property arrays as they are when the actor is created; setters replace the arrays, never edit them.
    """

    def __init__(self, model: Asset, params: SimParams) -> None:
        """Take the default properties from the model and the simulation's contact offsets."""
        self.uid = next(_uids)
        self.has_actors = False
        self.model = model
        self.dof_props = model.dof_properties()
        self.body_props = asset_bodies(model, RIGID_BODY_DISABLE_GRAVITY)
        self.shape_props = asset_shapes(model, params.physx.contact_offset, params.physx.rest_offset)
        self.tendon_props = asset_tendons(model)
        self.shape_body = np.array([i for i, body in enumerate(model.bodies) for _ in body.shapes], dtype=np.int64)
        self.joint_count = len(model.joint_names)

    @property
    def is_articulation(self) -> bool:
        """True when the asset has more than one body; single bodies are plain rigid bodies."""
        return len(self.model.bodies) > 1 or self.model.num_dofs > 0


@dataclass(slots=True, eq=False)
class Actor:
    """One actor of one environment. Index fields are fixed at creation; property arrays may be replaced."""

    env: Env
    asset: SceneAsset
    name: str
    pose: spatial.Pose
    """Start pose of the root in the env frame."""
    group: int
    segmentation: int
    index: int
    """Row in the root state tensor."""
    slot: int
    """Index inside the environment, which is also the actor handle."""
    body_start: int
    """First row in the body tensors."""
    dof_start: int
    env_body_start: int
    env_dof_start: int
    env_joint_start: int
    sensor_start: int
    dof_props: np.ndarray
    body_props: np.ndarray
    shape_props: np.ndarray
    tendon_props: np.ndarray
    scale: float = 1.0
    dof_force_sensors: bool = False
    start_dofs: np.ndarray | None = None
    """(D, 2) start position and velocity when a setter gave them before the build."""

    @property
    def num_bodies(self) -> int:
        """Number of bodies."""
        return len(self.asset.model.bodies)

    @property
    def num_dofs(self) -> int:
        """Number of DOFs."""
        return self.asset.model.num_dofs

    def start_q(self) -> np.ndarray:
        """Start positions (D,) of the DOFs: zero unless a setter gave others."""
        return np.zeros(self.num_dofs) if self.start_dofs is None else self.start_dofs[:, 0].astype(np.float64)


@dataclass(slots=True, eq=False)
class Env:
    """One environment: a frame at ``origin`` and the actors in it."""

    scene: Scene
    index: int
    origin: np.ndarray
    """(3,) of the env frame in the world."""
    extent: np.ndarray
    """(3,) edge lengths of the cell the user asked for."""
    actors: list[Actor] = field(default_factory=list)
    num_bodies: int = 0
    num_dofs: int = 0
    num_joints: int = 0
    num_shapes: int = 0
    aggregate: tuple[int, int] | None = None
    """(max bodies, max shapes) while an aggregate is open."""


@dataclass(slots=True)
class TriangleMesh:
    """A static mesh in the world."""

    vertices: np.ndarray
    triangles: np.ndarray
    params: TriangleMeshParams


class Scene:
    """The whole description, filled by create_env, create_actor and add_*; frozen by the build."""

    def __init__(self, params: SimParams) -> None:
        """Start an empty scene with its own copy of the parameters."""
        self.params = params
        self.envs: list[Env] = []
        self.actors: list[Actor] = []
        self.planes: list[PlaneParams] = []
        self.meshes: list[TriangleMesh] = []
        self.num_bodies = 0
        self.num_dofs = 0
        self.num_joints = 0
        self.num_sensors = 0
        self.is_frozen = False
        """True once the build has read the description."""
        self.owner: Any = None
        """The Simulation that holds this scene."""
        self._shared: dict[bytes, np.ndarray] = {}

    @property
    def built(self) -> Any:
        """The Simulation once it is built, None before."""
        return self.owner if self.owner is not None and self.owner.is_built else None

    def share(self, rows: np.ndarray) -> np.ndarray:
        """Return one common array for equal contents, so that equal actors stay recognisable as equal."""
        return self._shared.setdefault(rows.tobytes(), rows)

    def add_env(self, lower: Vec3, upper: Vec3, num_per_row: int) -> Env:
        """Append an environment; cells tile the plane orthogonal to the up axis (Isaac Gym API notes 9.5).

        Raises:
            ValueError: when a row would hold no environment.
        """
        per_row = math.trunc(num_per_row)
        if per_row < 1:
            raise ValueError(f"create_env: num_per_row is {num_per_row}; at least 1 is needed")
        extent = np.array([upper.x - lower.x, upper.y - lower.y, upper.z - lower.z])
        index = len(self.envs)
        column, row = index % per_row, index // per_row
        if self.params.up_axis == UP_AXIS_Z:
            origin = np.array([column * extent[0], row * extent[1], 0.0])
        else:
            origin = np.array([column * extent[0], 0.0, row * extent[2]])
        env = Env(self, index, origin, extent)
        self.envs.append(env)
        return env

    def add_actor(
        self, env: Env, asset: SceneAsset, pose: Transform, name: str | None, group: int, filter_bits: int, seg: int
    ) -> Actor:
        """Append an actor to ``env``, which must be the last environment so that tensor rows stay env-major.

        Raises:
            ValueError: when a later environment has been opened already.
            RuntimeError: when the scene is built.
        """
        if self.is_frozen:
            raise RuntimeError("create_actor: the simulation is prepared already; create all actors before prepare_sim")
        if env is not self.envs[-1]:
            raise ValueError("create_actor: a later env exists already; fill the envs one after the other")
        model = asset.model
        position = np.array([pose.p.x, pose.p.y, pose.p.z])
        turn = spatial.normalized(np.array([pose.r.x, pose.r.y, pose.r.z, pose.r.w]))
        shapes = asset.shape_props
        if filter_bits != -1 and len(shapes):
            shapes = shapes.copy()
            shapes["filter"] = filter_bits
            shapes = self.share(shapes)
        actor = Actor(
            env=env,
            asset=asset,
            name=model.name if name is None else name,
            pose=(position, spatial.multiply(turn, model.root_quat)),
            group=group,
            segmentation=seg,
            index=len(self.actors),
            slot=len(env.actors),
            body_start=self.num_bodies,
            dof_start=self.num_dofs,
            env_body_start=env.num_bodies,
            env_dof_start=env.num_dofs,
            env_joint_start=env.num_joints,
            sensor_start=self.num_sensors,
            dof_props=asset.dof_props,
            body_props=asset.body_props,
            shape_props=shapes,
            tendon_props=asset.tendon_props,
        )
        asset.has_actors = True
        env.actors.append(actor)
        self.actors.append(actor)
        env.num_bodies += actor.num_bodies
        env.num_dofs += actor.num_dofs
        env.num_joints += asset.joint_count
        env.num_shapes += model.num_shapes
        self.num_bodies += actor.num_bodies
        self.num_dofs += actor.num_dofs
        self.num_joints += asset.joint_count
        self.num_sensors += len(model.force_sensors)
        return actor
