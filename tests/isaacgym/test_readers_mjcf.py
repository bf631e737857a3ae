"""MJCF reader: joints, limits, defaults, includes, masses and errors (E5, E9 and files as found in the wild)."""

from functools import partial

import numpy as np
import pytest
import trimesh
from asset_text import GEOM, dof, load_mjcf, on_base, options

from isaacgym.engine import read_mjcf, spatial
from isaacgym.engine.asset import FLT_MAX, AssetError


@pytest.fixture
def load(tmp_path):
    """A loader of MJCF text written to tmp_path."""
    return partial(load_mjcf, tmp_path)


# ---- bodies and joints


def test_E5_three_orthogonal_hinges_are_one_body_with_three_named_dofs(load):
    robot = load(
        on_base(
            '<joint name="yaw" axis="0 0 1"/><joint name="pitch" axis="0 1 0"/><joint name="roll" axis="1 0 0"/>',
            'pos="0 0 1"',
        )
    )
    assert robot.body_names == ["base", "link"]
    assert robot.dof_names == ["yaw", "pitch", "roll"]
    assert robot.joint_names == ["yaw"]
    assert robot.fixed_base


def test_several_hinges_turn_as_a_rotation_vector(load):
    robot = load(on_base('<joint name="a" axis="1 0 0"/><joint name="b" axis="0 1 0"/><joint name="c" axis="0 0 1"/>'))
    pose = robot.forward_kinematics(np.array([0.3, 0.4, -0.5]))[1]
    np.testing.assert_allclose(pose[3:], [0.14689, 0.19586, -0.24482, 0.93815], atol=1e-5)  # the values of F18


def test_joints_that_do_not_make_one_get_light_bodies_between_them(load):
    robot = load(on_base('<joint name="lift" type="slide" axis="0 0 1"/><joint name="turn" axis="0 1 0" pos="0 0 1"/>'))
    assert robot.body_names == ["base", "link:lift", "link"]
    assert robot.dof_names == ["lift", "turn"]
    pose = robot.forward_kinematics(np.array([0.5, np.pi / 2]))[2]
    np.testing.assert_allclose(pose[:3], [-1, 0, 1.5], atol=1e-12)
    assert any("light bodies" in note and "robot.xml:" in note for note in robot.notes)


def test_root_with_hinges_hangs_on_a_world_body(load):
    robot = load(
        '<geom type="box" size="1 1 0.1"/><body name="cart" pos="0 0 1"><joint type="slide" axis="1 0 0"/>'
        + GEOM
        + "</body>"
    )
    assert robot.body_names == ["world", "cart"]
    assert robot.fixed_base
    assert len(robot.bodies[0].shapes) == 1
    np.testing.assert_allclose(robot.bodies[1].pos, [0, 0, 1])
    np.testing.assert_allclose(robot.root_pos, 0)


def test_free_root_floats_and_its_pose_is_kept_aside(load):
    text = '<geom type="plane"/><body name="torso" pos="0 0 0.7" euler="0 0 90"><freejoint/>' + GEOM + "</body>"
    robot = load(text)
    assert not robot.fixed_base
    assert robot.num_dofs == 0
    np.testing.assert_allclose(robot.root_pos, [0, 0, 0.7])
    np.testing.assert_allclose(robot.root_quat, [0, 0, np.sqrt(0.5), np.sqrt(0.5)])
    np.testing.assert_allclose(robot.forward_kinematics()[0], [0, 0, 0, 0, 0, 0, 1])
    assert robot.notes == []
    assert load(text.replace("<freejoint/>", '<joint type="free"/>'), fix_base_link=True).fixed_base


def test_only_the_actor_tree_is_taken(load):
    text = f'<body name="table">{GEOM}</body><body name="robot"><freejoint/>{GEOM}</body>'
    robot = load(text)
    assert robot.body_names == ["robot"]
    assert any("'table' dropped" in note for note in robot.notes)


def test_welded_bodies_stay_bodies(load):
    robot = load(on_base(""), collapse_fixed_joints=True)
    assert robot.body_names == ["base", "link"]
    assert robot.num_dofs == 0
    assert robot.bodies[1].joints[0].kind == "fixed"


