"""An asymmetric critic: a network of its own on the privileged `states` of the simulation."""

from __future__ import annotations

import torch
from torch import nn

from ppo import losses
from ppo.config import CentralValueConfig
from ppo.distributed import World
from ppo.networks import BlockInput, Conditioning, Features, initialize_layers
from ppo.normalize import RunningNormalizer
from ppo.optimizer import GuardedAdam
from ppo.rollout import CriticBatch, minibatch_sizes, permutation


class CentralCritic(nn.Module):
    """Value of normalised states (..., num_states), in normalised units."""

    def __init__(self, num_states: int, config: CentralValueConfig, conditioning: Conditioning | None = None) -> None:
        """Build the layers and the normaliser of the states, which with `conditioning` end with a block's id."""
        super().__init__()
        self.features = Features(num_states + (conditioning.size if conditioning else 0), config.network)
        self.value = nn.Linear(self.features.size, 1)
        self.normalizer = RunningNormalizer(num_states) if config.normalize_input else None
        self.hidden_size = self.features.hidden_size
        initialize_layers(self, config.network)
        self.blocks = BlockInput(conditioning) if conditioning else None

    def forward(
        self, states: torch.Tensor, hidden: torch.Tensor, starts: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the value (...) and the recurrent state (S, H) after the last step."""
        if self.blocks is not None:
            states, _ = self.blocks(states)
        features, hidden = self.features(states, hidden, starts)
        return self.value(features).squeeze(-1), hidden

    def evaluate(self, states: torch.Tensor, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The same for raw states (N, num_states); statistics stay as they are."""
        return self(states if self.normalizer is None else self.normalizer.normalize(states), hidden)


class CentralValueUpdate:
    """Fits the central critic to the returns, before the actor learns; only SAPG shuffles its minibatches."""

    def __init__(
        self,
        critic: CentralCritic,
        config: CentralValueConfig,
        minibatch_size: int,
        world: World,
        shuffled_rows: int = 0,
    ) -> None:
        """Create the optimiser.

        Args:
            critic: its weights are optimised, its normaliser updated.
            config: settings.
            minibatch_size: rows of a minibatch (samples, or sequences of a recurrent network).
            world: the processes that learn together.
            shuffled_rows: permute the batch once in chunks of so many rows; 0: leave it as it is.
        """
        self.critic = critic
        self.config = config
        self.minibatch_size = minibatch_size
        self.world = world
        self.shuffled_rows = shuffled_rows
        self._spare: CriticBatch | None = None
        self.optimizer = GuardedAdam(
            critic.parameters(),
            config.learning_rate,
            config.grad_norm if config.truncate_grads else None,
            config.weight_decay,
        )

    def run(self, batch: CriticBatch) -> dict[str, torch.Tensor]:
        """Optimise on the batch, whose memory is reused; returns statistics as 0-dim tensors."""
        sizes = minibatch_sizes(len(batch), self.minibatch_size)
        if self.shuffled_rows:
            batch = self._shuffled(batch)
        normalizer = self.critic.normalizer
        visits: list[torch.Tensor] = []
        norms: list[torch.Tensor] = []
        for mini_epoch in range(self.config.mini_epochs):
            if mini_epoch == 1 and normalizer is not None:
                normalizer.normalize(batch.states, out=batch.states)
            for minibatch in batch.split(sizes):
                if mini_epoch == 0 and normalizer is not None:
                    normalizer.update(minibatch.states, self.world)
                    minibatch.states = normalizer.normalize(minibatch.states)
                loss = self._loss(minibatch)
                self.optimizer.zero_grad()
                self.optimizer.backward(loss)
                loss = loss.detach().clone()
                self.world.average_([*self.optimizer.gradients(), loss])
                norms.append(self.optimizer.step(loss))
                visits.append(loss)
        return {
            "central_value_loss": torch.stack(visits).nanmean(),
            "central_skipped_updates": torch.stack(norms).isnan().sum(),
        }

    def _shuffled(self, batch: CriticBatch) -> CriticBatch:
        self._spare = batch.storage(self._spare)
        return batch.gather(permutation(len(batch), self.shuffled_rows, batch.values.device), out=self._spare)

    def _loss(self, batch: CriticBatch) -> torch.Tensor:
        value, _ = self.critic(batch.states, batch.hidden, batch.starts)
        clip = self.config.e_clip if self.config.clip_value else None
        return losses.value_loss(value, batch.values, batch.returns, clip).mean()
