"""Fixtures of the Isaac Gym API tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # `import scenes` whatever pytest's import mode is


@pytest.fixture
def make_world():
    """Return a maker of worlds. PhysX is global to a process: a new world replaces the one before."""
    from scenes import World

    living: list[World] = []

    def make(**params) -> World:
        while living:
            living.pop().destroy()
        living.append(World(**params))
        return living[-1]

    yield make
    while living:
        living.pop().destroy()
