"""Value and parameter classes, enumerations and constants (API notes, sections 6-8, test cases A1-A10)."""

from __future__ import annotations

import copy
import enum
import importlib
import json
import math
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from isaacgym import _enums, _params, _values
from isaacgym._arrays import QUAT, TRANSFORM, VEC3
from isaacgym._enums import DOF_MODE_EFFORT, DOF_MODE_POS, ContactCollection, DofDriveMode, UpAxis
from isaacgym._fields import Record
from isaacgym._params import (
    AssetOptions,
    CameraProperties,
    HeightFieldParams,
    HeightFieldProperties,
    PlaneParams,
    RigidBodyProperties,
    RigidShapeProperties,
    SimParams,
    TendonProperties,
    TriangleMeshParams,
)
from isaacgym._values import (
    DOF_PROPERTIES_DTYPE,
    DofFrame,
    DofState,
    Int3,
    Mat33,
    Mat44,
    Quat,
    RigidBodyState,
    Transform,
    Vec2,
    Vec3,
    Velocity,
    Version,
)

NAMES = json.loads((Path(__file__).parents[1] / "data" / "gymapi_names.json").read_text())
RECORDS = [
    value
    for module in (_values, _params)
    for value in (getattr(module, name) for name in module.__all__)
    if isinstance(value, type) and issubclass(value, Record)
]
Z90 = Quat.from_axis_angle(Vec3(0, 0, 1), math.pi / 2)
X90 = Quat.from_axis_angle(Vec3(1, 0, 0), math.pi / 2)
T1 = Transform(Vec3(1, 2, 3), Z90)
T2 = Transform(p=Vec3(1, 0, 0))


def approx(*values, tol=1e-6):
    return pytest.approx(values, abs=tol)


def vec3s(*rows):
    return np.array(list(rows), Vec3.dtype)


# Geometry


def test_A1_euler_angles_to_quaternion_and_back():
    q = Quat.from_euler_zyx(0.1, 0.2, 0.3)
    assert q.as_tuple() == approx(0.034271, 0.106021, 0.143572, 0.983347)
    assert q.to_euler_zyx() == approx(0.1, 0.2, 0.3)
    assert Quat().from_euler_zyx(0.1, 0.2, 0.3).as_tuple() == q.as_tuple()


def test_A1_from_euler_zyx_is_x_then_y_then_z():
    x, y, z = Vec3(1, 0, 0), Vec3(0, 1, 0), Vec3(0, 0, 1)
    product = Quat.from_axis_angle(z, -2.1) * Quat.from_axis_angle(y, 1.2) * Quat.from_axis_angle(x, 0.7)
    assert Quat.from_euler_zyx(0.7, 1.2, -2.1).as_tuple() == approx(*product.as_tuple())


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_A1_to_euler_zyx_stays_in_range_and_inverts(sign):
    reach = math.pi * np.array([1, 0.5, 1])
    angles = np.random.default_rng(0).uniform(-reach, reach, (200, 3))
    for a, b, c in angles:
        q = Quat.from_euler_zyx(a, b, c)
        assert Quat(*(sign * np.array(q.as_tuple()))).to_euler_zyx() == approx(a, b, c, tol=1e-9)


@pytest.mark.parametrize("pitch", [math.pi / 2, -math.pi / 2])
def test_A1_to_euler_zyx_at_the_pole_gives_the_same_rotation(pitch):
    q = Quat.from_euler_zyx(0.4, pitch, -1.1)
    a, b, c = q.to_euler_zyx()
    assert b == pytest.approx(pitch, abs=1e-9)
    again = Quat.from_euler_zyx(a, b, c)
    overlap = sum(m * n for m, n in zip(q.as_tuple(), again.as_tuple(), strict=True))
    assert abs(overlap) == pytest.approx(1.0, abs=1e-12)


