"""The measurements behind benchmark.py."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from omegaconf import DictConfig

from gymscale.scripts.output import QuietOutput
from gymscale.scripts.seeding import seed_everything
from gymscale.scripts.session import RunLoggers, build_trainer, input_errors_as_usage_errors, open_session
from gymscale.scripts.synthetic import SIZES, SyntheticEnv
from isaacgym import gymtorch
from ppo.trainer import Trainer

WARM_UP = 2
"""Iterations at the start that do not count: building, caches, compilation."""


class Sampler:
    """A logger that collects the trainer's speeds and, between iterations, measures the simulation alone.

    The trainer stops its clock before it logs, so these measurements do not count as training time, and all kinds of
    speed are taken in turn: what the machine does besides affects them alike.
    """

    def __init__(self, between: dict[str, Callable[[], float]]) -> None:
        self._between = between
        self.samples: dict[str, list[float]] = {}

    def log(self, metrics: dict[str, float], step: int) -> None:
        """Take one sample of every kind."""
        del step
        speeds = {name: metrics[f"fps_{name}"] for name in ("step", "step_inference", "total")}
        speeds |= {name: measure() for name, measure in self._between.items()}
        if metrics["iteration"] > WARM_UP:
            for name, speed in speeds.items():
                self.samples.setdefault(name, []).append(speed)

    def close(self) -> None:
        """Nothing is held open."""

    def median(self, name: str) -> float:
        """Return the median speed of one kind in env steps a second."""
        return statistics.median(self.samples[name])


class SceneSpeed:
    """Times a task's scene without the task: physics alone, and with the reads and the write of an Ant."""

    def __init__(self, env: Any, steps: int) -> None:
        """Measure over `steps` control steps at a time."""
        self._env, self._gym, self._sim = env, env.gym, env.sim
        self._steps = steps
        num_dofs = self._gym.get_sim_dof_count(self._sim)
        self._torques = gymtorch.unwrap_tensor(torch.zeros(num_dofs, device=env.pipeline_device))

    def raw(self) -> float:
        """Return env steps a second of simulation alone."""
        return self._timed(self._step_physics)

    def api(self) -> float:
        """Return env steps a second with one torque write and the refreshes of root, DOF, sensors and DOF forces."""
        return self._timed(self._simulate_and_exchange)

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

    def _timed(self, step: Callable[[], None]) -> float:
        _wait(self._env.pipeline_device)
        start = time.perf_counter()
        for _ in range(self._steps):
            step()
        _wait(self._env.pipeline_device)
        return self._env.num_envs * self._steps / (time.perf_counter() - start)


def measure_task(cfg: DictConfig, iterations: int) -> dict[str, Any]:
    """Train a task for a few iterations and return one row: speeds in env steps a second, ratios, memory."""
    cfg.train.params.config.max_epochs = WARM_UP + iterations
    with QuietOutput():
        start = time.perf_counter()
        session = open_session(cfg)
        build_seconds = time.perf_counter() - start
        scene = SceneSpeed(session.env, session.trainer.config.horizon_length)
        sampler = Sampler({"raw": scene.raw, "api": scene.api})
        session.loggers.open([sampler])
        session.trainer.train()
        session.close()
    speeds = {name: sampler.median(name) for name in ("raw", "api", "step", "step_inference", "total")}
    return {
        "task": str(cfg.task_name),
        "num_envs": int(cfg.num_envs),
        "device": str(cfg.sim_device),
        **speeds,
        **{f"{name}/raw": speeds[name] / speeds["raw"] for name in ("api", "step", "total")},
        "build_s": build_seconds,
        "peak_MiB": _peak_memory(str(cfg.sim_device)),
    }


def measure_learner(cfg: DictConfig, iterations: int, size: str) -> dict[str, Any]:
    """Train our learner on a synthetic environment of a task's sizes and return one row."""
    cfg.train.params.config.max_epochs = WARM_UP + iterations
    with QuietOutput(), input_errors_as_usage_errors():
        seed = seed_everything(int(cfg.seed), bool(cfg.torch_deterministic))
        env = SyntheticEnv(int(cfg.num_envs), *SIZES[size], device=str(cfg.rl_device))
        loggers = RunLoggers()
        trainer: Trainer = build_trainer(cfg, env, seed, loggers)
        sampler = Sampler({})
        loggers.open([sampler])
        trainer.train()
    return {
        "learner": "ours",
        "size": size,
        "num_envs": int(cfg.num_envs),
        "device": str(cfg.rl_device),
        **{name: sampler.median(name) for name in ("step_inference", "total")},
        "peak_MiB": _peak_memory(str(cfg.rl_device)),
    }


def _peak_memory(device: str) -> int:
    """Return the largest memory use so far in MiB: of the process on the CPU, of torch on a GPU."""
    if device == "cpu":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return torch.cuda.max_memory_allocated() // 2**20  # pragma: needs cuda


def _wait(device: str) -> None:
    """Wait until the device has done all that was asked of it."""
    if device != "cpu":  # pragma: needs cuda
        torch.cuda.synchronize(device)
