"""Collision shapes of URDF files: primitives, and meshes wherever they lie (B9)."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import trimesh
from asset_text import UNIT, link, load_urdf, mesh_link

from isaacgym.engine import inertia


@pytest.fixture
def load(tmp_path):
    """A loader of URDF text written to tmp_path."""
    return partial(load_urdf, tmp_path)


def test_cylinder_stays_or_becomes_a_capsule_of_the_same_radius(load):
    text = link(
        "a", UNIT + '<collision name="rod"><geometry><cylinder radius="0.1" length="0.6"/></geometry></collision>'
    )
    shape = load(text).bodies[0].shapes[0]
    assert (shape.kind, shape.name, shape.size) == ("cylinder", "rod", (0.1, 0.3))
    replaced = load(text, replace_cylinder_with_capsule=True).bodies[0].shapes[0]
    assert (replaced.kind, replaced.size) == ("capsule", (0.1, 0.3))


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
    robot = load_urdf(urdf_folder, mesh_link(filename), asset_root=tmp_path / "root")
    shape = robot.bodies[0].shapes[0]
    assert shape.kind == "hull"
    np.testing.assert_allclose(np.ptp(shape.mesh[0], axis=0), [0.1, 0.2, 0.3], atol=1e-6)


def test_mesh_paths_in_ros_package_path(load, tmp_path, monkeypatch):
    package = tmp_path / "elsewhere" / "my_robot"
    package.mkdir(parents=True)
    trimesh.creation.icosphere(radius=0.1).export(package / "part.stl")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "elsewhere"))
    assert load_urdf(tmp_path / "urdf", mesh_link("package://my_robot/part.stl")).num_shapes == 1


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
