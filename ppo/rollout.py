"""Experience: the preallocated rollout buffer, advantages, and minibatches.

Storage is env-major, (N, T, ...), so that a flat view lists each environment's steps in order; minibatches without
shuffling are contiguous groups of environments, as in rl_games. A row of a batch is one sample, or for a recurrent
network one sequence of L steps: every column then is (S, L, ...).
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import torch

if TYPE_CHECKING:
    from ppo.agent import Action
    from ppo.env import Observation

C = TypeVar("C", bound="Columns")


@dataclass
class Columns:
    """Tensors with the same number of rows; slices share memory with the batch they come from."""

    def __len__(self) -> int:
        """Number of rows."""
        return len(getattr(self, dataclasses.fields(self)[0].name))

    def split(self: C, sizes: list[int]) -> Iterator[C]:
        """Consecutive pieces of the given numbers of rows, as views."""
        columns = [getattr(self, f.name).split(sizes) for f in dataclasses.fields(self)]
        for pieces in zip(*columns, strict=True):
            yield type(self)(*pieces)

    def gather(self: C, order: torch.Tensor, out: C) -> C:
        """Copy rows into `out` in the given order and return it."""
        for f in dataclasses.fields(self):
            torch.index_select(getattr(self, f.name), 0, order, out=getattr(out, f.name))
        return out

    def select(self: C, order: torch.Tensor) -> C:
        """Copies of some rows, in the given order."""
        return type(self)(*(getattr(self, f.name).index_select(0, order) for f in dataclasses.fields(self)))

    def copy_(self: C, other: C) -> C:
        """Overwrite every column with the other's and return this."""
        for f in dataclasses.fields(self):
            getattr(self, f.name).copy_(getattr(other, f.name))
        return self

    def storage(self: C, spare: C | None) -> C:
        """Storage of the same shape: `spare` if it fits, else newly allocated."""
        return spare if spare is not None and len(spare) == len(self) else self.empty_like()

    def empty_like(self: C) -> C:
        """Storage of the same shape."""
        return type(self)(*(torch.empty_like(getattr(self, f.name)) for f in dataclasses.fields(self)))


@dataclass
class Batch(Columns):
    """What the policy learns from."""

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
    hidden: torch.Tensor
    """(B, H) recurrent state before each row"""
    starts: torch.Tensor
    """(B,) 1 where an episode starts inside a sequence"""


@dataclass
class CriticBatch(Columns):
    """What a central critic learns from."""

    states: torch.Tensor
    """(B, num_states), raw at first, as the observations above"""
    values: torch.Tensor
    """(B,)"""
    returns: torch.Tensor
    """(B,)"""
    hidden: torch.Tensor
    """(B, H)"""
    starts: torch.Tensor
    """(B,)"""


