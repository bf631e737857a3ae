"""The actor-critic network."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from ppo.config import Initializer, NetworkConfig
from ppo.layers import Dense


class PolicyOutput(NamedTuple):
    """Action distribution and value of a batch of observations."""

    mean: torch.Tensor
    """(B, A)"""
    log_std: torch.Tensor
    """(A,), or (B, A) where it depends on the observation"""
    value: torch.Tensor
    """(B,), in normalised units when values are normalised"""


class ActorCritic(nn.Module):
    """MLP policy with a state-independent log-std and an MLP value, sharing a trunk or not.

    Under autocast only the hidden layers run in the lower precision: the heads, and with them log-probabilities,
    KL and values, stay in float32.
    """

    def __init__(
        self, num_observations: int, num_actions: int, config: NetworkConfig, autocast: torch.dtype | None = None
    ) -> None:
        """Build and initialise the layers; biases start at 0."""
        super().__init__()
        self.autocast = autocast
        self.actor = _mlp(num_observations, config)
        self.critic = _mlp(num_observations, config) if config.separate else None
        features = config.units[-1] if config.units else num_observations
        self.mean = nn.Linear(features, num_actions)
        self.value = nn.Linear(features, 1)
        self.log_std = nn.Parameter(torch.zeros(num_actions))
        self._initialize(config)

    def _initialize(self, config: NetworkConfig) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                _initialize(module.weight, config.initializer)
                nn.init.zeros_(module.bias)
        _initialize(self.mean.weight, config.mu_init)
        _initialize(self.log_std, config.sigma_init)

    def forward(self, observations: torch.Tensor) -> PolicyOutput:
        """Evaluate normalised observations (B, O)."""
        device = observations.device.type
        with torch.autocast(device, dtype=self.autocast, enabled=self.autocast is not None):
            actor_features = self.actor(observations)
            critic_features = actor_features if self.critic is None else self.critic(observations)
        mean = self.mean(actor_features.float())
        value = self.value(critic_features.float()).squeeze(-1)
        return PolicyOutput(mean, self.log_std, value)


def _mlp(num_inputs: int, config: NetworkConfig) -> nn.Sequential:
    sizes = (num_inputs, *config.units)
    return nn.Sequential(*(Dense(n, units, config.activation) for n, units in zip(sizes, config.units, strict=False)))


def _initialize(weight: torch.Tensor, initializer: Initializer) -> None:
    if initializer.name == "const_initializer":
        nn.init.constant_(weight, initializer.val)
    elif initializer.name == "orthogonal_initializer":
        nn.init.orthogonal_(weight, initializer.gain)
