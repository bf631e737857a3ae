"""The environment protocol: all that the learner knows of a simulator or a task."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import torch

Observation = dict[str, torch.Tensor]
"""`"obs"` (N, num_observations) float32 and, for an asymmetric critic, `"states"` (N, num_states) float32."""


class Box(Protocol):
    """The part of `gymnasium.spaces.Box` that the learner reads."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample, without the environment dimension."""

    @property
    def low(self) -> Any:
        """Lower bounds, same shape."""

    @property
    def high(self) -> Any:
        """Upper bounds, same shape."""


@runtime_checkable
class VectorEnv(Protocol):
    """N environments stepped together; every tensor lives on `device`.

    The learner copies what it keeps, so an environment may return live buffers.
    """

    @property
    def num_envs(self) -> int:
        """N."""

    @property
    def device(self) -> str:
        """Device of observations, rewards and actions."""

    @property
    def observation_space(self) -> Box:
        """Box of shape (num_observations,)."""

    @property
    def action_space(self) -> Box:
        """Box of shape (num_actions,)."""

    @property
    def state_space(self) -> Box | None:
        """Box of shape (num_states,), or None when the task has no privileged states."""

    def reset(self) -> Observation:
        """Return the first observation. Called once, before the first step."""

    def step(self, actions: torch.Tensor) -> tuple[Observation, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Apply actions (N, A) and return (obs, reward (N,), done (N,), info).

        `info` may hold `"time_outs"` (N,): episodes cut by the time limit, and `"episode"`: a dict of 0-dim
        tensors or floats that are averaged and logged; returning the same dict object again adds nothing. Play
        reads `"measures"`: a dict of named (N,) tensors that describe the episodes which end where done is set.
        """

    def signature(self) -> dict[str, Any]:
        """Plain-typed identity of the task (name, sizes, DOF names); a checkpoint must match it."""

    def get_state(self) -> dict[str, Any]:
        """Everything that a bit-exact resume needs, as tensors and plain types."""

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned; its tensors may be on the CPU.

        Also called on the running environment at every checkpoint, with its own state.
        """
