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


class Cartpole:
    """Balance a pole by pushing a cart with up to 10 N; a step is 0.02 s, an episode at most 200 steps.

    Reward 1 a step; an episode fails beyond 12 degrees or 2.4 m. Observation (x, angle, velocities), or without the
    velocities if they are hidden; `states` are always complete.
    """

    def __init__(self, num_envs: int, seed: int = 0, hide_velocities: bool = False) -> None:
        """Start every pole near upright, at a random time of its episode."""
        self.num_envs, self.device, self.hidden = num_envs, "cpu", hide_velocities
        self.observation_space, self.action_space = box(2 if hide_velocities else 4, math.inf), box(1, 1.0)
        self.state_space = box(4, math.inf)
        self.generator = torch.Generator().manual_seed(seed)
        self.state = self._fresh()
        self.progress = torch.randint(200, (num_envs,), generator=self.generator)

    def _fresh(self) -> torch.Tensor:
        return 0.1 * torch.rand(self.num_envs, 4, generator=self.generator) - 0.05

    def _observation(self) -> dict[str, torch.Tensor]:
        """State is (x, angle, dx, dangle)."""
        return {"obs": self.state[:, :2].clone() if self.hidden else self.state.clone(), "states": self.state.clone()}

    def reset(self) -> dict[str, torch.Tensor]:
        """Return the current observation."""
        return self._observation()

    def step(self, actions: torch.Tensor) -> Step:
        """Integrate 0.02 s (cart 1 kg, pole 0.1 kg, half length 0.5 m)."""
        position, angle, velocity, spin = self.state.unbind(1)
        force = 10.0 * actions[:, 0].clamp(-1.0, 1.0)
        sine, cosine = angle.sin(), angle.cos()
        push = (force + 0.05 * spin.square() * sine) / 1.1
        angular = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * cosine.square() / 1.1))
        linear = push - 0.05 * angular * cosine / 1.1
        rates = torch.stack((velocity, spin, linear, angular), 1)
        state = self.state + 0.02 * rates
        self.progress += 1
        failed = (state[:, 0].abs() > 2.4) | (state[:, 1].abs() > math.radians(12.0))
        time_outs = (self.progress >= 200) & ~failed
        done = failed | time_outs
        self.state = torch.where(done[:, None], self._fresh(), state)
        self.progress = torch.where(done, 0, self.progress)
        return self._observation(), torch.ones(self.num_envs), done, {"time_outs": time_outs}

    def signature(self) -> dict[str, Any]:
        """Identity of the task."""
        sizes = {"num_observations": 2 if self.hidden else 4, "num_states": 4, "num_actions": 1}
        return {"task": "Cartpole", **sizes, "dof_names": ["slider", "hinge"]}

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
