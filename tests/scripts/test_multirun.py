"""Sweeps: one process and one folder a job; a failing job does not stop the others."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gymscale.scripts import multirun
from gymscale.scripts.signals import InterruptedBySignal

CONFIG_DIR = Path(__file__).parent / "cfg"
RunTrain = Callable[..., int]


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Record the jobs' command lines; a job with seed=13 fails."""
    commands: list[list[str]] = []

    def run_child(command: list[str]) -> int:
        commands.append(command)
        return 3 if "seed=13" in command else 0

    monkeypatch.setattr(multirun, "_run_child", run_child)
    return commands


def folders(commands: list[list[str]]) -> list[str]:
    return [command[-1].partition("hydra.run.dir=")[2] for command in commands]


def test_every_job_gets_a_process_and_a_folder_of_its_own(
    run_train: RunTrain, children: list[list[str]], tmp_path: Path
) -> None:
    assert run_train("-m", "num_envs=8,16", "seed=1,2", "max_iterations=1") == 0
    assert [command[2:-3] for command in children] == [
        ["task=Fake", f"num_envs={n}", f"seed={s}", "max_iterations=1"] for n in (8, 16) for s in (1, 2)
    ]
    assert all(command[:2] == [sys.executable, str(multirun.TRAIN_SCRIPT)] for command in children)
    assert all(command[-3:-1] == ["--config-dir", str(CONFIG_DIR)] for command in children)
    assert len({*folders(children)}) == 4
    assert all(Path(folder).is_relative_to(tmp_path / "runs") for folder in folders(children))


def test_a_failing_job_does_not_stop_the_others_and_the_exit_code_tells(
    run_train: RunTrain, children: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_train("-m", "seed=12,13,14") == 1
    assert len(children) == 3
    error = capsys.readouterr().err
    assert "error: job 1 (task=Fake seed=13): exit code 3" in error
    assert "at least one job of the sweep failed" in error
    assert "Traceback" not in error


def test_a_sweep_may_name_its_folder(run_train: RunTrain, children: list[list[str]], tmp_path: Path) -> None:
    assert run_train("-m", "seed=1,2", "hydra.sweep.dir=mine", "hydra.sweep.subdir=s${seed}") == 0
    assert folders(children) == [str(tmp_path / "mine" / "s1"), str(tmp_path / "mine" / "s2")]


def test_flags_may_follow_the_overrides(run_train: RunTrain, children: list[list[str]]) -> None:
    assert run_train("num_envs=8,16", "-m") == 0
    assert len(children) == 2


def test_a_signal_to_the_sweep_reaches_the_running_job() -> None:
    code = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        "os.kill(os.getppid(), signal.SIGTERM)\n"
        "signal.pause()"
    )
    with pytest.raises(InterruptedBySignal) as stopped:
        multirun._run_child([sys.executable, "-c", code])
    assert stopped.value.exit_code == 143
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_job_killed_by_a_signal_counts_as_failed() -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert multirun._run_child([sys.executable, "-c", code]) == 137
