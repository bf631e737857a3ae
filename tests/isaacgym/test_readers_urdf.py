"""URDF reader: order, collapsing, masses, limits and errors (E1-E4, E8, E9 and files as found in the wild)."""

from functools import partial

import numpy as np
import pytest
from asset_text import INERTIA, UNIT, joint, link, load_urdf, mesh_link, options

from isaacgym.engine import asset as asset_model
from isaacgym.engine import read_urdf
from isaacgym.engine.asset import FLT_MAX, AssetError

BALL = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'


@pytest.fixture
def load(tmp_path):
    """A loader of URDF text written to tmp_path."""
    return partial(load_urdf, tmp_path)


# ---- order


def test_E1_siblings_come_in_alphabetical_order_of_joint_name(load):
    legs = ["FR", "FL", "RR", "RL"]
    text = link("base") + "".join(link(f"{leg}_hip_link") + link(f"{leg}_thigh_link") for leg in legs)
    for leg in legs:
        text += joint(f"{leg}_hip", "base", f"{leg}_hip_link") + joint(
            f"{leg}_thigh", f"{leg}_hip_link", f"{leg}_thigh_link"
        )
    robot = load(text)
    expected = [f"{leg}_{part}" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "thigh")]
    assert robot.dof_names == expected
    assert robot.body_names == ["base", *(f"{name}_link" for name in expected)]
    assert [body.parent for body in robot.bodies] == [-1, 0, 1, 0, 3, 0, 5, 0, 7]


def test_E2_siblings_sort_by_bytes(load):
    names = ["joint_0", "joint_4", "joint_8", "joint_12"]
    text = link("base") + "".join(link(f"of_{name}") + joint(name, "base", f"of_{name}") for name in names)
    assert load(text).dof_names == ["joint_0", "joint_12", "joint_4", "joint_8"]


def test_first_of_several_parentless_links_is_the_base(load):
    robot = load(link("zeta") + link("alpha") + link("tip") + joint("j", "alpha", "tip"))
    assert robot.body_names == ["alpha", "tip"]
    assert any("zeta" in note and "robot.urdf:2" in note for note in robot.notes)


# ---- collapsing

PARENT_AND_CHILD = link("parent") + link(
    "child", f'<inertial><origin xyz="1 0 0"/><mass value="3"/>{INERTIA}</inertial>{BALL}'
)


def test_E3_collapse_merges_mass_com_and_inertia(load):
    robot = load(PARENT_AND_CHILD + joint("weld", "parent", "child", "fixed"), collapse_fixed_joints=True)
    (body,) = robot.bodies
    assert body.mass == pytest.approx(4)
    np.testing.assert_allclose(body.com, [0.75, 0, 0], atol=1e-12)
    np.testing.assert_allclose(np.diag(body.inertia), [0.2, 0.95, 0.95], atol=1e-12)
    assert "child" not in robot.body_names
    assert len(body.shapes) == 1


def test_E4_dont_collapse_keeps_the_link(load):
    text = PARENT_AND_CHILD + joint("weld", "parent", "child", "fixed", attributes='dont_collapse="true"')
    robot = load(text, collapse_fixed_joints=True)
    assert len(robot.bodies) == 2
    assert robot.num_dofs == 0
    assert robot.joint_names == ["weld"]


def test_fixed_joints_survive_without_collapsing(load):
    robot = load(PARENT_AND_CHILD + joint("weld", "parent", "child", "fixed"))
    assert robot.body_names == ["parent", "child"]
    assert robot.joint_names == ["weld"]


def test_B10_flagged_foot_stays_and_unflagged_mount_merges(load):
    text = link("base") + link("mount", UNIT + BALL) + link("leg") + link("foot", UNIT + BALL)
    text += joint("mount_weld", "base", "mount", "fixed", '<origin xyz="0 0 0.5"/>')
    text += joint("hip", "mount", "leg", extra='<origin xyz="0.1 0 0" rpy="0 0 1.5707963267948966"/>')
    text += joint("foot_weld", "leg", "foot", "fixed", '<origin xyz="0 0 -0.3"/>', 'dont_collapse="true"')
    robot = load(text, collapse_fixed_joints=True)
    assert robot.body_names == ["base", "leg", "foot"]
    assert sum(body.mass for body in robot.bodies) == pytest.approx(4)
    np.testing.assert_allclose(robot.bodies[0].shapes[0].pos, [0, 0, 0.5])
    leg = robot.bodies[1]
    np.testing.assert_allclose(leg.pos, [0.1, 0, 0.5], atol=1e-12)
    np.testing.assert_allclose(leg.quat, [0, 0, np.sqrt(0.5), np.sqrt(0.5)], atol=1e-12)
    np.testing.assert_allclose(leg.joints[0].anchor, 0)


