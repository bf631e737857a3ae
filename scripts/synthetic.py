"""An environment that costs nothing, to measure a learner alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces

SIZES = {"Ant": (60, 8), "ShadowHand": (211, 20)}
"""Numbers of observations and actions, by the task they are taken from."""

EPISODE_LENGTH = 100
VARIANTS = 32
"""Different observation batches, shown in turn."""


class SyntheticEnv:
    """Observations are noise drawn beforehand, the reward is the first action, episodes have a fixed length."""

    state_space = None

    def __init__(self, num_envs: int, num_observations: int, num_actions: int, device: str) -> None:
        """Draw the observations (VARIANTS, N, O)."""
        self.num_envs = num_envs
        self.device = device
        self.observation_space = spaces.Box(-np.inf, np.inf, (num_observations,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (num_actions,), np.float32)
        self._observations = torch.randn(VARIANTS, num_envs, num_observations, device=device)
        self._progress = torch.randint(0, EPISODE_LENGTH, (num_envs,), device=device)
        self._no_time_out = torch.zeros(num_envs, dtype=torch.bool, device=device)
        self._step = 0

    def reset(self) -> dict[str, torch.Tensor]:
        """Return the current observation batch."""
        return {"obs": self._observations[self._step % VARIANTS]}

    def step(self, actions: torch.Tensor) -> tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Show the next batch; every env ends its episode after EPISODE_LENGTH steps."""
        self._step += 1
        self._progress += 1
        done = self._progress >= EPISODE_LENGTH
        self._progress *= ~done
        return self.reset(), actions[:, 0], done, {"time_outs": self._no_time_out, "episode": {}}

    def signature(self) -> dict[str, Any]:
        """Return sizes, as every environment does."""
        return {
            "task": "synthetic",
            "num_observations": self.observation_space.shape[0],
            "num_states": 0,
            "num_actions": self.action_space.shape[0],
            "dof_names": [],
        }

    def get_state(self) -> dict[str, Any]:
        """Return the counters."""
        return {"progress": self._progress.clone(), "step": self._step}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the counters."""
        self._progress.copy_(state["progress"])
        self._step = state["step"]
