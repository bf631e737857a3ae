"""Cells of environments on the CPU: who lies near whom."""

import math

import numpy as np
import pytest

from isaacgym.engine import placement


@pytest.mark.parametrize(
    ("count", "classes", "kinds", "distance"),
    [(9, 1, 1, 3), (2079, 1, 1, 3), (2080, 1, 1, 4), (3250, 1, 1, 5), (16384, 1, 1, 5), (16384, 8, 1, 2)]
    + [(16384, 1, 8, 2), (16384, 1, 33, 1)],
)
def test_equal_colours_are_this_many_cells_apart(count, classes, kinds, distance):
    colours = placement.colours(count, classes, kinds)
    side = math.ceil(math.sqrt(count))
    grid = np.full((side, side), -1)
    grid.reshape(-1)[:count] = colours
    assert len(set(colours.tolist())) == distance**2
    for shift in range(1, distance):
        assert not np.any((grid[shift:] == grid[:-shift]) & (grid[shift:] >= 0))
        assert not np.any((grid[:, shift:] == grid[:, :-shift]) & (grid[:, shift:] >= 0))
    if side > distance:
        assert grid[0, 0] == grid[0, distance] == grid[distance, 0]


def test_every_colour_has_enough_envs_to_clone_fast():
    for count in range(1170, 20000, 77):
        assert np.bincount(placement.colours(count, 1, 1)).min() > 113
