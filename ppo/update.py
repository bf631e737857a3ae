"""One PPO update: mini-epochs over the batch, minibatches, gradient steps, the KL-adaptive rate."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ppo import distributions, losses, sapg, schedule
from ppo.agent import Agent
from ppo.compiled import compiled
from ppo.config import TrainConfig
from ppo.distributed import World
from ppo.fast_cpu import HandWrittenLoss
from ppo.optimizer import GuardedAdam
from ppo.proximal import ProximalPolicy
from ppo.rollout import Batch, minibatch_sizes, permutation

STATISTICS = ("loss", "policy_loss", "value_loss", "entropy", "bounds_loss", "kl", "clip_fraction")
CPU_MICRO_BATCH = 4096
"""Samples of one backward pass on a CPU: activations of common layer widths then stay in its cache."""
_LOSS, _KL = STATISTICS.index("loss"), STATISTICS.index("kl")


class PolicyUpdate:
    """Owns the optimiser of the actor-critic. Every statistic stays on the device, so nothing synchronises."""

    def __init__(
        self,
        agent: Agent,
        config: TrainConfig,
        minibatch_size: int,
        device: torch.device,
        world: World,
        frames: int = 1,
    ) -> None:
        """Create the optimiser at the initial rate.

        Args:
            agent: its `network` is optimised, its observation normaliser updated.
            config: the learner's settings.
            minibatch_size: rows of a minibatch (samples, or sequences of a recurrent network).
            device: where the batch lives.
            world: the processes that learn together.
            frames: environment steps an iteration over all processes, for settings that count in them.
        """
        self.agent = agent
        self.config = config
        self.minibatch_size = minibatch_size
        self.device = device
        self.world = world
        self.optimizer = GuardedAdam(
            agent.network.parameters(),
            config.learning_rate,
            config.grad_norm if config.truncate_grads else None,
            config.weight_decay,
            scale_loss=agent.network.autocast == torch.float16,
        )
        self._loss_weights = torch.tensor(
            [1.0, 0.5 * config.critic_coef, -config.entropy_coef, config.bounds_loss_coef], device=device
        )
        self.micro_batch_size = self._micro_batch_rows()
        rows = min(self.micro_batch_size, self.minibatch_size)
        hand_written = config.cpu_update == "hand_written"
        self.proximal = ProximalPolicy(agent.network, config.ewma, frames) if config.ewma.enabled else None
        self._hand_written = HandWrittenLoss(agent.network, config, rows, self.proximal) if hand_written else None
        self._names = STATISTICS if self.proximal is None else (*STATISTICS, "behaviour_ratio_capped")
        self._loss_terms = compiled(self._terms, config.torch_compile)
        self.mini_epochs = config.mini_epochs * config.capo.mini_epoch_factor
        self.recorded_rates: list[torch.Tensor] | None = None
        """if a list, every rate that the KL divergence led to is appended"""
        self.replayed_rates: Iterator[torch.Tensor] | None = None
        """if not None, the rates to take instead; nothing but the loss is measured then"""
        self._spare: Batch | None = None
        self._bonus = sapg.entropy_bonus(agent.num_blocks, config.sapg.entropy_scale, device)
        chunk = sapg.shuffled_rows(config, agent.num_blocks, agent.network.hidden_size)
        self.shuffle = "iteration" if chunk and config.shuffle == "none" else config.shuffle
        self._chunk = max(1, chunk)

    def _micro_batch_rows(self) -> int:
        samples = self.config.micro_batch_size
        if samples is None:
            if self.device.type != "cpu":  # pragma: needs cuda
                return self.minibatch_size
            samples = CPU_MICRO_BATCH
        return max(1, samples // self.config.seq_length) if self.agent.network.hidden_size else samples

    def set_entropy_coef(self, coefficient: float) -> None:
        """Set the weight of the entropy bonus."""
        self._loss_weights[STATISTICS.index("entropy") - 1] = -coefficient

    def run(self, batch: Batch, shuffle: str | None = None) -> dict[str, torch.Tensor]:
        """Optimise on the batch, whose memory is reused; returns the mean statistics as 0-dim tensors.

        `shuffle` is used instead of the configured one if it is given.
        """
        shuffle = shuffle or self.shuffle
        sizes = minibatch_sizes(len(batch), self.minibatch_size)
        spare = self._shuffle_storage(batch, shuffle)
        visits: list[torch.Tensor] = []
        norms: list[torch.Tensor] = []
        if self.proximal is not None:
            self.proximal.begin_iteration(len(sizes) * self.mini_epochs)
        for mini_epoch in range(self.mini_epochs):
            if mini_epoch == 1:
                self._normalize_observations(batch)
            if spare is not None and (mini_epoch == 0 or shuffle == "epoch"):
                order = permutation(len(batch), self._chunk, self.device)
                batch, spare = batch.gather(order, out=spare), batch
            for minibatch in batch.split(sizes):
                if mini_epoch == 0:
                    self._track_observations(minibatch)
                visits.append(self._accumulate_gradients(minibatch))
                norms.append(self._step(visits[-1]))
                if self.config.schedule_type == "legacy":
                    self._adapt_rate(visits[-1])
            if self.config.schedule_type == "standard":
                self._adapt_rate(torch.stack(visits[-len(sizes) :]).mean(0))
        statistics = dict(zip(self._names, torch.stack(visits).nanmean(0).unbind(), strict=True))
        grad_norms = torch.stack(norms)
        return statistics | {"grad_norm": grad_norms.nanmean(), "skipped_updates": grad_norms.isnan().sum()}

    def _shuffle_storage(self, batch: Batch, shuffle: str) -> Batch | None:
        """Second copy of the batch for shuffling, allocated once; None without shuffling."""
        if shuffle == "none":
            return None
        self._spare = batch.storage(self._spare)
        return self._spare

    def _track_observations(self, minibatch: Batch) -> None:
        """First mini-epoch: merge the minibatch into the statistics, then normalise it (rl_games 2.0's moment)."""
        normalizer = self.agent.obs_normalizer
        if normalizer is not None:
            normalizer.update(minibatch.observations, self.world)
            minibatch.observations = normalizer.normalize(minibatch.observations)

    def _normalize_observations(self, batch: Batch) -> None:
        """Later mini-epochs: the statistics rest, so the whole batch is normalised once, in place."""
        normalizer = self.agent.obs_normalizer
        if normalizer is not None:
            normalizer.normalize(batch.observations, out=batch.observations)

    def _accumulate_gradients(self, minibatch: Batch) -> torch.Tensor:
        """Backpropagate the mean loss of the minibatch, in micro-batches; returns the statistics as one tensor."""
        self.optimizer.zero_grad()
        total = len(minibatch)
        micros = minibatch.split(minibatch_sizes(total, self.micro_batch_size))
        if self._hand_written is not None:
            return self._hand_written.backward(list(micros), self._loss_weights, self._statistics)
        statistics = torch.zeros(len(self._names), device=self.device)
        for micro in micros:
            share = len(micro) / total
            terms, *policy = self._loss_terms(micro)
            self.optimizer.backward(torch.dot(terms, self._loss_weights) * share)
            statistics.add_(self._statistics(micro, terms, *policy), alpha=share)
        return statistics

    def _terms(self, batch: Batch) -> tuple[torch.Tensor, ...]:
        """What `Statistics` takes, of one micro-batch; first the mean losses (policy, value, entropy, bounds)."""
        config = self.config
        mean, log_std, value, _ = self.agent.network(batch.observations, batch.hidden, batch.starts)
        log_prob = distributions.log_prob(batch.actions, mean, log_std)
        if self.proximal is None:
            surrogate, *ratios = losses.policy_loss(log_prob - batch.log_probs, batch.advantages, config.e_clip)
        else:
            proximal = self.proximal.log_prob(batch)
            surrogate, *ratios = self.proximal.policy_loss(batch, log_prob, proximal, config.e_clip)
        entropy = distributions.entropy(log_std)
        if self._bonus is not None:
            surrogate = surrogate - self._bonus(batch.observations, entropy)
        critic = losses.value_loss(value, batch.values, batch.returns, config.e_clip if config.clip_value else None)
        terms = torch.stack((surrogate.mean(), critic.mean(), entropy.mean(), losses.bounds_loss(mean).mean()))
        return terms, mean, log_std, *ratios

    @torch.no_grad()
    def _statistics(
        self, batch: Batch, terms: torch.Tensor, mean: torch.Tensor, log_std: torch.Tensor, *ratios: torch.Tensor
    ) -> torch.Tensor:
        """The statistics of one micro-batch as one tensor."""
        loss = torch.dot(terms, self._loss_weights)
        if self.replayed_rates is not None:
            return torch.cat((loss.view(1), loss.new_zeros(len(self._names) - 1)))
        kl = self._divergence(batch, mean, log_std)
        clipped = ((ratios[0] - 1.0).abs() > self.config.e_clip).float().mean()
        capped = [(ratio > self.config.ewma.max_behaviour_ratio).float().mean() for ratio in ratios[1:]]
        return torch.cat((loss.view(1), terms, torch.stack((kl, clipped, *capped))))

    def _divergence(self, batch: Batch, mean: torch.Tensor, log_std: torch.Tensor) -> torch.Tensor:
        """Mean KL(new || reference) before the optimiser step; moves the reference if it is the previous visit."""
        exact = self.config.kl_estimator == "exact"
        divergence = distributions.kl_divergence if exact else distributions.kl_divergence_rl_games
        kl = divergence(mean, log_std, batch.means, batch.log_stds).mean()
        if self.config.kl_reference == "previous_visit":
            batch.means.copy_(mean)
            batch.log_stds.copy_(log_std)
        return kl

    def _step(self, statistics: torch.Tensor) -> torch.Tensor:
        """Average over the processes and step; returns the gradient norm. A skipped step has no KL: NaN."""
        self.world.average_([*self.optimizer.gradients(), statistics])
        norm = self.optimizer.step(loss=statistics[_LOSS])
        statistics[_KL] = torch.where(norm.isnan(), torch.nan, statistics[_KL])
        if self.proximal is not None:
            self.proximal.after_step(norm)
        return norm

    def _adapt_rate(self, statistics: torch.Tensor) -> None:
        config = self.config
        if config.lr_schedule == "adaptive":
            rate, kl = self.optimizer.rate, statistics[_KL]
            if self.replayed_rates is not None:
                rate.copy_(next(self.replayed_rates))
                return
            rate.copy_(schedule.adapt_to_kl(rate, kl, config.kl_threshold, config.min_lr, config.max_lr))
            if self.recorded_rates is not None:
                self.recorded_rates.append(rate.clone())
