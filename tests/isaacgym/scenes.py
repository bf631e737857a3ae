"""Small scenes for the physics tests, built through the public Isaac Gym calls only.

Defaults are those of the API notes, section 20: z up, gravity (0, 0, -9.81), dt 1/60 with 2 substeps, TGS with 4
position and 1 velocity iterations, CPU pipeline, contact offset 0.02, rest offset 0, no damping.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from isaacgym import gymapi, gymtorch

GRAVITY = 9.81
TENSORS = {
    "root": ("acquire_actor_root_state_tensor", "refresh_actor_root_state_tensor"),
    "dof": ("acquire_dof_state_tensor", "refresh_dof_state_tensor"),
    "body": ("acquire_rigid_body_state_tensor", "refresh_rigid_body_state_tensor"),
    "contact": ("acquire_net_contact_force_tensor", "refresh_net_contact_force_tensor"),
    "dof_force": ("acquire_dof_force_tensor", "refresh_dof_force_tensor"),
    "sensor": ("acquire_force_sensor_tensor", "refresh_force_sensor_tensor"),
}


def sim_params(dt=1 / 60, substeps=2, gravity=(0.0, 0.0, -GRAVITY), **physx) -> gymapi.SimParams:
    """Simulation parameters; keywords beyond the named ones are fields of `physx`."""
    params = gymapi.SimParams()
    params.dt = dt
    params.substeps = substeps
    params.up_axis = gymapi.UP_AXIS_Z
    params.gravity = gymapi.Vec3(*gravity)
    params.use_gpu_pipeline = False
    fields = {
        "use_gpu": False,
        "num_threads": 0,
        "solver_type": 1,
        "num_position_iterations": 4,
        "num_velocity_iterations": 1,
        "contact_offset": 0.02,
        "rest_offset": 0.0,
    }
    for name, value in {**fields, **physx}.items():
        assert hasattr(params.physx, name)
        setattr(params.physx, name, value)
    return params


def asset_options(**fields) -> gymapi.AssetOptions:
    """Asset options without damping; keywords are fields of AssetOptions."""
    options = gymapi.AssetOptions()
    for name, value in {"linear_damping": 0.0, "angular_damping": 0.0, **fields}.items():
        assert hasattr(options, name)
        setattr(options, name, value)
    return options


def pose(pos=(0.0, 0.0, 0.0), quat=(0.0, 0.0, 0.0, 1.0)) -> gymapi.Transform:
    return gymapi.Transform(gymapi.Vec3(*pos), gymapi.Quat(*quat))


def indices(*actors: int) -> gymtorch.Tensor:
    return gymtorch.unwrap_tensor(torch.tensor(actors, dtype=torch.int32))


class World:
    """One simulation, with short names for the calls that every test repeats."""

    def __init__(self, **params) -> None:
        self.gym = gymapi.acquire_gym()
        self.sim = self.gym.create_sim(0, -1, gymapi.SIM_PHYSX, sim_params(**params))
        assert self.sim is not None
        self.envs: list = []
        self.tensors: dict[str, torch.Tensor] = {}

    def destroy(self) -> None:
        if self.sim is not None:
            self.gym.destroy_sim(self.sim)
            self.sim = None

    # building
    def plane(self, friction=1.0, restitution=0.0, normal=(0.0, 0.0, 1.0), distance=0.0) -> None:
        params = gymapi.PlaneParams()
        params.normal = gymapi.Vec3(*normal)
        params.distance = distance
        params.static_friction = params.dynamic_friction = friction
        params.restitution = restitution
        self.gym.add_ground(self.sim, params)

    def flat_mesh(self, height: float, cells=10, corner=(-5.0, -5.0)) -> None:
        """A square triangle mesh of 1 m cells, all at one height."""
        side = np.arange(cells + 1, dtype=np.float32)
        x, y = np.meshgrid(side, side, indexing="ij")
        vertices = np.stack([x, y, np.full_like(x, height)], axis=-1).reshape(-1, 3)
        low = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).reshape(-1)
        right, up = low + cells + 1, low + 1
        triangles = np.concatenate([np.stack([low, right + 1, up], 1), np.stack([low, right, right + 1], 1)])
        params = gymapi.TriangleMeshParams()
        params.nb_vertices, params.nb_triangles = len(vertices), len(triangles)
        params.transform.p.x, params.transform.p.y = corner
        self.gym.add_triangle_mesh(self.sim, vertices.flatten(), triangles.astype(np.uint32).flatten(), params)

    def env(self, spacing=2.0, per_row=1):
        """Create the next env, a cell of 2 x spacing, as most scripts do."""
        lower, upper = gymapi.Vec3(-spacing, -spacing, 0.0), gymapi.Vec3(spacing, spacing, spacing)
        self.envs.append(self.gym.create_env(self.sim, lower, upper, per_row))
        return self.envs[-1]

    def load(self, path: Path, **options):
        asset = self.gym.load_asset(self.sim, str(path.parent), path.name, asset_options(**options))
        assert asset is not None
        return asset

    def box(self, size=0.5, mass=2.0, **options):
        """Asset of a box; `size` is one edge or three."""
        edges = (size,) * 3 if np.isscalar(size) else size
        return self.gym.create_box(self.sim, *edges, asset_options(density=mass / float(np.prod(edges)), **options))

    def sphere(self, radius=0.1, mass=1.0, **options):
        density = mass / (4 / 3 * np.pi * radius**3)
        return self.gym.create_sphere(self.sim, radius, asset_options(density=density, **options))

    def actor(self, env, asset, pos=(0.0, 0.0, 0.0), quat=(0.0, 0.0, 0.0, 1.0), name="actor", group=None, mask=0):
        """Create an actor; the collision group is the env's number unless given, `mask` is the filter."""
        group = self.envs.index(env) if group is None else group
        handle = self.gym.create_actor(env, asset, pose(pos, quat), name, group, mask)
        assert handle >= 0
        return handle

    def set_dofs(self, env, actor: int, **fields) -> None:
        """Change fields of the DOF properties of one actor."""
        props = self.gym.get_actor_dof_properties(env, actor)
        for name, value in fields.items():
            props[name] = value
        assert self.gym.set_actor_dof_properties(env, actor, props)

    def set_shapes(self, env, actor: int, **fields) -> None:
        """Change fields of the properties of all shapes of one actor."""
        shapes = self.gym.get_actor_rigid_shape_properties(env, actor)
        for shape in shapes:
            for name, value in fields.items():
                setattr(shape, name, value)
        assert self.gym.set_actor_rigid_shape_properties(env, actor, shapes)

    # running
    def prepare(self, *names: str):
        """Prepare the sim, acquire and refresh the named tensors; returns the tensor, or the tuple of tensors."""
        assert self.gym.prepare_sim(self.sim)
        for name in names:
            self.tensors[name] = gymtorch.wrap_tensor(getattr(self.gym, TENSORS[name][0])(self.sim))
        self.refresh()
        found = tuple(self.tensors[name] for name in names)
        return found[0] if len(found) == 1 else found

    def refresh(self) -> None:
        for name in self.tensors:
            getattr(self.gym, TENSORS[name][1])(self.sim)

    def step(self, count=1) -> None:
        """Simulate `count` times, then refresh."""
        for _ in range(count):
            self.gym.simulate(self.sim)
            self.gym.fetch_results(self.sim, True)
        self.refresh()

    def push(self, force=None, torque=None, at=None, space=gymapi.ENV_SPACE) -> None:
        """Apply forces (num_bodies, 3) for the next simulate, at the centres of mass or at points `at`."""
        wrap = gymtorch.unwrap_tensor
        if at is None:
            given = [None if value is None else wrap(value) for value in (force, torque)]
            assert self.gym.apply_rigid_body_force_tensors(self.sim, *given, space)
        else:
            assert self.gym.apply_rigid_body_force_at_pos_tensors(self.sim, wrap(force), wrap(at), space)

    def write_root(self, root: torch.Tensor, *actors: int) -> None:
        """Write all root rows, or those of the given actors."""
        value = gymtorch.unwrap_tensor(root)
        if actors:
            assert self.gym.set_actor_root_state_tensor_indexed(self.sim, value, indices(*actors), len(actors))
        else:
            assert self.gym.set_actor_root_state_tensor(self.sim, value)

    def write_dof(self, kind: str, value: torch.Tensor, *actors: int) -> None:
        """Write `state`, `position_target`, `velocity_target` or `actuation_force` of all or the given actors."""
        name, tensor = f"set_dof_{kind}_tensor", gymtorch.unwrap_tensor(value)
        if actors:
            assert getattr(self.gym, f"{name}_indexed")(self.sim, tensor, indices(*actors), len(actors))
        else:
            assert getattr(self.gym, name)(self.sim, tensor)