def test_A2_axis_angle_rotates():
    assert Z90.rotate(Vec3(1, 0, 0)).as_tuple() == approx(0, 1, 0)
    assert Quat.from_axis_angle(Vec3(0, 0, 5), math.pi / 2).as_tuple() == approx(*Z90.as_tuple())


def test_A3_quaternion_product_applies_the_right_factor_first():
    assert (Z90 * X90).as_tuple() == approx(0.5, 0.5, 0.5, 0.5)
    assert (X90 * Z90).as_tuple() == approx(0.5, -0.5, 0.5, 0.5)


def test_A3_inverse_and_normalize():
    assert (Z90 * Z90.inverse()).as_tuple() == approx(0, 0, 0, 1)
    assert Quat(0, 0, 3, 4).normalize().as_tuple() == approx(0, 0, 0.6, 0.8)


def test_A4_transforms():
    assert (T1 * T2).p.as_tuple() == approx(1, 3, 3)
    assert (T1 * T2).r.as_tuple() == approx(*Z90.as_tuple())
    assert T1.transform_point(Vec3(0, 1, 0)).as_tuple() == approx(0, 2, 3)
    assert T1.inverse().transform_point(Vec3(1, 2, 3)).as_tuple() == approx(0, 0, 0)
    assert T1.transform_vector(Vec3(1, 0, 0)).as_tuple() == approx(0, 1, 0)


def test_A4_transform_arrays_of_points_and_vectors():
    points = vec3s((0, 1, 0), (1, 0, 0)).reshape(2, 1)
    moved = T1.transform_points(points)
    assert moved.dtype == Vec3.dtype
    assert moved.shape == (2, 1)
    np.testing.assert_allclose(moved.view("f4").reshape(-1, 3), [[0, 2, 3], [1, 3, 3]], atol=1e-6)
    turned = T1.transform_vectors(points)
    np.testing.assert_allclose(turned.view("f4").reshape(-1, 3), [[-1, 0, 0], [0, 1, 0]], atol=1e-6)


@pytest.mark.parametrize("identity", [Transform(), Transform(None, None), Transform(p=None, r=None)])
def test_A4_transform_defaults_to_the_identity(identity):
    assert identity.as_tuple() == ((0, 0, 0), (0, 0, 0, 1))


def test_A5_nested_values_are_live_when_read_and_copied_when_assigned():
    pose = Transform()
    pose.p.z = 0.5
    assert pose.p.z == 0.5
    v = Vec3(1, 2, 3)
    pose.p = v
    v.x = 9
    assert pose.p.x == 1.0
    assert pose.p is pose.p
    other = Transform(v)
    v.y = 8
    assert other.p.y == 2.0


def test_A5_parameters_share_nothing_between_objects():
    a, b = SimParams(), SimParams()
    a.gravity.z = -9.81
    a.physx.num_threads = 9
    assert (b.gravity.z, b.physx.num_threads) == (0.0, 4)
    options = AssetOptions()
    options.vhacd_params.resolution = 3000
    assert (options.vhacd_params.resolution, AssetOptions().vhacd_params.resolution) == (3000, 100000)
    mesh = TriangleMeshParams()
    mesh.transform.p.x = -2
    assert mesh.transform.p.x == -2.0


def test_A6_vector_arithmetic():
    v, w = Vec3(1, 2, 3), Vec3(4, 5, 6)
    assert (v + Vec3(1, 1, 1)).as_tuple() == (2, 3, 4)
    assert (w - v).as_tuple() == (3, 3, 3)
    assert (-v).as_tuple() == (-1, -2, -3)
    assert (v * 2).as_tuple() == (2, 4, 6)
    assert (v / 2).as_tuple() == (0.5, 1, 1.5)
    assert v.dot(w) == 32
    assert v.cross(w).as_tuple() == (-3, 6, -3)
    assert v.length() == pytest.approx(3.741657)
    assert v.length_sq() == 14
    assert v.normalize().length() == pytest.approx(1.0)
    assert v.as_tuple() == (1, 2, 3), "operations make new vectors"
    assert (Vec2(1, 2) + Vec2(1, 1)).as_tuple() == (2, 3)


