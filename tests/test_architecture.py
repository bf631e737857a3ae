"""The rooms and who may import whom (see "Layout" in the README), read from the syntax trees."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

API = {"isaacgym", "numpy", "scipy", "torch"}
ENGINE = API | {"lxml", "trimesh", "pxr"}
RUNTIME = ENGINE | {"ovphysx", "ovstage", "warp"}
TASKS = {"isaacgym", "tasks", "numpy", "torch", "gymnasium"}
LEARNER = {"ppo", "numpy", "torch"}
LOGGERS = LEARNER | {"wandb", "tensorboard"}
GYM_MODULES = {"gymapi", "gymtorch", "gymutil", "torch_utils", "terrain_utils"}


def allowed(path: Path) -> set[str] | None:
    """Return the third-party packages and rooms a file may import; None: everything but the native runtime."""
    match path.relative_to(ROOT).parts:
        case ("isaacgym", "engine", "runtime.py"):
            return RUNTIME
        case ("isaacgym", "engine", *_):
            return ENGINE
        case ("isaacgym", *_):
            return API
        case ("tasks", *_):
            return TASKS
        case ("ppo", "loggers.py"):
            return LOGGERS
        case ("ppo", *_):
            return LEARNER
    return None


def sources() -> list[Path]:
    """Return the Python files of all rooms."""
    return sorted(path for room in ("isaacgym", "tasks", "ppo", "scripts") for path in (ROOT / room).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Return the dotted names that a file imports, functions and type-checking blocks included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(path.relative_to(ROOT).parts[0])
    return names


def identify(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", sources(), ids=identify)
def test_imports_stay_inside_the_room(path: Path) -> None:
    roots = {name.partition(".")[0] for name in imported(path)} - sys.stdlib_module_names
    may = allowed(path)
    if may is not None:
        assert roots <= may, f"{identify(path)} may not import {sorted(roots - may)}"
    else:
        assert not roots & {"ovphysx", "ovstage"}, "only isaacgym/engine/runtime.py may know the native runtime"


@pytest.mark.parametrize("path", [p for p in sources() if p.is_relative_to(ROOT / "tasks")], ids=identify)
def test_tasks_use_the_public_api_only(path: Path) -> None:
    used = {name.split(".")[1] for name in imported(path) if name.startswith("isaacgym.")}
    assert used <= GYM_MODULES


@pytest.mark.parametrize("path", [p for p in sources() if p.is_relative_to(ROOT / "tasks")], ids=identify)
def test_tasks_parse_on_python_3_8(path: Path) -> None:
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


def test_tensorboard_is_known_to_the_loggers_only() -> None:
    users = [identify(p) for p in sources() if any("tensorboard" in name for name in imported(p))]
    assert set(users) <= {"ppo/loggers.py"}
