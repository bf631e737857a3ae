"""A control task in a few tensors, to check that a learner learns: swing a pendulum up and hold it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

GRAVITY = 10.0
"""m/s^2; mass 1 kg, length 1 m"""
TIME_STEP = 0.05
MAX_SPEED = 8.0
"""rad/s"""
MAX_TORQUE = 2.0
"""N m, reached at action 1; too little to lift the pendulum without swinging"""
EPISODE_LENGTH = 200


class PendulumEnv:
    """N pendulums with the dynamics and the reward of Gymnasium's Pendulum-v1; episodes end by the time limit only.

    Observations are (cos angle, sin angle, speed), the angle being 0 upright; the reward is
    -(angle^2 + 0.1 speed^2 + 0.001 torque^2). Episodes start at different times, so that every iteration sees some end.
    """

    state_space = None

    def __init__(self, num_envs: int, device: str, seed: int = 0) -> None:
        """Draw the starts from a generator of their own, the same for every learner with this seed."""
        self.num_envs, self.device = num_envs, device
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self._generator = torch.Generator(device).manual_seed(seed)
        self._angle, self._speed = self._draw()
        self._progress = torch.randint(0, EPISODE_LENGTH, (num_envs,), generator=self._generator, device=device)
        self._whole = torch.zeros(num_envs, dtype=torch.bool, device=device)
        self._return = torch.zeros(num_envs, device=device)
        self._finished = torch.zeros(2, device=device)

    def _draw(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Angles in [-pi, pi] and speeds in [-1, 1], both (N,)."""
        angle, speed = torch.rand(2, self.num_envs, generator=self._generator, device=self.device).mul(2).sub(1)
        return angle * math.pi, speed

    def reset(self) -> dict[str, torch.Tensor]:
        """Return the current observations (N, 3)."""
        return {"obs": torch.stack((self._angle.cos(), self._angle.sin(), self._speed), 1)}

    def step(self, actions: torch.Tensor) -> tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Apply torques of `actions` (N, 1), clipped to [-1, 1], times MAX_TORQUE."""
        torque = actions[:, 0].clamp(-1.0, 1.0) * MAX_TORQUE
        angle = torch.remainder(self._angle + math.pi, 2.0 * math.pi) - math.pi
        reward = -(angle.square() + 0.1 * self._speed.square() + 0.001 * torque.square())
        self._speed = self._speed + (1.5 * GRAVITY * self._angle.sin() + 3.0 * torque) * TIME_STEP
        self._speed = self._speed.clamp(-MAX_SPEED, MAX_SPEED)
        self._angle = self._angle + self._speed * TIME_STEP
        self._progress += 1
        done = self._progress >= EPISODE_LENGTH
        self._count(reward, done)
        new_angle, new_speed = self._draw()
        self._angle = torch.where(done, new_angle, self._angle)
        self._speed = torch.where(done, new_speed, self._speed)
        self._progress *= ~done
        return self.reset(), reward, done, {"time_outs": done, "episode": {}}

    def _count(self, reward: torch.Tensor, done: torch.Tensor) -> None:
        """Add up the returns of episodes that were seen whole."""
        self._return += reward
        counted = done & self._whole
        self._finished += torch.stack(((self._return * counted).sum(), counted.sum()))
        self._return *= ~done
        self._whole |= done

    def take_return(self) -> float:
        """Return the mean return of the episodes that ended since the last call; NaN if none did."""
        total, episodes = self._finished.tolist()
        self._finished.zero_()
        return total / episodes if episodes else math.nan

    def signature(self) -> dict[str, Any]:
        """Return sizes, as every environment does."""
        return {"task": "Pendulum", "num_observations": 3, "num_states": 0, "num_actions": 1, "dof_names": []}

    def get_state(self) -> dict[str, Any]:
        """Return angles, speeds and progress."""
        return {"angle": self._angle.clone(), "speed": self._speed.clone(), "progress": self._progress.clone()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned."""
        self._angle, self._speed = state["angle"].clone(), state["speed"].clone()
        self._progress.copy_(state["progress"])
