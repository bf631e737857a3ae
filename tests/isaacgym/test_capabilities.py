"""The capability table: true to the published tiers, and docs/isaacgym.md holds what the code generates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isaacgym import _capabilities, gymapi
from isaacgym.__main__ import main

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "isaacgym.md"
METHODS = json.loads((ROOT / "tests" / "data" / "gym_methods.json").read_text())["methods"]


@pytest.fixture(scope="module")
def text() -> str:
    return DOCUMENT.read_text(encoding="utf-8")


def test_the_document_holds_the_generated_table(text):
    assert _capabilities.with_table(text) == text, "python -m isaacgym._capabilities docs/isaacgym.md"
    assert _capabilities.table() in text


def test_every_function_is_listed_once(text):
    names = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert len(names) == len(set(names))
    assert set(names) >= set(METHODS)
    assert set(names) >= {name for name in dir(gymapi.Gym) if not name.startswith("_")}


@pytest.mark.parametrize("tier", ["T1", "T2"])
def test_tiers_are_the_published_ones(tier):
    assert _capabilities.TIERS[tier] == {name for name, method in METHODS.items() if method["tier"] == tier}


def test_what_is_not_supported_of_the_first_two_tiers_is_the_known_rest():
    refused = {
        name for names in _capabilities.TIERS.values() for name in names if not _capabilities.capability(name).supported
    }
    assert refused == {
        "create_rigid_body_attractor",
        "create_usd_exporter",
        "export_usd_sim",
        "get_camera_image",
        "get_camera_image_gpu_tensor",
    }
    assert all(_capabilities.capability(name).note for name in refused)


def test_notes_belong_to_supported_functions():
    assert all(_capabilities.capability(name).supported for name in _capabilities.NOTES)


def test_names_that_isaac_gym_does_not_have():
    unknown = _capabilities.capability("levitate")
    assert (unknown.tier, unknown.supported, unknown.note) == ("", False, "Isaac Gym has no such function")


def test_the_command_prints_the_table(capsys):
    assert main(["--capabilities"]) == 0
    assert capsys.readouterr().out == _capabilities.table() + "\n"
