"""``python -m isaacgym``: what it puts in place, ``--cpu``, ``--check``, and what it says to a wrong command line."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch

from isaacgym import _check, _legacy
from isaacgym.__main__ import main

ROOT = Path(__file__).parents[2]
REMOVED_FROM_NUMPY = """
import numpy as np
assert (np.float, np.int, np.object, np.str) == (float, int, object, str)
assert np.float_ is np.float64 and np.unicode_ is np.str_ and np.complex_ is np.complex128
assert np.Inf == np.PINF == np.infty == float("inf") and np.NINF == -np.inf and np.isnan(np.NaN)
assert np.asscalar(np.array([3.5])) == 3.5 and np.product([2, 3]) == 6 and np.in1d([1, 2], [2]).tolist() == [0, 1]
assert np.asfarray([1, 2]).dtype == np.float64 and np.alltrue([1, 1]) and not np.sometrue([0, 0])
assert np.trapz([0.0, 1.0, 2.0]) == 2.0 and np.mat([[1, 2]]).shape == (1, 2)
assert np.zeros(2, dtype=np.bool).dtype == bool and np.array([1], np.float).dtype == np.float64
"""
GYM_IS_GYMNASIUM = """
import gym
from gym import spaces
from gym.spaces import Box
import gym.utils.seeding as seeding
import gymnasium
assert gym is gymnasium and spaces.Box is Box is gymnasium.spaces.Box and seeding is gymnasium.utils.seeding
class Old(gym.Env):
    observation_space = Box(-1.0, 1.0, (3,))
"""
ARGUMENTS = """
import os, sys
import helper
assert __name__ == "__main__" and sys.argv[1:] == ["--task", "Ant"] and helper.VALUE == 7
assert os.path.basename(__file__) == "script.py"
from tasks.mine import NAME
assert NAME == "mine"
"""
CUDA_ON_THE_CPU = """
import torch
import isaacgym
device = torch.device("cuda:0")
tensors = [
    torch.zeros(2, device="cuda"), torch.ones(2, device=device), torch.arange(3, device=0), torch.rand(2).cuda(),
    torch.rand(2).to("cuda:1"), torch.rand(2).to(device, torch.float64), torch.rand(2).to(0),
    torch.tensor([1.0], device="cuda:0"), torch.nn.Linear(2, 3).to("cuda").weight, torch.nn.Linear(2, 3).cuda().bias,
    torch.randn(2, generator=torch.Generator(device="cuda"), device="cuda"), torch.rand(3, pin_memory=True),
    torch.zeros_like(torch.ones(1), device=device), torch.full((2,), 1.5, device=device),
]
assert all(tensor.device.type == "cpu" for tensor in tensors)
assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
torch.cuda.set_device(0); torch.cuda.synchronize(); torch.cuda.empty_cache(); torch.cuda.manual_seed_all(1)
with torch.cuda.device(0):
    pass
torch.save({"a": torch.ones(3)}, "a.pt")
assert torch.load("a.pt", map_location="cuda:0")["a"].tolist() == [1.0] * 3
@torch.jit.script
def double(x):
    return torch.zeros(2, device=x.device) + 2 * x
