"""One training run in this process: session, run folder, loggers, signals, exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from omegaconf import DictConfig

from gymscale.scripts import display, run_folder, scaled
from gymscale.scripts.output import QuietOutput
from gymscale.scripts.session import Session, checkpoint_path, describe, open_session
from gymscale.scripts.signals import StopSignals
from ppo.config import minibatch_samples
from ppo.loggers import CsvLogger, Logger, TensorBoardLogger, WandbLogger
from ppo.trainer import TrainResult

LOG_TAIL = 20
"""Lines of the native log shown after a crash."""


def train(cfg: DictConfig, run_dir_is_chosen: bool) -> int:
    """Train as the config says.

    Args:
        cfg: A config from `config.load`.
        run_dir_is_chosen: The user named the run folder, so that an existing one is continued.

    Returns:
        0, or 130 or 143 after a signal.

    Raises:
        UsageError: Something the config names cannot be used; nothing was written.
    """
    with StopSignals() as signals, QuietOutput() as output:
        session = open_session(cfg)
        folder = _open_folder(cfg, session, output, run_dir_is_chosen)
        with _reported_crash(session, folder, output):
            signals.ask(session.trainer.request_stop)
            result = session.trainer.train()
            signals.ask(None)
        session.close()
        if session.world.rank == 0:
            _print_result(result, folder)
        return signals.exit_code


def _open_folder(cfg: DictConfig, session: Session, output: QuietOutput, run_dir_is_chosen: bool) -> Path:
    """Make the run folder, which the first process of a job shares with the others and alone writes results to."""
    world = session.world
    folder = run_folder.create(Path(str(cfg.hydra.run.dir)), run_dir_is_chosen) if world.rank == 0 else None
    folder = world.share(folder)
    if world.rank > 0:
        output.move_to(folder / f"events_{world.rank}.log")
        return folder
    output.move_to(folder / "events.log")
    cfg.seed = session.seed
    run_folder.write_config(folder, cfg)
    moved = run_folder.rewind(folder, session.trainer.epoch, checkpoint_path(cfg)) if cfg.checkpoint else []
    for line in [*describe(cfg, session), *_notes(cfg, session), f"run folder {folder}", *moved]:
        print(line)
    session.trainer.run_dir = folder
    session.loggers.open(_sinks(cfg, session, folder))
    return folder


def _notes(cfg: DictConfig, session: Session) -> list[str]:
    """Return a line for each thing that may not be what the user expects."""
    trainer, lines = session.trainer, scaled.describe(cfg)
    used, asked = trainer.describe()["minibatch_size"], minibatch_samples(trainer.config, session.env.num_envs)
    if used != asked:
        lines.append(f"minibatch_size {asked} was asked for; minibatches of this batch have {used} samples")
    if trainer.epoch > 0:
        complete = 0 < trainer.config.max_epochs <= trainer.epoch
        hint = "; that is max_iterations: raise it to train on" if complete else ""
        lines.append(f"continuing after iteration {trainer.epoch}, frame {trainer.frame}{hint}")
    if not cfg.headless:
        lines.append("headless=False: there is no viewer; training goes on without one")
    return lines


def _sinks(cfg: DictConfig, session: Session, folder: Path) -> list[Logger]:
    """Open everything that records metrics, the progress display last."""
    sinks: list[Logger] = [CsvLogger(folder / "metrics.csv"), TensorBoardLogger(folder / "summaries")]
    if cfg.wandb_activate:
        sinks.append(
            WandbLogger(
                folder,
                session.trainer.full_config,
                session.trainer.run_id,
                project=cfg.wandb_project,
                entity=cfg.wandb_entity or None,
                group=cfg.wandb_group or None,
                name=cfg.wandb_name or folder.name,
                tags=list(cfg.wandb_tags),
            )
        )
    return [*sinks, display.progress(str(cfg.task_name), session.trainer.config.max_epochs)]


@contextmanager
def _reported_crash(session: Session, folder: Path, output: QuietOutput) -> Iterator[None]:
    """After a crash say where the run stood and what is left of it, then let the exception go on."""
    try:
        yield
    except Exception:
        session.loggers.close()
        trainer = session.trainer
        last = folder / "nn" / "last.pth"
        print(
            f"error: training stopped in iteration {trainer.epoch + 1} (frame {trainer.frame}, "
            f"{session.env.num_envs} envs); last checkpoint: {last if last.exists() else 'none'}\n"
            f"end of {folder / 'events.log'}:\n{output.tail(LOG_TAIL)}",
            file=sys.stderr,
        )
        raise


def _print_result(result: TrainResult, folder: Path) -> None:
    """Say how training ended and where its last checkpoint is."""
    print(
        f"stopped by {result.stop_reason} after iteration {result.epochs}, frame {result.frames}: "
        f"reward {result.reward_mean:.2f}; checkpoint {folder / 'nn' / 'last.pth'}"
    )
