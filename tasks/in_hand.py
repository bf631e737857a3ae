"""Turning an object in a hand: observation layouts, joint targets, pushes, reward and resets on plain tensors."""

from __future__ import annotations

import math
from typing import Any, Mapping, NamedTuple

import torch
from torch import Tensor

from tasks.base.description import Description, Part, Result, Term
from tasks.base.rotation import turn_x_then

VELOCITY_SCALE = 0.2
FORCE_SCALE = 10.0
PEN_TOLERANCE = 2.0
"""Factor of the tolerance for a pen, whose turn about its own axis nobody sees."""

TERMS = (
    Term("distance", "distance between object and goal (m)", "env.distRewardScale"),
    Term("rotation", "1 / (angle to the goal (rad) + {env.rotEps})", "env.rotRewardScale"),
    Term("action", "sum of actions^2", "env.actionPenaltyScale"),
    Term("goal", "1 if the angle is at most {env.successTolerance} rad (twice that for a pen)", "env.reachGoalBonus"),
    Term("fall", "1 if the distance is at least {env.fallDistance} m", "env.fallPenalty"),
    Term("timeout", "1/2 at the time limit, if there is a largest number of successes", "env.fallPenalty"),
)


def parts(num_dofs: int, num_actions: int, fingertips: int) -> dict[str, Part]:
    """Everything a hand can observe, by name."""
    return {
        "dof_pos": Part(num_dofs, "joint positions, -1 and 1 at their limits", "", "joint"),
        "dof_vel": Part(num_dofs, "joint velocities", "rad/s", "joint", VELOCITY_SCALE),
        "dof_force": Part(num_dofs, "joint forces", "N m", "joint", FORCE_SCALE),
        "object_pos": Part(3, "position of the object", "m", "env"),
        "object_pose": Part(7, "position and quaternion of the object", "m", "env"),
        "object_linvel": Part(3, "linear velocity of the object", "m/s", "env"),
        "object_angvel": Part(3, "angular velocity of the object", "rad/s", "env", VELOCITY_SCALE),
        "goal_pose": Part(7, "position and quaternion of the goal", "m", "env"),
        "relative_rotation": Part(4, "rotation from the goal to the object, quaternion", "", "env"),
        "fingertip_pos": Part(3 * fingertips, "position of each fingertip", "m", "env"),
        "fingertip_states": Part(
            13 * fingertips, "position, quaternion, linear and angular velocity of each fingertip", "SI", "env"
        ),
        "fingertip_forces": Part(
            6 * fingertips, "force (N) and torque (N m) on each fingertip", "", "fingertip", FORCE_SCALE
        ),
        "actions": Part(num_actions, "actions"),
    }


def describe(
    summary: str,
    layouts: Mapping[str, tuple[str, ...]],
    features: Mapping[str, Part],
    action: str,
    held: tuple[str, str],
) -> Description:
    """Description of a hand task.

    Args:
        summary: what the robot does.
        layouts: observation type -> names of its features.
        features: everything that can be observed.
        action: what actions mean.
        held: measured share of released blocks that stay on the hand, and depth in which blocks sink into it.
    """
    release = "256 envs on the CPU, blocks released at random starts, joints at 0"
    release_test = "pytest -m slow tests/tasks/test_hands_simulator.py -s -k 256"
    play = "python scripts/play.py checkpoint=... num_envs=256 num_episodes=256"
    return Description(
        summary=summary + " A new goal follows every success. `env.observationType` chooses the observation; with "
        "`env.asymmetric_observations` a central critic sees `full_state`, without noise.",
        observations={kind: tuple(features[name] for name in names) for kind, names in layouts.items()},
        action=action,
        reward="Sum of the terms.",
        terms=TERMS,
        termination=(
            "when the object is {env.fallDistance} m or more away from the goal position",
            "after {env.episodeLength} steps or, if it is set, after `env.resetTime` = {env.resetTime} s (time limit)",
            "after `env.maxConsecutiveSuccesses` = {env.maxConsecutiveSuccesses} successes, unless that is 0; then "
            "a success also puts off the time limit",
        ),
        results=(
            Result("mean goals reached in an episode (`successes`)", play),
            Result("share of episodes with a goal reached (`success_rate`)", play),
            Result("share of episodes that end with the object dropped (`drops`)", play),
            Result("share of blocks on the hand 1 s after their release", release_test, held[0], release),
            Result(
                "depth of blocks inside the hand, 99th percentile",
                release_test,
                held[1],
                f"{release}, then random actions",
            ),
        ),
    )


class Goal(NamedTuple):
    """What counts as reached or lost, and what it is worth."""

    distance_scale: float
    rotation_scale: float
    rotation_eps: float
    action_scale: float
    tolerance: float
    """Angle (rad) within which the goal is reached."""
    bonus: float
    fall_distance: float
    """Distance (m) from the goal position at which the object counts as dropped."""
    fall_penalty: float
    max_successes: int
    """Successes that end an episode; 0: none do, and a success does not put off the time limit."""


