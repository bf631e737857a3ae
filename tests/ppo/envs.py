"""Small torch environments for testing the learner."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import torch

Step = tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor, dict[str, Any]]


def box(size: int, bound: float) -> SimpleNamespace:
    """The part of a gymnasium Box that the learner reads."""
    return SimpleNamespace(
        shape=(size,), low=torch.full((size,), -bound).numpy(), high=torch.full((size,), bound).numpy()
    )


class Pendulum:
    """Swing-up pendulum; episodes end only by the time limit of 100 steps.

    Observation (cos, sin, angular velocity / 8), action: torque / 2 N m, reward in [-1.7, 0] a step.
    """

    def __init__(self, num_envs: int, seed: int = 0, max_steps: int = 100) -> None:
        """Start every pendulum at a random state and a random time of its episode."""
        self.num_envs, self.device, self.max_steps = num_envs, "cpu", max_steps
        self.observation_space, self.action_space, self.state_space = box(3, math.inf), box(1, 1.0), None
        self.generator = torch.Generator().manual_seed(seed)
        self.state = self._fresh()
        self.progress = torch.randint(max_steps, (num_envs,), generator=self.generator)

    def _fresh(self) -> torch.Tensor:
        noise = torch.rand(self.num_envs, 2, generator=self.generator) * 2.0 - 1.0
        return noise * torch.tensor([math.pi, 1.0])

    def _observation(self) -> dict[str, torch.Tensor]:
        angle, velocity = self.state.unbind(1)
        return {"obs": torch.stack((angle.cos(), angle.sin(), velocity / 8.0), 1)}

    def reset(self) -> dict[str, torch.Tensor]:
        """Return the current observation."""
        return self._observation()

    def step(self, actions: torch.Tensor) -> Step:
        """Integrate 0.05 s."""
        angle, velocity = self.state.unbind(1)
        torque = 2.0 * actions[:, 0].clamp(-1.0, 1.0)
        wrapped = (angle + math.pi) % (2.0 * math.pi) - math.pi
        reward = -0.1 * (wrapped.square() + 0.1 * velocity.square() + 0.001 * torque.square())
        velocity = (velocity + 0.05 * (15.0 * angle.sin() + 3.0 * torque)).clamp(-8.0, 8.0)
        self.progress += 1
        done = self.progress >= self.max_steps
        self.state = torch.where(done[:, None], self._fresh(), torch.stack((angle + 0.05 * velocity, velocity), 1))
        self.progress = torch.where(done, 0, self.progress)
        return self._observation(), reward, done, {"time_outs": done, "episode": {"speed": velocity.abs().mean()}}

    def signature(self) -> dict[str, Any]:
        """Identity of the task."""
        return {"task": "Pendulum", "num_observations": 3, "num_states": 0, "num_actions": 1, "dof_names": ["hinge"]}

    def get_state(self) -> dict[str, Any]:
        """Everything."""
        return {
            "state": self.state.clone(),
            "progress": self.progress.clone(),
            "generator": self.generator.get_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore."""
        self.state, self.progress = state["state"].clone(), state["progress"].clone()
        self.generator.set_state(state["generator"])
