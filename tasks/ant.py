"""Ant: a four-legged robot of eight motors runs along +x (60 observations, 8 actions)."""

from __future__ import annotations

from isaacgym import gymapi  # isort: skip  (the original package wants to be imported before torch)
import torch
from torch import Tensor

from tasks import locomotion
from tasks.base.description import Description, Part, Result, Term
from tasks.runner import Runner

DOF_POS = slice(12, 20)
DOF_VEL = slice(20, 28)
JOINT_LIMIT = 0.99


def ant_observations(
    root_states: Tensor,
    torso: locomotion.Torso,
    dof_pos: Tensor,
    dof_vel: Tensor,
    sensors: Tensor,
    actions: Tensor,
    out: Tensor,
) -> Tensor:
    """Fill `out` (N, 60) and return it.

    Args:
        root_states: (N, 13).
        torso: features of the same root states.
        dof_pos: (N, 8) joint positions mapped to [-1, 1].
        dof_vel: (N, 8) scaled joint velocities.
        sensors: (N, 24) scaled forces and torques of the four feet.
        actions: (N, 8) applied actions.
        out: (N, 60).
    """
    pose = torch.stack((torso.yaw, torso.roll, torso.angle_to_target, torso.up, torso.heading), dim=1)
    parts = (root_states[:, 2:3], torso.local_velocity.flatten(1), pose, dof_pos, dof_vel, sensors, actions)
    return torch.cat(parts, dim=1, out=out)


def ant_reward_terms(
    obs: Tensor, potential: Tensor, previous_potential: Tensor, actions: Tensor, weights: locomotion.Weights
) -> dict[str, Tensor]:
    """Weighted reward terms (N,) each; their sum is the reward.

    A fallen ant gets the death cost instead of all others. Only upper joint limits are penalised.

    Args:
        obs: (N, 60) unclipped observations without noise.
        potential: (N,) potential now.
        previous_potential: (N,) potential one step ago.
        actions: (N, 8) applied actions.
        weights: from the config.
    """
    power = (actions * obs[:, DOF_VEL]).abs().sum(dim=1)
    at_limit = (obs[:, DOF_POS] > JOINT_LIMIT).sum(dim=1)
    costs = {
        "energy_cost": power * -weights.energy,
        "joint_limit_cost": at_limit * -weights.joint_limit,
    }
    return locomotion.running_terms(obs, potential - previous_potential, actions, costs, weights)


DESCRIPTION = Description(
    summary="A four-legged robot runs towards a target 1 km away along +x, upright and with small effort.",
    observations={
        "obs": (
            *locomotion.TORSO_PARTS,
            Part(8, "joint positions, -1 and 1 at their limits", "", "joint"),
            Part(8, "joint velocities", "rad/s", "joint", "env.dofVelocityScale"),
            Part(24, "force (N) and torque (N m) on each of the 4 feet", "", "foot", "env.contactForceScale"),
            Part(8, "actions"),
        )
    },
    action="8 numbers in [-1, 1]: joint torques, x 15 N m (the motors' effort) x {env.powerScale}.",
    reward=locomotion.RUNNING_REWARD,
    terms=(
        *locomotion.RUNNING_TERMS,
        Term("energy_cost", "sum of abs(action x observed joint velocity)", "-env.energyCost"),
        Term("joint_limit_cost", f"joints with an observed position above {JOINT_LIMIT}", "-env.jointsAtLimitCost"),
        locomotion.DEATH_TERM,
    ),
    termination=locomotion.RUNNING_ENDS,
    results=(
        Result(
            "steps until the mean reward of the last 100 episodes first passes 3000",
            "python scripts/train.py task=Ant num_envs=1024 seed=42",
            "4.4M, 2.6M, 3.8M",
            "seeds 42, 43, 44, 2 CPU cores",
        ),
    ),
)


class Ant(Runner):
    """Run towards a target 1 km away along +x, upright and with small effort."""

    description = DESCRIPTION
    robot = "ant"
    num_observed = 60
    num_dofs = 8
    sensor_bodies = ("front_left_foot", "front_right_foot", "left_back_foot", "right_back_foot")
    start_height = 0.44
    collision_filter = 1

    def asset_options(self) -> gymapi.AssetOptions:
        """No drive besides the motors, no damping of the air."""
        options = super().asset_options()
        options.angular_damping = 0.0
        return options

    def compute_observations(self) -> None:
        """Refresh the state and fill `obs_buf`."""
        torso = self.refresh_state()
        positions, velocities = self.scaled_joints()
        sensors = self.sensors * self.contact_force_scale
        ant_observations(self.root_states, torso, positions, velocities, sensors, self.actions, out=self.obs_buf)

    def reward_terms(self) -> dict[str, Tensor]:
        """Terms of `ant_reward_terms`."""
        return ant_reward_terms(self.obs_buf, self.potentials, self.previous_potentials, self.actions, self.weights)
