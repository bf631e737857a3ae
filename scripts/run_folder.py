"""The folder of one run: config.yaml, metrics.csv, nn/, summaries/, events.log."""

from __future__ import annotations

import csv
import itertools
import os
from pathlib import Path

from omegaconf import DictConfig

from gymscale.scripts.config import UsageError, to_text
from ppo import checkpoint


def create(wanted: Path, chosen_by_user: bool) -> Path:
    """Make the run folder.

    Args:
        wanted: Where it should be.
        chosen_by_user: The user named the folder (hydra.run.dir), so an existing one is continued. Otherwise a run
            never shares a folder: `_1`, `_2`, ... is appended while the name is taken.

    Returns:
        The absolute path of the folder.

    Raises:
        UsageError: The folder cannot be made.
    """
    try:
        if chosen_by_user:
            wanted.mkdir(parents=True, exist_ok=True)
            return wanted.resolve()
        for number in itertools.count():
            folder = wanted.with_name(f"{wanted.name}_{number}") if number else wanted
            try:
                folder.mkdir(parents=True, exist_ok=False)
                return folder.resolve()
            except FileExistsError:
                continue
    except OSError as error:
        raise UsageError(f"cannot make the run folder {wanted}: {error.strerror}") from None
    raise AssertionError("unreachable")


def rewind(folder: Path, epoch: int, source: Path) -> list[str]:
    """Set aside what a continued folder holds of iterations after `epoch`, where the run goes on.

    Rows of metrics.csv after it move to `metrics_after_<epoch>.csv`, a later `last.pth` to `last_<its epoch>.pth`.

    Args:
        folder: The run folder.
        epoch: The iteration of the checkpoint.
        source: The checkpoint, which needs no second reading if it is `last.pth` itself.

    Returns:
        Lines that say what was moved.
    """
    lines = []
    metrics = folder / "metrics.csv"
    if metrics.exists():
        with metrics.open(newline="") as file:
            header, *rows = list(csv.reader(file)) or [[]]
        column = header.index("iteration") if "iteration" in header else None
        kept: list[list[str]] = []
        later: list[list[str]] = []
        for row in rows:
            (later if column is not None and float(row[column]) > epoch else kept).append(row)
        if later:
            aside = _free(folder / f"metrics_after_{epoch}.csv")
            _write_rows(aside, [header, *later])
            _write_rows(metrics, [header, *kept])
            lines.append(f"{len(later)} rows of metrics.csv after iteration {epoch} moved to {aside.name}")
    last = folder / "nn" / "last.pth"
    if last.exists() and not last.samefile(source):
        saved = checkpoint.read(last)["epoch"]
        if saved > epoch:
            aside = _free(last.with_name(f"last_{saved}.pth"))
            last.rename(aside)
            lines.append(f"nn/last.pth of iteration {saved} renamed to {aside.name}")
    return lines


def _free(path: Path) -> Path:
    """Return the path, with a number appended if it is taken."""
    numbered = (path.with_name(f"{path.stem}_{number}{path.suffix}") for number in itertools.count(1))
    return next(p for p in itertools.chain([path], numbered) if not p.exists())


def _write_rows(path: Path, rows: list[list[str]]) -> None:
    """Replace a CSV file in one step."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    os.replace(temporary, path)


def write_config(folder: Path, cfg: DictConfig) -> None:
    """Write the effective config, without interpolations, to config.yaml."""
    (folder / "config.yaml").write_text(to_text(cfg), encoding="utf-8")
