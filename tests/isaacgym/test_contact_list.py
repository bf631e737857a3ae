"""The list of single contacts: ``get_rigid_contacts`` and ``get_env_rigid_contacts`` (API notes 9.7)."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from scenes import GRAVITY

from isaacgym import gymapi
from isaacgym.engine import contact_list

FIELDS = ("env0", "env1", "body0", "body1", "local_pos0", "local_pos1", "normal", "lambda", "initial_overlap")


def xyz(column: np.ndarray) -> np.ndarray:
    return np.stack([column[axis] for axis in "xyz"], axis=-1)


@pytest.fixture
def towers(make_world):
    """Two envs: a box of 1 kg on the +x half of a box of 2 kg that is turned by 90 degrees, on a plane."""
    world = make_world()
    world.plane()
    low, high = world.box((0.5, 0.5, 0.5), 2.0), world.box((0.2, 0.2, 0.2), 1.0)
    for _ in range(2):
        env = world.env(per_row=2)
        world.actor(env, low, (0.0, 0.0, 0.25), (0.0, 0.0, 0.5**0.5, 0.5**0.5), name="low")
        world.actor(env, high, (0.1, 0.0, 0.6), name="high")
    world.prepare("root")
    return world


def test_every_contact_is_listed_once_with_bodies_forces_and_places(towers):
    towers.step(60)
    rows = towers.gym.get_env_rigid_contacts(towers.envs[1])
    assert set(FIELDS) <= set(rows.dtype.names)
    assert rows.dtype == gymapi.RIGID_CONTACT_DTYPE
    ground, stack = rows[rows["body1"] == -1], rows[rows["body1"] == 1]
    assert len(ground) == len(stack) == 4
    assert len(rows) == 8
    assert set(rows["env0"]) == {1}
    assert set(rows["body0"]) == {0}
    assert set(ground["env1"]) == {-1}
    assert set(stack["env1"]) == {1}
    assert ground["lambda"].sum() == pytest.approx(3 * GRAVITY, abs=0.1)
    assert stack["lambda"].sum() == pytest.approx(GRAVITY, abs=0.1)
    np.testing.assert_allclose(xyz(ground["normal"]), np.tile([0.0, 0.0, -1.0], (4, 1)), atol=1e-3)
    np.testing.assert_allclose(xyz(stack["normal"]), np.tile([0.0, 0.0, 1.0], (4, 1)), atol=1e-3)
    # World offsets (0..0.2, +-0.1) from the lower box's centre are (y, -x) in its own, turned frame.
    corners = {(round(x, 2), round(y, 2), round(z, 2)) for x, y, z in xyz(stack["local_pos0"]).tolist()}
    assert corners == {(-0.1, -0.2, 0.25), (-0.1, 0.0, 0.25), (0.1, -0.2, 0.25), (0.1, 0.0, 0.25)}
    np.testing.assert_allclose(np.abs(xyz(stack["local_pos1"])), 0.1, atol=2e-3)
    assert np.abs(rows["initial_overlap"]).max() < 1e-3


def test_all_envs_together_and_none_before_the_first_step(towers):
    assert len(towers.gym.get_rigid_contacts(towers.sim)) == 0
    towers.step(60)
    rows = towers.gym.get_rigid_contacts(towers.sim)
    assert sorted(rows["env0"]) == [0] * 8 + [1] * 8


def test_a_lifted_box_touches_nothing(towers):
    towers.step(30)
    root = towers.tensors["root"]
    root[1, 2] = 2.0
    towers.write_root(root, 1)
    towers.step(1)
    rows = towers.gym.get_env_rigid_contacts(towers.envs[0])
    assert set(rows["body1"]) == {-1}


def test_no_list_where_contacts_are_not_collected(make_world):
    world = make_world(contact_collection=gymapi.CC_NEVER)
    world.plane()
    world.actor(world.env(), world.box(), (0.0, 0.0, 0.25))
    world.prepare("root")
    world.step(5)
    assert len(world.gym.get_rigid_contacts(world.sim)) == 0


def test_what_does_not_fit_is_said_and_fits_from_the_next_step_on(towers, monkeypatch, caplog):
    monkeypatch.setattr(contact_list, "MIN_CAPACITY", 10)
    monkeypatch.setattr(contact_list, "CONTACTS_PER_BODY", 1)
    towers.step(60)
    assert len(towers.gym.get_rigid_contacts(towers.sim)) < 16
    assert "10 of 24 rigid contacts are listed; from the next step on all" in caplog.text
    towers.step(1)
    assert len(towers.gym.get_rigid_contacts(towers.sim)) == 16


def test_beside_net_forces_the_list_starts_with_the_next_step(towers, caplog):
    towers.prepare("contact")
    towers.step(60)
    with caplog.at_level(logging.WARNING):
        assert len(towers.gym.get_rigid_contacts(towers.sim)) == 0
    assert "listed from now on" in caplog.text
    towers.step(1)
    rows = towers.gym.get_rigid_contacts(towers.sim)
    assert len(rows) == 16
    assert float(towers.tensors["contact"][0, 2]) == pytest.approx(2 * GRAVITY, abs=0.1)
