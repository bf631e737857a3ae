"""gymutil and gymtorch (API notes, sections 12 and 13, test cases C1-C7)."""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from isaacgym import gymtorch, gymutil
from isaacgym._enums import SIM_FLEX, SIM_PHYSX, ContactCollection, UpAxis
from isaacgym._params import RigidBodyProperties, RigidShapeProperties, SimParams
from isaacgym._values import DOF_PROPERTIES_DTYPE, Quat, Transform, Vec3


def xyz(array):
    """Return the components of an array of Vec3."""
    return np.ascontiguousarray(array).view("f4").reshape(*array.shape, 3)


# Devices and arguments


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cpu", ("cpu", 0)),
        ("cuda", ("cuda", 0)),
        ("cuda:3", ("cuda", 3)),
        ("CUDA:12", ("cuda", 12)),
        ("gpu", ("cuda", 0)),
        ("gpu:1", ("cuda", 1)),
    ],
)
def test_C1_parse_device_str(text, expected):
    assert gymutil.parse_device_str(text) == expected


@pytest.mark.parametrize("text", ["tpu", "", "cuda:", "cuda:x", "cpu:0:1", "cuda:1:2", "cuda 1"])
def test_C1_parse_device_str_refuses_others(text):
    with pytest.raises(ValueError, match="is not one of cpu, cuda, cuda:N"):
        gymutil.parse_device_str(text)


@pytest.fixture
def parse(monkeypatch):
    def run(*argv, **arguments):
        monkeypatch.setattr(sys, "argv", ["script.py", *argv])
        return gymutil.parse_arguments(**arguments)

    return run


def test_C2_cpu_device_forces_the_cpu_pipeline(parse, capsys):
    args = parse("--sim_device", "cpu")
    assert (args.sim_device_type, args.compute_device_id) == ("cpu", 0)
    assert (args.use_gpu, args.use_gpu_pipeline) == (False, False)
    assert args.physics_engine == SIM_PHYSX
    assert "CPU pipeline" in capsys.readouterr().out


def test_C2_cpu_device_and_pipeline_need_no_notice(parse, capsys):
    parse("--sim_device", "cpu", "--pipeline", "CPU")
    assert capsys.readouterr().out == ""


def test_C2_defaults(parse):
    args = parse()
    assert (args.sim_device, args.sim_device_type, args.compute_device_id) == ("cuda:0", "cuda", 0)
    assert (args.pipeline, args.use_gpu, args.use_gpu_pipeline) == ("gpu", True, True)
    assert (args.graphics_device_id, args.num_threads, args.subscenes, args.slices) == (0, 0, 0, 0)
    assert not hasattr(args, "headless")
    assert not hasattr(args, "nographics")


def test_C2_other_options(parse):
    args = parse("--pipeline", "CUDA", "--sim_device", "cuda:2", "--subscenes", "3", "--num_threads", "5")
    assert (args.pipeline, args.use_gpu_pipeline, args.compute_device_id) == ("cuda", True, 2)
    assert (args.slices, args.num_threads) == (3, 5)
    assert parse("--slices", "7", "--subscenes", "3").slices == 7
    assert parse("--physx").physics_engine == SIM_PHYSX


def test_C2_headless_options_exist_when_asked_for(parse):
    assert parse(headless=True).headless is False
    assert parse("--headless", headless=True).headless is True
    args = parse("--nographics", headless=True, no_graphics=True)
    assert (args.nographics, args.headless) == (True, True)
    with pytest.raises(SystemExit):
        parse("--headless")


def test_C2_flex_needs_a_gpu(parse, capsys):
    args = parse("--flex", "--sim_device", "cpu")
    assert args.physics_engine == SIM_FLEX
    assert (args.sim_device, args.sim_device_type, args.use_gpu) == ("cuda:0", "cuda", True)
    assert "cuda:0" in capsys.readouterr().out


def test_C2_bad_options_end_the_program(parse):
    with pytest.raises(AssertionError, match="pipeline"):
        parse("--pipeline", "tpu")
    for argv in (["--unknown"], ["--flex", "--physx"]):
        with pytest.raises(SystemExit):
            parse(*argv)


