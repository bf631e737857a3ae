"""URDF reader: order, collapsing, masses, limits and errors (E1-E4, E8, E9 and files as found in the wild)."""

from pathlib import Path

import numpy as np
import pytest
import trimesh

from isaacgym._params import AssetOptions
from isaacgym.engine import asset as asset_model
from isaacgym.engine import inertia, read_urdf
from isaacgym.engine.asset import FLT_MAX, AssetError

INERTIA = '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>'
UNIT = f'<inertial><mass value="1"/>{INERTIA}</inertial>'
BALL = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'


def options(**values):
    made = AssetOptions()
    for name, value in values.items():
        setattr(made, name, value)
    return made


def link(name, content=UNIT):
    return f'<link name="{name}">{content}</link>\n'


def joint(name, parent, child, kind="revolute", extra="", attributes=""):
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}" {attributes}>{ends}{extra}</joint>\n'


@pytest.fixture
def load(tmp_path):
    def from_text(body, folder=tmp_path, asset_root=None, **values):
        path = Path(folder) / "robot.urdf"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'<robot name="test">\n{body}</robot>\n')
        return read_urdf.load(path, options(**values), asset_root)

    return from_text


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


# ---- shapes and meshes


def test_cylinder_stays_or_becomes_a_capsule_of_the_same_radius(load):
    text = link(
        "a", UNIT + '<collision name="rod"><geometry><cylinder radius="0.1" length="0.6"/></geometry></collision>'
    )
    shape = load(text).bodies[0].shapes[0]
    assert (shape.kind, shape.name, shape.size) == ("cylinder", "rod", (0.1, 0.3))
    replaced = load(text, replace_cylinder_with_capsule=True).bodies[0].shapes[0]
    assert (replaced.kind, replaced.size) == ("capsule", (0.1, 0.3))


def mesh_link(filename, extra=""):
    return link("a", f'{UNIT}<collision><geometry><mesh filename="{filename}" {extra}/></geometry></collision>')


@pytest.mark.parametrize(
    ("filename", "lies_in"),
    [
        ("../meshes/part.stl", "description/meshes"),
        ("package://description/meshes/part.stl", "description/meshes"),
        ("package://other_name/meshes/part.stl", "description/meshes"),
        ("meshes/part.obj", "root/meshes"),
    ],
)
def test_B9_mesh_paths_are_found(load, tmp_path, filename, lies_in):
    folder = tmp_path / lies_in
    folder.mkdir(parents=True)
    trimesh.creation.box(extents=(0.1, 0.2, 0.3)).export(folder / Path(filename).name)
    urdf_folder = tmp_path / "description" / "urdf"
    robot = load(mesh_link(filename), folder=urdf_folder, asset_root=tmp_path / "root")
    shape = robot.bodies[0].shapes[0]
    assert shape.kind == "hull"
    np.testing.assert_allclose(np.ptp(shape.mesh[0], axis=0), [0.1, 0.2, 0.3], atol=1e-6)


def test_mesh_paths_in_ros_package_path(load, tmp_path, monkeypatch):
    package = tmp_path / "elsewhere" / "my_robot"
    package.mkdir(parents=True)
    trimesh.creation.icosphere(radius=0.1).export(package / "part.stl")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "elsewhere"))
    assert load(mesh_link("package://my_robot/part.stl"), folder=tmp_path / "urdf").num_shapes == 1


COLLADA = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
  <asset><unit name="millimeter" meter="0.001"/><up_axis>Z_UP</up_axis></asset>
  <library_geometries><geometry id="g"><mesh>
    <source id="p"><float_array id="pa" count="12">0 0 0 100 0 0 0 100 0 0 0 100</float_array></source>
    <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
    <polylist count="4"><input semantic="VERTEX" source="#v" offset="0"/>
      <input semantic="NORMAL" source="#n" offset="1"/>
      <vcount>3 3 3 3</vcount><p>0 0 2 0 1 0 0 0 1 0 3 0 0 0 3 0 2 0 1 0 2 0 3 0</p></polylist>
  </mesh></geometry></library_geometries>
  <library_visual_scenes><visual_scene id="s"><node><translate>1000 0 0</translate><rotate>0 0 1 90</rotate>
    <instance_geometry url="#g"/></node></visual_scene></library_visual_scenes>
