"""Collects experience: steps the environments with the current policy and keeps what happened."""

from __future__ import annotations

import logging
from typing import Any

import torch

from ppo.agent import Agent
from ppo.compiled import compiled
from ppo.config import TrainConfig
from ppo.diagnostics import EpisodeTracker, MeanTracker, Stopwatch
from ppo.distributed import World
from ppo.env import Observation, VectorEnv
from ppo.rollout import RolloutBuffer, bootstrap_time_outs
from ppo.sapg import BlockEpisodes, Blocks

_log = logging.getLogger(__name__)


class Collector:
    """Owns the rollout buffer, the observation to act on next and the statistics of episodes."""

    def __init__(self, env: VectorEnv, agent: Agent, config: TrainConfig, device: torch.device, world: World) -> None:
        """Allocate storage for one rollout."""
        self.env = env
        self.agent = agent
        self._act = compiled(agent.act, config.torch_compile)
        self.config = config
        self.device = device
        self.blocks = Blocks(env.num_envs, agent.num_blocks, config.sapg.relabel, device) if agent.num_blocks else None
        self.storage = self._allocate(self.blocks.num_relabelled if self.blocks else 0)
        """the rollout, followed by room for relabelled environments"""
        self.buffer = self.storage.part(0, env.num_envs)
        window = -(-config.games_to_track // world.size)
        self.episodes: EpisodeTracker | BlockEpisodes
        if self.blocks is None:
            self.episodes = EpisodeTracker(env.num_envs, config.horizon_length, window, device)
        else:
            self.episodes = BlockEpisodes(self.blocks, config.horizon_length, window, device)
        self.infos = MeanTracker()
        self.step_watch, self.rollout_watch = Stopwatch(device), Stopwatch(device)
        low, high = (torch.as_tensor(bound, device=device) for bound in (env.action_space.low, env.action_space.high))
        self._action_scale, self._action_offset = (high - low) / 2.0, (high + low) / 2.0
        self.observation: Observation | None = None
        self.hidden = agent.initial_hidden(env.num_envs)

    def _allocate(self, extra_envs: int) -> RolloutBuffer:
        env, agent, config = self.env, self.agent, self.config
        ids = 1 if agent.num_blocks else 0
        states = env.state_space.shape[0] + ids if agent.central is not None and env.state_space is not None else 0
        return RolloutBuffer(
            env.num_envs + extra_envs,
            config.horizon_length,
            env.observation_space.shape[0] + ids,
            env.action_space.shape[0],
            self.device,
            num_states=states,
            hidden_size=agent.hidden_size,
            seq_length=config.seq_length if agent.hidden_size else 1,
        )

    @torch.no_grad()
    def collect(self) -> RolloutBuffer:
        """Fill the buffer with T steps of the current policy and compute advantages."""
        config, buffer = self.config, self.buffer
        if self.observation is None:
            self.observation = self.env.reset()
        ids = self.blocks.ids if self.blocks is not None else None
        if ids is not None:
            buffer.label(ids)
        with self.rollout_watch.measure():
            for t in range(config.horizon_length):
                action = self._act(self.observation, self.hidden, ids)
                buffer.store_observation(t, self.observation)
                buffer.store_action(t, action)
                buffer.store_hidden(t, self.hidden)
                with self.step_watch.measure():
                    self.observation, rewards, dones, info = self.env.step(self.to_env(action.actions))
                self.episodes.step(t, rewards, dones)
                self.infos.add(info.get("episode", {}))
                shaped = config.reward_shaper.apply(rewards)
                if config.value_bootstrap and "time_outs" in info:
                    shaped = bootstrap_time_outs(shaped, action.values, info["time_outs"], config.gamma)
                buffer.rewards[:, t] = shaped
                buffer.dones[:, t] = dones
                self.hidden = action.hidden * (1.0 - buffer.dones[:, t, None])
            last_values = self.agent.evaluate(self.observation, self.hidden, ids).value
        buffer.finish(last_values, config.gamma, config.tau)
        return buffer

    def to_env(self, actions: torch.Tensor) -> torch.Tensor:
        """Clip sampled actions to [-1, 1] and stretch them to the action space; raw without `clip_actions`."""
        if not self.config.clip_actions:
            return actions
        return actions.clamp(-1.0, 1.0) * self._action_scale + self._action_offset

    def state_dict(self) -> dict[str, Any]:
        """The state between two rollouts, without the environment's own."""
        return {
            "num_envs": self.env.num_envs,
            "observation": dict(self.observation or {}),
            "hidden": self.hidden,
            "episodes": self.episodes.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any], env_state: dict[str, Any] | None) -> None:
        """Restore; the environments go on where they were if their state is there and their number is the same."""
        self.episodes.load_state_dict(state["episodes"])
        if env_state is None or state["num_envs"] != self.env.num_envs:
            _log.warning("the checkpoint holds no state of %d environments; episodes start afresh", self.env.num_envs)
            return
        self.env.set_state(env_state)
        self.observation = {name: tensor.to(self.device) for name, tensor in state["observation"].items()}
        self.hidden = state["hidden"].to(self.device)
