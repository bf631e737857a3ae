"""The agent: networks and running normalisers, as they act on raw observations."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from ppo import distributions
from ppo.central_value import CentralCritic
from ppo.config import ConfigError, TrainConfig
from ppo.distributed import World
from ppo.env import Observation, VectorEnv
from ppo.networks import ActorCritic, Conditioning, PolicyOutput
from ppo.normalize import RunningNormalizer


class Action(NamedTuple):
    """What the policy did in N environments."""

    actions: torch.Tensor
    """(N, A), unclipped"""
    log_probs: torch.Tensor
    """(N,)"""
    values: torch.Tensor
    """(N,), real units"""
    means: torch.Tensor
    """(N, A)"""
    log_stds: torch.Tensor
    """(A,), or (N, A) where it depends on the observation or the block"""
    hidden: torch.Tensor
    """(N, H) recurrent state after the step"""


class Agent(nn.Module):
    """Actor-critic with observation and value normalisation; the part that a checkpoint needs for playing.

    With a central critic the values are its own; the actor-critic keeps a value head, which shapes its features.
    SAPG's networks read the id of a block in a last column of observations and states, which this class appends: that
    of the leader unless another is asked for.
    """

    def __init__(self, env: VectorEnv, config: TrainConfig, device: torch.device) -> None:
        """Build the networks and normalisers for the environment's sizes."""
        super().__init__()
        num_observations, num_actions = env.observation_space.shape[0], env.action_space.shape[0]
        autocast = autocast_dtype(config, device)
        self.num_blocks = config.sapg.count(env.num_envs) if config.sapg.enabled else 0
        conditioning: Conditioning | None = None
        if self.num_blocks:
            conditioning = Conditioning(self.num_blocks, config.sapg.conditioning_size * config.sapg.conditioning)
        self.network = ActorCritic(num_observations, num_actions, config.network, autocast, conditioning)
        self.obs_normalizer = RunningNormalizer(num_observations) if config.normalize_input else None
        self.value_normalizer = RunningNormalizer(1) if config.normalize_value else None
        self.central: CentralCritic | None = None
        if config.central_value_config is not None:
            if env.state_space is None:
                raise ConfigError("central_value_config needs privileged states; this task has none")
            self.central = CentralCritic(env.state_space.shape[0], config.central_value_config, conditioning)
        self.hidden_size = self.network.hidden_size + (self.central.hidden_size if self.central else 0)
        self.to(device)

    def initial_hidden(self, num_envs: int) -> torch.Tensor:
        """Recurrent state (N, H) at the start of an episode; H is 0 without recurrent layers."""
        return self.network.mean.weight.new_zeros(num_envs, self.hidden_size)

    def evaluate(
        self, observation: Observation, hidden: torch.Tensor, blocks: torch.Tensor | None = None
    ) -> PolicyOutput:
        """Distribution and value (real units) of raw observations; statistics stay as they are.

        Args:
            observation: as the environment returns it.
            hidden: recurrent state (N, H).
            blocks: (N, 1) ids of the blocks that act, for SAPG; None: the leader.
        """
        observations = self._labelled(observation["obs"], blocks)
        if self.obs_normalizer is not None:
            observations = self.obs_normalizer.normalize(observations)
        own_hidden, central_hidden = self.split_hidden(hidden)
        mean, log_std, value, hidden = self.network(observations, own_hidden)
        if self.central is not None:
            states = self._labelled(observation["states"], blocks)
            value, central_hidden = self.central.evaluate(states, central_hidden)
            hidden = torch.cat((hidden, central_hidden), dim=1)
        if self.value_normalizer is not None:
            value = self.value_normalizer.denormalize(value)
        return PolicyOutput(mean, log_std, value, hidden)

    def _labelled(self, x: torch.Tensor, blocks: torch.Tensor | None) -> torch.Tensor:
        """Append the column of block ids to x (N, O) if there are blocks."""
        if not self.num_blocks:
            return x
        blocks = x.new_full((len(x), 1), self.num_blocks - 1.0) if blocks is None else blocks
        return torch.cat((x, blocks), dim=1)

    def act(self, observation: Observation, hidden: torch.Tensor, blocks: torch.Tensor | None = None) -> Action:
        """Sample actions for raw observations; the arguments are those of `evaluate`."""
        mean, log_std, value, hidden = self.evaluate(observation, hidden, blocks)
        actions, log_probs = distributions.sample(mean, log_std)
        return Action(actions, log_probs, value, mean, log_std, hidden)

    def split_hidden(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Recurrent state (..., H) as that of the actor-critic and that of the central critic."""
        own = self.network.hidden_size
        return hidden[..., :own], hidden[..., own:]

    def normalize_targets(
        self, values: torch.Tensor, returns: torch.Tensor, world: World
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Merge, then normalise the old values; then the same for the returns (rl_games' order)."""
        if self.value_normalizer is None:
            return values, returns
        normalized = []
        for target in (values, returns):
            column = target.reshape(-1, 1)
            self.value_normalizer.update(column, world)
            normalized.append(self.value_normalizer.normalize(column).reshape(target.shape))
        return normalized[0], normalized[1]


def autocast_dtype(config: TrainConfig, device: torch.device) -> torch.dtype | None:
    """Lower precision of the hidden layers: bfloat16, or float16 on a GPU that lacks it; None for float32."""
    if device.type == "cpu":
        return torch.bfloat16 if config.mixed_precision_cpu else None
    if not config.mixed_precision:  # pragma: needs cuda
        return None
    native = torch.cuda.is_bf16_supported(including_emulation=False)  # pragma: needs cuda
    return torch.bfloat16 if native else torch.float16  # pragma: needs cuda
