"""The folder of one run: config.yaml, metrics.csv, nn/, summaries/, events.log."""

from __future__ import annotations

import itertools
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from gymscale.scripts.config import UsageError, to_plain


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


def write_config(folder: Path, cfg: DictConfig) -> None:
    """Write the effective config, without interpolations, to config.yaml."""
    text = OmegaConf.to_yaml(OmegaConf.create(to_plain(cfg)))
    (folder / "config.yaml").write_text(text, encoding="utf-8")
