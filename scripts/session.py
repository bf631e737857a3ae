"""Builds what a run consists of from its config: the task, the trainer, the loggers."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig

from gymscale.scripts import devices, task_settings
from gymscale.scripts.config import UsageError, to_plain
from gymscale.scripts.seeding import seed_everything
from isaacgym.engine.asset import AssetError
from isaacgym.engine.runtime import RuntimeUnavailableError
from ppo import checkpoint
from ppo.checkpoint import CheckpointError
from ppo.config import ConfigError, TrainConfig
from ppo.distributed import World
from ppo.loggers import Logger, LoggerGroup
from ppo.trainer import Trainer
from tasks import registry
from tasks.base.errors import TaskError
from tasks.registry import UnknownTaskError

INPUT_ERRORS = (
    AssetError,
    CheckpointError,
    ConfigError,
    FileNotFoundError,
    NotImplementedError,
    RuntimeUnavailableError,
    TaskError,
    UnknownTaskError,
)
"""What building a run may raise because of its input; anything else is a fault of the program."""


class RunLoggers:
    """A logger whose sinks are opened late: once the run folder and the run's id are known."""

    def __init__(self) -> None:
        self._group = LoggerGroup([])

    def open(self, sinks: Sequence[Logger]) -> None:
        """Forward to these sinks from now on."""
        self._group = LoggerGroup(sinks)

    def log(self, metrics: dict[str, float], step: int) -> None:
        """Record metrics at `step` in every sink that still works."""
        self._group.log(metrics, step)

    def close(self) -> None:
        """Close the sinks."""
        self._group.close()


@dataclass
class Session:
    """One task with one trainer.

    Attributes:
        seed: The seed that was used (a drawn one for seed=-1).
        env: The task.
        trainer: The learner; restored when the config names a checkpoint.
        loggers: Where the trainer's metrics go; opened by the caller.
        world: The processes of the job, this one included.
    """

    seed: int
    env: Any
    trainer: Trainer
    loggers: RunLoggers
    world: World

    def close(self) -> None:
        """Close the loggers and the simulation and leave the job."""
        self.loggers.close()
        close_env(self.env)
        self.world.leave()


def open_session(cfg: DictConfig) -> Session:
    """Build the task and the trainer and restore the checkpoint; writes nothing.

    Raises:
        UsageError: An asset, the checkpoint or a setting cannot be used.
    """
    with input_errors_as_usage_errors():
        world = World.join(str(cfg.rl_device)) if cfg.multi_gpu else World()
        seed = seed_everything(int(cfg.seed), bool(cfg.torch_deterministic), world.rank)
        saved = checkpoint.read(checkpoint_path(cfg)) if cfg.checkpoint else None
        env = build_env(cfg)
        if saved is not None:
            checkpoint.check_signature(saved["env_signature"], env.signature())
        loggers = RunLoggers()
        trainer = build_trainer(cfg, env, seed, loggers, world)
        if not cfg.test:
            trainer.config.sapg.check(env.num_envs)
        if saved is not None:
            trainer.restore(checkpoint_path(cfg), load_optimizer=not cfg.test)
    return Session(seed, env, trainer, loggers, world)


@contextlib.contextmanager
def input_errors_as_usage_errors() -> Any:
    """Turn errors that come from a user's input into `UsageError`, with a message of one line."""
    try:
        yield
    except INPUT_ERRORS as error:
        raise UsageError(" ".join(str(error).split())) from error


def build_env(cfg: DictConfig) -> Any:
    """Build the task that the config names, with its scene."""
    return registry.get(str(cfg.task_name))(**task_settings.arguments(cfg))


def close_env(env: Any) -> None:
    """Destroy the simulation of a task, if it has one."""
    if hasattr(env, "gym"):
        env.gym.destroy_sim(env.sim)


def build_trainer(cfg: DictConfig, env: Any, seed: int, loggers: RunLoggers, world: World | None = None) -> Trainer:
    """Build the learner for a task; it has no run folder yet."""
    return Trainer(
        env=env,
        config=TrainConfig.from_tree(to_plain(cfg.train)),
        device=str(cfg.rl_device),
        run_dir=None,
        loggers=[loggers],
        seed=seed,
        full_config=to_plain(cfg),
        world=world,
    )


def checkpoint_path(cfg: DictConfig) -> Path:
    """Return the absolute path of the checkpoint that the config names."""
    return Path(str(cfg.checkpoint)).expanduser().resolve()


def describe(cfg: DictConfig, session: Session) -> list[str]:
    """Return the lines printed at the start: versions, devices, sizes as they were chosen."""
    versions = [f"{name} {metadata.version(name)}" for name in ("gymscale", "torch", "ovphysx")]
    used = session.trainer.describe()
    count, reason = devices.cuda_reason()
    on_cpu = [] if count else [f"{reason}: everything runs on the CPU"]
    size = session.world.size
    processes = f"in each of {size} processes " if size > 1 else ""
    batch = f"{processes}{session.env.num_envs} envs x {session.trainer.config.horizon_length} steps = {used['batch']}"
    leader = f" and {used['relabelled']} relabelled for the leader" if used["relabelled"] else ""
    shared = f"{leader} of {used['blocks']} blocks" if used["blocks"] > 1 else ""
    return [
        f"{', '.join(versions)}, Python {platform.python_version()}",
        f"task {cfg.task_name}, physics on {device_name(cfg.sim_device)}, learner on {device_name(cfg.rl_device)}, "
        f"seed {session.seed}",
        *on_cpu,
        f"batch {batch} samples{shared}, {used['mini_epochs']} epochs of {used['minibatches']} x "
        f"{used['minibatch_size']} samples, {used['parameters']} parameters",
    ]


def device_name(device: str) -> str:
    """Return a device with the card's name or the number of threads torch uses."""
    if device == "cpu":
        threads = torch.get_num_threads()
        return f"cpu ({threads} torch thread{'s' if threads > 1 else ''})"
    return f"{device} ({torch.cuda.get_device_name(device)})"  # pragma: needs cuda
