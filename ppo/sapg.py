"""SAPG: blocks of environments explore differently, and the last one, the leader, learns from all of them.

Singla, Agarwal, Pathak 2024, "SAPG: Split and Aggregate Policy Gradients" (arXiv 2407.20230). All blocks share one
actor-critic that sees a learned vector of the block beside the observation. Each iteration the data of one follower,
drawn at random, is added to the batch a second time as if the leader had collected it: under the leader's vector, with
the leader's values and one-step targets, but with the follower's log-probabilities, so that PPO's ratio is the
importance weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from ppo.checkpoint import CheckpointError
from ppo.diagnostics import EpisodeTracker
from ppo.distributed import World
from ppo.networks import block_ids
from ppo.rollout import RolloutBuffer, even_sizes

if TYPE_CHECKING:
    from ppo.collector import Collector
    from ppo.config import TrainConfig

FIRST_ENTROPY = 0.5
"""Entropy coefficient of the first block, before it is multiplied by `entropy_scale`."""


class Blocks:
    """Which environment is in which block: contiguous groups whose sizes differ by at most one, larger ones first."""

    def __init__(self, num_envs: int, count: int, relabel: bool, device: torch.device | str = "cpu") -> None:
        """Divide `num_envs` environments into `count` blocks, the last of which leads."""
        self.num_envs, self.count = num_envs, count
        self.leader = count - 1
        sizes = even_sizes(num_envs, count)
        bounds = [0]
        for size_of_block in sizes:
            bounds.append(bounds[-1] + size_of_block)
        self.envs = [slice(start, stop) for start, stop in zip(bounds[:-1], bounds[1:], strict=True)]
        """environments of each block"""
        self.num_relabelled = sizes[-1] if relabel and count > 1 else 0
        """environments whose data the leader gets: of a larger block all but the last"""
        numbers = torch.arange(count, dtype=torch.float32).repeat_interleave(torch.tensor(sizes))
        self.ids = numbers.unsqueeze(1).to(device)
        """(N, 1) number of each environment's block"""


def entropy_ladder(count: int, scale: float) -> torch.Tensor:
    """Entropy coefficients (count,) of the blocks, from FIRST_ENTROPY * scale along a line to the leader's 0."""
    return scale * torch.linspace(FIRST_ENTROPY, 0.0, count) if count > 1 else torch.zeros(count)


class EntropyBonus:
    """Entropy that blocks are rewarded for, each with its own coefficient."""

    def __init__(self, coefficients: torch.Tensor) -> None:
        """Take one coefficient a block."""
        self._coefficients = coefficients

    def __call__(self, observations: torch.Tensor, entropy: torch.Tensor) -> torch.Tensor:
        """Bonus (...) of samples with observations (..., O + 1), block ids included; entropies broadcast to (...)."""
        return self._coefficients[block_ids(observations)] * entropy


def entropy_bonus(count: int, scale: float, device: torch.device) -> EntropyBonus | None:
    """The bonus of `count` blocks; None where all coefficients are 0."""
    return EntropyBonus(entropy_ladder(count, scale).to(device)) if count > 1 and scale > 0 else None


def shuffled_rows(config: TrainConfig, count: int, hidden_size: int) -> int:
    """Rows that stay together when `count` blocks are mixed; 0 if they are not.

    A recurrent network's rows are sequences of `seq_length` steps already. Without one a chunk is as many rows, or
    fewer if that does not divide the horizon, so that no chunk reaches into another environment.
    """
    if count <= 1 or not config.sapg.shuffle:
        return 0
    return 1 if hidden_size else math.gcd(config.seq_length, config.horizon_length)


def one_step_targets(
    rewards: torch.Tensor, dones: torch.Tensor, values: torch.Tensor, last_values: torch.Tensor, gamma: float
) -> torch.Tensor:
    """Targets r_t + gamma (1 - done_t) V(s_{t+1}) of (N, T) tensors; V(s_T) is `last_values` (N,)."""
    next_values = torch.cat((values[:, 1:], last_values.unsqueeze(1)), dim=1)
    return rewards + gamma * (1.0 - dones) * next_values


def draw_follower(blocks: Blocks, world: World) -> int:
    """A random follower, the same in all processes."""
    return int(world.share(int(torch.randint(blocks.leader, (1,)))))


