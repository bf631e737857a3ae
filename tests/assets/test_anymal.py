"""assets/anymal_c against the tables of its sources (gymapi rule 3.4, locomotion C18)."""

import numpy as np
import pytest

LEGS = ("LF", "LH", "RF", "RH")
FILES = {"anymal": "anymal_c/anymal.urdf", "anymal_minimal": "anymal_c/anymal_minimal.urdf"}


@pytest.mark.parametrize("name", FILES)
def test_C18_anymal_masses_joints_and_poses(name, load_asset, table, check_masses, check_joints, check_poses):
    asset, expected = load_asset(FILES[name]), table(name)
    check_masses(asset, expected)
    check_joints(asset, expected)
    check_poses(asset, expected)
    assert asset.notes == []


@pytest.mark.parametrize("name", FILES)
def test_B5_anymal_legs_come_as_lf_lh_rf_rh(name, load_asset):
    asset = load_asset(FILES[name], collapse_fixed_joints=True)
    assert asset.dof_names == [f"{leg}_{joint}" for leg in LEGS for joint in ("HAA", "HFE", "KFE")]
    assert asset.body_names == ["base", *(f"{leg}_{part}" for leg in LEGS for part in ("HIP", "THIGH", "SHANK"))]


@pytest.mark.parametrize("name", FILES)
def test_B10_anymal_feet_merge_into_the_shanks(name, load_asset, table):
    asset, apart = load_asset(FILES[name], collapse_fixed_joints=True), load_asset(FILES[name])
    assert len(apart.bodies) == 17
    assert sum(body.mass for body in asset.bodies) == pytest.approx(table(name)["total_mass"])
    bodies = {body.name: body for body in asset.bodies}
    for row in table(name)["feet_merged"]:
        body = bodies[row["name"]]
        assert body.mass == pytest.approx(row["mass"])
        np.testing.assert_allclose(body.com, row["com"], atol=1e-10)
        np.testing.assert_allclose(body.inertia, row["inertia"], atol=1e-12)
    foot = bodies["LF_SHANK"].shapes[-1]
    assert (foot.kind, foot.size) == ("sphere", (0.03,))
    np.testing.assert_allclose(foot.pos, [0.01305, -0.08795, -0.31547], atol=1e-6)


def test_anymal_limits_and_efforts(load_asset):
    props = load_asset(FILES["anymal"]).dof_properties()
    assert set(props["effort"]) == {80}
    assert set(props["velocity"]) == {20}
    np.testing.assert_allclose(props["lower"][[0, 3, 6, 9]], [-0.72, -0.72, -0.49, -0.49])
    np.testing.assert_allclose(props["upper"][[0, 3, 6, 9]], [0.49, 0.49, 0.72, 0.72])
    assert not load_asset(FILES["anymal_minimal"]).dof_properties()["hasLimits"].any()


def test_anymal_cylinders_become_capsules_on_request(load_asset):
    kinds = {
        replaced: {
            shape.kind
            for body in load_asset(FILES["anymal"], replace_cylinder_with_capsule=replaced).bodies
            for shape in body.shapes
        }
        for replaced in (False, True)
    }
    assert kinds == {False: {"box", "cylinder", "sphere"}, True: {"box", "capsule", "sphere"}}
