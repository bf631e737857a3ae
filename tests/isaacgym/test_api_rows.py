"""Every function that many projects use (tiers T1 and T2 of the API notes) is called by a test of its behaviour."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from isaacgym._capabilities import TIERS

HERE = Path(__file__).parent
NOT_BEHAVIOUR = {"test_api_rows.py", "test_signatures.py"}
"""These name functions without testing what they do."""


def names_in(path: Path) -> set[str]:
    """Attributes that a file uses, and its strings: some helpers fetch functions by name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


TESTED = set().union(*(names_in(path) for path in HERE.glob("*.py") if path.name not in NOT_BEHAVIOUR))


@pytest.mark.parametrize("name", sorted(TIERS["T1"]))
def test_T1_function_is_tested(name):
    assert name in TESTED


@pytest.mark.parametrize("name", sorted(TIERS["T2"]))
def test_T2_function_is_tested(name):
    assert name in TESTED
