"""Sweeps (-m): Hydra's sweeper and launcher decide on the jobs, each job runs in a process of its own.

The state of the simulator belongs to a process, and a native crash must not take the other jobs along.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from unittest import mock

import hydra
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from gymscale.scripts import config
from gymscale.scripts.signals import CAUGHT, InterruptedBySignal

TRAIN_SCRIPT = Path(__file__).resolve().with_name("train.py")

CHECKED_JOBS = 64
"""Jobs of a sweep that are checked before the first one starts; each job checks itself again."""


class JobFailedError(RuntimeError):
    """A job of a sweep ended with a non-zero exit code; the message names it."""


def check(overrides: Sequence[str], config_dir: str | None) -> None:
    """Check the jobs of a sweep before any of them starts.

    Raises:
        UsageError: The first mistake found.
    """
    parsed = config.parse(overrides)
    if any(override.key_or_group == "hydra/sweeper" for override in parsed):
        return  # only that sweeper knows its jobs
    fixed = [o.input_line or "" for o in parsed if o.key_or_group.startswith("hydra.sweep")]
    swept = [o for o in parsed if not o.key_or_group.startswith(("hydra.sweep", "hydra/"))]
    (jobs,) = BasicSweeper.split_arguments(swept, max_batch_size=None)
    for job in jobs[:CHECKED_JOBS]:
        config.load([*fixed, *job], config_dir)


def run(argv: Sequence[str]) -> int:
    """Hand the sweep to Hydra.

    Args:
        argv: The whole command line.

    Returns:
        0 when every job ended well, else 1.

    Raises:
        InterruptedBySignal: SIGINT or SIGTERM came; the running job was told and waited for.
    """
    try:
        hand_to_hydra(argv)
    except JobFailedError as error:
        print(f"error: at least one job of the sweep failed, first {error}", file=sys.stderr)
        return 1
    return 0


def hand_to_hydra(argv: Sequence[str]) -> None:
    """Run `hydra.main` with a command line; its errors reach the caller as exceptions."""
    config.register_resolvers()
    with mock.patch.object(sys, "argv", ["gymscale-train", *argv]), mock.patch.dict(os.environ, HYDRA_FULL_ERROR="1"):
        _hydra_main()


@hydra.main(version_base="1.3", config_path=str(config.CFG_DIR), config_name="config")
def _hydra_main(_cfg: DictConfig) -> None:
    """Run one job of the sweep."""
    job = HydraConfig.get()
    overrides = [*job.overrides.task]
    places = [line for line in job.overrides.hydra if line.startswith("hydra.searchpath=")]
    for source in job.runtime.config_sources:
        if source.provider == "command-line":
            places += ["--config-dir", source.path]
    # By its path: with -m the working folder would come first on sys.path, and with it a user's own `tasks`.
    command = [sys.executable, str(TRAIN_SCRIPT), *overrides, *places]
    code = _run_child([*command, f"hydra.run.dir={job.runtime.output_dir}"])
    if code != 0:
        name = f"job {job.job.num} ({' '.join(overrides)}): exit code {code}"
        print(f"error: {name}", file=sys.stderr)
        raise JobFailedError(name)


def _run_child(command: list[str]) -> int:
    """Run a process to its end and return its exit code; signals that we get are passed on to it."""
    received: list[int] = []
    with _forward_signals(received) as children, subprocess.Popen(command, start_new_session=True) as child:
        children.append(child)
        code = child.wait()
    if received:
        raise InterruptedBySignal(received[0])
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _forward_signals(received: list[int]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Pass SIGINT and SIGTERM on to the children listed in the value of this context."""
    children: list[subprocess.Popen[bytes]] = []

    def forward(signum: int, _frame: FrameType | None) -> None:
        received.append(signum)
        for child in children:
            child.send_signal(signum)

    before = {number: signal.signal(number, forward) for number in CAUGHT}
    try:
        yield children
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
