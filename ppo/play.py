"""Test mode: run a policy without learning."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ppo.agent import Agent
from ppo.env import VectorEnv


@torch.no_grad()
def play(
    agent: Agent,
    env: VectorEnv,
    to_env: Callable[[torch.Tensor], torch.Tensor],
    num_episodes: int,
    deterministic: bool,
) -> dict[str, float]:
    """Run until `num_episodes` have ended; `to_env` maps the policy's actions to the environment's.

    Every environment contributes its first episodes, so short ones are not counted more often than long ones.

    Returns:
        `episodes`, `reward_mean`, `reward_std`, `episode_length_mean` of raw returns, and under its own name the mean
        over the episodes of everything in the environment's `info["measures"]`.
    """
    num_envs = env.num_envs
    hidden = agent.initial_hidden(num_envs)
    wanted = num_episodes // num_envs + (torch.arange(num_envs, device=hidden.device) < num_episodes % num_envs).long()
    running = torch.zeros(2, num_envs, device=hidden.device)
    finished: list[torch.Tensor] = []
    measured: dict[str, list[torch.Tensor]] = {}
    observation = env.reset()
    while bool((wanted > 0).any()):
        action = agent.act(observation, hidden)
        observation, rewards, dones, info = env.step(to_env(action.means if deterministic else action.actions))
        done = dones.bool()
        running[0] += rewards
        running[1] += 1.0
        counted = done & (wanted > 0)
        finished.append(running[:, counted].clone())
        for name, values in info.get("measures", {}).items():
            measured.setdefault(name, []).append(values[counted].float())
        wanted -= counted.long()
        running *= ~done
        hidden = action.hidden * ~done[:, None]
    returns, lengths = torch.cat(finished, dim=1)
    return {
        "episodes": float(num_episodes),
        "reward_mean": returns.mean().item(),
        "reward_std": returns.std(correction=0).item(),
        "episode_length_mean": lengths.mean().item(),
        **{name: torch.cat(values).nanmean().item() for name, values in measured.items()},
    }
