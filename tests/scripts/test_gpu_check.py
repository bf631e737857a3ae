"""The check of a GPU, tried on the CPU: its own parts, and a task compared with itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gymscale.scripts import device_probe, gpu_check


def test_wrong_command_lines_are_told_in_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    for words, message in {
        ("devices=cpu",): "unknown key 'devices'; gpu_check.py knows device, task, ",
        ("num_envs=many",): "num_envs must be a whole number of at least 1, got 'many'",
        ("counts=64,0",): "counts must be whole numbers with commas between them, got '64,0'",
        ("device=cuda:99",): "device=cuda:99",
    }.items():
        assert gpu_check.main(words) == 2
        error = capfd.readouterr().err
        assert message in error
        assert error.count("\n") == 1


def test_a_task_compared_with_itself_agrees_bit_for_bit(tmp_path: Path) -> None:
    for part in ("reference", "check"):
        command = [sys.executable, "-m", "gymscale.scripts.device_probe", "Cartpole", "cpu", str(tmp_path), part]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"error_step_1": 0.0, "error_step_8": 0.0, "isolation": 0.0, "syncs": 0.0, "nonfinite": 0.0}


def test_environments_are_made_alike_by_equal_shares_of_rows() -> None:
    import torch

    rows = torch.arange(8.0).view(8, 1)  # two bodies in each of four environments
    state = {"bodies": rows, "count": torch.tensor(3), "rng": torch.zeros(8, dtype=torch.uint8), "name": "x"}
    alike = device_probe._all_alike(state, 4)
    assert alike["bodies"].flatten().tolist() == [0, 1] * 4
    assert (int(alike["count"]), alike["name"]) == (3, "x")
    assert alike["rng"] is state["rng"]


def test_the_table_has_a_row_for_every_result() -> None:
    text = gpu_check._table({"machine": "card", "training": {"env_steps_per_s": 7, "reward_mean": None}})
    assert text.splitlines()[0] == "# GPU check: card"
    assert "| training | env_steps_per_s 7, reward_mean None |" in text


def test_a_part_that_takes_too_long_is_ended() -> None:
    code, text = gpu_check._run([sys.executable, "-c", "import time; time.sleep(60)"], 0.5)
    assert code == 124
    assert "longer than" in text
