"""The agent: network and running normalisers, as they act on raw observations."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from ppo import distributions
from ppo.config import TrainConfig
from ppo.networks import ActorCritic, PolicyOutput
from ppo.normalize import RunningNormalizer


class Action(NamedTuple):
    """What the behaviour policy did in N environments."""

    actions: torch.Tensor
    """(N, A), unclipped"""
    log_probs: torch.Tensor
    """(N,)"""
    values: torch.Tensor
    """(N,), real units"""
    means: torch.Tensor
    """(N, A)"""
    log_stds: torch.Tensor
    """(A,) or (N, A)"""


class Agent(nn.Module):
    """Actor-critic with observation and value normalisation; the part that a checkpoint needs for playing."""

    def __init__(self, num_observations: int, num_actions: int, config: TrainConfig, device: torch.device) -> None:
        """Build the network and the normalisers that the settings ask for."""
        super().__init__()
        mixed = config.mixed_precision_cpu if device.type == "cpu" else config.mixed_precision
        autocast = torch.bfloat16 if mixed else None
        self.network = ActorCritic(num_observations, num_actions, config.network, autocast)
        self.obs_normalizer = RunningNormalizer(num_observations) if config.normalize_input else None
        self.value_normalizer = RunningNormalizer(1) if config.normalize_value else None
        self.to(device)

    def evaluate(self, observations: torch.Tensor) -> PolicyOutput:
        """Distribution and value (real units) of raw observations (N, O); statistics stay as they are."""
        if self.obs_normalizer is not None:
            observations = self.obs_normalizer.normalize(observations)
        mean, log_std, value = self.network(observations)
        if self.value_normalizer is not None:
            value = self.value_normalizer.denormalize(value)
        return PolicyOutput(mean, log_std, value)

    def act(self, observations: torch.Tensor) -> Action:
        """Sample actions for raw observations (N, O)."""
        mean, log_std, value = self.evaluate(observations)
        actions, log_probs = distributions.sample(mean, log_std)
        return Action(actions, log_probs, value, mean, log_std)

    def normalize_targets(self, values: torch.Tensor, returns: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Merge, then normalise the old values; then the same for the returns (rl_games' order)."""
        if self.value_normalizer is None:
            return values, returns
        normalized = []
        for target in (values, returns):
            column = target.reshape(-1, 1)
            self.value_normalizer.update(column)
            normalized.append(self.value_normalizer.normalize(column).reshape(target.shape))
        return normalized[0], normalized[1]
