"""CAPO: replicas of the policy optimise one batch in different orders and are merged into one (wider, not deeper).

Mustafaoglu et al. 2026 (arXiv 2603.12596): over the epochs on one batch the useful part of an update saturates while
what is particular to the order of the minibatches grows; merging replicas cancels the latter. Only the abstract of the
paper was at hand: whatever is not the idea itself is a choice made here and described in docs/learner.md.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import torch

from ppo import distributions
from ppo.extensions import CapoConfig
from ppo.networks import PolicyOutput
from ppo.optimizer import GuardedAdam
from ppo.rollout import Batch, minibatch_sizes
from ppo.update import PolicyUpdate

_log = logging.getLogger(__name__)
_SHUFFLE = "epoch"
"""How every replica but the first orders its minibatches where the settings do not shuffle."""


def logarithmic_pool(means: torch.Tensor, log_stds: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Normalised geometric mean of K diagonal Gaussians: precision mean_k p_k, mean sum_k p_k m_k / sum_k p_k.

    Args:
        means: (K, ..., A).
        log_stds: the same, or broadcasting to it.

    Returns:
        mean and log_std (..., A).
    """
    precisions = torch.exp(-2.0 * log_stds).expand_as(means)
    precision = precisions.mean(0)
    return (precisions * means).mean(0) / precision, -0.5 * torch.log(precision)


