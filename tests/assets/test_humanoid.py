"""assets/humanoid against the table of its source (locomotion C18)."""

import numpy as np


def test_C18_humanoid_masses_joints_and_poses(load_asset, table, check_masses, check_joints, check_poses):
    asset, expected = load_asset("humanoid/humanoid.xml"), table("humanoid")
    check_masses(asset, expected)
    check_joints(asset, expected)
    check_poses(asset, expected)
    assert not asset.fixed_base
    np.testing.assert_allclose(asset.root_pos, [0, 0, 1.5])
    assert asset.notes == []


def test_humanoid_has_21_dofs_on_bodies_of_several_hinges(load_asset):
    asset = load_asset("humanoid/humanoid.xml")
    counts = {body.name: len(body.joints) for body in asset.bodies if len(body.joints) > 1}
    assert asset.num_dofs == 21
    assert counts == {
        "lower_waist": 2,
        "right_thigh": 3,
        "right_foot": 2,
        "left_thigh": 3,
        "left_foot": 2,
        "right_upper_arm": 2,
        "left_upper_arm": 2,
    }


def test_humanoid_actuators_keep_file_order_and_gears(load_asset, table):
    actuators = load_asset("humanoid/humanoid.xml").actuators
    expected = [(row["joint"], row["gear"]) for row in table("humanoid")["actuators"]]
    assert [(actuator.joint, actuator.gear) for actuator in actuators] == expected
    assert [actuator.joint for actuator in actuators[:3]] == ["abdomen_y", "abdomen_z", "abdomen_x"]


def test_humanoid_poses_with_one_hinge_of_each_body(load_asset):
    """Turning one hinge only is the same in both readings of several hinges on one body."""
    asset = load_asset("humanoid/humanoid.xml")
    q = np.zeros(21)
    q[asset.dof_names.index("right_hip_z")] = np.pi / 2
    poses = asset.forward_kinematics(q)
    home = asset.forward_kinematics()
    thigh, shin = (asset.body_names.index(f"right_{part}") for part in ("thigh", "shin"))
    np.testing.assert_allclose(poses[thigh, :3], home[thigh, :3], atol=1e-12)
    # the shin hangs 0.01 m to the left of the hip: a quarter turn about z brings that to -x (up to the tilted pelvis)
    np.testing.assert_allclose(poses[shin, :3] - poses[thigh, :3], [-0.01, 0, -0.403], atol=4e-3)
