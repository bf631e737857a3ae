"""Humanoid: a two-legged robot of 21 motors runs along +x (108 observations, 21 actions)."""

from __future__ import annotations

from typing import Any

from isaacgym import gymapi, gymtorch  # isort: skip  (the original package wants to be imported before torch)
import torch
from torch import Tensor

from tasks import locomotion
from tasks.base.description import Description, Part, Result, Term
from tasks.runner import Runner

DOF_POS = slice(12, 33)
DOF_VEL = slice(33, 54)
JOINT_LIMIT = 0.98


def wrapped(angle: Tensor) -> Tensor:
    """The same angle in (-pi, pi]."""
    return torch.atan2(torch.sin(angle), torch.cos(angle))


def humanoid_observations(
    root_states: Tensor,
    torso: locomotion.Torso,
    dof_pos: Tensor,
    dof_vel: Tensor,
    dof_force: Tensor,
    sensors: Tensor,
    actions: Tensor,
    out: Tensor,
) -> Tensor:
    """Fill `out` (N, 108) and return it.

    Args:
        root_states: (N, 13).
        torso: features of the same root states, with scaled angular velocity.
        dof_pos: (N, 21) joint positions mapped to [-1, 1].
        dof_vel: (N, 21) scaled joint velocities.
        dof_force: (N, 21) scaled joint forces.
        sensors: (N, 12) scaled forces and torques of the right and the left foot.
        actions: (N, 21) applied actions.
        out: (N, 108).
    """
    angles = wrapped(torch.stack((torso.yaw, torso.roll, torso.angle_to_target), dim=1))
    alignment = torch.stack((torso.up, torso.heading), dim=1)
    velocity = torso.local_velocity.flatten(1)
    parts = (root_states[:, 2:3], velocity, angles, alignment, dof_pos, dof_vel, dof_force, sensors, actions)
    return torch.cat(parts, dim=1, out=out)


def humanoid_reward_terms(
    obs: Tensor,
    potential: Tensor,
    previous_potential: Tensor,
    actions: Tensor,
    effort_ratio: Tensor,
    weights: locomotion.Weights,
) -> dict[str, Tensor]:
    """Weighted reward terms (N,) each; their sum is the reward.

    A fallen humanoid gets the death cost instead of all others. Close to a joint limit the cost grows linearly;
    energy and limits of a joint count in proportion to its motor's effort.

    Args:
        obs: (N, 108) unclipped observations without noise.
        potential: (N,) potential now.
        previous_potential: (N,) potential one step ago.
        actions: (N, 21) applied actions.
        effort_ratio: (21,) effort of each motor over the largest effort.
        weights: from the config.
    """
    power = (actions * obs[:, DOF_VEL]).abs() @ effort_ratio
    beyond = torch.clamp(obs[:, DOF_POS].abs() - JOINT_LIMIT, min=0.0) @ effort_ratio
    costs = {
        "energy_cost": power * -weights.energy,
        "joint_limit_cost": beyond * (-weights.joint_limit / (1.0 - JOINT_LIMIT)),
    }
    return locomotion.running_terms(obs, potential - previous_potential, actions, costs, weights)


DESCRIPTION = Description(
    summary="A two-legged robot runs towards a target 1 km away along +x, upright and with small effort.",
    observations={
        "obs": (
            *locomotion.TORSO_PARTS,
            Part(21, "joint positions, -1 and 1 at their limits", "", "joint"),
            Part(21, "joint velocities", "rad/s", "joint", "env.dofVelocityScale"),
            Part(21, "joint forces", "N m", "joint", "env.contactForceScale"),
            Part(12, "force (N) and torque (N m) on the right and the left foot", "", "foot", "env.contactForceScale"),
            Part(21, "actions"),
        )
    },
    action="21 numbers in [-1, 1]: joint torques, x each motor's effort (22.5 to 135 N m) x {env.powerScale}.",
    reward=locomotion.RUNNING_REWARD + " Efforts are relative to the largest.",
    terms=(
        *locomotion.RUNNING_TERMS,
        Term("energy_cost", "sum of abs(action x observed joint velocity) x effort", "-env.energyCost"),
        Term(
            "joint_limit_cost",
            f"sum of effort x share of the last {100 * (1 - JOINT_LIMIT):.0f} % before a limit that is used up",
            "-env.jointsAtLimitCost",
        ),
        locomotion.DEATH_TERM,
    ),
    termination=locomotion.RUNNING_ENDS,
    results=(
        Result(
            "steps until the mean reward of the last 100 episodes first passes 500",
            "python scripts/train.py task=Humanoid num_envs=1024",
            "4.2M",
            "seed 42, 2 CPU cores; still rising when the run was stopped at 4.3M steps",
        ),
    ),
)


class Humanoid(Runner):
    """Run towards a target 1 km away along +x, upright and with small effort."""

    description = DESCRIPTION
    robot = "humanoid"
    num_observed = 108
    num_dofs = 21
    sensor_bodies = ("right_foot", "left_foot")
    start_height = 1.34
    collision_filter = 0

    def __init__(self, cfg: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        """Same arguments as `VecTask`."""
        super().__init__(cfg, *args, **kwargs)
        dof_force = gymtorch.wrap_tensor(self.gym.acquire_dof_force_tensor(self.sim))
        self.dof_force = dof_force.view(self.num_envs, self.num_dofs)
        self.effort_ratio = self.efforts / self.efforts.max()

    def asset_options(self) -> gymapi.AssetOptions:
        """No drive besides the motors, little damping, fast rotations allowed."""
        options = super().asset_options()
        options.angular_damping = 0.01
        options.max_angular_velocity = 100.0
        return options

    def prepare_actor(self, env: Any, actor: int) -> None:
        """Switch on the joint force readings."""
        self.gym.enable_actor_dof_force_sensors(env, actor)

    def compute_observations(self) -> None:
        """Refresh the state and fill `obs_buf`."""
        torso = self.refresh_state()
        self.gym.refresh_dof_force_tensor(self.sim)
        positions, velocities = self.scaled_joints()
        scale = self.contact_force_scale
        humanoid_observations(
            self.root_states,
            torso,
            positions,
            velocities,
            self.dof_force * scale,
            self.sensors * scale,
            self.actions,
            out=self.obs_buf,
        )

    def reward_terms(self) -> dict[str, Tensor]:
        """Terms of `humanoid_reward_terms`."""
        return humanoid_reward_terms(
            self.obs_buf, self.potentials, self.previous_potentials, self.actions, self.effort_ratio, self.weights
        )
