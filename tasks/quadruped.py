"""Quadruped: what the ANYmal tasks have in common, from the asset to the start of an episode."""

from __future__ import annotations

from typing import Any, ClassVar

from isaacgym import gymapi, gymtorch  # isort: skip  (the original package wants to be imported before torch)
import torch
from torch import Tensor

from tasks.base.config import asset_root
from tasks.base.errors import TaskError
from tasks.base.vec_task import VecTask

NUM_DOFS = 12


class Quadruped(VecTask):
    """An ANYmal follows velocity commands; each task adds its ground, observation and reward."""

    saved_buffers: ClassVar[tuple[str, ...]] = (*VecTask.saved_buffers, "commands")

    num_observed: ClassVar[int]
    """Number of observations."""
    collision_filter: ClassVar[int]
    """1: the robot's bodies pass through each other, 0: they collide."""
    drive_mode: ClassVar[gymapi.DofDriveMode]
    """How the joints are driven."""

    def __init__(self, cfg: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        """Same arguments as `VecTask`."""
        env = cfg["env"]
        env["numObservations"] = self.num_observed
        env["numActions"] = NUM_DOFS
        self.control = env["control"]
        self.learn = env["learn"]
        self.action_scale = float(self.control["actionScale"])
        super().__init__(cfg, *args, **kwargs)
        self._acquire_state()

    def asset_options(self) -> gymapi.AssetOptions:
        """Options of the robot's asset."""
        urdf = self.cfg["env"]["urdfAsset"]
        options = gymapi.AssetOptions()
        options.default_dof_drive_mode = self.drive_mode
        options.collapse_fixed_joints = bool(urdf["collapseFixedJoints"])
        options.fix_base_link = bool(urdf["fixBaseLink"])
        options.replace_cylinder_with_capsule = True
        options.flip_visual_attachments = True
        options.density = 0.001
        options.angular_damping = 0.0
        options.linear_damping = 0.0
        options.armature = 0.0
        options.thickness = 0.01
        options.disable_gravity = False
        return options

    def load_robot(self) -> Any:
        """Load the asset and look up its joints and bodies.

        Raises:
            TaskError: a joint has no default angle.
        """
        urdf = self.cfg["env"]["urdfAsset"]
        asset = self.gym.load_asset(self.sim, asset_root(self.cfg), urdf["file"], self.asset_options())
        self._dof_names = list(self.gym.get_asset_dof_names(asset))
        bodies = list(self.gym.get_asset_rigid_body_names(asset))
        self.base_index = bodies.index("base")
        self.feet = [i for i, name in enumerate(bodies) if urdf["footName"] in name]
        self.knees = [i for i, name in enumerate(bodies) if urdf["kneeName"] in name]
        angles = self.cfg["env"]["defaultJointAngles"]
        missing = [name for name in self._dof_names if name not in angles]
        if missing:
            raise TaskError(f"env.defaultJointAngles has no {', '.join(missing)}")
        self.default_dof_pos = torch.tensor(
            [float(angles[name]) for name in self._dof_names], device=self.pipeline_device
        )
        return asset

    def initial_root_state(self) -> list[float]:
        """Start state of the base in the config (13 numbers)."""
        start = self.cfg["env"]["baseInitState"]
        return [float(v) for key in ("pos", "rot", "vLinear", "vAngular") for v in start[key]]

    def start_pose(self) -> gymapi.Transform:
        """Start position of the base, unrotated."""
        pose = gymapi.Transform()
        pose.p = gymapi.Vec3(*self.initial_root_state()[:3])
        return pose

    def _acquire_state(self) -> None:
        gym, sim, device, n = self.gym, self.sim, self.pipeline_device, self.num_envs
        self.root_states = gymtorch.wrap_tensor(gym.acquire_actor_root_state_tensor(sim))
        self.dof_state = gymtorch.wrap_tensor(gym.acquire_dof_state_tensor(sim))
        contact_forces = gymtorch.wrap_tensor(gym.acquire_net_contact_force_tensor(sim))
        gym.refresh_actor_root_state_tensor(sim)
        gym.refresh_dof_state_tensor(sim)
        gym.refresh_net_contact_force_tensor(sim)
        self.contact_forces = contact_forces.view(n, -1, 3)
        self.dof_pos = self.dof_state.view(n, NUM_DOFS, 2)[..., 0]
        self.dof_vel = self.dof_state.view(n, NUM_DOFS, 2)[..., 1]
        self.start_state = torch.tensor(self.initial_root_state(), device=device)
        self.actions = torch.zeros(n, NUM_DOFS, device=device)
        self.commands = torch.zeros(n, 4, device=device)

    def dof_names(self) -> list[str]:
        """Names of the twelve joints, in the order of actions."""
        return self._dof_names

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        """Uniform random numbers in [low, high) of the given shape."""
        return torch.empty(shape, device=self.pipeline_device).uniform_(low, high)

    def reset_joints(self, env_ids: Tensor) -> None:
        """Joints at 50 to 150 % of their default angles, with velocities within 0.1 rad/s."""
        k = len(env_ids)
        self.dof_pos[env_ids] = self.default_dof_pos * self.uniform(0.5, 1.5, k, NUM_DOFS)
        self.dof_vel[env_ids] = self.uniform(-0.1, 0.1, k, NUM_DOFS)
        actors = gymtorch.unwrap_tensor(env_ids.to(torch.int32))
        self.gym.set_dof_state_tensor_indexed(self.sim, gymtorch.unwrap_tensor(self.dof_state), actors, k)