@pytest.mark.parametrize("two", [2, np.float32(2), np.array([2.0]), torch.tensor([2.0]), torch.tensor(2)])
def test_A6_scalars_of_all_kinds_multiply_vectors(two):
    assert (Vec3(1, 2, 3) * two).as_tuple() == (2, 4, 6)
    assert (two * Vec3(1, 2, 3)).as_tuple() == (2, 4, 6)
    assert (Vec3(1, 2, 3) / two).as_tuple() == (0.5, 1, 1.5)


def test_A6_vectors_do_not_add_to_other_things():
    for other in (1.0, Vec2(1, 1), (1, 1, 1)):
        with pytest.raises(TypeError):
            Vec3() + other


# Structured dtypes


@pytest.mark.parametrize(
    ("kind", "size"),
    [(Vec3, 12), (Quat, 16), (Transform, 28), (Velocity, 24), (RigidBodyState, 52), (DofState, 8), (DofFrame, 24)],
)
def test_A7_packed_dtypes(kind, size):
    assert kind.dtype.itemsize == size
    assert np.zeros(1, kind.dtype).view("f4").size == size // 4, "packed"


def test_A7_dof_properties_dtype():
    assert DOF_PROPERTIES_DTYPE.itemsize == 40
    names = list(DOF_PROPERTIES_DTYPE.names)
    assert " ".join(names) == "hasLimits lower upper driveMode velocity effort stiffness damping friction armature"
    assert [DOF_PROPERTIES_DTYPE.fields[name][1] for name in names] == list(range(0, 40, 4))
    assert [DOF_PROPERTIES_DTYPE[name].str for name in names] == ["|b1", "<f4", "<f4", "<i4", *["<f4"] * 6]


def test_A7_field_names_and_nested_views():
    states = np.zeros(3, RigidBodyState.dtype)
    assert RigidBodyState.dtype.names == ("pose", "vel")
    assert Transform.dtype.names == ("p", "r")
    assert Velocity.dtype.names == ("linear", "angular")
    states["pose"]["p"]["z"] = 2.0
    states["vel"]["angular"][1] = (4, 5, 6)
    flat = states.view("f4").reshape(-1, 13)
    assert flat[:, 2].tolist() == [2, 2, 2]
    assert flat[1, 10:].tolist() == [4, 5, 6]


def test_A7_helper_dtypes_are_those_of_the_classes():
    assert (Vec3.dtype, Quat.dtype, Transform.dtype) == (VEC3, QUAT, TRANSFORM)


def test_A7_from_buffer_reads_rows_arrays_numbers_and_bytes():
    states = np.zeros(2, RigidBodyState.dtype)
    states["pose"][1] = ((1, 2, 3), (0, 0, 1, 0))
    expected = ((1, 2, 3), (0, 0, 1, 0))
    assert Transform.from_buffer(states["pose"][1]).as_tuple() == expected
    assert Transform.from_buffer(states["pose"][1:]).as_tuple() == expected
    assert Transform.from_buffer(np.array([1, 2, 3, 0, 0, 1, 0])).as_tuple() == expected
    assert Transform.from_buffer(states["pose"][1].tobytes()).as_tuple() == expected
    assert Int3.from_buffer(np.array([1, 2, 3])).as_tuple() == (1, 2, 3)


def test_A7_as_tuple_fills_rows():
    array = np.zeros(2, Transform.dtype)
    array[1] = T1.as_tuple()
    assert array[1]["p"].tolist() == (1, 2, 3)
    assert Transform.from_tuple(T1.as_tuple()).as_tuple() == T1.as_tuple()


# Enumerations and constants


