"""Scripts in the styles of projects of 2021 run with ``python -m isaacgym --cpu`` and find the physics they expect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STYLES = {
    "vec_style": (
        "aggregates",
        "arm_jacobian",
        "different_objects",
        "force_sensors",
        "soft_reset",
        "tendon_hand",
        "two_arms",
    ),
    "legged_style": ("cpu_pipeline", "decimation", "height_field", "randomised", "viewer"),
}
SCRIPTS = {name: HERE / style / f"{name}.py" for style, names in STYLES.items() for name in names}
STAND_IN = "stands in for NVIDIA's Isaac Gym, on PhysX 5"
SHARED_TERRAIN = "robots of different envs share one terrain on the CPU"


def run(*command: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="module")
def outputs(tmp_path_factory) -> dict[str, list[str]]:
    """Lines that every script printed, its exit code last; run side by side by ``launcher.py``."""
    folder = tmp_path_factory.mktemp("legacy")
    done = run(str(HERE / "launcher.py"), str(folder), *map(str, SCRIPTS.values()))
    assert done.returncode == 0, done.stderr
    return {name: (folder / f"{name}.txt").read_text().splitlines() for name in SCRIPTS}


def test_there_are_twelve_and_none_is_left_out():
    found = {path.stem for style in STYLES for path in (HERE / style).glob("*.py")}
    assert found == set(SCRIPTS)
    assert len(SCRIPTS) == 12


@pytest.mark.parametrize("name", SCRIPTS)
def test_runs(outputs, name):
    assert outputs[name][-2:] == [f"ok: {name}", "exit code 0"], "\n".join(outputs[name])
    assert sum(STAND_IN in line for line in outputs[name]) == 1


def test_shared_terrain_is_said_once(outputs):
    counts = {name: sum(SHARED_TERRAIN in line for line in lines) for name, lines in outputs.items()}
    assert counts.pop("height_field") == 1
    assert set(counts.values()) == {0}


def test_as_a_process_from_another_folder(tmp_path):
    done = run("-m", "isaacgym", "--cpu", str(SCRIPTS["different_objects"]), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ok: different_objects\n"
    (line,) = [line for line in done.stderr.splitlines() if STAND_IN in line]
    assert "cuda devices are the CPU" in line


def test_as_a_process_with_arguments_and_without_cuda():
    """The script turns the GPU pipeline off itself, so it needs no --cpu; its command line reaches it."""
    script = os.path.relpath(SCRIPTS["cpu_pipeline"], ROOT)
    done = run("-m", "isaacgym", script, "--num_envs", "2", "--sim_device", "cpu", "--headless")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "ok: cpu_pipeline"
    assert "cuda devices are the CPU" not in done.stderr
