"""One training run through rl-games (train.algo=rl_games): same task, same config, same run folder and metrics."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import torch
from omegaconf import DictConfig

from gymscale.scripts import display, rl_games_bridge, run_folder
from gymscale.scripts.config import UsageError, to_plain
from gymscale.scripts.output import QuietOutput
from gymscale.scripts.seeding import seed_everything
from gymscale.scripts.session import (
    build_env,
    checkpoint_path,
    close_env,
    device_name,
    input_errors_as_usage_errors,
)
from gymscale.scripts.signals import StopSignals
from ppo.config import TrainConfig
from ppo.loggers import CsvLogger, Logger, LoggerGroup, TensorBoardLogger

METRICS = {
    "info/kl": "kl",
    "info/last_lr": "lr",
    "losses/a_loss": "policy_loss",
    "losses/c_loss": "value_loss",
    "losses/entropy": "entropy",
}
"""rl-games' names of what it logs, and ours."""


class _Stopped(Exception):  # noqa: N818 - not an error
    """The run was asked to stop."""


def train(cfg: DictConfig, run_dir_is_chosen: bool) -> int:
    """Train as the config says.

    Args:
        cfg: A config from `config.load`.
        run_dir_is_chosen: The user named the run folder, so that an existing one is used.

    Returns:
        0, or 130 or 143 after a signal.

    Raises:
        UsageError: rl-games is not installed, or something the config names cannot be used; nothing was written.
    """
    rl_games_bridge.require_installed()
    _refuse_unsupported(cfg)
    with StopSignals() as signals, QuietOutput() as output:
        with input_errors_as_usage_errors():
            if cfg.checkpoint:
                from gymscale.scripts import rl_games_checkpoint

                rl_games_checkpoint.read(checkpoint_path(cfg))
            seed = seed_everything(int(cfg.seed), bool(cfg.torch_deterministic))
            rl_games_bridge.refuse_extensions(TrainConfig.from_tree(to_plain(cfg.train)))
            params = rl_games_bridge.translate(to_plain(cfg.train)["params"], int(cfg.num_envs), str(cfg.rl_device))
            env = build_env(cfg)
        folder = run_folder.create(Path(str(cfg.hydra.run.dir)), run_dir_is_chosen)
        output.move_to(folder / "events.log")
        run_folder.write_config(folder, cfg)
        settings = params["config"]
        params["seed"] = seed
        settings |= {"train_dir": str(folder.parent), "full_experiment_name": folder.name, "print_stats": False}
        batch = env.num_envs * settings["horizon_length"]
        print(
            f"rl-games trains {cfg.task_name}, physics on {device_name(cfg.sim_device)}, learner on "
            f"{device_name(cfg.rl_device)}, seed {seed}\nbatch {batch} samples, {settings['mini_epochs']} epochs of "
            f"{batch // settings['minibatch_size']} x {settings['minibatch_size']} samples\nrun folder {folder}"
        )
        sinks: list[Logger] = [CsvLogger(folder / "metrics.csv"), TensorBoardLogger(folder / "summaries")]
        observer = Observer([*sinks, display.progress(str(cfg.task_name), settings["max_epochs"])], sys.stdout)
        signals.ask(observer.request_stop)
        with contextlib.redirect_stdout(output):
            agent = rl_games_bridge.build_agent(params, env, settings["horizon_length"], observer)
            if cfg.checkpoint:
                agent.restore(str(checkpoint_path(cfg)))
            with contextlib.suppress(_Stopped):
                agent.train()
            signals.ask(None)
            agent.save(str(folder / "nn" / "last"))
        observer.close()
        close_env(env)
        print(
            f"stopped by {observer.stop_reason or 'its limits'} after iteration {agent.epoch_num}, frame "
            f"{agent.frame}: reward {observer.reward_mean:.2f}; checkpoint of rl-games {folder / 'nn' / 'last.pth'}"
        )
        return signals.exit_code


def _refuse_unsupported(cfg: DictConfig) -> None:
    """Refuse what only our learner does."""
    if cfg.multi_gpu:
        raise UsageError("train.algo=rl_games trains in one process: leave out multi_gpu=True and torchrun")
    if cfg.wandb_activate:
        raise UsageError("train.algo=rl_games writes metrics.csv and TensorBoard only: leave out wandb_activate=True")


class Observer:
    """What rl-games tells of its progress, turned into our metrics; ends the run when asked to."""

    def __init__(self, sinks: Sequence[Logger], stdout: TextIO) -> None:
        """Log to `sinks`, which print to `stdout` while rl-games' own prints go elsewhere."""
        self.stop_reason: str | None = None
        self.reward_mean = float("nan")
        self._loggers = LoggerGroup(sinks)
        self._stdout = stdout
        self._tap = _WriterTap()
        self._agent: Any = None
        self._wall_time = 0.0
        self._start = self._rollout_end = 0.0

    def request_stop(self, reason: str) -> None:
        """Ask to stop after the current iteration; safe to call from a signal handler."""
        self.stop_reason = reason

    def close(self) -> None:
        """Close the sinks."""
        with contextlib.redirect_stdout(self._stdout):
            self._loggers.close()

    # ---- what rl-games calls

    def before_init(self, *_: Any) -> None:
        """Know nothing yet."""

    def after_init(self, agent: Any) -> None:
        """Listen to what the agent logs, and to the start of its iterations."""
        self._agent = agent
        self._tap.writer, agent.writer = agent.writer, self._tap
        agent.vec_env.on_iteration = self._begin

    def process_infos(self, *_: Any) -> None:
        """Leave the infos to the environment adapter."""

    def after_clear_stats(self) -> None:
        """Keep our statistics."""

    def after_steps(self) -> None:
        """Note the end of the rollout."""
        self._rollout_end = self._now()

    def after_print_stats(self, *_: Any) -> None:
        """Log one iteration.

        Raises:
            _Stopped: It was the last one.
        """
        agent, env = self._agent, self._agent.vec_env
        seconds = self._now() - self._start
        self._wall_time += seconds
        frames = agent.batch_size
        episodes = env.episode_summary()
        self.reward_mean = episodes["reward_mean"]
        metrics = {
            "iteration": agent.epoch_num,
            "frame": agent.frame,
            "wall_time_s": self._wall_time,
            **episodes,
            "fps_step": frames / max(env.step_watch.pop(), 1e-9),
            "fps_step_inference": frames / (self._rollout_end - self._start),
            "fps_total": frames / seconds,
            **{ours: self._tap.last[theirs] for theirs, ours in METRICS.items() if theirs in self._tap.last},
        }
        with contextlib.redirect_stdout(self._stdout):
            self._loggers.log(metrics, agent.frame)
        if self.stop_reason is not None:
            raise _Stopped

    def _begin(self) -> None:
        self._start = self._now()

    def _now(self) -> float:
        if self._agent.device != "cpu":  # pragma: needs cuda
            torch.cuda.synchronize(self._agent.device)
        return time.perf_counter()


class _WriterTap:
    """Stands in for rl-games' TensorBoard writer and remembers the last value of everything."""

    def __init__(self) -> None:
        self.writer: Any = None
        self.last: dict[str, float] = {}

    def add_scalar(self, name: str, value: Any, step: Any) -> None:
        """Pass a value on."""
        self.last[name] = float(value)
        self.writer.add_scalar(name, value, step)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.writer, name)