def test_reattached_joints_sort_among_all_of_the_parent(load):
    text = link("base") + link("mount") + link("x") + link("y")
    text += joint("weld", "base", "mount", "fixed") + joint("b", "base", "x") + joint("a", "mount", "y")
    assert load(text, collapse_fixed_joints=True).dof_names == ["a", "b"]
    assert load(text).dof_names == ["b", "a"]  # "b" < "weld" among the joints of the base


# ---- joints and limits

LIMITED = (
    '<axis xyz="0 0 1"/><limit lower="-1" upper="2" effort="33" velocity="21"/><dynamics damping="0.1" friction="0.2"/>'
)


def test_E8_properties_of_a_revolute_joint(load):
    robot = load(link("a") + link("b") + joint("j", "a", "b", extra=LIMITED), armature=0.01)
    (props,) = robot.dof_properties()
    assert props["hasLimits"]
    assert (props["lower"], props["upper"], props["driveMode"]) == (-1, 2, 0)
    assert (props["velocity"], props["effort"], props["stiffness"]) == (21, 33, 0)
    assert props["damping"] == pytest.approx(0.1)
    assert props["friction"] == pytest.approx(0.2)
    assert props["armature"] == pytest.approx(0.01)


def test_E8_default_drive_mode_and_link_armature(load):
    robot = load(
        link("a") + link("b") + joint("j", "a", "b"), default_dof_drive_mode=1, armature=0.5, use_physx_armature=False
    )
    (props,) = robot.dof_properties()
    assert props["driveMode"] == 1
    assert props["armature"] == 0
    np.testing.assert_allclose(np.diag(robot.bodies[1].inertia), 0.6)


@pytest.mark.parametrize(
    ("kind", "limit"),
    [
        ("continuous", '<limit lower="-1" upper="1" effort="5" velocity="6"/>'),
        ("revolute", '<limit effort="5" velocity="6"/>'),
    ],
)
def test_B18_continuous_and_limitless_joints_are_unlimited(load, kind, limit):
    (props,) = load(link("a") + link("b") + joint("j", "a", "b", kind, limit)).dof_properties()
    assert not props["hasLimits"]
    assert props["lower"] == np.float32(-FLT_MAX)
    assert props["upper"] == np.float32(FLT_MAX)
    assert (props["effort"], props["velocity"]) == (5, 6)


def test_B26_unlimited_range_is_finite_in_float32(load):
    (props,) = load(link("a") + link("b") + joint("j", "a", "b", "continuous")).dof_properties()
    for name in ("lower", "upper", "effort", "velocity"):
        assert np.isfinite(props[name])
        assert abs(props[name]) == np.finfo(np.float32).max
    with np.errstate(over="raise"):
        assert (props["lower"] + props["upper"]) / 2 == 0  # the middle of the range


def test_B9_off_axis_joint_follows_its_axis(load):
    extra = '<origin xyz="0 0 1"/><axis xyz="0.6 0.8 0"/>'
    robot = load(link("a") + link("b") + joint("j", "a", "b", extra=extra))
    pose = robot.forward_kinematics(np.array([0.5]))[1]
    np.testing.assert_allclose(pose[:3], [0, 0, 1])
    np.testing.assert_allclose(pose[3:], [0.6 * np.sin(0.25), 0.8 * np.sin(0.25), 0, np.cos(0.25)], atol=1e-12)


def test_axis_defaults_to_x_and_is_normalised(load):
    robot = load(
        link("a")
        + link("b")
        + link("c")
        + joint("j", "a", "b")
        + joint("k", "b", "c", "prismatic", '<axis xyz="0 0 5"/>')
    )
    np.testing.assert_allclose(robot.bodies[1].joints[0].axis, [1, 0, 0])
    np.testing.assert_allclose(robot.bodies[2].joints[0].axis, [0, 0, 1])
    np.testing.assert_allclose(robot.forward_kinematics(np.array([0, 0.25]))[2, :3], [0, 0, 0.25])


def test_mimic_is_an_ordinary_dof_with_a_note(load):
    text = link("a") + link("b") + link("c") + joint("j", "a", "b")
    robot = load(text + joint("k", "b", "c", extra='<mimic joint="j" multiplier="2"/>'))
    assert robot.dof_names == ["j", "k"]
    assert any("mimics" in note for note in robot.notes)


def test_limits_that_immobilise_are_noted(load):
    limit = '<limit lower="0" upper="0" effort="0" velocity="1"/>'
    robot = load(link("a") + link("b") + joint("j", "a", "b", extra=limit))
    assert any("cannot move" in note for note in robot.notes)
    assert any("zero effort or velocity limit" in note for note in robot.notes)