def test_C2_custom_parameters(parse, capsys):
    custom = [
        {"name": "--task", "type": str, "default": "anymal", "help": "name of the task"},
        {"name": "--num_envs", "type": int},
        {"name": "--resume", "action": "store_true", "default": True, "help": "start from a checkpoint"},
        {"name": "--nothing"},
        {"type": int},
    ]
    args = parse("--num_envs", "12", custom_parameters=custom)
    assert (args.task, args.num_envs, args.resume) == ("anymal", 12, False)
    assert parse("--resume", custom_parameters=custom).resume is True
    assert not hasattr(args, "nothing")
    errors = capsys.readouterr().out
    assert "--nothing" in errors
    assert errors.count("ERROR") == 4, "two bad entries, parsed twice"


# Configuration

CONFIG = {
    "dt": 0.005,
    "substeps": 1,
    "up_axis": 1,
    "gravity": [0, 0, -9.81],
    "physx": {"contact_collection": 1, "num_threads": 10},
    "fps": 50,
}


def test_C3_parse_sim_config():
    params = SimParams()
    assert gymutil.parse_sim_config(CONFIG, params) is None
    assert (params.dt, params.substeps, params.up_axis) == (0.005, 1, UpAxis.UP_AXIS_Z)
    assert params.gravity.as_tuple() == (0, 0, -9.81)
    assert params.physx.contact_collection is ContactCollection.CC_LAST_SUBSTEP
    assert params.physx.num_threads == 10
    assert params.physx.num_position_iterations == 4, "what is absent stays"
    assert not hasattr(params, "fps")


def test_C3_parse_sim_config_from_a_class_and_from_omegaconf():
    class Physx:
        solver_type = 0
        max_gpu_contact_pairs = 2**23

    class Sim:
        dt = 0.01
        gravity = Vec3(1, 2, 3)
        physx = Physx

    params = SimParams()
    gymutil.parse_sim_config(Sim, params)
    assert (params.dt, params.gravity.as_tuple()) == (0.01, (1, 2, 3))
    assert (params.physx.solver_type, params.physx.max_gpu_contact_pairs) == (0, 8388608)

    omegaconf = pytest.importorskip("omegaconf")
    gymutil.parse_sim_config(omegaconf.OmegaConf.create(CONFIG), params)
    assert (params.gravity.z, params.physx.num_threads) == (-9.81, 10)


def test_C3_wrong_values_name_the_parameter():
    with pytest.raises(TypeError, match="PhysXParams.num_threads"):
        gymutil.parse_sim_config({"physx": {"num_threads": "four"}}, SimParams())


# Random samples


def sampled(**changes):
    params = {"range": [0.0, 1.0], "distribution": "uniform", "operation": "additive"}
    return {**params, **changes}


def test_C4_additive_schedule_scales_towards_zero():
    params = sampled(schedule="linear", schedule_steps=100)
    samples = gymutil.generate_random_samples(params, 1000, 50)
    assert samples.shape == (1000,)
    assert samples.min() >= 0
    assert 0.45 < samples.max() <= 0.5
    assert gymutil.generate_random_samples(params, 1000, 500).max() > 0.9


def test_C5_scaling_schedule_scales_towards_one():
    params = sampled(range=[0.5, 1.5], operation="scaling", schedule="linear", schedule_steps=100)
    samples = gymutil.generate_random_samples(params, (10, 100), 50)
    assert samples.shape == (10, 100)
    assert 0.75 <= samples.min() < 0.8
    assert 1.2 < samples.max() <= 1.25


def test_constant_schedule_switches_on():
    params = sampled(range=[1.0, 2.0], schedule="constant", schedule_steps=10)
    assert not gymutil.generate_random_samples(params, 5, 9).any()
    assert gymutil.generate_random_samples(params, 5, 10).min() >= 1


def test_gaussian_takes_the_second_number_as_standard_deviation():
    np.random.seed(0)
    half = {"schedule": "linear", "schedule_steps": 2}
    params = sampled(range=[1.2, 0.2], distribution="gaussian", operation="scaling", **half)
    samples = gymutil.generate_random_samples(params, 20000, 1)
    assert samples.mean() == pytest.approx(1.1, abs=0.005)
    assert samples.std() == pytest.approx(0.1, abs=0.005)


def test_loguniform():
    np.random.seed(0)
    samples = gymutil.generate_random_samples(sampled(range=[0.1, 10.0], distribution="loguniform"), 20000, 0)
    assert samples.min() >= 0.1
    assert samples.max() <= 10
    assert np.log10(samples).mean() == pytest.approx(0, abs=0.02)


