"""Where metrics go: metrics.csv, TensorBoard, Weights & Biases. A failing logger never stops training."""

from __future__ import annotations

import csv
import logging
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

_log = logging.getLogger(__name__)


class Logger(Protocol):
    """A sink of metrics."""

    def log(self, metrics: dict[str, float], step: int) -> None:
        """Record metrics at `step`, the number of environment steps so far (strictly increasing)."""

    def close(self) -> None:
        """Flush and release."""


class LoggerGroup:
    """Forwards to several loggers; one that fails is reported once and left out from then on."""

    def __init__(self, loggers: Sequence[Logger]) -> None:
        """Take the sinks over."""
        self._loggers = list(loggers)

    def log(self, metrics: dict[str, float], step: int) -> None:
        """Record everywhere."""
        for logger in list(self._loggers):
            try:
                logger.log(metrics, step)
            except Exception as error:  # noqa: BLE001 - a full disk or a lost server must not end the run
                self._loggers.remove(logger)
                _log.warning("%s stopped: %s", type(logger).__name__, error)

    def close(self) -> None:
        """Close everywhere."""
        for logger in self._loggers:
            try:
                logger.close()
            except Exception as error:  # noqa: BLE001
                _log.warning("%s did not close: %s", type(logger).__name__, error)


class CsvLogger:
    """`metrics.csv`: one row an iteration, appended and flushed.

    A metric that first appears later adds a column: the file is then replaced once, atomically.
    """

    def __init__(self, path: Path) -> None:
        """Continue an existing file or start a new one."""
        self.path = path
        self._columns: list[str] = []
        if path.exists():
            with path.open(newline="") as file:
                self._columns = next(csv.reader(file), [])

    def log(self, metrics: dict[str, float], step: int) -> None:
        """Append one row; the column `frame` holds the step."""
        row = metrics if "frame" in metrics else {"frame": step, **metrics}
        new = [name for name in row if name not in self._columns]
        if new:
            self._add_columns(new)
        with self.path.open("a", newline="") as file:
            csv.DictWriter(file, self._columns).writerow(row)

    def close(self) -> None:
        """Nothing is held open."""

    def _add_columns(self, names: list[str]) -> None:
        rows: list[dict[str, Any]] = []
        if self._columns:
            with self.path.open(newline="") as file:
                rows = list(csv.DictReader(file))
        self._columns = self._columns + names
        temporary = self.path.with_suffix(".tmp")
        with temporary.open("w", newline="") as file:
            writer = csv.DictWriter(file, self._columns)
            writer.writeheader()
            writer.writerows(rows)
        os.replace(temporary, self.path)


class TensorBoardLogger:
    """Scalars for TensorBoard, over environment steps."""

    def __init__(self, folder: Path) -> None:
        """Open an event file in `folder`."""
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder))

    def log(self, metrics: dict[str, float], step: int) -> None:
        """Write the finite metrics."""
        for name, value in metrics.items():
            if math.isfinite(value):
                self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Flush the event file."""
        self._writer.close()


class WandbLogger:
    """Weights & Biases; without a login or a network the run is kept offline, without the package it is off."""

    def __init__(self, run_dir: Path, config: Mapping[str, Any], run_id: str, **options: Any) -> None:
        """Start or resume run `run_id`; `options` go to `wandb.init` (project, entity, group, name, tags)."""
        self._run: Any = None
        try:
            import wandb
        except ImportError as error:
            _log.warning("wandb is off: %s", error)
            return
        settings = wandb.Settings(login_timeout=15, init_timeout=30)
        options = {"dir": str(run_dir), "config": dict(config), "id": run_id, "settings": settings, **options}
        try:
            self._run = wandb.init(resume="allow", **options)
        except Exception as error:  # noqa: BLE001 - wandb raises many kinds; none may stop training
            _log.warning("wandb is offline, send the run later with `wandb sync`: %s", _first_line(error))
            self._start_offline(wandb, options)

    def _start_offline(self, wandb: Any, options: Mapping[str, Any]) -> None:
        try:
            self._run = wandb.init(mode="offline", **options)
        except Exception as error:  # noqa: BLE001
            _log.warning("wandb is off: %s", _first_line(error))

    def log(self, metrics: dict[str, float], step: int) -> None:
        """Send the metrics."""
        if self._run is not None:
            self._run.log(metrics, step=step)

    def close(self) -> None:
        """Finish the run."""
        if self._run is not None:
            self._run.finish()


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
