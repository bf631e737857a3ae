"""Cartpole without velocities, on real PhysX: memory solves it, no memory does not. About 3 minutes on an idle core."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

TRAIN = Path(__file__).resolve().parents[2] / "scripts" / "train.py"
SOLVED = 400.0
"""Of at most 500 in an episode: poles that stand from the first step to the time limit get about 470."""


def best_reward(folder: Path, settings: str, iterations: int) -> float:
    words = f"task=CartpolePartial train={settings} num_envs=512 max_iterations={iterations} sim_device=cpu seed=42"
    limit = f"train.params.config.score_to_win={SOLVED}"
    command = [sys.executable, str(TRAIN), *words.split(), limit, "hydra.run.dir=run"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    with (folder / "run" / "metrics.csv").open(newline="") as file:
        return max(float(row["reward_mean"]) for row in csv.DictReader(file))


@pytest.mark.slow
@pytest.mark.parametrize("settings", ["CartpolePartialPPO", "CartpolePartialPPO_Asymmetric"])
def test_a_recurrent_policy_solves_it(tmp_path: Path, settings: str) -> None:
    assert best_reward(tmp_path, settings, 200) > SOLVED


@pytest.mark.slow
def test_a_policy_without_memory_does_not(tmp_path: Path) -> None:
    assert best_reward(tmp_path, "CartpolePartialPPO_MLP", 200) < 0.5 * SOLVED