def test_A8_enum_members_fill_arrays_and_come_from_ints():
    modes = np.zeros(3, DOF_PROPERTIES_DTYPE)["driveMode"]
    modes.fill(DOF_MODE_POS)
    assert modes.tolist() == [1, 1, 1]
    modes[:] = DOF_MODE_EFFORT
    assert modes.tolist() == [3, 3, 3]
    assert DofDriveMode(3) == DOF_MODE_EFFORT
    assert DOF_MODE_EFFORT.name == "DOF_MODE_EFFORT"
    assert {DOF_MODE_EFFORT: 1}[DofDriveMode(3)] == 1
    assert int(DOF_MODE_POS) == 1


@pytest.mark.parametrize("name", NAMES["enums"])
def test_A8_every_enumeration_has_its_members_scoped_and_at_module_level(name):
    kind = getattr(_enums, name)
    assert issubclass(kind, enum.IntEnum)
    assert sorted(kind.__members__) == NAMES["enums"][name]
    for member in kind:
        assert getattr(_enums, member.name) is member
        assert isinstance(getattr(_enums, member.name), kind)


def test_A8_constants_have_their_names_types_and_values():
    for name, type_name in NAMES["constants"].items():
        assert type(getattr(_enums, name)).__name__ == type_name
    for name, value in NAMES["values"].items():
        assert getattr(_enums, name) == value


def test_A8_enums_export_nothing_else():
    public = {name for name in vars(_enums) if not name.startswith("_")}
    assert public == set(NAMES["enums"]) | set(NAMES["constants"])


@pytest.mark.parametrize(
    "members",
    [
        "SIM_PHYSX SIM_FLEX",
        "UP_AXIS_Y UP_AXIS_Z",
        "DOF_MODE_NONE DOF_MODE_POS DOF_MODE_VEL DOF_MODE_EFFORT",
        "CC_NEVER CC_LAST_SUBSTEP CC_ALL_SUBSTEPS",
        "DOMAIN_ACTOR DOMAIN_ENV DOMAIN_SIM",
        "ENV_SPACE LOCAL_SPACE GLOBAL_SPACE",
        "MESH_NONE MESH_COLLISION MESH_VISUAL MESH_VISUAL_AND_COLLISION",
        "IMAGE_COLOR IMAGE_DEPTH IMAGE_SEGMENTATION IMAGE_OPTICAL_FLOW",
        "DOF_INVALID DOF_ROTATION DOF_TRANSLATION",
        "JOINT_INVALID JOINT_FIXED JOINT_REVOLUTE JOINT_PRISMATIC JOINT_BALL JOINT_PLANAR JOINT_FLOATING",
        "FROM_ASSET COMPUTE_PER_VERTEX COMPUTE_PER_FACE",
        "FOLLOW_POSITION FOLLOW_TRANSFORM",
        "TENDON_FIXED TENDON_SPATIAL",
    ],
)
def test_A8_enum_values_follow_the_listing_order(members):
    assert [int(getattr(_enums, name)) for name in members.split()] == list(range(len(members.split())))


# Parameters


def test_A9_simulation_defaults():
    params = SimParams()
    assert params.dt == pytest.approx(1 / 60)
    assert params.substeps == 2
    assert params.gravity.as_tuple() == approx(0, -9.8, 0)
    assert params.physx.num_position_iterations == 4
    assert params.physx.num_velocity_iterations == 1
    assert params.physx.contact_collection == 2
    assert params.physx.solver_type == 1
    assert params.physx.contact_offset == 0.02
    assert params.physx.rest_offset == 0.001
    assert params.physx.bounce_threshold_velocity == 0.2
    assert params.physx.max_depenetration_velocity == 100
    assert params.physx.max_gpu_contact_pairs == 1048576
    assert params.up_axis == UpAxis.UP_AXIS_Y
    assert not params.use_gpu_pipeline


