"""A task without a simulator, registered under the name Fake, and a runner for the command line."""

from __future__ import annotations

import os
import signal
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from gymscale.scripts import train
from isaacgym.engine.asset import AssetError
from tasks import registry

CONFIG_DIR = Path(__file__).parent / "cfg"
FAULT_STEP = 20


class FakeTask:
    """Points on a line, pushed by the action, paid for being near 0; every episode ends after `episodeLength` steps."""

    def __init__(self, cfg: dict[str, Any], rl_device: str, sim_device: str, **_: Any) -> None:
        if cfg["env"]["fault"] == "asset":
            raise AssetError("assets/broken.xml:7: a link with shapes has mass 0; allowed is a mass above 0")
        self.cfg = cfg
        self.num_envs = cfg["env"]["numEnvs"]
        self.device = rl_device
        self.observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.state_space = None
        self.position = torch.ones(self.num_envs, 1)
        self.progress = torch.zeros(self.num_envs)
        self.steps = 0
        print("a line from Python")
        os.write(1, b"a line from native code\n")

    def reset(self) -> dict[str, torch.Tensor]:
        return {"obs": self.position.clone()}

    def step(self, actions: torch.Tensor) -> tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor, dict[str, Any]]:
        self.steps += 1
        if self.steps == FAULT_STEP:
            self._fail(self.cfg["env"]["fault"])
        self.position += 0.1 * actions
        self.progress += 1
        done = self.progress >= self.cfg["env"]["episodeLength"]
        measures = {"steps": self.progress.clone()}
        reward = 1.0 - self.position[:, 0].abs()
        self.position[done] = 1.0
        self.progress[done] = 0
        return self.reset(), reward, done, {"time_outs": done, "episode": {}, "measures": measures}

    def _fail(self, fault: str) -> None:
        if fault == "crash":
            os.write(2, b"native last words\n")
            raise RuntimeError("the simulator broke")
        if fault in ("interrupt", "terminate"):
            signal.raise_signal(signal.SIGINT if fault == "interrupt" else signal.SIGTERM)

    def signature(self) -> dict[str, Any]:
        names = list(self.cfg["env"]["dofNames"])
        return {"task": "Fake", "num_observations": 1, "num_states": 0, "num_actions": 1, "dof_names": names}

    def get_state(self) -> dict[str, Any]:
        return {"position": self.position.clone(), "progress": self.progress.clone(), "steps": self.steps}

    def set_state(self, state: dict[str, Any]) -> None:
        self.position.copy_(state["position"])
        self.progress.copy_(state["progress"])
        self.steps = state["steps"]


@pytest.fixture
def run_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run train.py's main in an empty folder with the fake task; returns its exit code."""
    module = types.ModuleType("fake_task")
    module.Fake = FakeTask  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fake_task", module)
    monkeypatch.setitem(registry._TASKS, "Fake", "fake_task")
    monkeypatch.chdir(tmp_path)

    def run(*argv: str) -> int:
        task = [] if any(word.startswith("task=") for word in argv) else ["task=Fake"]
        return train.main(["--config-dir", str(CONFIG_DIR), *task, *argv])

    return run


@pytest.fixture
def run_folder(run_train: Callable[..., int], tmp_path: Path) -> Path:
    """Return the folder of a finished run of 4 iterations."""
    assert run_train() == 0
    (folder,) = (tmp_path / "runs").iterdir()
    return folder
