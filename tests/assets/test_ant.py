"""assets/ant against the table of its source (gymapi rule 3.4, locomotion C18)."""

import numpy as np
import pytest


def test_C18_ant_masses_joints_and_poses(load_asset, table, check_masses, check_joints, check_poses):
    asset, expected = load_asset("ant/ant.xml"), table("ant")
    check_masses(asset, expected)
    check_joints(asset, expected)
    check_poses(asset, expected)
    assert not asset.fixed_base
    np.testing.assert_allclose(asset.root_pos, [0, 0, 0.75])
    assert asset.notes == []


def test_C18_ant_sanity_numbers(load_asset):
    asset = load_asset("ant/ant.xml")
    mass = {body.name: body.mass for body in asset.bodies}
    assert mass["torso"] == pytest.approx(0.483880, abs=1e-6)
    assert mass["front_left_leg"] == pytest.approx(0.039158, abs=1e-6)
    assert mass["front_left_foot"] == pytest.approx(0.067592, abs=1e-6)
    assert sum(mass.values()) == pytest.approx(0.910880, abs=1e-6)


def test_ant_actuators(load_asset, table):
    asset = load_asset("ant/ant.xml")
    assert [actuator.joint for actuator in asset.actuators] == [row["joint"] for row in table("ant")["actuators"]]
    assert {(a.kind, a.gear, a.ctrl_range, a.force_limited) for a in asset.actuators} == {
        ("motor", 15.0, (-1.0, 1.0), False)
    }
    assert all(joint.drive_mode == 0 for _, joint in asset.dof_joints)


def test_ant_shapes(load_asset):
    asset = load_asset("ant/ant.xml")
    shapes = [shape for body in asset.bodies for shape in body.shapes]
    assert {(shape.kind, shape.friction, shape.density, shape.filter) for shape in shapes} == {
        ("sphere", 1.5, 5.0, 0),
        ("capsule", 1.5, 5.0, 0),
    }
    assert len(shapes) == 13


def test_ant_start_pose_is_zero_clamped_into_the_limits(load_asset):
    props = load_asset("ant/ant.xml").dof_properties()
    start = np.clip(0.0, props["lower"], props["upper"])
    np.testing.assert_allclose(start, np.array([0, 1, 0, -1, 0, -1, 0, 1]) * np.pi / 6, atol=1e-6)