assert double(torch.ones(2, device="cuda")).tolist() == [2.0, 2.0]
from isaacgym import gymapi
params = gymapi.SimParams()
params.use_gpu_pipeline = True
assert gymapi.acquire_gym().create_sim(0, -1, gymapi.SIM_PHYSX, params).device.type == "cpu"
"""
WANTS_THE_GPU = """
from isaacgym import gymapi
params = gymapi.SimParams()
params.use_gpu_pipeline = True
gymapi.acquire_gym().create_sim(0, -1, gymapi.SIM_PHYSX, params)
"""


def launch(folder: Path, script: str, *options: str, args: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(script)
    command = [sys.executable, "-m", "isaacgym", *options, "script.py", *args]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200)


def test_old_names_and_the_users_own_packages(tmp_path):
    """One process for three things: numpy's old names, gym, and the script's folder with a `tasks` of its own."""
    (tmp_path / "helper.py").write_text("VALUE = 7\n")
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "mine.py").write_text("NAME = 'mine'\n")
    done = launch(tmp_path, REMOVED_FROM_NUMPY + GYM_IS_GYMNASIUM + ARGUMENTS, args=("--task", "Ant"))
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("gymscale ")
    assert "numpy names removed since 1.20 are back, gym is gymnasium" in line


def test_without_the_entry_point_nothing_is_put_in_place():
    assert not hasattr(np, "float")
    with pytest.raises(ImportError):
        __import__("gym")


def test_missing_numpy_names_are_put_back_and_no_others_touched():
    before = dict(vars(np))
    restored = _legacy.restore_numpy_names()
    try:
        assert set(restored) == set(_legacy.NUMPY_NAMES) - set(before)
        assert {name: vars(np)[name] for name in restored} == {name: _legacy.NUMPY_NAMES[name] for name in restored}
        assert {name: vars(np)[name] for name in before} == before
        assert _legacy.restore_numpy_names() == []
    finally:
        for name in restored:
            delattr(np, name)


def test_cpu_flag_reads_cuda_as_the_cpu(tmp_path):
    done = launch(tmp_path, CUDA_ON_THE_CPU, "--cpu")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0].endswith("cuda devices are the CPU")


@pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA is there")
def test_a_script_that_wants_cuda_is_told_of_the_flag(tmp_path):
    done = launch(tmp_path, WANTS_THE_GPU, args=("--num_envs", "4"))
    assert done.returncode == 1
    assert "use_gpu_pipeline is on but this machine has no CUDA device" in done.stderr
    assert done.stderr.splitlines()[-1] == (
        "The script asks for CUDA, which this machine does not have. To run it on the CPU: "
        "python -m isaacgym --cpu script.py --num_envs 4"
    )
    assert "runpy" not in done.stderr, "the traceback is the script's own"


@pytest.mark.parametrize(
    ("message", "asks"),
    [
        ("Torch not compiled with CUDA enabled", True),
        ("No CUDA GPUs are available", True),
        ("Found no NVIDIA driver on your system.", True),
        ("index out of range", False),
    ],
)
def test_which_errors_are_about_cuda(message, asks, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert _legacy.asks_for_cuda(RuntimeError(message)) is asks
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert not _legacy.asks_for_cuda(RuntimeError(message))


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ([], "no script given"),
        (["--cpu"], "no script given"),
        (["--gpu", "x.py"], "unknown option --gpu before the script"),
        (["nowhere.py"], "nowhere.py: no such file"),
        (["--check", "nowhere"], "nowhere: no such file or folder"),
    ],
)
def test_wrong_command_lines_are_answered_in_one_line_and_the_usage(args, problem, capsys):
    assert main(args) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"python -m isaacgym: {problem}"
    assert lines[1].startswith("python -m isaacgym [--cpu] SCRIPT")


PROJECT = {
    "train.py": """
        from isaacgym import gymapi, gymtorch, gymutil, something_else
        from isaacgym.torch_utils import quat_mul, quat_levitate
        import isaacgym.terrain_utils as terrain
        from mine.base import Base

        class Task(Base):
            def make(self):
                self.simulator.create_sim(0, -1, gymapi.SIM_PHYSX, gymapi.SimParams())
                self.simulator.create_cloth_grid(self.sim)
                getattr(self.simulator, "levitate")(1)
                x = gymapi.AssetOptions.default_armor
                terrain.wave_terrain(None)
                terrain.moon_terrain(None)
    """,
    "mine/base.py": """
        from isaacgym import gymapi

        class Base:
            def __init__(self):
                self.simulator = gymapi.acquire_gym()
                self.simulator.simulate(self.sim)
                self.simulator.simulate(self.sim)
    """,
    "envs/other.py": """
        import gym
        gym.make("Ant-v4")
    """,
    "old.py": 'print "two"\n',
    "venv/lib/noise.py": "from isaacgym import gymapi\ngymapi.acquire_gym().create_tet_grid()\n",
}


def write_project(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"))
    return folder


def test_check_finds_functions_names_and_files(tmp_path):
    found = _check.read(write_project(tmp_path, **PROJECT))
    assert dict(found.functions) == {
        "create_sim": ["train.py:8"],
        "create_cloth_grid": ["train.py:9"],
        "levitate": ["train.py:10"],
        "simulate": ["mine/base.py:6", "mine/base.py:7"],
    }
    assert dict(found.absent) == {
        "isaacgym.something_else": ["train.py:1"],
        "torch_utils.quat_levitate": ["train.py:2"],
        "gymapi.AssetOptions.default_armor": ["train.py:11"],
        "terrain_utils.moon_terrain": ["train.py:13"],
    }
    assert [line.split(":")[:2] for line in found.unreadable] == [["old.py", "1"]]
    assert found.files == 2


def test_check_reports_and_tells_by_its_exit_code(tmp_path, capsys):
    folder = write_project(tmp_path, **PROJECT)
    assert main(["--check", str(folder)]) == 1
    shown = capsys.readouterr().out.splitlines()
    states = {line.split()[0]: line for line in shown[:-1]}
    assert "T1  supported" in states["simulate"]
    assert "NOT SUPPORTED (soft bodies are not supported)    train.py:9" in states["create_cloth_grid"]
    assert "NOT SUPPORTED (Isaac Gym has no such function)" in states["levitate"]
    assert "does not exist    train.py:13" in states["terrain_utils.moon_terrain"]
    assert shown[-1] == (
        "files that use isaacgym: 2; functions: 4, supported 2, not supported 2; names that do not exist: 4"
    )


def test_check_of_a_supported_script_ends_with_0_and_runs_nothing(tmp_path, capsys):
    script = tmp_path / "fine.py"
    script.write_text("from isaacgym import gymapi\ng = gymapi.acquire_gym()\ng.simulate(None)\nraise SystemExit(9)\n")
    assert main(["--check", str(script)]) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[:3] == ["simulate", "T1", "supported"]


def test_check_of_the_legacy_scripts_finds_only_supported_functions(capsys):
    assert main(["--check", str(Path(__file__).parent / "legged_style")]) == 0
    assert main(["--check", str(Path(__file__).parent / "vec_style")]) == 0
    assert "not supported 0" in capsys.readouterr().out.splitlines()[-1]
