"""assets/cartpole against the table of its source (gymapi rule 3.4, locomotion C18)."""


def test_C18_cartpole_masses_joints_and_poses(load_asset, table, check_masses, check_joints, check_poses):
    asset, expected = load_asset("cartpole/cartpole.urdf", fix_base_link=True), table("cartpole")
    check_masses(asset, expected)
    check_joints(asset, expected)
    check_poses(asset, expected)
    assert asset.fixed_base
    assert asset.notes == []


def test_cartpole_dof_properties(load_asset):
    cart, pole = load_asset("cartpole/cartpole.urdf").dof_properties()
    assert (cart["lower"], cart["upper"], cart["effort"], cart["velocity"]) == (-4, 4, 1000, 100)
    assert not pole["hasLimits"]
    assert (pole["effort"], pole["velocity"]) == (1000, 8)


def test_cartpole_shapes_are_boxes(load_asset):
    asset = load_asset("cartpole/cartpole.urdf")
    assert {shape.kind for body in asset.bodies for shape in body.shapes} == {"box"}
    assert asset.bodies[0].shapes[0].size == (0.015, 4.0, 0.015)