def test_extern_samples_are_only_scheduled():
    drawn = np.array([2.0, 4.0])
    half = {"schedule": "linear", "schedule_steps": 2}
    np.testing.assert_allclose(gymutil.generate_random_samples(sampled(**half), 2, 1, drawn), [1, 2])
    scaled = gymutil.generate_random_samples(sampled(operation="scaling", **half), 2, 1, drawn)
    np.testing.assert_allclose(scaled, [1.5, 2.5])
    assert drawn.tolist() == [2, 4], "the caller's samples stay"


def test_bad_randomisations_are_named():
    with pytest.raises(ValueError, match="cauchy"):
        gymutil.generate_random_samples(sampled(distribution="cauchy"), 1, 0)
    with pytest.raises(ValueError, match="sine"):
        gymutil.generate_random_samples(sampled(schedule="sine", schedule_steps=1), 1, 0)


def test_get_bucketed_val():
    params = sampled(range=[1.0, 2.0], num_buckets=4)
    for value, edge in ((1.0, 1.0), (1.24, 1.0), (1.25, 1.25), (1.99, 1.75), (5.0, 1.75), (0.5, 1.0)):
        assert gymutil.get_bucketed_val(value, params) == edge
    np.testing.assert_allclose(gymutil.get_bucketed_val(np.array([1.3, 1.6]), params), [1.25, 1.5])
    gaussian = sampled(range=[1.0, 0.25], distribution="gaussian", num_buckets=4)  # edges 0, 0.5, 1, 1.5
    assert gymutil.get_bucketed_val(1.2, gaussian) == 1.0


def test_apply_random_samples_to_arrays():
    og = np.zeros(3, DOF_PROPERTIES_DTYPE)
    og["stiffness"] = [1, 2, 3]
    props = og.copy()
    gymutil.apply_random_samples(props, og, "stiffness", sampled(range=[2.0, 2.0], operation="scaling"), 0)
    assert props["stiffness"].tolist() == [2, 4, 6]
    gymutil.apply_random_samples(props, og, "stiffness", sampled(range=[0.5, 0.5]), 0)
    assert props["stiffness"].tolist() == [1.5, 2.5, 3.5], "samples apply to the originals"
    assert og["stiffness"].tolist() == [1, 2, 3]


def test_apply_random_samples_to_objects():
    props = RigidBodyProperties(mass=2.0)
    original = {name: getattr(props, name) for name in dir(props)}
    gymutil.apply_random_samples(props, original, "mass", sampled(range=[1.5, 1.5], operation="scaling"), 0)
    assert type(props.mass) is float
    assert props.mass == 3.0
    gymutil.apply_random_samples(props, original, "mass", sampled(), 0, extern_sample=0.25)
    assert props.mass == 2.25


def test_apply_random_samples_rounds_to_buckets():
    shape = RigidShapeProperties()
    buckets = sampled(range=[0.0, 2.0], num_buckets=4)
    gymutil.apply_random_samples(shape, {"friction": 0.7}, "friction", buckets, 0, extern_sample=0.1)
    assert shape.friction == 0.5
    gymutil.apply_random_samples(shape, {"friction": 0.7}, "friction", sampled(), 0, 0.5, buckets)
    assert shape.friction == 1.0


def test_apply_random_samples_to_simulation_parameters():
    np.random.seed(0)
    params, original = SimParams(), {"gravity": Vec3(1, 2, -10)}
    gymutil.apply_random_samples(params, original, "gravity", sampled(range=[2.0, 2.0], operation="scaling"), 0)
    assert params.gravity.as_tuple() == (2, 4, -20)
    gymutil.apply_random_samples(params, original, "gravity", sampled(range=[0.0, 0.1]), 0)
    offsets = np.array(params.gravity.as_tuple()) - [1, 2, -10]
    assert len(set(offsets)) == 3, "each axis has a sample of its own"
    gymutil.apply_random_samples(params, original, "rest_offset", sampled(range=[0.01, 0.01]), 0)
    assert params.physx.rest_offset == 0.01


