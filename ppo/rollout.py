"""Experience: the preallocated rollout buffer, advantages, and minibatches.

Storage is env-major, (N, T, ...), so that a flat view lists each environment's steps in order; minibatches without
shuffling are contiguous groups of environments, as in rl_games.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from ppo.agent import Action


@dataclass
class Batch:
    """B samples, one row each; slices share memory with the batch they come from."""

    observations: torch.Tensor
    """(B, O), raw at first; the update normalises them in place after the first mini-epoch"""
    actions: torch.Tensor
    """(B, A), unclipped"""
    log_probs: torch.Tensor
    """(B,) under the behaviour policy"""
    means: torch.Tensor
    """(B, A) of the reference policy of the KL: the behaviour policy, or that of the previous visit"""
    log_stds: torch.Tensor
    """(B, A) of the same policy"""
    values: torch.Tensor
    """(B,) predicted when collecting, normalised"""
    advantages: torch.Tensor
    """(B,)"""
    returns: torch.Tensor
    """(B,) targets of the value, normalised"""

    def __len__(self) -> int:
        """Number of samples."""
        return self.actions.shape[0]

    def split(self, sizes: list[int]) -> Iterator[Batch]:
        """Consecutive pieces of the given sizes, as views."""
        columns = [getattr(self, f.name).split(sizes) for f in dataclasses.fields(self)]
        for pieces in zip(*columns, strict=True):
            yield Batch(*pieces)

    def gather(self, order: torch.Tensor, out: Batch) -> Batch:
        """Copy rows into `out` in the given order and return it."""
        for f in dataclasses.fields(self):
            torch.index_select(getattr(self, f.name), 0, order, out=getattr(out, f.name))
        return out

    def empty_like(self) -> Batch:
        """Storage of the same shape."""
        return Batch(*(torch.empty_like(getattr(self, f.name)) for f in dataclasses.fields(self)))


class RolloutBuffer:
    """Preallocated storage of T steps of N environments."""

    def __init__(
        self, num_envs: int, horizon: int, num_observations: int, num_actions: int, device: torch.device | str
    ) -> None:
        """Allocate once; every rollout overwrites it."""

        def allocate(*shape: int) -> torch.Tensor:
            return torch.zeros(num_envs, horizon, *shape, device=device)

        self.observations = allocate(num_observations)
        self.actions = allocate(num_actions)
        self.means = allocate(num_actions)
        self.log_stds = allocate(num_actions)
        self.log_probs = allocate()
        self.values = allocate()
        self.rewards = allocate()
        self.dones = allocate()
        self.advantages = allocate()

    def store_action(self, t: int, action: Action) -> None:
        """Keep what the policy did at step t."""
        self.actions[:, t] = action.actions
        self.log_probs[:, t] = action.log_probs
        self.values[:, t] = action.values
        self.means[:, t] = action.means
        self.log_stds[:, t] = action.log_stds

    def compute_advantages(self, last_values: torch.Tensor, gamma: float, lam: float) -> None:
        """Fill `advantages` from rewards, values, dones and V(s_T) (N,); all in real (not normalised) units."""
        advantages(self.rewards, self.values, self.dones, last_values, gamma, lam, out=self.advantages)

    def batch(self, values: torch.Tensor, advantages: torch.Tensor, returns: torch.Tensor) -> Batch:
        """All samples as a flat batch of B = N*T rows that shares this buffer's memory."""
        return Batch(
            observations=self.observations.flatten(0, 1),
            actions=self.actions.flatten(0, 1),
            log_probs=self.log_probs.flatten(),
            means=self.means.flatten(0, 1),
            log_stds=self.log_stds.flatten(0, 1),
            values=values.flatten(),
            advantages=advantages.flatten(),
            returns=returns.flatten(),
        )


def advantages(
    rewards: torch.Tensor,
    values: torch.Tensor,
    dones: torch.Tensor,
    last_values: torch.Tensor,
    gamma: float,
    lam: float,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Generalised advantage estimation over (N, T) tensors.

    delta_t = r_t + gamma V_{t+1} (1 - done_t) - V_t;  A_t = delta_t + gamma lam (1 - done_t) A_{t+1}.
    `dones` is 1 where step t ended the episode; V_T is `last_values` (N,). Time-limit bootstrap is part of the
    rewards (see `bootstrap_time_outs`).
    """
    out = torch.empty_like(rewards) if out is None else out
    advantage = torch.zeros_like(last_values)
    next_values = last_values
    for t in reversed(range(rewards.shape[1])):
        alive = 1.0 - dones[:, t]
        delta = rewards[:, t] + gamma * next_values * alive - values[:, t]
        advantage = delta + gamma * lam * alive * advantage
        out[:, t] = advantage
        next_values = values[:, t]
    return out


def bootstrap_time_outs(
    rewards: torch.Tensor, values: torch.Tensor, time_outs: torch.Tensor, gamma: float
) -> torch.Tensor:
    """Add gamma V(s_t) where the time limit cut the episode; all (N,), V of the state the action was taken in."""
    return rewards + gamma * values * time_outs


def minibatch_sizes(num_samples: int, requested: int) -> list[int]:
    """Sizes of the fewest minibatches of at most `requested` samples; they differ by at most one sample."""
    count = -(-num_samples // requested)
    small, larger = divmod(num_samples, count)
    return [small + 1] * larger + [small] * (count - larger)
