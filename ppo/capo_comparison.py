"""What merging replicas gains on one batch: the pool against the mean replica, and against a deeper update.

The claim to check (CAPO, Mustafaoglu et al. 2026, arXiv 2603.12596): the pool of the replicas has a higher KL-penalised
surrogate and a smaller step than the replicas have on average.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.func import functional_call

from ppo import distributions, fisher
from ppo.capo import ConsensusUpdate, average, pooled
from ppo.outer_loop import flat, policy_parameters
from ppo.rollout import Batch

FISHER_ROWS = 1024
"""Rows of the batch on which signal and waste are measured."""


def surrogate(
    mean: torch.Tensor, log_std: torch.Tensor, batch: Batch, coefficient: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """KL-penalised surrogate E[A pi / pi_b] - coefficient KL(pi_b || pi) on a batch, and that divergence.

    Args:
        mean: (B, A) action means of the policy pi.
        log_std: (B, A).
        batch: as it was collected; its means and log-stds are those of the behaviour policy pi_b.
        coefficient: weight of the divergence.
    """
    ratio = torch.exp(distributions.log_prob(batch.actions, mean, log_std) - batch.log_probs)
    kl = distributions.kl_divergence(batch.means, batch.log_stds, mean, log_std).mean()
    return (ratio * batch.advantages).mean() - coefficient * kl, kl


def compare(consensus: ConsensusUpdate, batch: Batch, coefficient: float = 1.0) -> dict[str, float]:
    """Optimise the replicas, and one network as many times as long, on the batch; everything is put back afterwards.

    Returns:
        For `replicas` (their mean), `pool` (before distillation), `distilled`, `mean` (of the parameters) and `deeper`:
        surrogate/NAME, kl/NAME and, except for the pool, which is no network, signal/NAME and waste/NAME.
    """
    start = [tensor.detach().clone() for tensor in consensus.state()]
    rate = consensus.update.optimizer.rate.clone()
    states, _ = consensus.optimize(batch)
    consensus.load(average(states))
    candidates = {"mean": [_copy(consensus)], "replicas": states}
    consensus.distil(batch, states)
    candidates["distilled"] = [_copy(consensus)]
    candidates["deeper"] = [_deeper(consensus, batch, start, rate)]

    results: dict[str, float] = {}
    _, outputs = consensus.outputs(batch, states)
    scores = {"pool": [surrogate(*pooled(outputs), batch, coefficient)]}
    for name, members in candidates.items():
        _, outputs = consensus.outputs(batch, members)
        scores[name] = [surrogate(output.mean, output.log_std, batch, coefficient) for output in outputs]
    for name, values in scores.items():
        results[f"surrogate/{name}"], results[f"kl/{name}"] = torch.tensor(values).mean(0).tolist()
    consensus.load(start)
    consensus.update.optimizer.rate.copy_(rate)
    return results | _signal_and_waste(consensus, batch, start, candidates)


def _copy(consensus: ConsensusUpdate) -> list[torch.Tensor]:
    return [tensor.detach().clone() for tensor in consensus.state()]


def _deeper(
    consensus: ConsensusUpdate, batch: Batch, start: Sequence[torch.Tensor], rate: torch.Tensor
) -> list[torch.Tensor]:
    """What one network becomes in as many mini-epochs as all replicas have together."""
    update = consensus.update
    consensus.load(start)
    update.optimizer.rate.copy_(rate)
    update.mini_epochs *= consensus.replicas
    update.run(consensus.working_copy(batch), "epoch")
    update.mini_epochs //= consensus.replicas
    return _copy(consensus)


def _signal_and_waste(
    consensus: ConsensusUpdate,
    batch: Batch,
    start: Sequence[torch.Tensor],
    candidates: dict[str, list[list[torch.Tensor]]],
) -> dict[str, float]:
    """Fisher signal and waste of each candidate's step, on the first rows; the start is loaded before and after."""
    network, normalizer = consensus.update.agent.network, consensus.update.agent.obs_normalizer
    sample = next(batch.split([min(FISHER_ROWS, len(batch)), max(0, len(batch) - FISHER_ROWS)]))
    observations = sample.observations if normalizer is None else normalizer.normalize(sample.observations)
    names = policy_parameters(network)
    old = {name: parameter.detach().clone().requires_grad_() for name, parameter in names.items()}
    results: dict[str, float] = {}
    with fisher.differentiable_twice(network):
        output = functional_call(network, old, (observations, sample.hidden, sample.starts))
        log_prob = distributions.log_prob(sample.actions, output.mean, output.log_std)
        gradients = torch.autograd.grad((sample.advantages * log_prob).mean(), list(old.values()), retain_graph=True)
        gradient = torch.cat([g.flatten() for g in gradients])
        product = fisher.GaussianFisher(output, list(old.values()))
        for name, members in candidates.items():
            splits = []
            for member in members:
                consensus.load(member)
                splits.append(fisher.split(product, flat(policy_parameters(network)) - flat(old), gradient))
            results[f"signal/{name}"] = torch.stack([split.signal for split in splits]).mean().item()
            results[f"waste/{name}"] = torch.stack([split.waste for split in splits]).mean().item()
    consensus.load(start)
    return results