def read_goal(env_cfg: Mapping[str, Any]) -> Goal:
    """Settings of a task's `env` section."""
    widened = PEN_TOLERANCE if env_cfg["objectType"] == "pen" else 1.0
    return Goal(
        distance_scale=float(env_cfg["distRewardScale"]),
        rotation_scale=float(env_cfg["rotRewardScale"]),
        rotation_eps=float(env_cfg["rotEps"]),
        action_scale=float(env_cfg["actionPenaltyScale"]),
        tolerance=widened * float(env_cfg["successTolerance"]),
        bonus=float(env_cfg["reachGoalBonus"]),
        fall_distance=float(env_cfg["fallDistance"]),
        fall_penalty=float(env_cfg["fallPenalty"]),
        max_successes=int(env_cfg["maxConsecutiveSuccesses"]),
    )


class Outcome(NamedTuple):
    """What one step brought, for N envs."""

    terms: dict[str, Tensor]
    """Weighted reward terms (N,); their sum is the reward."""
    reached: Tensor
    """(N,) bool: the goal is reached."""
    fell: Tensor
    """(N,) bool: the object is too far away."""
    ended: Tensor
    """(N,) bool: the episode ends."""
    progress: Tensor
    """(N,) steps of the episode, from 0 again after a success that puts off the time limit."""


def judge(
    distance: Tensor, angle: Tensor, actions: Tensor, successes: Tensor, progress: Tensor, limit: int, goal: Goal
) -> Outcome:
    """Reward and end of episodes.

    Args:
        distance: (N,) between object and goal position (m).
        angle: (N,) between object and goal orientation (rad).
        actions: (N, A).
        successes: (N,) goals reached before this step.
        progress: (N,) steps of the episode, this one included.
        limit: longest episode (steps).
        goal: settings.
    """
    reached = angle <= goal.tolerance
    fell = distance >= goal.fall_distance
    ended = fell
    if goal.max_successes > 0:
        progress = progress.masked_fill(reached, 0)
        ended = ended | (successes + reached >= goal.max_successes)
    expired = progress >= limit - 1
    terms = {
        "distance": distance * goal.distance_scale,
        "rotation": goal.rotation_scale / (angle + goal.rotation_eps),
        "action": (actions * actions).sum(dim=1) * goal.action_scale,
        "goal": reached * goal.bonus,
        "fall": fell * goal.fall_penalty,
        "timeout": expired * (0.5 * goal.fall_penalty if goal.max_successes > 0 else 0.0),
    }
    return Outcome(terms, reached, fell, ended | expired, progress)


def average_successes(average: Tensor, successes: Tensor, ended: Tensor, factor: float) -> Tensor:
    """Exponential mean () over steps of the successes (N,) of the episodes that end in each (mask (N,))."""
    count = ended.sum()
    present = (successes * ended).sum() / count.clamp(min=1)
    return torch.where(count > 0, factor * present + (1.0 - factor) * average, average)


def absolute_targets(actions: Tensor, previous: Tensor, lower: Tensor, upper: Tensor, share: float) -> Tensor:
    """Joint targets (N, A) at the actions' places between the limits (A,), mixed with the previous ones (N, A)."""
    wanted = 0.5 * (actions + 1.0) * (upper - lower) + lower
    return torch.clamp(torch.lerp(previous, wanted, share), lower, upper)


def relative_targets(actions: Tensor, previous: Tensor, lower: Tensor, upper: Tensor, reach: float) -> Tensor:
    """Joint targets (N, A) at most `reach` (rad) away from the previous ones."""
    return torch.clamp(torch.add(previous, actions, alpha=reach), lower, upper)


def push_probabilities(uniform: Tensor, bounds: tuple[float, float]) -> Tensor:
    """Log-uniform probabilities between the bounds; 0 gives the second, 1 the first."""
    first, last = (math.log(bound) for bound in bounds)
    return torch.exp((first - last) * uniform + last)


def start_positions(uniform: Tensor, lower: Tensor, upper: Tensor, interval: float) -> Tensor:
    """Joint positions (K, D) from random numbers in [-1, 1]: a share of the way from 0 to a random place."""
    return interval * (lower + (upper - lower) * 0.5 * (uniform + 1.0))


def random_rotation(uniform: Tensor) -> Tensor:
    """Quaternions (K, 4) from random numbers (K, 2) in [-1, 1], as the original draws them: not uniform over all."""
    return turn_x_then("y", math.pi * uniform[:, 0], math.pi * uniform[:, 1])


def random_pen_rotation(uniform: Tensor) -> Tensor:
    """Quaternions (K, 4) of a pen that lies across the hand, from one random number (K,) in [-1, 1] for both turns."""
    return turn_x_then("z", 0.5 * math.pi + 0.3 * uniform, math.pi * uniform)