# URDF files
def link(name: str, mass=1.0, inertia=0.01, com=(0.0, 0.0, 0.0), shape="") -> str:
    """A link with an isotropic inertia about its centre of mass and at most one collision shape."""
    diagonal = f'ixx="{inertia}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"'
    collision = f"<collision><geometry>{shape}</geometry></collision>" if shape else ""
    return (
        f'<link name="{name}"><inertial><origin xyz="{com[0]} {com[1]} {com[2]}"/>'
        f'<mass value="{mass}"/><inertia {diagonal}/></inertial>{collision}</link>'
    )


def joint(name: str, kind: str, parent: str, child: str, xyz=(0.0, 0.0, 0.0), axis=(1, 0, 0), **limit) -> str:
    """A joint; keywords are lower, upper, effort, velocity of its limit, and damping."""
    damping = limit.pop("damping", 0.0)
    limit = {"lower": -100.0, "upper": 100.0, "effort": 1000.0, "velocity": 1000.0, **limit}
    limits = " ".join(f'{key}="{value}"' for key, value in limit.items())
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz[0]} {xyz[1]} {xyz[2]}"/><axis xyz="{axis[0]} {axis[1]} {axis[2]}"/>'
        f'<limit {limits}/><dynamics damping="{damping}"/></joint>'
    )


