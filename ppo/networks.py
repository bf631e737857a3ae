"""The networks: features by an MLP and an optional recurrent layer, and the heads on them.

Without a recurrent layer the leading dimensions of observations are free: (B, O). With one they are sequences,
(S, L, O), or single steps, (N, O). Recurrent state is one row an environment or sequence, (S, H), whatever cells it
comes from; H is 0 without a recurrent layer.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from ppo.config import Initializer, NetworkConfig, RnnConfig
from ppo.layers import Dense


class Conditioning(NamedTuple):
    """How networks tell SAPG's blocks of environments apart; their inputs end with a column of block ids."""

    num_blocks: int
    size: int
    """length of the learned vector that stands in for the id; 0: the id is dropped, the blocks share one policy"""


class PolicyOutput(NamedTuple):
    """Action distribution and value of a batch of observations (..., O)."""

    mean: torch.Tensor
    """(..., A)"""
    log_std: torch.Tensor
    """(A,), or (..., A) where it depends on the observation"""
    value: torch.Tensor
    """(...), in normalised units when values are normalised"""
    hidden: torch.Tensor
    """(S, H) recurrent state after the last step"""


class Recurrent(nn.Module):
    """LSTM or GRU whose state is reset where an episode starts inside a sequence."""

    def __init__(self, num_inputs: int, config: RnnConfig) -> None:
        """Build `config.layers` layers of `config.units` cells."""
        super().__init__()
        cell = {"lstm": nn.LSTM, "gru": nn.GRU}[config.name]
        self.rnn = cell(num_inputs, config.units, config.layers, batch_first=True)
        self.layer_norm = nn.LayerNorm(config.units) if config.layer_norm else nn.Identity()
        self._parts = 2 if config.name == "lstm" else 1
        self.hidden_size = self._parts * config.layers * config.units

    def forward(
        self, x: torch.Tensor, hidden: torch.Tensor, starts: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Run x (S, L, I), or one step (N, I), from state `hidden` (S, H).

        `starts` (S, L) is 1 where a step begins an episode: the state before it is zeroed. None means nowhere.
        """
        if x.dim() == 2:
            output, hidden = self.forward(x.unsqueeze(1), hidden, starts)
            return output.squeeze(1), hidden
        if starts is None:
            output, hidden = self._run(x, hidden)
        else:
            outputs = []
            for t in range(x.shape[1]):
                output, hidden = self._run(x[:, t : t + 1], hidden * (1.0 - starts[:, t, None]))
                outputs.append(output)
            output = torch.cat(outputs, dim=1)
        return self.layer_norm(output), hidden

    def _run(self, x: torch.Tensor, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        units = self.rnn.hidden_size
        state = hidden.unflatten(1, (-1, units)).transpose(0, 1).contiguous().split(self.rnn.num_layers)
        output, new = self.rnn(x, state if self._parts == 2 else state[0])
        new = torch.cat(new) if self._parts == 2 else new
        return output, new.transpose(0, 1).flatten(1)


class BlockInput(nn.Module):
    """Puts the learned vector of a block in place of its id."""

    def __init__(self, conditioning: Conditioning) -> None:
        """Draw the vectors (num_blocks, size) from N(0, 1)."""
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(*conditioning)) if conditioning.size else None

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Split x (..., O + 1) into inputs (..., O + size) and ids (...)."""
        ids, x = block_ids(x), x[..., :-1]
        return (x if self.vectors is None else torch.cat((x, F.embedding(ids, self.vectors)), dim=-1)), ids


def block_ids(x: torch.Tensor) -> torch.Tensor:
    """Ids (...) in the last column of observations or states (..., O + 1)."""
    return x[..., -1].long()


class Features(nn.Module):
    """Observation to features: MLP, with a recurrent layer before or after it if there is one."""

    def __init__(self, num_inputs: int, config: NetworkConfig) -> None:
        """Build the layers; `size` is the number of features, `hidden_size` that of the recurrent state."""
        super().__init__()
        rnn = config.rnn
        width = config.units[-1] if config.units else num_inputs
        self._before = rnn is not None and rnn.before_mlp
        self._concat_input = rnn is not None and rnn.concat_input and not rnn.before_mlp
        self._concat_output = rnn is not None and rnn.concat_output
        rnn_inputs = num_inputs if self._before else width + num_inputs * self._concat_input
        self.rnn = Recurrent(rnn_inputs, rnn) if rnn is not None else None
        rnn_width = rnn.units + num_inputs * self._concat_output if rnn is not None else 0
        self.mlp = _mlp(rnn_width if self._before else num_inputs, config)
        self.size = rnn_width if rnn is not None and (not self._before or not config.units) else width
        self.hidden_size = self.rnn.hidden_size if self.rnn is not None else 0

    def forward(
        self, x: torch.Tensor, hidden: torch.Tensor, starts: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return features (..., size) of observations (..., I) and the new state (S, H)."""
        if self.rnn is None:
            return self.mlp(x), hidden
        inputs = x if self._before else self.mlp(x)
        if self._concat_input:
            inputs = torch.cat((inputs, x), dim=-1)
        output, hidden = self.rnn(inputs, hidden, starts)
        if self._concat_output:
            output = torch.cat((output, x), dim=-1)
        return (self.mlp(output) if self._before else output), hidden


class ActorCritic(nn.Module):
    """Gaussian policy and value, sharing their features or not.

    Under autocast only the features are computed in the lower precision: the heads, and with them log-probabilities,
    KL and values, stay in float32.
    """

    def __init__(
        self,
        num_observations: int,
        num_actions: int,
        config: NetworkConfig,
        autocast: torch.dtype | None = None,
        conditioning: Conditioning | None = None,
    ) -> None:
        """Build and initialise the layers; biases start at 0.

        With `conditioning` observations have a last column more, the id of the block that acts; actor and critic share
        the blocks' vectors, and a log-std that does not depend on the observation is one of the block.
        """
        super().__init__()
        self.autocast = autocast
        num_inputs = num_observations + (conditioning.size if conditioning else 0)
        self.actor = Features(num_inputs, config)
        self.critic = Features(num_inputs, config) if config.separate else None
        self.mean = nn.Linear(self.actor.size, num_actions)
        self.value = nn.Linear(self.actor.size, 1)
        self.log_std: nn.Parameter | nn.Linear
        if config.fixed_sigma:
            of_blocks = (conditioning.num_blocks,) if conditioning and conditioning.size else ()
            self.log_std = nn.Parameter(torch.zeros(*of_blocks, num_actions))
        else:
            self.log_std = nn.Linear(self.actor.size, num_actions)
        self.hidden_size = self.actor.hidden_size * (2 if config.separate else 1)
        initialize_layers(self, config)
        _initialize(self.mean.weight, config.mu_init)
        _initialize(self.log_std.weight if isinstance(self.log_std, nn.Linear) else self.log_std, config.sigma_init)
        self.blocks = BlockInput(conditioning) if conditioning else None

    def forward(
        self, observations: torch.Tensor, hidden: torch.Tensor, starts: torch.Tensor | None = None
    ) -> PolicyOutput:
        """Evaluate normalised observations (..., O) from recurrent state `hidden` (S, H); see `Recurrent.forward`."""
        if self.blocks is not None:
            observations, ids = self.blocks(observations)
        actor_hidden, critic_hidden = hidden.split(
            (self.actor.hidden_size, self.hidden_size - self.actor.hidden_size), 1
        )
        with torch.autocast(observations.device.type, dtype=self.autocast, enabled=self.autocast is not None):
            actor_features, actor_hidden = self.actor(observations, actor_hidden, starts)
            critic_features = actor_features
            if self.critic is not None:
                critic_features, critic_hidden = self.critic(observations, critic_hidden, starts)
        actor_features = actor_features.float()
        log_std = self.log_std(actor_features) if isinstance(self.log_std, nn.Linear) else self.log_std
        if isinstance(self.log_std, nn.Parameter) and self.log_std.dim() == 2:
            log_std = F.embedding(ids, self.log_std)
        value = self.value(critic_features.float()).squeeze(-1)
        hidden = torch.cat((actor_hidden, critic_hidden), dim=1) if self.hidden_size else hidden
        return PolicyOutput(self.mean(actor_features), log_std, value, hidden)


def _mlp(num_inputs: int, config: NetworkConfig) -> nn.Sequential:
    sizes = (num_inputs, *config.units)
    return nn.Sequential(*(Dense(n, units, config.activation) for n, units in zip(sizes, config.units, strict=False)))


def initialize_layers(network: nn.Module, config: NetworkConfig) -> None:
    """Initialise every linear layer; recurrent layers keep torch's initialisation."""
    for module in network.modules():
        if isinstance(module, nn.Linear):
            _initialize(module.weight, config.initializer)
            nn.init.zeros_(module.bias)


def _initialize(weight: torch.Tensor, initializer: Initializer) -> None:
    if initializer.name == "const_initializer":
        nn.init.constant_(weight, initializer.val)
    elif initializer.name == "orthogonal_initializer":
        nn.init.orthogonal_(weight, initializer.gain)
