"""PPO-EWMA: the proximal policy is an exponentially weighted moving average of the policy's parameters.

Hilton, Cobbe, Schulman 2021, "Batch size-invariance for policy optimization" (arXiv 2110.00641). PPO asks of the policy
that collected the data two things: to correct the gradient for having collected it, and to be what a step stays near.
Here the second is the business of a policy of its own, whose age can be chosen.
"""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import nn

from ppo import distributions, losses
from ppo.extensions import EwmaConfig
from ppo.networks import ActorCritic
from ppo.rollout import Batch

_log = logging.getLogger(__name__)


def decay(config: EwmaConfig, steps: int, frames: int) -> float:
    """Factor beta = COM / (COM + 1) by which the average forgets whenever it moves.

    Args:
        config: `com` in its `unit`, and how often the average moves.
        steps: optimiser steps an iteration.
        frames: environment steps an iteration, over all processes.
    """
    assert config.com is not None
    steps_a_unit = {"optimizer_step": 1.0, "iteration": float(steps), "env_step": steps / frames}[config.unit]
    com = config.com * steps_a_unit
    if config.update == "iteration":
        com /= steps
    return com / (com + 1.0)


class BatchSettings(NamedTuple):
    """Settings that belong together when the batch changes."""

    batch: float
    """samples collected an iteration"""
    learning_rate: float
    com: float
    """in optimiser steps or iterations; in environment steps it does not depend on the batch"""
    advantage_batches: float
    """batches over which advantages are normalised"""


def divide_batch(settings: BatchSettings, c: float) -> BatchSettings:
    """What to set when the batch is divided by `c` and learning per sample shall stay as it was.

    Adam's rate falls with sqrt(c), since gradients are noisier by that factor; the centre of mass grows by c, so that
    the proximal policy is as many samples old as before; advantages are normalised over as many samples as before.
    Holds for one policy epoch and batches below the critical size (the paper's sections 3 and 4).
    """
    return BatchSettings(
        settings.batch / c, settings.learning_rate / math.sqrt(c), settings.com * c, settings.advantage_batches * c
    )


class ProximalPolicy:
    """The averaged policy pi_k; observations are normalised as for the current policy.

    Of parameters theta_0 ... theta_n it is sum(w_i theta_i) / sum(w_i) with w_i = beta^(n-i), which is kept up by
    W' = beta W + 1, average' = average beta W / W' + theta / W'.
    """

    def __init__(self, network: ActorCritic, config: EwmaConfig, frames: int) -> None:
        """Start as a copy of the policy.

        Args:
            network: the current policy, whose parameters are averaged.
            config: the settings.
            frames: environment steps an iteration, over all processes.
        """
        self.config = config
        self.frames = frames
        self.network = copy.deepcopy(network).requires_grad_(False)
        self.network.critic = None  # only the policy is needed
        for module in self.network.modules():
            if isinstance(module, nn.RNNBase):
                module.flatten_parameters()
        current = dict(network.named_parameters())
        averaged = dict(self.network.named_parameters())
        self._averages: list[torch.Tensor] = list(averaged.values())
        self._sources: list[torch.Tensor] = [current[name] for name in averaged]
        self.weight = torch.ones((), dtype=torch.float64, device=self._averages[0].device)
        """W, the sum of the weights of all parameters in the average"""
        self.beta = 0.0
        self.is_behaviour = config.com == 0 and config.update == "iteration"
        """pi_k is by definition the policy that collects: its log-probabilities are known, and this is PPO"""

    def reset(self) -> None:
        """Begin a new average at the current parameters."""
        with torch.no_grad():
            torch._foreach_copy_(self._averages, self._sources)
        self.weight.fill_(1.0)

    def begin_iteration(self, steps: int) -> None:
        """Prepare for `steps` optimiser steps on a batch that the current policy has collected."""
        self.beta = decay(self.config, steps, self.frames)
        if self.config.update == "iteration":
            self._move(torch.zeros_like(self.weight))

    def after_step(self, norm: torch.Tensor) -> None:
        """Move after an optimiser step; `norm` is its gradient norm, NaN if the step was skipped."""
        if self.config.update == "optimizer_step":
            self._move(norm)

    @torch.no_grad()
    def _move(self, norm: torch.Tensor) -> None:
        skipped = norm.isnan()
        total = torch.where(skipped, self.weight, self.beta * self.weight + 1.0)
        new = torch.where(skipped, 0.0, 1.0 / total)
        torch._foreach_mul_(self._averages, (1.0 - new).float())
        torch._foreach_add_(self._averages, list(torch._foreach_mul(self._sources, new.float())))
        self.weight.copy_(total)

    @torch.no_grad()
    def log_prob(self, batch: Batch) -> torch.Tensor:
        """Log-probabilities of the batch's actions under pi_k, in the shape of `batch.log_probs`."""
        if self.is_behaviour:
            return batch.log_probs
        mean, log_std, _, _ = self.network(batch.observations, batch.hidden, batch.starts)
        return distributions.log_prob(batch.actions, mean, log_std)

    def policy_loss(
        self, batch: Batch, log_prob: torch.Tensor, proximal: torch.Tensor, clip: float
    ) -> tuple[torch.Tensor, ...]:
        """Loss, ratio to pi_k, and ratio to the behaviour policy (before the cap) of each sample.

        Args:
            batch: what was collected.
            log_prob: log-probabilities of its actions under the current policy.
            proximal: the same under pi_k, from `log_prob`.
            clip: half-width of the trust interval.
        """
        config = self.config
        policies = (log_prob, batch.log_probs, proximal, batch.advantages)
        if config.objective == "clip":
            loss, ratio = losses.decoupled_policy_loss(*policies, clip, config.max_behaviour_ratio)
        else:
            coefficient = config.kl_penalty_coef
            loss, ratio = losses.penalised_policy_loss(*policies, coefficient, config.max_behaviour_ratio)
        return loss, ratio, torch.exp(log_prob.detach() - batch.log_probs)

    def tensors(self) -> list[torch.Tensor]:
        """Everything that moves."""
        return [*self._averages, self.weight]

    def state_dict(self) -> dict[str, Any]:
        """Parameters, running weight, and the setting they came about with."""
        return {"network": self.network.state_dict(), "weight": self.weight, "com": self.config.com}

    def restore(self, state: Mapping[str, Any] | None) -> None:
        """Go on with a saved average, or begin a new one if there is none; says so where that changes anything."""
        if state is None:
            self.reset()
            _log.warning("the checkpoint holds no averaged policy: the average starts from its policy")
            return
        self.network.load_state_dict(state["network"])
        self.weight.copy_(state["weight"])
        if state["com"] != self.config.com:
            _log.warning(
                "the average of the checkpoint, with com %g, goes on with com %g", state["com"], self.config.com
            )