class RolloutBuffer:
    """Preallocated storage of T steps of N environments; every rollout overwrites it."""

    def __init__(
        self,
        num_envs: int,
        horizon: int,
        num_observations: int,
        num_actions: int,
        device: torch.device | str,
        num_states: int = 0,
        hidden_size: int = 0,
        seq_length: int = 1,
    ) -> None:
        """Allocate. Recurrent state (N, `hidden_size`) is kept every `seq_length` steps."""

        def allocate(*shape: int) -> torch.Tensor:
            return torch.zeros(num_envs, horizon, *shape, device=device)

        self.seq_length = seq_length
        self.observations = allocate(num_observations)
        self.states = allocate(num_states)
        self.actions = allocate(num_actions)
        self.means = allocate(num_actions)
        self.log_stds = allocate(num_actions)
        self.log_probs = allocate()
        self.values = allocate()
        self.rewards = allocate()
        self.dones = allocate()
        self.starts = allocate()
        self.advantages = allocate()
        self.hidden = torch.zeros(num_envs, horizon // seq_length, hidden_size, device=device)

    def part(self, start: int, stop: int) -> RolloutBuffer:
        """The same storage restricted to environments start ... stop - 1."""
        part = copy.copy(self)
        for name, value in vars(self).items():
            if torch.is_tensor(value):
                setattr(part, name, value[start:stop])
        return part

    def copy_(self, other: RolloutBuffer) -> None:
        """Take everything from a buffer of as many environments."""
        for name, value in vars(self).items():
            if torch.is_tensor(value):
                value.copy_(getattr(other, name))

    def label(self, ids: torch.Tensor | float) -> None:
        """Write block ids (N, 1), or one for all, into the last column of observations and states."""
        for column in (self.observations, self.states):
            if column.shape[-1]:
                column[..., -1] = ids

    def store_observation(self, t: int, observation: Observation) -> None:
        """Keep what the policy, and a central critic, saw at step t."""
        for column, name in ((self.observations, "obs"), (self.states, "states")):
            if column.shape[-1]:
                column[:, t, : observation[name].shape[-1]] = observation[name]

    def store_action(self, t: int, action: Action) -> None:
        """Keep what the policy did at step t."""
        self.actions[:, t] = action.actions
        self.log_probs[:, t] = action.log_probs
        self.values[:, t] = action.values
        self.means[:, t] = action.means
        self.log_stds[:, t] = action.log_stds

    def store_hidden(self, t: int, hidden: torch.Tensor) -> None:
        """Keep the recurrent state (N, H) before step t if a sequence begins there."""
        if t % self.seq_length == 0:
            self.hidden[:, t // self.seq_length] = hidden

    def finish(self, last_values: torch.Tensor, gamma: float, lam: float) -> None:
        """Fill `advantages` from rewards, values, dones and V(s_T) (N,) in real units, and `starts` from dones."""
        advantages(self.rewards, self.values, self.dones, last_values, gamma, lam, out=self.advantages)
        self.starts[:, 1:] = self.dones[:, :-1]

    def batch(self, values: torch.Tensor, advantages: torch.Tensor, returns: torch.Tensor, hidden_size: int) -> Batch:
        """All samples for the policy, sharing this buffer's memory; `hidden_size` 0 means rows are samples."""
        rows = partial(self._rows, in_sequences=hidden_size > 0)
        starts = rows(self.starts)
        return Batch(
            observations=rows(self.observations),
            actions=rows(self.actions),
            log_probs=rows(self.log_probs),
            means=rows(self.means),
            log_stds=rows(self.log_stds),
            values=rows(values),
            advantages=rows(advantages),
            returns=rows(returns),
            hidden=self._row_hidden(self.hidden[..., :hidden_size], len(starts)),
            starts=starts,
        )

    def critic_batch(self, values: torch.Tensor, returns: torch.Tensor, hidden_size: int) -> CriticBatch:
        """All samples for the central critic, whose recurrent state is the last part of `hidden`."""
        rows = partial(self._rows, in_sequences=hidden_size > 0)
        starts = rows(self.starts)
        own = self.hidden[..., self.hidden.shape[-1] - hidden_size :]
        return CriticBatch(
            states=rows(self.states),
            values=rows(values),
            returns=rows(returns),
            hidden=self._row_hidden(own, len(starts)),
            starts=starts,
        )

    def _rows(self, column: torch.Tensor, in_sequences: bool) -> torch.Tensor:
        """View of (N, T, ...) as rows: samples (N*T, ...) or sequences (N*T/L, L, ...)."""
        return column.reshape(-1, self.seq_length, *column.shape[2:]) if in_sequences else column.flatten(0, 1)

    def _row_hidden(self, hidden: torch.Tensor, num_rows: int) -> torch.Tensor:
        """State (rows, H) before each row; without a recurrent layer H is 0 and there are as many rows as samples."""
        return hidden.flatten(0, 1) if hidden.shape[-1] else hidden.new_zeros(num_rows, 0)


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


def permutation(num_rows: int, chunk: int, device: torch.device) -> torch.Tensor:
    """Random order of the rows in which `chunk` neighbours, a divisor of `num_rows`, stay together."""
    if chunk == 1:
        return torch.randperm(num_rows, device=device)
    first = chunk * torch.randperm(num_rows // chunk, device=device)
    return (first[:, None] + torch.arange(chunk, device=device)).flatten()


def minibatch_sizes(num_rows: int, requested: int) -> list[int]:
    """Sizes of the fewest minibatches of at most `requested` rows; they differ by at most one row."""
    return even_sizes(num_rows, -(-num_rows // max(1, requested)))


def even_sizes(total: int, count: int) -> list[int]:
    """`total` divided into `count` parts that differ by at most one, larger ones first."""
    small, larger = divmod(total, count)
    return [small + 1] * larger + [small] * (count - larger)
