"""The measurements behind benchmark.py."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from omegaconf import DictConfig, open_dict

from gymscale.scripts.memory import peak_memory
from gymscale.scripts.output import QuietOutput
from gymscale.scripts.session import RunLoggers, open_session
from isaacgym import gymtorch
from ppo.trainer import Trainer

WARM_UP = 2
"""Iterations at the start that do not count: building, caches, compilation."""


class Sampler:
    """A logger that collects the trainer's speeds and, between iterations, measures the simulation alone.

    The trainer stops its clock before it logs, so these measurements do not count as training time, and all kinds of
    speed are taken in turn: what the machine does besides affects them alike.
    """

    def __init__(self, iterations: int, measure: Callable[[], dict[str, float]] | None = None) -> None:
        """Prepare to sample.

        Args:
            iterations: Iterations that count, after WARM_UP others.
            measure: More measurements, to be made after each iteration.
        """
        self.samples: dict[str, list[float]] = {}
        self.request_stop: Callable[[str], None] | None = None
        """Called when enough has been sampled."""
        self._left = iterations
        self._to_skip = WARM_UP
        self._measure = measure

    def log(self, metrics: dict[str, float], step: int) -> None:
        """Take one sample of every kind."""
        del step
        sample = {name: metrics[f"fps_{name}"] for name in ("step", "step_inference", "total")}
        if self._measure is not None:
            sample |= self._measure()
        if self._to_skip > 0:
            self._to_skip -= 1
            return
        for name, value in sample.items():
            self.samples.setdefault(name, []).append(value)
        self._left -= 1
        if self._left == 0 and self.request_stop is not None:
            self.request_stop("enough samples")

    def close(self) -> None:
        """Nothing is held open."""

    def median(self, name: str) -> float:
        """Return the median of one kind."""
        return statistics.median(self.samples[name])

    def median_ratio(self, above: str, below: str) -> float:
        """Return the median of the ratios of two kinds, each taken within one iteration."""
        return statistics.median(a / b for a, b in zip(self.samples[above], self.samples[below], strict=True))


class Clock:
    """Adds up the time inside the calls of an object, and waits for their results on every device."""

    def __init__(self, target: Any, device: str) -> None:
        """Prepare to stand in for `target`, whose calls run on `device`."""
        self._target, self._device = target, device
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        """Return a method with a stopwatch around it, or any other attribute as it is."""
        attribute = getattr(self._target, name)
        return functools.partial(self._call, attribute) if callable(attribute) else attribute

    def _call(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return method(*args, **kwargs)
        finally:
            _wait(self._device)
            self.seconds += time.perf_counter() - start


class SceneSpeed:
    """Times a task's scene: physics alone, with the reads and the write of an Ant, and the parts of the task's step.

    Every measurement starts from the state that training has reached and puts it back, so that all speeds are of
    comparable scenes and training is not disturbed.
    """

    def __init__(self, env: Any, trainer: Trainer) -> None:
        """Measure the task `env` over the control steps of one rollout of its trainer at a time."""
        self._env, self._gym, self._sim = env, env.gym, env.sim
        self._collector, self._steps = trainer.collector, trainer.config.horizon_length
        num_dofs = self._gym.get_sim_dof_count(self._sim)
        self._torques = gymtorch.unwrap_tensor(torch.zeros(num_dofs, device=env.pipeline_device))

    def measure(self) -> dict[str, float]:
        """Return the speeds of the scene and the shares of a task's step."""
        raw, api = self.raw_and_api()
        return {"raw": raw, "api": api, **self.shares()}

    def raw_and_api(self) -> tuple[float, float]:
        """Return env steps a second of simulation alone, and with one torque write and the four refreshes of an Ant.

        The two take turns step by step: the scene and the machine change over a window, and so meet both alike.
        """
        raw, api = self._timed(self._step_physics, self._simulate_and_exchange)
        return raw, api

    def shares(self) -> dict[str, float]:
        """Return the parts of the task's step spent inside PhysX, in all else of the API, and in the task itself.

        The actions are those of the last rollout.
        """
        env, runtime, device = self._env, self._sim.runtime, self._env.pipeline_device
        physics, api = Clock(runtime, device), Clock(self._gym, device)
        actions = iter([self._collector.to_env(a) for a in self._collector.buffer.actions.unbind(1)])
        env.gym, self._sim.runtime = api, physics
        try:
            with torch.random.fork_rng():
                (speed,) = self._timed(lambda: env.step(next(actions)))
                seconds = env.num_envs * self._steps / speed
        finally:
            env.gym, self._sim.runtime = self._gym, runtime
        parts = {"physics": physics.seconds, "api": api.seconds - physics.seconds, "task": seconds - api.seconds}
        return {f"{name}_share": part / seconds for name, part in parts.items()}

    def _step_physics(self) -> None:
        params = self._sim.params
        substeps = max(1, params.substeps)
        for _ in range(self._env.control_freq_inv * substeps):
            self._sim.runtime.step(params.dt / substeps)

    def _simulate(self) -> None:
        for _ in range(self._env.control_freq_inv):
            self._gym.simulate(self._sim)

    def _simulate_and_exchange(self) -> None:
        gym, sim = self._gym, self._sim
        gym.set_dof_actuation_force_tensor(sim, self._torques)
        self._simulate()
        gym.refresh_dof_state_tensor(sim)
        gym.refresh_actor_root_state_tensor(sim)
        gym.refresh_force_sensor_tensor(sim)
        gym.refresh_dof_force_tensor(sim)

    def _timed(self, *steps: Callable[[], Any]) -> list[float]:
        """Return env steps a second of each of `steps`, which take turns."""
        state = self._env.get_state()
        seconds = [0.0] * len(steps)
        _wait(self._env.pipeline_device)
        for _ in range(self._steps):
            for i, step in enumerate(steps):
                start = time.perf_counter()
                step()
                _wait(self._env.pipeline_device)
                seconds[i] += time.perf_counter() - start
        self._env.set_state(state)
        return [self._env.num_envs * self._steps / s for s in seconds]