def test_property_maps_name_the_methods_of_the_gym():
    kinds = ["dof_properties", "tendon_properties", "rigid_body_properties", "rigid_shape_properties"]
    names = [f"{verb}_actor_{kind}" for verb in ("get", "set") for kind in kinds] + ["get_sim_params", "set_sim_params"]
    gym = SimpleNamespace(**{name: name for name in names})
    getters, setters = gymutil.get_property_getter_map(gym), gymutil.get_property_setter_map(gym)
    assert list(getters.values()) == [f"get_actor_{kind}" for kind in kinds] + ["get_sim_params"]
    assert list(setters.values()) == [f"set_actor_{kind}" for kind in kinds] + ["set_sim_params"]
    arguments = gymutil.get_default_setter_args(gym)
    assert list(getters) == list(setters) == list(arguments)
    assert arguments["rigid_body_properties"] == [True]
    assert all(value == [] for key, value in arguments.items() if key != "rigid_body_properties")


class CountingGym:
    """A gym whose environments hold one actor "hand" each, with a given number of shapes."""

    def __init__(self, shapes):
        self.shapes = shapes

    def get_actor_count(self, env):
        return 2

    def get_actor_handle(self, env, index):
        return index

    def get_actor_name(self, env, actor):
        return ["hand", "table"][actor]

    def get_actor_rigid_shape_count(self, env, actor):
        return self.shapes


def dr_params(**attributes):
    return {"actor_params": {"hand": {"rigid_shape_properties": attributes}, "table": {"color": True}}}


def test_check_buckets():
    few, many = {"num_buckets": 250}, {"num_buckets": 300}
    gymutil.check_buckets(CountingGym(40000), range(2), dr_params(friction=few, restitution=few))
    gymutil.check_buckets(CountingGym(32000), range(2), dr_params(friction={}))
    with pytest.raises(ValueError, match="90000"):
        gymutil.check_buckets(CountingGym(1), range(2), dr_params(friction=many, restitution=many))
    with pytest.raises(ValueError, match="80000"):
        gymutil.check_buckets(CountingGym(40000), range(2), dr_params(friction={}))


# Debug lines


class DrawingGym:
    """Records what is drawn."""

    def __init__(self):
        self.calls = []

    def add_lines(self, viewer, env, num_lines, vertices, colors):
        self.calls.append((viewer, env, num_lines, vertices, colors))


def test_axes_geometry():
    axes = gymutil.AxesGeometry(0.5)
    assert axes.num_lines() == 3
    assert axes.vertices().dtype == axes.colors().dtype == Vec3.dtype
    np.testing.assert_allclose(xyz(axes.vertices())[:, 1], 0.5 * np.eye(3))
    assert not xyz(axes.vertices())[:, 0].any()
    np.testing.assert_allclose(xyz(axes.colors()), np.eye(3))


@pytest.mark.parametrize("bbox", [[[-1, -2, -3], [1, 2, 3]], torch.tensor([[-1.0, -2, -3], [1, 2, 3]])])
def test_box_geometries_draw_twelve_edges(bbox):
    box, bounds = gymutil.WireframeBoxGeometry(2, 4, 6), gymutil.WireframeBBoxGeometry(bbox)
    for geometry in (box, bounds):
        assert geometry.num_lines() == 12
        edges = xyz(geometry.vertices())
        np.testing.assert_allclose(np.abs(edges), np.broadcast_to([1, 2, 3], (12, 2, 3)))
        assert ((edges[:, 0] != edges[:, 1]).sum(-1) == 1).all(), "an edge runs along one axis"
        assert len({tuple(sorted(map(tuple, edge))) for edge in edges.tolist()}) == 12
        np.testing.assert_allclose(xyz(geometry.colors()), np.tile([1, 0, 0], (12, 1)))


def test_sphere_geometry():
    sphere = gymutil.WireframeSphereGeometry(2.0, 6, 4, color=(0, 1, 0), color2=(0, 0, 1))
    assert sphere.num_lines() == 2 * 6 * 4
    np.testing.assert_allclose(np.linalg.norm(xyz(sphere.vertices()), axis=-1), 2.0, rtol=1e-6)
    colors = xyz(sphere.colors())
    assert colors.sum(0).tolist() == [0, 24, 24]
    meridians = xyz(sphere.vertices())[colors[:, 1] == 1]
    assert (meridians[:, 0, 2] > meridians[:, 1, 2]).all(), "circles of longitude run from pole to pole"