def pooled(outputs: Sequence[PolicyOutput]) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and log-std (..., A) of the pool of several policies on the same observations."""
    means = torch.stack([output.mean for output in outputs])
    return logarithmic_pool(means, torch.stack([output.log_std for output in outputs]))


def average(results: Sequence[Sequence[torch.Tensor]]) -> list[torch.Tensor]:
    """Mean of several replicas, tensor by tensor."""
    return [torch.stack(parts).mean(0) for parts in zip(*results, strict=True)]


class ConsensusUpdate:
    """Runs a `PolicyUpdate` once for each replica and merges what came out.

    A replica is everything that optimiser steps change: parameters, moments, observation statistics, PPO-EWMA's
    average. All replicas start from the same and take the first one's learning rates step by step.
    """

    def __init__(self, update: PolicyUpdate, config: CapoConfig) -> None:
        """Take over an update; `config` must be enabled."""
        assert config.replicas is not None
        self.update = update
        self.config = config
        self.replicas = config.replicas
        network = update.agent.network
        own_critic = [] if network.critic is None else [*network.critic.parameters(), *network.value.parameters()]
        kept = {id(parameter) for parameter in own_critic}
        self._distilled = [parameter for parameter in network.parameters() if id(parameter) not in kept]
        scale_loss = network.autocast == torch.float16
        self._distiller = GuardedAdam(self._distilled, config.distill_learning_rate, None, scale_loss=scale_loss)
        self._work: Batch | None = None
        self._warned = False

    def run(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Optimise on the batch, which stays as it is with several replicas; returns statistics as 0-dim tensors.

        They are the first replica's, but for the skipped steps, which are those of all.
        """
        if self.replicas == 1:
            return self.update.run(batch)
        if len(batch) <= self.update.minibatch_size and not self._warned:
            self._warned = True
            _log.warning("capo: with one minibatch an epoch all replicas are the same; take a smaller minibatch_size")
        results, statistics = self.optimize(batch)
        self.load(average(results))
        skipped = torch.stack([each["skipped_updates"] for each in statistics]).sum()
        merged = statistics[0] | {"skipped_updates": skipped}
        if self.config.merge == "pool":
            merged |= self.distil(batch, results)
        return merged

    # ---- replicas

    def state(self) -> list[torch.Tensor]:
        """The tensors that make up a replica."""
        update, normalizer = self.update, self.update.agent.obs_normalizer
        return [
            *update.optimizer.parameters,
            *update.optimizer.tensors(),
            *(() if normalizer is None else normalizer.buffers()),
            *(() if update.proximal is None else update.proximal.tensors()),
        ]

    @torch.no_grad()
    def load(self, values: Sequence[torch.Tensor]) -> None:
        """Make the network, its optimiser and statistics those of a replica."""
        torch._foreach_copy_(self.state(), list(values))

    def optimize(self, batch: Batch) -> tuple[list[list[torch.Tensor]], list[dict[str, torch.Tensor]]]:
        """Optimise every replica on the batch; returns their states and statistics. The last one stays loaded."""
        update = self.update
        start = [tensor.detach().clone() for tensor in self.state()]
        rates: list[torch.Tensor] = []
        results, statistics = [], []
        for number in range(self.replicas):
            self.load(start)
            work = self.working_copy(batch)
            if number == 0:
                first_rate = update.optimizer.rate.clone()
                update.recorded_rates = rates
                statistics.append(update.run(work))
                update.recorded_rates = None
            else:
                update.optimizer.rate.copy_(first_rate)
                update.replayed_rates = iter(rates)
                statistics.append(update.run(work, update.shuffle if update.shuffle != "none" else _SHUFFLE))
                update.replayed_rates = None
            results.append([tensor.detach().clone() for tensor in self.state()])
        return results, statistics

    def working_copy(self, batch: Batch) -> Batch:
        """A copy of the batch in storage that is allocated once."""
        self._work = batch.storage(self._work)
        return self._work.copy_(batch)

    # ---- the pool

    @torch.no_grad()
    def outputs(self, batch: Batch, results: Sequence[Sequence[torch.Tensor]]) -> tuple[Batch, list[PolicyOutput]]:
        """A working copy of the batch with normalised observations, and what each replica makes of it.

        Observation statistics are those that are loaded; the parameters that are loaded stay so.
        """
        work, normalizer = self.working_copy(batch), self.update.agent.obs_normalizer
        if normalizer is not None:
            normalizer.normalize(work.observations, out=work.observations)
        network: list[torch.Tensor] = list(self.update.optimizer.parameters)
        loaded = [parameter.clone() for parameter in network]
        outputs = []
        for result in results:
            torch._foreach_copy_(network, list(result[: len(network)]))
            outputs.append(self.evaluate(work))
        torch._foreach_copy_(network, loaded)
        return work, outputs

    @torch.no_grad()
    def evaluate(self, batch: Batch) -> PolicyOutput:
        """The loaded network on normalised observations, a micro-batch at a time."""
        outputs = [self._forward(micro) for micro in self._micro_batches(batch)]
        mean, value = (torch.cat([getattr(output, name) for output in outputs]) for name in ("mean", "value"))
        log_std = torch.cat([output.log_std.expand_as(output.mean) for output in outputs])
        return PolicyOutput(mean, log_std, value, batch.hidden)

    def _forward(self, batch: Batch) -> PolicyOutput:
        output: PolicyOutput = self.update.agent.network(batch.observations, batch.hidden, batch.starts)
        return output

    def _micro_batches(self, batch: Batch) -> Iterator[Batch]:
        return batch.split(minibatch_sizes(len(batch), self.update.micro_batch_size))

    def distil(self, batch: Batch, results: Sequence[Sequence[torch.Tensor]]) -> dict[str, torch.Tensor]:
        """Fit the mean of the replicas' parameters, which is loaded, to their pool; returns how far it came.

        Minimises KL(pool || policy), and where policy and value share features the squared distance to the mean value
        too; a critic with features of its own stays the mean of the replicas' critics. Steps shrink along a line. The
        mean is kept if on the first minibatch the policy is further from the pool in the last epoch than the mean was.
        """
        update, config = self.update, self.config
        target, outputs = self.outputs(batch, results)
        with torch.no_grad():
            mean, log_std = pooled(outputs)
            target.means.copy_(mean)
            target.log_stds.copy_(log_std)
            target.values.copy_(torch.stack([output.value for output in outputs]).mean(0))
        mean_parameters = [parameter.detach().clone() for parameter in self._distilled]
        optimizer = self._distiller
        optimizer.restart()
        sizes = minibatch_sizes(len(target), update.minibatch_size)
        total = config.distill_epochs * len(sizes)
        divergences = []
        for step in range(total):
            if step % len(sizes) == 0:
                minibatches = target.split(sizes)
            optimizer.zero_grad()
            optimizer.set_rate(config.distill_learning_rate * (1.0 - step / total))
            loss, divergence = self._distillation_gradients(next(minibatches), optimizer)
            update.world.average_([*optimizer.gradients(), loss, divergence])
            optimizer.step(loss)
            divergences.append(divergence)
        first, last = divergences[0], divergences[-len(sizes)]
        with torch.no_grad():
            for parameter, mean_parameter in zip(self._distilled, mean_parameters, strict=True):
                parameter.copy_(torch.where(last <= first, parameter, mean_parameter))
        return {"capo/kl_of_mean": first, "capo/kl_of_distilled": last}

    def _distillation_gradients(self, batch: Batch, optimizer: GuardedAdam) -> tuple[torch.Tensor, torch.Tensor]:
        """Add up the gradients over the micro-batches; returns the loss and its divergence."""
        shared = self.update.agent.network.critic is None
        weight = 0.5 * self.update.config.critic_coef if shared else 0.0
        totals = torch.zeros(2, device=self.update.device)
        for micro in self._micro_batches(batch):
            output = self._forward(micro)
            kl = distributions.kl_divergence(micro.means, micro.log_stds, output.mean, output.log_std).mean()
            loss = kl + weight * (output.value - micro.values).square().mean() if shared else kl
            share = len(micro) / len(batch)
            optimizer.backward(loss * share)
            totals.add_(torch.stack((loss, kl)).detach(), alpha=share)
        return totals[0], totals[1]
