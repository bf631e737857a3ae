"""Going on with a run: what is said, what is set aside."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from gymscale.scripts import play
from ppo import checkpoint

RunTrain = Callable[..., int]


def iterations(path: Path) -> list[float]:
    with path.open(newline="") as file:
        return [float(row["iteration"]) for row in csv.DictReader(file)]


@pytest.fixture
def copy(run_folder: Path, tmp_path: Path) -> Path:
    """A copy of a finished run of four iterations with checkpoints of iterations 2 and 4."""
    return Path(shutil.copytree(run_folder, tmp_path / "copy"))


def test_from_an_older_checkpoint_the_abandoned_iterations_are_set_aside(
    copy: Path, run_train: RunTrain, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = (f"checkpoint={copy}/nn/ep_2.pth", f"hydra.run.dir={copy}", "max_iterations=3")
    assert run_train(*arguments) == 0
    out = capfd.readouterr().out
    assert "continuing after iteration 2, frame 16384" in out
    assert "2 rows of metrics.csv after iteration 2 moved to metrics_after_2.csv" in out
    assert "nn/last.pth of iteration 4 renamed to last_4.pth" in out
    assert iterations(copy / "metrics.csv") == [1, 2, 3]
    assert iterations(copy / "metrics_after_2.csv") == [3, 4]
    assert checkpoint.read(copy / "nn" / "last.pth")["epoch"] == 3
    assert checkpoint.read(copy / "nn" / "last_4.pth")["epoch"] == 4


def test_from_the_last_checkpoint_nothing_moves(copy: Path, run_train: RunTrain) -> None:
    assert run_train(f"checkpoint={copy}/nn/last.pth", f"hydra.run.dir={copy}", "max_iterations=5") == 0
    assert iterations(copy / "metrics.csv") == [1, 2, 3, 4, 5]
    assert not list(copy.glob("metrics_after*"))
    assert not list(copy.glob("nn/last_*"))


def test_a_complete_run_says_what_to_raise(copy: Path, run_train: RunTrain, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_train(f"checkpoint={copy}/nn/last.pth", f"hydra.run.dir={copy}", "max_iterations=4") == 0
    assert "continuing after iteration 4, frame 32768; that is max_iterations: raise it" in capfd.readouterr().out


def test_a_drawn_seed_is_saved(run_train: RunTrain, tmp_path: Path) -> None:
    assert run_train("seed=-1", "num_envs=16", "max_iterations=1", f"hydra.run.dir={tmp_path}/drawn") == 0
    assert OmegaConf.load(tmp_path / "drawn" / "config.yaml").seed >= 0


def test_what_differs_from_the_request_is_said(run_train: RunTrain, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ("num_envs=16", "max_iterations=1", "train.params.config.minibatch_size=4096", "headless=False")
    assert run_train(*arguments) == 0
    out = capfd.readouterr().out
    assert "minibatch_size 4096 was asked for; minibatches of this batch have 128 samples" in out
    assert "headless=False: there is no viewer" in out


def test_a_missing_checkpoint_names_those_that_are_there(copy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert play.main([f"checkpoint={copy}/nn/better.pth"]) == 2
    error = capfd.readouterr().err
    assert (
        "better.pth: no such checkpoint file; in its folder there are best.pth, ep_2.pth, ep_4.pth, last.pth" in error
    )


def test_play_explains_itself(capfd: pytest.CaptureFixture[str]) -> None:
    assert play.main(["--help"]) == 0
    assert "num_episodes" in capfd.readouterr().out
