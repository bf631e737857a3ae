"""What `pip install .` puts where."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("isaacgym", "tasks", "ppo", "scripts", "cfg", "assets", "setup.py", "pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of the checkout and unpack it."""
    source = tmp_path_factory.mktemp("source")
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, source / part)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", "dist", "."]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    (wheel,) = (source / "dist").glob("gymscale-*.whl")
    target = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def test_only_our_names_land_at_the_top_level(installed: Path) -> None:
    names = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert names == {"isaacgym", "tasks", "ppo", "gymscale"}


@pytest.mark.parametrize("room", ["isaacgym", "tasks", "ppo"])
def test_every_module_is_installed(room: str, installed: Path) -> None:
    modules = {path.relative_to(ROOT) for path in (ROOT / room).rglob("*.py")}
    assert modules == {path.relative_to(installed) for path in (installed / room).rglob("*.py")}


@pytest.mark.parametrize(("folder", "kinds"), [("cfg", {".yaml"}), ("assets", {".xml", ".urdf"}), ("scripts", {".py"})])
def test_every_data_file_is_installed_under_the_namespace(folder: str, kinds: set[str], installed: Path) -> None:
    files = {path.relative_to(ROOT) for path in (ROOT / folder).rglob("*") if path.suffix in kinds}
    assert files
    missing = [str(path) for path in files if not (installed / "gymscale" / path).is_file()]
    assert missing == []


def test_isaacgym_says_that_it_is_typed(installed: Path) -> None:
    assert (installed / "isaacgym" / "py.typed").is_file()


def test_the_commands_are_declared(installed: Path) -> None:
    (declared,) = installed.glob("*.dist-info/entry_points.txt")
    text = declared.read_text()
    for name in ("train", "play", "benchmark", "export"):
        assert f"gymscale-{name} = gymscale.scripts.{name}:main" in text


def test_the_installed_copy_finds_its_config_and_assets(installed: Path, tmp_path: Path) -> None:
    code = (
        "from gymscale.scripts import config\n"
        "cfg = config.load(['task=Ant'])\n"
        "assert (config.ASSET_DIR / cfg.task.env.asset.assetFileName).is_file()\n"
        "print(config.CFG_DIR)"
    )
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    )
    assert shown.stdout.strip() == str(installed / "gymscale" / "cfg")