def test_A9_other_defaults():
    assert PlaneParams().normal.as_tuple() == (0, 1, 0)
    assert PlaneParams().static_friction == PlaneParams().dynamic_friction == 1
    options = AssetOptions()
    assert (options.density, options.angular_damping, options.max_angular_velocity) == (1000, 0.5, 64)
    assert options.use_physx_armature
    assert not options.fix_base_link
    assert options.vhacd_params.min_volume_per_ch == 1e-4
    assert HeightFieldProperties is HeightFieldParams
    assert HeightFieldParams().vertical_scale == 1
    assert RigidShapeProperties().friction == 1
    assert (CameraProperties().width, CameraProperties().height) == (1600, 900)
    assert Mat33().as_tuple() == ((0, 0, 0),) * 3
    assert Mat44().as_tuple() == ((0, 0, 0, 0),) * 4
    assert Version().as_tuple() == (1, 0)


@pytest.mark.parametrize("kind", RECORDS)
def test_A10_every_public_attribute_can_be_read(kind):
    made = kind()
    values = {name: getattr(made, name) for name in dir(made) if not name.startswith("_")}
    assert set(kind.field_names()) <= set(values)
    assert all(getattr(made, name) is not NotImplemented for name in dir(made))


@pytest.mark.parametrize(
    "value", [1.5, np.float32(1.5), np.array(1.5), np.array([1.5]), torch.tensor(1.5), torch.tensor([1.5])]
)
def test_A10_numbers_of_all_kinds_become_floats(value):
    props = RigidBodyProperties()
    props.mass = value
    assert type(props.mass) is float
    assert props.mass == 1.5
    assert Vec3(value, 0, value).as_tuple() == (1.5, 0, 1.5)


def test_A10_vectors_from_array_elements():
    assert Vec3(*torch.tensor([1.0, 2.0, 3.0])).as_tuple() == (1, 2, 3)
    assert Quat(*np.array([0, 0, 1, 0], np.float32)).as_tuple() == (0, 0, 1, 0)


def test_A10_integers_switches_and_choices():
    params = SimParams()
    params.substeps = np.int64(3)
    params.physx.max_gpu_contact_pairs = 2.0**23
    params.physx.use_gpu = np.bool_(True)
    params.use_gpu_pipeline = 1
    params.physx.contact_collection = 1
    params.up_axis = np.int32(1)
    assert (params.substeps, params.physx.max_gpu_contact_pairs) == (3, 8388608)
    assert params.physx.use_gpu is True
    assert params.use_gpu_pipeline is True
    assert params.physx.contact_collection is ContactCollection.CC_LAST_SUBSTEP
    assert params.up_axis is UpAxis.UP_AXIS_Z


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("dt", np.zeros(2), TypeError),
        ("dt", torch.zeros(3), TypeError),
        ("dt", "0.1", TypeError),
        ("dt", None, TypeError),
        ("substeps", 1.5, TypeError),
        ("use_gpu_pipeline", "False", TypeError),
        ("gravity", (0, 0, -9.81), TypeError),
        ("gravity", Quat(), TypeError),
        ("up_axis", 7, ValueError),
    ],
)
def test_A10_wrong_values_are_refused_with_the_attribute_named(name, value, error):
    params = SimParams()
    before = params.as_tuple()
    with pytest.raises(error, match=f"SimParams.{name}: "):
        setattr(params, name, value)
    assert params.as_tuple() == before


def test_A10_unknown_attributes_are_refused_with_a_hint():
    with pytest.raises(AttributeError, match="fix_base_link"):
        AssetOptions().fix_base_lnik = True


def test_A10_read_only_attributes():
    props = TendonProperties(num_joints=2)
    assert props.num_joints == 2
    with pytest.raises(AttributeError, match="num_joints is read-only"):
        props.num_joints = 3


# Copies


@pytest.mark.parametrize("kind", RECORDS)
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_equal_in_value_and_independent(kind, duplicate):
    original = kind()
    twin = duplicate(original)
    assert type(twin) is kind
    assert twin is not original
    assert twin != original, "objects compare by identity"
    assert twin.as_tuple() == original.as_tuple()
    for name in kind.field_names():
        if isinstance(getattr(original, name), Record):
            assert getattr(twin, name) is not getattr(original, name)


