"""Cartpole: balance a pole by pushing its cart (4 observations, or 2 without velocities; 1 action)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from isaacgym import gymapi, gymtorch  # isort: skip  (the original package wants to be imported before torch)
import torch
from torch import Tensor

from tasks.base.config import asset_root
from tasks.base.description import Description, Part, Result, Term
from tasks.base.errors import TaskError
from tasks.base.vec_task import VecTask

NUM_DOFS = 2
OBSERVED = {"full": (0, 1, 2, 3), "no_velocities": (0, 2)}
"""Observation type -> the numbers of the joint state (cart position, cart velocity, pole angle, pole velocity)."""
FAILURE_REWARD = -2.0
MAX_POLE_ANGLE = math.pi / 2


def has_failed(cart_pos: Tensor, pole_angle: Tensor, reset_dist: float) -> Tensor:
    """Mask (N,): cart beyond `reset_dist` (m) or pole beyond a right angle."""
    return (cart_pos.abs() > reset_dist) | (pole_angle.abs() > MAX_POLE_ANGLE)


def cartpole_reward_terms(cart_vel: Tensor, pole_angle: Tensor, pole_vel: Tensor, failed: Tensor) -> dict[str, Tensor]:
    """Reward terms (N,) each (m/s, rad, rad/s); their sum is the reward, -2 for failed envs."""
    terms = {
        "alive": torch.ones_like(pole_angle),
        "pole_angle": -pole_angle * pole_angle,
        "cart_velocity": cart_vel.abs() * -0.01,
        "pole_velocity": pole_vel.abs() * -0.005,
    }
    terms = {name: term.masked_fill(failed, 0.0) for name, term in terms.items()}
    terms["failure"] = failed * FAILURE_REWARD
    return terms


JOINT_STATE = (
    Part(1, "cart position", "m", "rail"),
    Part(1, "cart velocity", "m/s", "rail"),
    Part(1, "pole angle from upright", "rad", "joint"),
    Part(1, "pole angular velocity", "rad/s", "joint"),
)

DESCRIPTION = Description(
    summary="A cart on a rail carries a free pole: keep the pole upright and the cart near the middle.",
    observations={kind: tuple(JOINT_STATE[i] for i in columns) for kind, columns in OBSERVED.items()},
    action="1 number in [-1, 1]: horizontal force on the cart, x {env.maxEffort} N.",
    reward="Sum of the terms; a failed env gets `failure` alone.",
    terms=(
        Term("alive", "1"),
        Term("pole_angle", "angle^2", -1.0),
        Term("cart_velocity", "abs(cart velocity)", -0.01),
        Term("pole_velocity", "abs(pole velocity)", -0.005),
        Term("failure", "1 if failed", FAILURE_REWARD),
    ),
    termination=(
        "when the cart is more than {env.resetDist} m from the middle or the pole more than 90 degrees from upright",
        "after {env.episodeLength} steps (time limit)",
    ),
    results=(
        Result(
            "reward of the last 100 episodes after 1.6M steps",
            "python scripts/train.py task=Cartpole",
            "497, 496, 486",
            "seeds 42, 43, 44, 1024 environments, 2 CPU cores; an episode gives at most 500",
        ),
    ),
)


class Cartpole(VecTask):
    """A cart on a rail carries a free pole; the action is a horizontal force on the cart.

    `env.observationType` says what the policy sees; with `env.asymmetric_observations` the states of a central critic
    are the full joint state.
    """

    description = DESCRIPTION
    sim_state: ClassVar[tuple[str, ...]] = ("dof_state",)

    def __init__(self, cfg: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        """Same arguments as `VecTask`."""
        env = cfg["env"]
        observed = env.get("observationType", "full")
        if observed not in OBSERVED:
            raise TaskError(f"env.observationType is {observed!r}; allowed are {', '.join(OBSERVED)}")
        env["numObservations"] = len(OBSERVED[observed])
        env["numStates"] = 2 * NUM_DOFS if env.get("asymmetric_observations", False) else 0
        env["numActions"] = 1
        self.max_episode_length = int(env["episodeLength"])
        self.reset_dist = float(env["resetDist"])
        self.max_effort = float(env["maxEffort"])
        super().__init__(cfg, *args, **kwargs)
        self.dof_state = gymtorch.wrap_tensor(self.gym.acquire_dof_state_tensor(self.sim))
        self.dof_pos = self.dof_state.view(self.num_envs, NUM_DOFS, 2)[..., 0]
        self.dof_vel = self.dof_state.view(self.num_envs, NUM_DOFS, 2)[..., 1]
        self.dof_forces = torch.zeros(self.num_envs, NUM_DOFS, device=self.pipeline_device)
        self.observed_columns = torch.tensor(OBSERVED[observed], device=self.pipeline_device)

    def create_scene(self) -> None:
        """Ground plane and one cart with its pole in each env, 2 m above the ground."""
        z_up = self.cfg["sim"]["up_axis"] == "z"
        plane = gymapi.PlaneParams()
        plane.normal = gymapi.Vec3(0.0, 0.0, 1.0) if z_up else gymapi.Vec3(0.0, 1.0, 0.0)
        self.gym.add_ground(self.sim, plane)
        options = gymapi.AssetOptions()
        options.fix_base_link = True
        file = self.cfg["env"]["asset"]["assetFileName"]
        asset = self.gym.load_asset(self.sim, asset_root(self.cfg), file, options)
        self._dof_names = list(self.gym.get_asset_dof_names(asset))
        self._create_envs(asset, z_up)

    def _create_envs(self, asset: Any, z_up: bool) -> None:
        spacing = float(self.cfg["env"]["envSpacing"])
        start = gymapi.Transform()
        if z_up:
            start.p = gymapi.Vec3(0.0, 0.0, 2.0)
            lower = gymapi.Vec3(-0.5 * spacing, -spacing, 0.0)
        else:
            start.p = gymapi.Vec3(0.0, 2.0, 0.0)
            start.r = gymapi.Quat(-math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5))
            lower = gymapi.Vec3(-0.5 * spacing, 0.0, -spacing)
        upper = gymapi.Vec3(0.5 * spacing, spacing, spacing)
        per_row = int(math.sqrt(self.num_envs))
        self.envs = []
        for i in range(self.num_envs):
            env = self.gym.create_env(self.sim, lower, upper, per_row)
            self.envs.append(env)
            actor = self.gym.create_actor(env, asset, start, "cartpole", i, 1, 0)
            properties = self.gym.get_actor_dof_properties(env, actor)
            properties["driveMode"] = (int(gymapi.DOF_MODE_EFFORT), int(gymapi.DOF_MODE_NONE))
            properties["stiffness"] = 0.0
            properties["damping"] = 0.0
            self.gym.set_actor_dof_properties(env, actor, properties)

    def dof_names(self) -> list[str]:
        """Cart slide and pole hinge."""
        return self._dof_names

    def pre_physics_step(self, actions: Tensor) -> None:
        """Push the cart with action x maxEffort (N)."""
        torch.mul(actions[:, 0], self.max_effort, out=self.dof_forces[:, 0])
        self.gym.set_dof_actuation_force_tensor(self.sim, gymtorch.unwrap_tensor(self.dof_forces))

    def compute_observations(self) -> None:
        """Refresh the joint state; observe all of it or a part."""
        self.gym.refresh_dof_state_tensor(self.sim)
        torch.index_select(self._joint_state(), 1, self.observed_columns, out=self.obs_buf)
        if self.num_states:
            self.states_buf.copy_(self._joint_state())

    def _joint_state(self) -> Tensor:
        """Cart position and velocity, pole angle and velocity: (N, 4)."""
        return self.dof_state.view(self.num_envs, 2 * NUM_DOFS)

    def compute_reward(self) -> None:
        """Fill `rew_buf`; flag failed envs and episodes at the time limit."""
        cart_pos, cart_vel, pole_angle, pole_vel = self._joint_state().unbind(dim=1)
        failed = has_failed(cart_pos, pole_angle, self.reset_dist)
        self.rew_buf.copy_(self.sum_terms(cartpole_reward_terms(cart_vel, pole_angle, pole_vel, failed)))
        self.reset_buf |= failed | (self.progress_buf >= self.max_episode_length - 1)

    def reset_idx(self, env_ids: Tensor) -> None:
        """Cart within 0.1 m and pole within 0.1 rad of the centre; velocities within 0.25."""
        k = len(env_ids)
        self.dof_pos[env_ids] = torch.empty(k, NUM_DOFS, device=self.pipeline_device).uniform_(-0.1, 0.1)
        self.dof_vel[env_ids] = torch.empty(k, NUM_DOFS, device=self.pipeline_device).uniform_(-0.25, 0.25)
        actors = env_ids.to(torch.int32)
        self.gym.set_dof_state_tensor_indexed(
            self.sim, gymtorch.unwrap_tensor(self.dof_state), gymtorch.unwrap_tensor(actors), k
        )
