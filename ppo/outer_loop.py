"""What one iteration did to the policy: collecting a batch and learning from it, seen as one step of optimisation.

Every result is a 0-dim tensor on the device, read where the trainer reads its other statistics. Nothing here changes
parameters, gradients or random numbers, so training is the same bit for bit with and without it. The metrics are
defined one by one in docs/learner.md, "Outer-loop diagnostics".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch.func import functional_call

from ppo import distributions, fisher
from ppo.agent import Agent
from ppo.config import TrainConfig, minibatch_samples
from ppo.distributed import World
from ppo.extensions import DiagnosticsConfig
from ppo.geometry import StepGeometry
from ppo.gradient_noise import NoiseScale, signal_and_noise, squares
from ppo.networks import ActorCritic, PolicyOutput
from ppo.rollout import Batch, RolloutBuffer, minibatch_sizes

PREFIX = "outer/"
GRADIENT_PARTS = 16
"""Groups of environments whose gradients are compared for the noise scale."""


class OuterLoop:
    """Measures the step from the behaviour policy to the policy after the update: `begin`, the update, `end`."""

    def __init__(self, agent: Agent, config: DiagnosticsConfig, samples: int, seq_length: int, world: World) -> None:
        """Prepare.

        Args:
            agent: whose `network` is updated between `begin` and `end`.
            config: what is measured, and how often.
            samples: samples of one iteration in this process.
            seq_length: samples of one row of a batch: 1, or the length of a recurrent network's sequences.
            world: the processes that learn together; results are means over them.
        """
        self.agent = agent
        self.config = config
        self.samples = samples
        self.seq_length = seq_length
        self.world = world
        self.geometry = StepGeometry(config.window)
        self.noise_scale = NoiseScale()
        self._iteration = 0
        self._order = torch.empty(0, dtype=torch.long)
        self._sample: Batch | None = None
        self._normalized: Batch | None = None
        self._parameters = torch.empty(0)
        self._gradient: torch.Tensor | None = None
        self._results: dict[str, torch.Tensor] = {}

    # ---- before the update

    def begin(self, batch: Batch, buffer: RolloutBuffer) -> None:
        """Keep what is needed of the behaviour policy; `batch` is raw, as the update will get it."""
        sample = batch.select(self._rows(batch))
        self._sample = sample
        self._parameters = flat(policy_parameters(self.agent.network))
        self._results = {"explained_variance": explained_variance(buffer.values, buffer.advantages)}
        self._gradient = self._normalized = None
        noise_due, fisher_due = self._is_due(self.config.noise_scale_every), self._is_due(self.config.fisher_every)
        if noise_due or fisher_due:
            gradient, signal, noise = self._surrogate_gradient(batch)
            if noise_due:
                scale = self.noise_scale.update(signal, noise)
                self._results |= {"gradient_signal": signal, "gradient_noise": noise, "noise_scale": scale}
            if fisher_due:
                self._gradient = gradient
                self._normalized = dataclasses.replace(sample, observations=self._normalize(sample.observations))

    def _is_due(self, every: int) -> bool:
        return every > 0 and self._iteration % every == 0

    def _rows(self, batch: Batch) -> torch.Tensor:
        """Indices of the same random rows in every iteration, drawn without touching the learner's generators."""
        count = min(max(1, self.config.samples // self.seq_length), self.samples // self.seq_length)
        if len(self._order) != count:
            generator = torch.Generator().manual_seed(0)
            order = torch.randperm(self.samples // self.seq_length, generator=generator)[:count].sort().values
            self._order = order.to(batch.actions.device)
        return self._order

    def _surrogate_gradient(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Gradient (P,) of the mean of advantage times log-probability at the behaviour policy; its signal and noise.

        Parts of the batch are groups of environments, so that samples of one episode count as correlated.
        """
        total = self.samples // self.seq_length
        batch = next(batch.split([total, len(batch) - total]))  # without what SAPG has relabelled
        count = min(GRADIENT_PARTS, total)
        sizes = minibatch_sizes(total, -(-total // count))
        gradients = [self._part_gradient(part) for part in batch.split(sizes)]
        weights = [size / total for size in sizes]
        mean = torch.stack([g * w for g, w in zip(gradients, weights, strict=True)]).sum(0)
        small, big = squares(gradients, weights)
        self.world.average_([mean, small])
        if self.world.size > 1:
            big = mean.square().sum()
        samples = total * self.seq_length
        signal, noise = signal_and_noise(small, big, samples / len(sizes), float(samples * self.world.size))
        return mean, signal, noise

    def _part_gradient(self, part: Batch) -> torch.Tensor:
        parameters = list(policy_parameters(self.agent.network).values())
        with torch.enable_grad():
            output = self.agent.network(self._normalize(part.observations), part.hidden, part.starts)
            log_prob = distributions.log_prob(part.actions, output.mean, output.log_std)
            gradients = torch.autograd.grad((part.advantages * log_prob).mean(), parameters)
        return torch.cat([g.flatten() for g in gradients])

    def _normalize(self, observations: torch.Tensor) -> torch.Tensor:
        """Normalised copies of raw observations, by the statistics as they are now."""
        normalizer = self.agent.obs_normalizer
        return observations if normalizer is None else normalizer.normalize(observations)

    # ---- after the update

    @torch.no_grad()
    def end(self) -> dict[str, torch.Tensor]:
        """Compare the policy as it now is with the behaviour policy; returns the metrics `outer/...`."""
        assert self._sample is not None
        sample, self._sample = self._sample, None
        output = self.agent.network(self._normalize(sample.observations), sample.hidden, sample.starts)
        after = flat(policy_parameters(self.agent.network))
        results = self._results | divergences(sample, output)
        if self._gradient is not None and self._normalized is not None:
            parts = self._fisher(self._normalized, self._gradient, after - self._parameters)
            results |= {f"fisher_{name}": value for name, value in parts._asdict().items()}
        self.world.average_(list(results.values()))
        collected = float(self.samples * self.world.size)
        results["ddr"], results["ddr_reverse"] = collected / results["kl"], collected / results["kl_reverse"]
        results |= self.geometry.step(self._parameters, after)
        self._iteration += 1
        return {f"{PREFIX}{name}": value for name, value in results.items()}

    def _fisher(self, sample: Batch, gradient: torch.Tensor, update: torch.Tensor) -> fisher.FisherSplit:
        """Signal and waste of the update, by the Fisher matrix of the behaviour policy on the sample."""
        network = self.agent.network
        names = policy_parameters(network)
        pieces = self._parameters.split([p.numel() for p in names.values()])
        old: dict[str, torch.Tensor] = {
            name: torch.nn.Parameter(piece.view_as(p).clone())
            for (name, p), piece in zip(names.items(), pieces, strict=True)
        }
        with fisher.differentiable_twice(network):
            arguments = (sample.observations, sample.hidden, sample.starts)
            product = fisher.GaussianFisher(functional_call(network, old, arguments), list(old.values()))
            return fisher.split(product, update, gradient)


def outer_settings(config: TrainConfig, num_envs: int, processes: int) -> dict[str, Any]:
    """What decides the outer step size and its noise, by the names that users set; `num_envs` is one process's."""
    return {
        "num_envs": num_envs,
        "processes": processes,
        "horizon_length": config.horizon_length,
        "mini_epochs": config.mini_epochs,
        "minibatch_size": minibatch_samples(config, num_envs),
        "e_clip": config.e_clip,
        "learning_rate": config.learning_rate,
        "kl_threshold": config.kl_threshold if config.lr_schedule == "adaptive" else None,
        "train.ewma.com": config.ewma.com,
        "train.sapg.num_blocks": config.sapg.num_blocks,
        "train.sapg.block_size": config.sapg.block_size,
        "train.capo.replicas": config.capo.replicas,
    }


def policy_parameters(network: ActorCritic) -> dict[str, torch.nn.Parameter]:
    """What the action distribution depends on: everything but a separate critic and the value head."""
    return {n: p for n, p in network.named_parameters() if not n.startswith(("critic.", "value."))}


def flat(parameters: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Copy of the parameters as one vector (P,), without gradients."""
    return torch.cat([p.detach().flatten() for p in parameters.values()])


def divergences(old: Batch, new: PolicyOutput) -> dict[str, torch.Tensor]:
    """How far the new policy is from the one that collected the samples `old`."""
    mean, log_std = new.mean, new.log_std
    steps = (mean - old.means) * torch.exp(-old.log_stds)
    log_ratio = distributions.log_prob(old.actions, mean, log_std) - old.log_probs
    return {
        "kl": distributions.kl_divergence(old.means, old.log_stds, mean, log_std).mean(),
        "kl_reverse": distributions.kl_divergence(mean, log_std, old.means, old.log_stds).mean(),
        "policy_step": steps.square().mean().sqrt(),
        "effective_samples": effective_samples(log_ratio),
    }


def effective_samples(log_ratio: torch.Tensor) -> torch.Tensor:
    """Effective part of the samples under importance weights w = exp(log_ratio): (sum w)^2 / (n sum w^2), in (0, 1]."""
    weights = torch.exp(log_ratio - log_ratio.max())
    return weights.mean().square() / weights.square().mean()


def explained_variance(values: torch.Tensor, advantages: torch.Tensor) -> torch.Tensor:
    """1 - Var(R - V) / Var(R) for returns R = A + V: 1 for a perfect critic, 0 for one that predicts a constant."""
    return 1.0 - advantages.var() / (advantages + values).var()