def test_floating_joint_below_an_empty_root_makes_its_child_the_root(load):
    text = link("world", "") + link("base", UNIT + BALL) + joint("free", "world", "base", "floating")
    assert load(text).body_names == ["base"]


# ---- masses


def test_E9_box_mass_from_density():
    box = asset_model.primitive_box(0.1, 0.2, 0.3, options(density=1000.0))
    (body,) = box.bodies
    assert body.mass == pytest.approx(6)
    np.testing.assert_allclose(np.diag(body.inertia), [0.065, 0.05, 0.025])
    assert box.body_names == ["box"]
    assert box.num_dofs == 0


def test_primitives_stand_as_asked():
    capsule = asset_model.primitive_capsule(0.1, 0.4, options(density=1000.0, fix_base_link=True))
    (body,) = capsule.bodies
    assert capsule.fixed_base
    assert body.shapes[0].size == (0.1, 0.2)
    assert body.inertia[0, 0] < body.inertia[1, 1] == pytest.approx(body.inertia[2, 2])  # along x
    assert asset_model.primitive_sphere(0.5, options()).bodies[0].mass == pytest.approx(1000 * np.pi / 6)
    with pytest.raises(AssetError, match="radius is 0"):
        asset_model.primitive_sphere(0.0, options())


def test_B9_mass_without_inertia_takes_it_from_the_shape(load):
    inertial = '<inertial><mass value="2"/></inertial><collision><geometry><box size="1 2 3"/></geometry></collision>'
    robot = load(link("a", inertial))
    np.testing.assert_allclose(np.diag(robot.bodies[0].inertia), np.array([13, 10, 5]) * 2 / 12)
    assert any("no inertia" in note for note in robot.notes)


def test_B9_links_without_mass_and_shape_get_a_tiny_one(load):
    robot = load(link("base_footprint", "") + link("base") + joint("weld", "base_footprint", "base", "fixed"))
    assert robot.bodies[0].mass == pytest.approx(1e-3)
    assert any("base_footprint" in note and "neither mass nor shapes" in note for note in robot.notes)
    collapsed = load(
        link("base_footprint", "") + link("base") + joint("weld", "base_footprint", "base", "fixed"),
        collapse_fixed_joints=True,
    )
    assert collapsed.body_names == ["base_footprint"]
    assert collapsed.bodies[0].mass == pytest.approx(1)


def test_missing_mass_comes_from_shapes_and_density(load):
    robot = load(link("a", BALL), density=500.0)
    assert robot.bodies[0].mass == pytest.approx(500 * 4 / 3 * np.pi * 1e-3)
    assert any("computed from its shapes" in note for note in robot.notes)


def test_override_com_and_inertia_take_the_geometry(load):
    text = link("a", f'<inertial><origin xyz="1 1 1"/><mass value="2"/>{INERTIA}</inertial>{BALL}')
    body = load(text, override_com=True, override_inertia=True).bodies[0]
    np.testing.assert_allclose(body.com, 0)
    np.testing.assert_allclose(np.diag(body.inertia), 0.4 * 2 * 0.01)
    assert body.mass == 2


@pytest.mark.parametrize("mass", ["0", "-1"])
def test_zero_mass_of_a_moving_link_with_shapes_is_an_error_with_its_place(load, mass):
    text = link("a") + link("b", f'\n<inertial><mass value="{mass}"/>{INERTIA}</inertial>{BALL}') + joint("j", "a", "b")
    with pytest.raises(AssetError, match=r"robot\.urdf:4: mass .* of 'b'"):
        load(text)


def test_zero_mass_is_harmless_where_nothing_moves_or_after_merging(load):
    zero = link("b", f'<inertial><mass value="0"/>{INERTIA}</inertial>{BALL}')
    weld = joint("weld", "a", "b", "fixed")
    assert load(link("a") + zero + weld, fix_base_link=True).bodies[1].mass == pytest.approx(
        1000 * 4 / 3 * np.pi * 1e-3
    )
    assert load(link("a") + zero + weld, collapse_fixed_joints=True).bodies[0].mass == pytest.approx(1)


def test_impossible_inertias_are_noted_or_raised(load):
    def tensor(xx, yy, zz):
        return (
            f'<inertial><mass value="1"/><inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/></inertial>'
        )

    kept = load(link("a", tensor(1, 1, 3)))
    np.testing.assert_allclose(np.diag(kept.bodies[0].inertia), [1, 1, 3])
    assert any("no real body" in note for note in kept.notes)
    raised = load(link("a", tensor(-0.1, 1, 1)))
    assert np.linalg.eigvalsh(raised.bodies[0].inertia)[0] > 0
    assert any("not positive" in note for note in raised.notes)


