"""assets/shadow_hand and assets/allegro_hand against the tables of their sources."""

from itertools import combinations

import numpy as np
import pytest


def test_shadow_hand_masses_joints_and_poses(load_asset, table, check_masses, check_joints, check_poses):
    asset, expected = load_asset("shadow_hand/shadow_hand.xml"), table("shadow_hand")
    check_masses(asset, expected)
    check_joints(asset, expected, skip=("stiffness", "effort"))  # set by the actuators
    check_poses(asset, expected)
    assert asset.fixed_base
    assert (len(asset.bodies), asset.num_dofs, asset.body_names[3]) == (26, 24, "robot0:palm")
    np.testing.assert_allclose(asset.root_quat, [0, -np.sqrt(0.5), np.sqrt(0.5), 0], atol=2e-6)
    assert asset.notes == []


def test_E6_shadow_hand_actuators_drive_their_joints(load_asset, table):
    asset, rows = load_asset("shadow_hand/shadow_hand.xml"), table("shadow_hand")["actuators"]
    props = dict(zip(asset.dof_names, asset.dof_properties(), strict=True))
    assert [actuator.joint for actuator in asset.actuators] == [row["joint"] for row in rows]
    for actuator, row in zip(asset.actuators, rows, strict=True):
        assert list(actuator.ctrl_range) == row["ctrl_range"]
        joint = props.pop(actuator.joint)
        assert (joint["driveMode"], joint["stiffness"]) == (1, row["kp"])
        assert joint["effort"] == pytest.approx(row["force_range"][1])
    assert set(props) == {f"robot0:{finger}J0" for finger in ("FF", "MF", "RF", "LF")}
    assert all(joint["driveMode"] == 0 and joint["stiffness"] == 0 for joint in props.values())


def test_B25_shadow_hand_has_four_tendons(load_asset, table):
    asset = load_asset("shadow_hand/shadow_hand.xml", tendon_limit_stiffness=30.0)
    expected = [(row["name"], row["joints"], row["coefs"], row["range"]) for row in table("shadow_hand")["tendons"]]
    assert [(t.name, t.joints, t.coefs, [t.lower, t.upper]) for t in asset.tendons] == expected
    assert len(asset.tendons) == 4
    assert all(tendon.limited and tendon.limit_stiffness == 30 for tendon in asset.tendons)


def test_B2_shadow_hand_shapes_touch_only_as_listed(load_asset, table):
    asset = load_asset("shadow_hand/shadow_hand.xml")
    shapes = [(index, shape) for index, body in enumerate(asset.bodies) for shape in body.shapes]
    touching = {
        frozenset((a.name, b.name))
        for (i, a), (j, b) in combinations(shapes, 2)
        if i != j and asset.bodies[j].parent != i and not a.filter & b.filter
    }
    assert touching == {frozenset(pair) for pair in table("shadow_hand")["touching"]}
    assert all(0 <= shape.filter < 2**31 for _, shape in shapes)


def test_allegro_hand_masses_joints_and_poses(load_asset, table, check_masses, check_joints, check_poses):
    asset, expected = load_asset("allegro_hand/allegro_hand.urdf", fix_base_link=True), table("allegro_hand")
    check_masses(asset, expected)
    check_joints(asset, expected)
    check_poses(asset, expected)
    assert asset.fixed_base
    assert asset.num_dofs == 16
    (note,) = asset.notes
    assert "inertias kept though no real body has them: index_link_1" in note
    assert note.count("_link_") == 13


def test_allegro_hand_is_the_same_with_fixed_joints_collapsed(load_asset):
    kept = load_asset("allegro_hand/allegro_hand.urdf")
    assert load_asset("allegro_hand/allegro_hand.urdf", collapse_fixed_joints=True).body_names == kept.body_names


def test_hand_shapes_are_primitives(load_asset):
    for file in ("allegro_hand/allegro_hand.urdf", "shadow_hand/shadow_hand.xml"):
        shapes = [shape for body in load_asset(file).bodies for shape in body.shapes]
        assert {shape.kind for shape in shapes} <= {"box", "capsule", "cylinder"}
        assert all(min(shape.size) > 0.003 for shape in shapes)