def test_copies_of_changed_parameters():
    params = SimParams()
    params.gravity.z = -9.81
    twin = copy.deepcopy({"a": params, "b": params})
    assert twin["a"] is twin["b"]
    assert twin["a"].gravity.z == -9.81
    twin["a"].gravity.z = 0
    assert params.gravity.z == -9.81


# Vectorised helpers


def test_vectorised_helpers_agree_with_the_classes():
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(5, 10))
    vectors = [Vec3(*row[:3]) for row in numbers]
    quats = [Quat(*row[3:7]).normalize() for row in numbers]
    poses = [Transform(Vec3(*row[7:]), q) for row, q in zip(numbers, quats, strict=True)]
    v = np.array([x.as_tuple() for x in vectors], Vec3.dtype)
    q = np.array([x.as_tuple() for x in quats], Quat.dtype)
    t = np.array([x.as_tuple() for x in poses], Transform.dtype)

    def check(got, expected):
        assert got.shape == (5,)
        np.testing.assert_allclose(got.view("f4").reshape(5, -1), [x.as_tuple() for x in expected], atol=1e-5)

    w = np.roll(v, 1)
    check(_values.cross(v, w), [a.cross(b) for a, b in zip(vectors, vectors[-1:] + vectors[:-1], strict=True)])
    np.testing.assert_allclose(
        _values.dot(v, w), [a.dot(b) for a, b in zip(vectors, vectors[-1:] + vectors[:-1], strict=True)], atol=1e-5
    )
    check(_values.rotate(q, v), [a.rotate(b) for a, b in zip(quats, vectors, strict=True)])
    check(_values.rotate_inverse(q, v), [a.inverse().rotate(b) for a, b in zip(quats, vectors, strict=True)])
    check(_values.transform(t, v), [a.transform_point(b) for a, b in zip(poses, vectors, strict=True)])
    back = [a.inverse().transform_point(b) for a, b in zip(poses, vectors, strict=True)]
    check(_values.transform_inverse(t, v), back)
    check(_values.eulers_to_quats_zyx(v), [Quat.from_euler_zyx(*a.as_tuple()) for a in vectors])
    np.testing.assert_allclose(
        _values.quats_to_eulers_zyx(q).view("f4").reshape(5, 3), [a.to_euler_zyx() for a in quats], atol=1e-5
    )


def test_vectorised_helpers_broadcast_and_check_dtypes():
    grid = np.zeros((2, 3), Vec3.dtype)
    grid["x"] = 1
    turned = _values.rotate(Z90, grid)
    assert turned.shape == (2, 3)
    np.testing.assert_allclose(turned["y"], 1, atol=1e-6)
    assert _values.cross(Vec3(1, 0, 0), Vec3(0, 1, 0)).item() == (0, 0, 1)
    with pytest.raises(TypeError, match="dtype"):
        _values.cross(np.zeros((2, 3)), grid)


# The package


def test_importing_the_package_alone_is_light():
    heavy = ["torch", "ovphysx", "numpy"]
    code = f"import sys, isaacgym; print(isaacgym.__version__, [m for m in {heavy} if m in sys.modules])"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    version, loaded = done.stdout.split(maxsplit=1)
    assert version.count(".") == 2
    assert loaded.strip() == "[]"
    assert importlib.import_module("isaacgym").__path__


def test_gymapi_exports_every_class_enumeration_and_constant():
    gymapi = importlib.import_module("isaacgym.gymapi")
    for module in (_values, _params):
        for name in module.__all__:
            assert getattr(gymapi, name) is getattr(module, name)
    for name in [*NAMES["enums"], *NAMES["constants"]]:
        assert getattr(gymapi, name) is getattr(_enums, name)