def test_large_mass_ratio_is_noted(load):
    heavy = link("heavy", f'<inertial><mass value="5000"/>{INERTIA}</inertial>')
    assert any("mass ratio" in note for note in load(heavy + link("light") + joint("j", "heavy", "light")).notes)


# ---- errors and leniency


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('<link name="a">\n<collision></link>', r"robot\.urdf:3: not well-formed XML"),
        (link("a") + link("a"), r"robot\.urdf:3: a second link named 'a'"),
        (link("a") + "\n" + joint("j", "a", "nowhere"), r"robot\.urdf:4: joint 'j' names the link 'nowhere'"),
        (link("a") + link("b") + joint("j", "a", "b", "screw"), r"robot\.urdf:4: type=\"screw\".*allowed is revolute"),
        (link("a") + link("b") + joint("j", "a", "b", "planar"), r"robot\.urdf:4: type=\"planar\""),
        (link("a") + link("b") + joint("j", "a", "b") + joint("k", "b", "a"), r"every link is the child of another"),
        (
            link("a") + link("b") + joint("j", "a", "b", extra='\n<axis xyz="0 0 0"/>'),
            r"robot\.urdf:5: the axis of joint 'j'",
        ),
        (
            link("a") + link("b") + joint("j", "a", "b", extra='<axis xyz="0 one 0"/>'),
            r"robot\.urdf:4: xyz=\"0 one 0\"",
        ),
        (link("a") + link("b") + joint("j", "a", "b", extra='<axis xyz="0 1"/>'), r"has 2 numbers; 3 are needed"),
        (
            link("a") + link("b") + joint("j", "a", "b", extra='<limit lower="1" upper="-1"/>'),
            r"lower limit 1 is above",
        ),
        (link("a", "<collision><geometry><cone/></geometry></collision>"), r"unknown geometry <cone>; allowed is box"),
        (link("a", '<collision><geometry><sphere radius="nan"/></geometry></collision>'), r"finite numbers"),
        (link("a", '<collision><geometry><sphere radius="-1"/></geometry></collision>'), r"positive lengths"),
        (link("a", UNIT) + joint("j", "a", "b").replace('<child link="b"/>', ""), r"joint 'j' has no <child>"),
        (mesh_link("missing.stl"), r"robot\.urdf:2: no file 'missing\.stl'"),
        (mesh_link("robot.urdf"), r"robot\.urdf:2: mesh format '\.urdf'.*allowed is \.obj"),
        ('<xacro:macro xmlns:xacro="http://ros.org/xacro" name="m"/>', r"expand the file with xacro"),
        ("", r"robot\.urdf:1: the robot has no <link>"),
    ],
)
def test_errors_name_file_and_line(load, text, message):
    with pytest.raises(AssetError, match=message):
        load(text)


def test_missing_and_foreign_files(tmp_path):
    with pytest.raises(AssetError, match=r"none\.urdf: cannot be read"):
        read_urdf.load(tmp_path / "none.urdf", options())
    (tmp_path / "empty.urdf").write_text("")
    with pytest.raises(AssetError, match=r"empty\.urdf:1: the file holds no XML"):
        read_urdf.load(tmp_path / "empty.urdf", options())
    (tmp_path / "model.urdf").write_text("<sdf/>")
    with pytest.raises(AssetError, match=r"model\.urdf:1: the root element is <sdf>"):
        read_urdf.load(tmp_path / "model.urdf", options())


@pytest.mark.parametrize("start", ['<?xml version="0.0"?>', '<!-- made by hand -->\n<?xml version="1.0"?>'])
def test_odd_xml_declarations_are_accepted(tmp_path, start):
    (tmp_path / "robot.urdf").write_text(f"{start}\n<robot name='r'>{link('a')}</robot>")
    assert read_urdf.load(tmp_path / "robot.urdf", options()).body_names == ["a"]


def test_plugins_transmissions_and_unbound_prefixes_are_passed_over(load):
    text = link("a") + "<gazebo/><gazebo/><transmission/><controller:x/><material name='m'/>"
    robot = load(text)
    assert any("gazebo x2" in note and "transmission x1" in note for note in robot.notes)


def test_wrong_number_of_joint_values_is_an_error(load):
    with pytest.raises(ValueError, match="2 joint values for 1 DOFs"):
        load(link("a") + link("b") + joint("j", "a", "b")).forward_kinematics(np.zeros(2))