def urdf(folder: Path, name: str, *parts: str) -> Path:
    path = folder / f"{name}.urdf"
    path.write_text(f'<?xml version="1.0"?>\n<robot name="{name}">\n' + "\n".join(parts) + "\n</robot>\n")
    return path


def slider(folder: Path, axis=(1, 0, 0), shape="", **limit) -> Path:
    """A base and a car of 1 kg on a prismatic joint."""
    rail = joint("slide", "prismatic", "base", "car", axis=axis, **limit)
    return urdf(folder, "slider", link("base", 4.0), link("car", 1.0, shape=shape), rail)


def arm(folder: Path, shape="") -> Path:
    """A base and two links of 1 kg in a row, hinged about y: 3 bodies, 2 DOFs."""
    return urdf(
        folder,
        "arm",
        link("base", 4.0),
        link("link1", shape=shape),
        link("link2", shape=shape),
        joint("joint1", "revolute", "base", "link1", (0.0, 0.0, 0.5), (0, 1, 0)),
        joint("joint2", "revolute", "link1", "link2", (0.5, 0.0, 0.0), (0, 1, 0)),
    )


def hopper(folder: Path) -> Path:
    """A body of 2 kg (0.4 x 0.4 x 0.1) over a foot of 1 kg (0.3 x 0.3 x 0.1) on a vertical slider of 0.2 m."""
    return urdf(
        folder,
        "hopper",
        link("base", 2.0, 0.05, shape='<box size="0.4 0.4 0.1"/>'),
        link("foot", 1.0, 0.02, shape='<box size="0.3 0.3 0.1"/>'),
        joint("leg", "prismatic", "base", "foot", (0.0, 0.0, -0.2), (0, 0, 1), lower=-0.05, upper=0.05),
    )