def measure_task(cfg: DictConfig, iterations: int) -> dict[str, Any]:
    """Train a task for a few iterations and return one row: speeds in env steps a second, ratios, memory."""
    with QuietOutput():
        start = time.perf_counter()
        session = open_session(_endless(cfg))
        build_seconds = time.perf_counter() - start
        scene = SceneSpeed(session.env, session.trainer)
        sampler = _sample(session.trainer, session.loggers, iterations, scene.measure)
        session.close()
    speeds = {name: sampler.median(name) for name in ("raw", "api", "step", "step_inference", "total")}
    return {
        "task": str(cfg.task_name),
        "num_envs": int(cfg.num_envs),
        "device": str(cfg.sim_device),
        **speeds,
        **{f"{name}/raw": sampler.median_ratio(name, "raw") for name in ("api", "step", "total")},
        **{name: sampler.median(name) for name in ("physics_share", "api_share", "task_share")},
        "build_s": build_seconds,
        "peak_MiB": peak_memory(str(cfg.sim_device)),
    }


def _endless(cfg: DictConfig) -> DictConfig:
    """Return the config without the limits that could end training before enough is measured."""
    with open_dict(cfg):
        cfg.train.params.config.max_epochs = -1
        cfg.train.params.config.score_to_win = float("inf")
    return cfg


def _sample(
    trainer: Trainer,
    loggers: RunLoggers,
    iterations: int,
    measure: Callable[[], dict[str, float]] | None = None,
) -> Sampler:
    """Train until enough iterations have been sampled."""
    sampler = Sampler(iterations, measure)
    sampler.request_stop = trainer.request_stop
    loggers.open([sampler])
    trainer.train()
    return sampler


def _wait(device: str) -> None:
    """Wait until the device has done all that was asked of it."""
    if device != "cpu":  # pragma: needs cuda
        torch.cuda.synchronize(device)