def test_geometry_is_placed_by_its_pose_and_by_the_pose_it_is_drawn_at():
    turn = Quat.from_axis_angle(Vec3(0, 0, 1), math.pi / 2)
    axes = gymutil.AxesGeometry(1.0, Transform(Vec3(1, 0, 0)))
    np.testing.assert_allclose(xyz(axes.vertices())[0], [[1, 0, 0], [2, 0, 0]], atol=1e-6)
    moved = axes.instance_verts(Transform(Vec3(0, 0, 3), turn))
    np.testing.assert_allclose(xyz(moved)[0], [[0, 1, 3], [0, 2, 3]], atol=1e-6)
    assert axes.instance_verts(None) is axes.vertices()


def test_draw_lines_is_one_call():
    gym = DrawingGym()
    sphere = gymutil.WireframeSphereGeometry()
    gymutil.draw_lines(sphere, gym, "viewer", "env", Transform())
    ((viewer, env, count, vertices, colors),) = gym.calls
    assert (viewer, env, count) == ("viewer", "env", 128)
    assert vertices.shape == (128, 2)
    assert colors.shape == (128,)


def test_draw_line():
    gym = DrawingGym()
    gymutil.draw_line(Vec3(1, 2, 3), Vec3(4, 5, 6), Vec3(0, 1, 0), gym, None, None)
    ((_, _, count, vertices, colors),) = gym.calls
    assert count == 1
    assert xyz(vertices).tolist() == [[[1, 2, 3], [4, 5, 6]]]
    assert xyz(colors).tolist() == [[0, 1, 0]]


def test_projects_make_their_own_line_geometry():
    class Line(gymutil.LineGeometry):
        def vertices(self):
            verts = np.empty((1, 2), Vec3.dtype)
            verts[0][0], verts[0][1] = (0, 0, 0), (1, 1, 1)
            return verts

        def colors(self):
            return np.ones(1, Vec3.dtype)

    gym = DrawingGym()
    gymutil.draw_lines(Line(), gym, None, None, Transform(Vec3(0, 0, 1)))
    assert xyz(gym.calls[0][3]).tolist() == [[[0, 0, 1], [1, 1, 2]]]
    with pytest.raises(NotImplementedError):
        gymutil.LineGeometry().vertices()


def test_indent_xml():
    root = ElementTree.fromstring("<a><b><c/></b></a>")
    gymutil._indent_xml(root)
    assert ElementTree.tostring(root, encoding="unicode") == "<a>\n  <b>\n    <c />\n  </b>\n</a>"


# gymtorch


def test_C6_views_share_the_buffer():
    buffer = gymtorch.Tensor(torch.zeros(6, 2), own_data=True)
    first, second = gymtorch.wrap_tensor(buffer), gymtorch.wrap_tensor(buffer)
    first.view(3, 2, 2)[1, 0, 1] = 7.0
    assert second[2, 1] == 7.0
    address = buffer.data_ptr
    buffer.torch.copy_(torch.ones(6, 2))
    assert buffer.data_ptr == buffer.data_address == address == first.data_ptr()
    assert first.eq(1).all()
    assert gymtorch.wrap_tensor(None) is None
    assert gymtorch.GymSim


def test_C6_unwrap_keeps_temporaries_alive_and_describes_them():
    descriptor = gymtorch.unwrap_tensor(torch.cat([torch.zeros(2, 13), torch.ones(1, 13)]))
    assert gymtorch.wrap_tensor(descriptor).sum() == 13
    assert (descriptor.shape, descriptor.ndim, descriptor.dtype) == ((3, 13), 2, torch.float32)
    assert (descriptor.device, descriptor.own_data) == (-1, False)
    indices = gymtorch.unwrap_tensor(torch.arange(3, dtype=torch.int32))
    assert indices.dtype == torch.int32


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (torch.zeros(3, dtype=torch.int64), "int32"),
        (torch.zeros(3, dtype=torch.float64), "float32"),
        (torch.zeros(3, dtype=torch.float16), "float32"),
        (torch.zeros(4, 6)[:, 0], "contiguous"),
        (torch.zeros(4, 6).t(), "contiguous"),
    ],
)
def test_C7_unwrap_refuses_wrong_dtypes_and_layouts(tensor, message):
    with pytest.raises(ValueError, match=message) as caught:
        gymtorch.unwrap_tensor(tensor)
    assert "\n" not in str(caught.value)


def test_C7_unwrap_refuses_what_is_no_tensor():
    with pytest.raises(TypeError, match="ndarray"):
        gymtorch.unwrap_tensor(np.zeros(3, np.float32))