def test_siblings_keep_document_order(load):
    legs = "".join(
        f'<body name="{n}"><joint name="j{n}"/>{GEOM}<body name="{n}2"><joint name="j{n}2"/>{GEOM}</body></body>'
        for n in "zab"
    )
    robot = load(f'<body name="base"><freejoint/>{GEOM}{legs}</body>')
    assert robot.dof_names == ["jz", "jz2", "ja", "ja2", "jb", "jb2"]
    assert [body.parent for body in robot.bodies] == [-1, 0, 1, 0, 3, 0, 5]


def test_ball_joint_is_three_dofs(load):
    robot = load(on_base('<joint name="hip" type="ball" range="0 90"/>'))
    assert robot.dof_names == ["hip:0", "hip:1", "hip:2"]
    assert len(robot.bodies) == 2
    assert (dof(robot).lower, dof(robot).upper) == (pytest.approx(-np.pi / 2), pytest.approx(np.pi / 2))


def test_frames_are_resolved(load):
    robot = load(
        on_base(
            '<frame pos="1 0 0" euler="0 0 90"><joint name="j" axis="1 0 0"/>'
            '<geom name="g" size="0.1" pos="1 0 0"/></frame>'
        )
    )
    np.testing.assert_allclose(dof(robot).axis, [0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(dof(robot).anchor, [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(robot.bodies[1].shapes[0].pos, [1, 1, 0], atol=1e-12)


def test_joint_values_come_from_the_element(load):
    joint = '<joint name="j" stiffness="3" damping="0.5" armature="0.01" frictionloss="0.2" actuatorfrcrange="-4 4"/>'
    (props,) = load(on_base(joint), armature=0.02, default_dof_drive_mode=3).dof_properties()
    assert (props["stiffness"], props["damping"], props["effort"], props["driveMode"]) == (3, 0.5, 4, 3)
    assert props["armature"] == pytest.approx(0.03)
    assert props["friction"] == pytest.approx(0.2)


# ---- limits


@pytest.mark.parametrize(
    ("attributes", "autolimits", "limited"),
    [
        ('range="-30 30"', "true", True),
        ('range="-30 30" limited="auto"', "true", True),
        ('range="-30 30" limited="true"', "false", True),
        ('range="-30 30" limited="false"', "true", False),
        ('range="-30 30"', "false", False),
        ("", "true", False),
    ],
)
def test_B22_limits_with_and_without_the_limited_attribute(load, attributes, autolimits, limited):
    robot = load(on_base(f'<joint name="j" {attributes}/>'), f'<compiler autolimits="{autolimits}"/>')
    joint = dof(robot)
    assert joint.has_limits is limited
    expected = (-np.pi / 6, np.pi / 6) if limited else (-FLT_MAX, FLT_MAX)
    assert (joint.lower, joint.upper) == pytest.approx(expected)


def test_B22_zero_width_and_missing_ranges_are_noted(load):
    assert any("cannot move" in note for note in load(on_base('<joint range="10 10"/>')).notes)
    robot = load(on_base('<joint limited="true"/>'))
    assert not dof(robot).has_limits
    assert any("has no range" in note for note in robot.notes)


def test_slide_limits_are_metres_and_radians_stay(load):
    assert dof(load(on_base('<joint type="slide" range="-1 2"/>'))).upper == 2
    assert dof(load(on_base('<joint range="-1 2"/>'), '<compiler angle="radian"/>')).upper == 2


def test_ref_moves_into_the_limits(load):
    joint = dof(load(on_base('<joint range="0 90" ref="45"/>')))
    assert (joint.lower, joint.upper) == (pytest.approx(-np.pi / 4), pytest.approx(np.pi / 4))


def test_B26_unlimited_joints_are_finite_in_float32(load):
    (props,) = load(on_base("<joint/>")).dof_properties()
    assert not props["hasLimits"]
    assert props["upper"] == np.finfo(np.float32).max
    assert np.isfinite((props["lower"] + props["upper"]) / 2)


# ---- defaults, compiler, includes


def test_nested_default_classes_and_childclass(load):
    rest = """<default>
      <joint damping="1" axis="1 0 0"/>
      <default class="leg"><joint damping="2"/>
        <default class="knee"><joint armature="0.5"/></default>
      </default>
    </default>"""
    text = f"""<body name="base">{GEOM}<joint name="a"/>
      <body childclass="leg">{GEOM}<joint name="b"/>
        <body>{GEOM}<joint name="c" class="knee" damping="7"/>
          <body childclass="main">{GEOM}<joint name="d"/></body></body></body></body>"""
    robot = load(text, rest)
    joints = {joint.name: joint for _, joint in robot.dof_joints}
    assert [joints[n].damping for n in "abcd"] == [1, 2, 7, 1]
    assert joints["c"].armature == 0.5
    np.testing.assert_allclose(joints["c"].axis, [1, 0, 0])


def test_main_class_may_have_another_name(load):
    robot = load(on_base("<joint/>"), '<default class="robot"><joint damping="4"/></default>')
    assert dof(robot).damping == 4


@pytest.mark.parametrize(
    ("orientation", "compiler", "quat"),
    [
        ('quat="1 1 0 0"', "", [np.sqrt(0.5), 0, 0, np.sqrt(0.5)]),
        ('axisangle="0 0 2 90"', "", [0, 0, np.sqrt(0.5), np.sqrt(0.5)]),
        ('xyaxes="0 1 0 -1 0 0"', "", [0, 0, np.sqrt(0.5), np.sqrt(0.5)]),
        ('zaxis="1 0 0"', "", [0, np.sqrt(0.5), 0, np.sqrt(0.5)]),
        ('euler="90 90 0"', "", [0.5, 0.5, 0.5, 0.5]),
        ('euler="90 90 0"', '<compiler eulerseq="XYZ"/>', [0.5, 0.5, -0.5, 0.5]),
        ('euler="0 0 1.5707963267948966"', '<compiler angle="radian"/>', [0, 0, np.sqrt(0.5), np.sqrt(0.5)]),
    ],
)
def test_orientations(load, orientation, compiler, quat):
    np.testing.assert_allclose(load(on_base("", orientation), compiler).bodies[1].quat, quat, atol=1e-9)


def test_includes_share_defaults_and_keep_their_own_lines(load, tmp_path):
    (tmp_path / "defaults.xml").write_text('<mujocoinclude>\n<default><joint damping="9"/></default></mujocoinclude>')
    (tmp_path / "arm.xml").write_text(
        '<mujocoinclude><body name="arm">\n<joint name="j"/>\n<geom size="0.1"/></body></mujocoinclude>'
    )
    robot = load(
        '<body name="base"><geom size="0.1"/><include file="arm.xml"/></body>', '<include file="defaults.xml"/>'
    )
    assert robot.body_names == ["base", "arm"]
    assert dof(robot).damping == 9
    (tmp_path / "arm.xml").write_text(
        '<mujocoinclude><body name="arm">\n<joint name="j" axis="0 0 x"/></body></mujocoinclude>'
    )
    with pytest.raises(AssetError, match=r"arm\.xml:2: axis=\"0 0 x\""):
        load('<body name="base"><geom size="0.1"/><include file="arm.xml"/></body>')


def test_an_include_of_itself_is_an_error(load):
    with pytest.raises(AssetError, match="included a second time"):
        load('<body><geom size="0.1"/></body>', '<include file="robot.xml"/>')


# ---- shapes and masses


def test_fromto_capsule(load):
    robot = load('<body name="b"><geom type="capsule" size="0.05" fromto="0 0 0 0 0.6 0.8"/></body>')
    shape = robot.bodies[0].shapes[0]
    assert shape.size == pytest.approx((0.05, 0.5))
    np.testing.assert_allclose(shape.pos, [0, 0.3, 0.4])
    along = spatial.rotate(shape.quat, np.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(np.abs(along), [0, 0.6, 0.8], atol=1e-12)


def test_E9_masses_from_density_and_from_written_mass(load):
    robot = load(
        '<body name="b"><freejoint/><geom type="box" size="0.05 0.1 0.15"/>'
        '<body name="c"><joint/><geom type="box" size="0.05 0.1 0.15" mass="3"/></body></body>'
    )
    first, second = robot.bodies
    assert (first.mass, second.mass) == (pytest.approx(6), pytest.approx(3))
    np.testing.assert_allclose(np.diag(first.inertia), [0.065, 0.05, 0.025])
    np.testing.assert_allclose(np.diag(second.inertia), [0.0325, 0.025, 0.0125])


def test_option_density_applies_where_the_file_gives_none(load):
    text = '<body><geom type="box" size="0.5 0.5 0.5"/><geom type="box" size="0.5 0.5 0.5" density="7"/></body>'
    assert load(text, density=2.0).bodies[0].mass == pytest.approx(9)


def test_B24_visual_geoms_weigh_unless_an_inertial_is_written(load):
    geoms = '<geom size="0.1" mass="1"/><geom size="0.1" mass="2" contype="0" conaffinity="0" group="2"/>'
    robot = load(f'<body name="b">{geoms}</body>')
    assert robot.bodies[0].mass == pytest.approx(3)
    assert len(robot.bodies[0].shapes) == 1
    inertial = '<inertial pos="0 0 1" mass="5" diaginertia="1 2 2.5" euler="0 0 90"/>'
    written = load(f'<body name="b">{inertial}{geoms}</body>').bodies[0]
    assert written.mass == 5
    np.testing.assert_allclose(np.diag(written.inertia), [2, 1, 2.5], atol=1e-12)
    from_geoms = load(
        f'<body name="b">{inertial}{geoms}</body>', '<compiler inertiafromgeom="true" inertiagrouprange="0 1"/>'
    )
    assert from_geoms.bodies[0].mass == pytest.approx(1)


def test_full_inertia_bounds_balance_and_total_mass(load):
    body = '<body name="b"><inertial pos="0 0 0" mass="2" fullinertia="1 1 1 0.1 0.2 0.3"/><geom size="0.1"/></body>'
    tensor = load(body).bodies[0].inertia
    np.testing.assert_allclose(tensor, [[1, 0.1, 0.2], [0.1, 1, 0.3], [0.2, 0.3, 1]])
    assert load(body, '<compiler settotalmass="10"/>').bodies[0].mass == pytest.approx(10)
    assert load(body, '<compiler boundmass="3"/>').bodies[0].mass == pytest.approx(3)
    thin = body.replace("1 1 1 0.1 0.2 0.3", "1 1 3 0 0 0")
    balanced = load(thin, '<compiler balanceinertia="true"/>').bodies[0].inertia
    np.testing.assert_allclose(balanced, 5 / 3 * np.eye(3))


def test_zero_mass_of_a_moving_body_is_an_error_with_its_place(load):
    with pytest.raises(AssetError, match=r"robot\.xml:4: mass 0 of 'link'"):
        load(on_base('<joint/><inertial pos="0 0 0" mass="0" diaginertia="0 0 0"/>'))


def test_mesh_geoms_scale_and_weigh(load, tmp_path):
    (tmp_path / "meshes").mkdir()
    trimesh.creation.box(extents=(1, 2, 3)).export(tmp_path / "meshes" / "part.stl")
    asset = '<compiler meshdir="meshes"/><asset><mesh name="part" file="part.stl" scale="0.1 0.1 0.1"/></asset>'
    body = load('<body><geom type="mesh" mesh="part" pos="0 0 1"/></body>', asset).bodies[0]
    assert body.mass == pytest.approx(6, rel=1e-6)
    np.testing.assert_allclose(body.com, [0, 0, 1], atol=1e-9)
    assert body.shapes[0].kind == "hull"


def test_ellipsoid_is_a_hull_with_exact_mass(load):
    body = load('<body><geom type="ellipsoid" size="0.1 0.2 0.3"/></body>').bodies[0]
    assert body.mass == pytest.approx(1000 * 4 / 3 * np.pi * 0.006)
    assert body.shapes[0].kind == "hull"
    np.testing.assert_allclose(np.ptp(body.shapes[0].mesh[0], axis=0), [0.2, 0.4, 0.6], rtol=0.02)


def test_friction_and_cylinder_options(load):
    text = '<body><geom type="cylinder" size="0.1 0.2" friction="0.7 0 0"/></body>'
    shape = load(text).bodies[0].shapes[0]
    assert (shape.kind, shape.friction) == ("cylinder", 0.7)
    assert load(text, replace_cylinder_with_capsule=True).bodies[0].shapes[0].kind == "capsule"


# ---- errors and leniency


@pytest.mark.parametrize(
    ("text", "rest", "message"),
    [
        (on_base('<geom type="torus" size="1"/>'), "", r"robot\.xml:5: geom type 'torus' on a body; allowed is sphere"),
        (on_base('<geom type="mesh" mesh="none"/>'), "", r"robot\.xml:5: geom 'link_geom0' names the mesh 'none'"),
        (on_base('<geom size="-1"/>'), "", r"1 positive numbers are needed"),
        (on_base('<geom type="capsule" size="1" fromto="0 0 0 0 0 0"/>'), "", r"both ends in one place"),
        (on_base('<joint class="nope"/>'), "", r"robot\.xml:5: <joint> names the default class 'nope'"),
        (on_base('<joint type="screw"/>'), "", r"type=\"screw\" of <joint>; allowed is hinge, slide, ball, free"),
        (on_base('<joint axis="0 0 0"/>'), "", r"axis of joint 'joint0' is zero"),
        (on_base('<joint range="1 -1"/>'), "", r"range of joint 'joint0'"),
        (on_base("<freejoint/>"), "", r"robot\.xml:4: body 'link' inside another has a free joint"),
        (on_base("<wheel/>"), "", r"robot\.xml:5: unknown element <wheel>"),
        (on_base("<replicate/>"), "", r"<replicate> is not supported; write its bodies out"),
        (on_base(""), "<actuator><motor/></actuator>", r"actuator without a target"),
        (on_base(""), "<tendon><rope/></tendon>", r"unknown tendon <rope>; allowed is fixed, spatial"),
        (on_base(""), '<compiler coordinate="global"/>', r"allowed is local"),
        (on_base(""), '<compiler eulerseq="abc"/>', r"three letters of xyzXYZ"),
        (on_base(""), '<include file="none.xml"/>', r"included file 'none\.xml' does not exist"),
        (on_base("", 'quat="0 0 0 0"'), "", r"robot\.xml:4: quat of <body> gives no orientation"),
        ('<body name="b"><geom size="1"/></body><body name="b"/>', "", r"a second body named 'b'"),
        ("", "", r"robot\.xml:2: the file has no <body>"),
        ("<body>", "", r"robot\.xml:\d+: not well-formed XML"),
    ],
)
def test_B14_what_cannot_be_used_is_an_error_with_file_and_line(load, text, rest, message):
    with pytest.raises(AssetError, match=message):
        load(text, rest)


def test_B14_menagerie_style_files_load(load, tmp_path):
    trimesh.creation.box(extents=(0.1, 0.1, 0.1)).export(tmp_path / "part.stl")
    rest = """<option integrator="implicitfast"/><statistic/><visual/><extension/>
    <default><default class="arm"><mesh scale="2 2 2"/><joint armature="0.1"/>
      <default class="visual"><geom type="mesh" contype="0" conaffinity="0" group="2" mass="0"/></default>
      <default class="collision"><geom type="mesh" group="3"/></default></default></default>
    <asset><material name="grey"/><texture type="skybox"/><mesh class="arm" file="part.stl"/></asset>
    <sensor><gyro site="imu"/></sensor><keyframe><key name="home" qpos="0"/></keyframe>
    <equality><joint joint1="a" joint2="a"/></equality><motors/>"""
    text = """<light/><camera/><body name="base" childclass="arm"><site name="imu"/>
      <geom class="visual" mesh="part" material="grey"/><geom class="collision" mesh="part"/>
      <body name="link"><joint name="a"/><geom class="collision" mesh="part"/></body></body>"""
    robot = load(text, rest)
    assert [len(body.shapes) for body in robot.bodies] == [1, 1]
    assert robot.bodies[1].mass == pytest.approx(8, rel=1e-6)
    assert dof(robot).armature == 0.1
    assert any("<equality> dropped: joint x1" in note for note in robot.notes)
    assert any("unknown section <motors>" in note for note in robot.notes)


def test_a_urdf_is_no_mjcf(tmp_path):
    (tmp_path / "robot.xml").write_text("<robot/>")
    with pytest.raises(AssetError, match=r"robot\.xml:1: the root element is <robot>"):
        read_mjcf.load(tmp_path / "robot.xml", options())
