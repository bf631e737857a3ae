"""A task as a `gymnasium.vector.VectorEnv`, for learners that speak Gymnasium."""

from __future__ import annotations

import contextlib
from importlib import metadata
from typing import Any, Dict, Iterator, Tuple, Union

from isaacgym import gymapi as _gymapi  # isort: skip  # noqa: F401 - wants to be imported before torch
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from torch import Tensor

from tasks.base.errors import TaskError
from tasks.base.vec_task import VecTask

Array = Union[np.ndarray, Tensor]
StepResult = Tuple[Array, Array, Array, Array, Dict[str, Any]]

SETTINGS_GROUP = "gymscale.task_settings"
"""Entry-point group of the function that reads the config files; it is no part of the tasks."""

ARRAYS = ("numpy", "torch")


class GymnasiumEnv(VectorEnv):
    """N copies of a task behind Gymnasium's interface for vectors of environments.

    Resets are deferred as in `VecTask`, which is Gymnasium's next-step autoreset: the observation that comes with a
    termination or truncation is the last one of the episode; the next step ignores that env's action, returns the
    first observation of its new episode and a reward of 0.

    `info` of a step holds `final_obs` (N, O) with the mask `_final_obs` (N,) of its valid rows, which are rows of the
    observation; `states` (N, S) for tasks with privileged states; and the task's `measures`, named (N,) values of the
    running episodes.
    """

    def __init__(self, task: VecTask, arrays: str = "numpy") -> None:
        """Take over a task.

        Args:
            task: the task; `close` destroys its simulation.
            arrays: "numpy", or "torch" for tensors on `task.device`, which then never leave it.
        """
        if arrays not in ARRAYS:
            raise TaskError(f"arrays is {arrays!r}; allowed are {', '.join(ARRAYS)}")
        self.task = task
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self.num_envs = task.num_envs
        self.single_observation_space = task.observation_space
        self.single_action_space = task.action_space
        self.single_state_space = task.state_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._as_torch = arrays == "torch"
        self._stream: RandomStream | None = None
        self._needs_reset = True
        self._ended = torch.ones(self.num_envs, dtype=torch.bool, device=task.device)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Start a new episode in every env; what is learnt over episodes, such as a terrain curriculum, is kept.

        Args:
            seed: gives this env a stream of random numbers of its own: start states, goals, noise and randomised
                properties repeat with it, whatever else draws from torch's generators. None goes on with the present
                stream, at first torch's global one. Terrain and the properties drawn at the start stay as they are.
            options: not supported.

        Returns:
            The first observations (N, O) and `info` with `states` if there are any. Forces and contacts that a task
            observes are those of the simulation step before the start.
        """
        if options:
            raise NotImplementedError(
                f"reset: options are not supported, got {sorted(options)}; reset() is of all envs"
            )
        super().reset(seed=seed)
        if seed is not None:
            self._stream = RandomStream(seed, self.task.pipeline_device)
            if self.task.randomizer is not None:
                self.task.randomizer.rng = np.random.default_rng(seed)
        self.task.episodes.drop(torch.ones_like(self.task.timeout_buf))
        self.task.reset_buf.fill_(1)
        self._ended.fill_(True)
        self._needs_reset = False
        observations, _, _, _, info = self.step(self.task.zero_actions())
        return observations, {name: value for name, value in info.items() if name == "states"}

    def step(self, actions: Array) -> StepResult:
        """Apply actions (N, A) in [-1, 1] for one control step.

        Returns:
            Observations (N, O), rewards (N,), terminations (N,) and truncations (N,) bool, and `info`. An episode cut
            by the time limit is truncated, even if it would have ended in that step anyway.

        Raises:
            RuntimeError: before the first `reset`.
            ValueError: actions of another shape.
        """
        if self._needs_reset:
            raise RuntimeError("step: call reset() first")
        applied = torch.as_tensor(actions, dtype=torch.float32, device=self.task.device)
        if applied.shape != self.action_space.shape:
            raise ValueError(f"step: actions have shape {tuple(applied.shape)}, expected {self.action_space.shape}")
        with self._stream.taken() if self._stream is not None else contextlib.nullcontext():
            output, reward, done, extras = self.task.step(applied)
        ended, truncated = done != 0, extras["time_outs"].clone()
        rewards = reward.masked_fill(self._ended, 0.0)
        self._ended = ended
        observations = self._array(output["obs"])
        info: dict[str, Any] = {"final_obs": observations, "_final_obs": self._array(ended)}
        if "states" in output:
            info["states"] = self._array(output["states"])
        info["measures"] = {name: self._array(value) for name, value in extras["measures"].items()}
        return observations, self._array(rewards), self._array(ended & ~truncated), self._array(truncated), info

    def _array(self, values: Tensor) -> Array:
        return values if self._as_torch else values.cpu().numpy()

    def close_extras(self, **_: Any) -> None:
        """Destroy the simulation."""
        self.task.close()


class RandomStream:
    """Random numbers of torch that repeat with a seed, apart from its global generators."""

    def __init__(self, seed: int, device: str) -> None:
        """Start a stream for draws on the CPU and on `device`."""
        self._cuda = [torch.device(device)] if device != "cpu" else []
        with torch.random.fork_rng(self._cuda):
            torch.manual_seed(seed)
            self._states = self._read()

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Let torch draw from this stream inside the block."""
        before = self._read()
        self._write(self._states)
        try:
            yield
        finally:
            self._states = self._read()
            self._write(before)

    def _read(self) -> list[Tensor]:
        return [torch.get_rng_state(), *(torch.cuda.get_rng_state(device) for device in self._cuda)]

    def _write(self, states: list[Tensor]) -> None:
        torch.set_rng_state(states[0])
        for device, state in zip(self._cuda, states[1:]):  # pragma: needs cuda
            torch.cuda.set_rng_state(state, device)


def read_settings() -> Any:
    """Find the function (task, num_envs, sim_device, rl_device, overrides) -> arguments of the task's class."""
    found = metadata.entry_points()
    group: Any = found.select(group=SETTINGS_GROUP) if hasattr(found, "select") else found.get(SETTINGS_GROUP, ())
    for entry in group:
        return entry.load()
    raise TaskError(
        "tasks.make finds no config files: install gymscale (again: pip install -e .), or pass a task that you "
        "built from a config of your own to tasks.gymnasium_env.GymnasiumEnv"
    )
