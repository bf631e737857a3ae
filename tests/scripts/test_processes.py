"""The programs as a user starts them, on real PhysX: a sweep and an interrupted run."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import torch
from omegaconf import OmegaConf

TRAIN = Path(__file__).resolve().parents[2] / "scripts" / "train.py"
PATIENCE = 120.0
"""Seconds a run may take to get going on a busy machine."""


def rows(folder: Path) -> list[dict[str, str]]:
    path = folder / "metrics.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def command(*words: str) -> list[str]:
    return [sys.executable, str(TRAIN), *words]


def test_a_sweep_leaves_complete_run_folders(tmp_path: Path) -> None:
    sweep = command("-m", "task=Cartpole", "num_envs=16,32", "max_iterations=2", "hydra.sweep.dir=sweep")
    done = subprocess.run(sweep, cwd=tmp_path, capture_output=True, text=True, timeout=4 * PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name for path in (tmp_path / "sweep").iterdir()} == {"0", "1", "multirun.yaml"}
    for name, num_envs in (("0", 16), ("1", 32)):
        folder = tmp_path / "sweep" / name
        assert OmegaConf.load(folder / "config.yaml").task.env.numEnvs == num_envs
        assert len(rows(folder)) == 2
        assert (folder / "nn" / "last.pth").is_file()
        assert (folder / "events.log").is_file()
        assert list((folder / "summaries").iterdir())


def test_F10_ctrl_c_saves_and_exits_with_130(tmp_path: Path) -> None:
    endless = command("task=Cartpole", "num_envs=16", "max_iterations=1000000", "hydra.run.dir=run")
    with subprocess.Popen(
        endless, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        deadline = time.monotonic() + PATIENCE
        while len(rows(tmp_path / "run")) < 3 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGINT)
        printed, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, printed
    finished = rows(tmp_path / "run")
    assert len(finished) >= 3
    assert torch.load(tmp_path / "run" / "nn" / "last.pth")["epoch"] == len(finished)
    assert "stopped by SIGINT" in printed


def test_two_processes_train_one_policy_into_one_folder(tmp_path: Path) -> None:
    """Two processes under torchrun; the second one's physics starts from another seed, so frames count both."""
    words = ["task=Cartpole", "multi_gpu=True", "sim_device=cpu", "rl_device=cpu", "num_envs=16", "max_iterations=2"]
    job = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone", str(TRAIN), *words]
    done = subprocess.run(
        [*job, "hydra.run.dir=run"], cwd=tmp_path, capture_output=True, text=True, timeout=4 * PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "in each of 2 processes 16 envs x 16 steps" in done.stdout
    assert done.stdout.count("stopped by max_epochs after iteration 2, frame 1024") == 1
    assert [row["frame"] for row in rows(tmp_path / "run")] == ["512", "1024"]
    saved = torch.load(tmp_path / "run" / "nn" / "last.pth")
    first, second = saved["collector"]["observation"]["obs"], saved["other_processes"][0]["collector"]
    assert not torch.equal(first, second["observation"]["obs"])
    assert {path.name for path in (tmp_path / "run").glob("events*.log")} == {"events.log", "events_1.log"}