@torch.no_grad()
def add_relabelled(collector: Collector, follower: int) -> RolloutBuffer:
    """Relabel the follower's part of the last rollout for the leader; returns the rollout with it at the end.

    Rewards are shaped and hold the time-limit bootstrap with the follower's own values. A recurrent network reads the
    follower's steps from the follower's state at the start of each training sequence, exactly as the update will.
    """
    blocks, storage = collector.blocks, collector.storage
    assert blocks is not None
    start = blocks.envs[follower].start
    envs = slice(start, start + blocks.num_relabelled)
    copies = storage.part(blocks.num_envs, blocks.num_envs + blocks.num_relabelled)
    copies.copy_(collector.buffer.part(envs.start, envs.stop))
    values, last_values = _leader_values(collector, copies, envs)
    gamma = collector.config.gamma
    copies.advantages.copy_(one_step_targets(copies.rewards, copies.dones, values, last_values, gamma)).sub_(values)
    copies.values.copy_(values)
    copies.label(float(blocks.leader))
    return storage


def _leader_values(collector: Collector, buffer: RolloutBuffer, envs: slice) -> tuple[torch.Tensor, torch.Tensor]:
    """The leader's V(s_t) (n, T) along a rollout of environments `envs`, and V(s_T) (n,), in real units."""
    agent = collector.agent
    assert collector.observation is not None
    values = torch.empty_like(buffer.values)
    hidden = buffer.hidden[:, 0]
    for t in range(values.shape[1]):
        if t % buffer.seq_length == 0:
            hidden = buffer.hidden[:, t // buffer.seq_length]
        observation = {"obs": buffer.observations[:, t, :-1], "states": buffer.states[:, t, :-1]}
        _, _, values[:, t], hidden = agent.evaluate(observation, hidden)
        hidden = hidden * (1.0 - buffer.dones[:, t, None])
    last = {name: tensor[envs] for name, tensor in collector.observation.items()}
    return values, agent.evaluate(last, collector.hidden[envs]).value


class BlockEpisodes:
    """Episodes of the leader under the usual names, and the mean return of every follower."""

    def __init__(self, blocks: Blocks, horizon: int, window: int, device: torch.device) -> None:
        """Follow all environments; each block keeps its last `window` finished episodes."""
        self._all = EpisodeTracker(blocks.num_envs, horizon, window, device)
        self._of_blocks = [self._all.part(envs) for envs in blocks.envs]

    def step(self, t: int, rewards: torch.Tensor, dones: torch.Tensor) -> None:
        """Account for step t of the horizon: unscaled rewards (N,), dones (N,)."""
        self._all.step(t, rewards, dones)

    def summary(self, world: World) -> dict[str, float]:
        """The leader's means; of follower b only `sapg/reward_mean_b`. Synchronises."""
        *followers, leader = [tracker.summary(world) for tracker in self._of_blocks]
        return leader | {f"sapg/reward_mean_{b}": summary["reward_mean"] for b, summary in enumerate(followers)}

    def state_dict(self) -> dict[str, Any]:
        """Episodes in flight and the windows."""
        *followers, leader = [tracker.finished for tracker in self._of_blocks]
        return {"running": self._all.running, "finished": leader, "finished_of_followers": followers}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore; episodes in flight only if the number of environments is the same."""
        windows = [*state.get("finished_of_followers", []), state["finished"]]
        for tracker, finished in zip(self._of_blocks[::-1], windows[::-1], strict=False):  # leaders meet
            tracker.finished = finished.to(tracker.finished)
        if state["running"].shape == self._all.running.shape:
            self._all.running.copy_(state["running"])


def check_fit(saved: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor]) -> None:
    """Compare the block vectors of a saved agent with those of the agent at hand.

    Raises:
        CheckpointError: if they are of another number or size, or only one of the two has any.
    """
    name = "network.blocks.vectors"
    shapes = [tuple(state[name].shape) if name in state else () for state in (saved, own)]
    if shapes[0] != shapes[1]:
        described = [f"{s[0]} SAPG blocks with vectors of {s[1]}" if s else "no SAPG block vectors" for s in shapes]
        wanted = shapes[0]
        advice = f"num_blocks={wanted[0]} train.sapg.conditioning_size={wanted[1]}" if wanted else "num_blocks=''"
        raise CheckpointError(
            f"the checkpoint has {described[0]}, these settings {described[1]}: set train.sapg.{advice}"
        )