</COLLADA>
"""


def test_B9_collada_units_and_node_transforms(load, tmp_path):
    (tmp_path / "part.dae").write_text(COLLADA)
    vertices = load(mesh_link("part.dae")).bodies[0].shapes[0].mesh[0]
    expected = np.array([[1, 0, 0], [1, 0.1, 0], [0.9, 0, 0], [1, 0, 0.1]])
    distances = np.linalg.norm(vertices[:, None] - expected[None], axis=-1)
    assert vertices.shape == (4, 3)
    np.testing.assert_allclose(distances.min(axis=0), 0, atol=1e-12)


def test_mesh_scale_and_mass(load, tmp_path):
    trimesh.creation.box(extents=(1, 1, 1)).export(tmp_path / "part.stl")
    text = mesh_link("part.stl", 'scale="0.1 0.2 -0.3"').replace(UNIT, "")
    body = load(text, density=1000.0).bodies[0]
    assert body.mass == pytest.approx(6)
    np.testing.assert_allclose(np.diag(body.inertia), [0.065, 0.05, 0.025], rtol=1e-6)


def test_vhacd_and_submesh_options(load, tmp_path):
    two = "o a\n" + "".join(f"v {x} {y} {z}\n" for x in (0, 1) for y in (0, 1) for z in (0, 1))
    cube = "f 1 2 4 3\nf 5 7 8 6\nf 1 5 6 2\nf 3 4 8 7\nf 1 3 7 5\nf 2 6 8 4\n"
    far = "o b\n" + "".join(f"v {x + 3} {y} {z}\n" for x in (0, 1) for y in (0, 1) for z in (0, 1))
    shifted = "\n".join(
        " ".join([line.split()[0], *(str(int(n) + 8) for n in line.split()[1:])]) for line in cube.strip().split("\n")
    )
    (tmp_path / "part.obj").write_text(two + cube + far + shifted + "\n")
    one = load(mesh_link("part.obj")).bodies[0].shapes
    assert [shape.kind for shape in one] == ["hull"]
    np.testing.assert_allclose(np.ptp(one[0].mesh[0], axis=0), [4, 1, 1])
    parts = load(mesh_link("part.obj"), convex_decomposition_from_submeshes=True).bodies[0].shapes
    assert [shape.kind for shape in parts] == ["hull", "hull"]
    assert [shape.kind for shape in load(mesh_link("part.obj"), vhacd_enabled=True).bodies[0].shapes] == [
        "decomposition"
    ]


def test_a_mesh_with_a_hole_weighs_as_if_it_were_closed():
    box = trimesh.creation.box(extents=(0.1, 0.2, 0.3))
    vertices, triangles = np.array(box.vertices) + 5, np.array(box.faces)
    closed = inertia.of_mesh(vertices, triangles, 1000.0)
    inside_out = inertia.of_mesh(vertices, triangles[:, ::-1], 1000.0)
    np.testing.assert_allclose(closed.com, 5)
    for solid in (closed, inside_out):
        assert solid.mass == pytest.approx(6)
        np.testing.assert_allclose(np.diag(solid.inertia), [0.065, 0.05, 0.025])
    without_one = inertia.of_mesh(vertices, triangles[1:], 1000.0, is_closed=False)
    assert without_one.mass == pytest.approx(6 * 11 / 12, rel=0.05)
    with pytest.raises(ValueError, match="no volume"):
        inertia.of_mesh(vertices, triangles[:1], 1000.0)


def test_flat_mesh_becomes_a_thin_box(load, tmp_path):
    trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]).export(tmp_path / "part.stl")
    robot = load(mesh_link("part.stl"))
    assert np.ptp(robot.bodies[0].shapes[0].mesh[0], axis=0)[2] > 0
    assert any("flat" in note for note in robot.notes)


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
