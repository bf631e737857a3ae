"""docs/isaacgym.md holds the table that the code generates."""

from __future__ import annotations

from pathlib import Path

from isaacgym import _capabilities, gymapi

DOCUMENT = Path(__file__).parents[2] / "docs" / "isaacgym.md"


def test_the_table_in_the_document_is_the_generated_one() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert _capabilities.with_table(text) == text
    assert text.count("| T1 |") == len(_capabilities.TIERS["T1"])
    assert text.count("| T2 |") == len(_capabilities.TIERS["T2"])


def test_every_function_of_the_gym_object_is_listed() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for name in dir(gymapi.Gym):
        assert name.startswith("_") or f"| `{name}` |" in text, name


def test_unsupported_functions_are_told_apart() -> None:
    assert not _capabilities.capability("get_soft_contacts").supported
    assert _capabilities.capability("simulate").supported
    assert _capabilities.capability("no_such_function").note == "Isaac Gym has no such function"
