"""Free bodies: F1-F11 of the API notes, contact weight, friction on a slope, B6 and B7."""

from __future__ import annotations

import math

import pytest
import torch
from scenes import GRAVITY, asset_options, link, pose, urdf

from isaacgym import gymapi

YAW90 = (0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5))


def test_F1_free_fall_is_semi_implicit(make_world):
    world = make_world()
    world.actor(world.env(), world.box(), (0.0, 0.0, 100.0))
    root = world.prepare("root")
    world.step(60)
    assert root[0, 2].item() == pytest.approx(95.0541, abs=1e-3)
    assert root[0, 9].item() == pytest.approx(-9.81, abs=1e-4)


def test_F2_free_fall_with_one_substep(make_world):
    world = make_world(dt=0.005, substeps=1)
    world.actor(world.env(), world.sphere(), (0.0, 0.0, 10.0))
    root = world.prepare("root")
    world.step(100)
    assert root[0, 2].item() == pytest.approx(8.76149, abs=1e-4)
    assert root[0, 9].item() == pytest.approx(-4.905, abs=1e-4)


@pytest.mark.parametrize(("rest_offset", "height"), [(0.0, 0.250), (0.001, 0.252)])
def test_F3_box_at_rest(make_world, rest_offset, height):
    world = make_world(rest_offset=rest_offset)
    world.plane()
    world.actor(world.env(), world.box(0.5, 2.0), (0.0, 0.0, 0.26))
    root, contact = world.prepare("root", "contact")
    world.step(60)
    assert contact[0].tolist() == pytest.approx([0.0, 0.0, 19.62], abs=0.1)
    assert root[0, 2].item() == pytest.approx(height, abs=5e-4)


@pytest.mark.parametrize("mass", [0.05, 1.0, 40.0])
def test_contact_force_of_a_resting_box_is_its_weight(make_world, mass):
    world = make_world()
    world.plane()
    world.actor(world.env(), world.box(0.3, mass), (0.0, 0.0, 0.15))
    contact = world.prepare("contact")
    world.step(60)
    assert contact[0, 2].item() == pytest.approx(mass * GRAVITY, rel=0.01)
    assert contact[0, :2].norm().item() < 0.01 * mass * GRAVITY


def test_plane_with_distance_lies_below_the_origin(make_world):
    world = make_world()
    world.plane(distance=0.4)
    world.actor(world.env(), world.box(0.5, 2.0), (0.0, 0.0, 0.0))
    root = world.prepare("root")
    world.step(60)
    assert root[0, 2].item() == pytest.approx(-0.15, abs=1e-3)


def stacked_boxes(world):
    """A box of 1 kg on a box of 2 kg, after one second."""
    world.plane()
    env = world.env()
    world.actor(env, world.box(0.5, 2.0), (0.0, 0.0, 0.25), name="lower")
    world.actor(env, world.box(0.5, 1.0), (0.0, 0.0, 0.75), name="upper")
    tensors = world.prepare("root", "contact")
    world.step(60)
    return tensors


def test_F4_net_force_of_stacked_boxes_is_the_own_weight(make_world):
    _, contact = stacked_boxes(make_world())
    assert contact[0].tolist() == pytest.approx([0.0, 0.0, 19.62], abs=0.15)
    assert contact[1].tolist() == pytest.approx([0.0, 0.0, 9.81], abs=0.15)


def test_F5_lifted_box_has_no_contact_force(make_world):
    world = make_world()
    root, contact = stacked_boxes(world)
    assert contact[1, 2].item() > 9.0
    root[1, 2] = 2.0
    world.write_root(root)
    world.step()
    assert contact[1].tolist() == [0.0, 0.0, 0.0]
    assert root[1, 2].item() == pytest.approx(2.0, abs=0.01)


def test_F6_friction_of_a_sliding_box_is_the_average(make_world):
    world = make_world()
    world.plane(friction=1.0)
    env = world.env()
    box = world.actor(env, world.box(0.5, 1.0), (0.0, 0.0, 0.25))
    world.set_shapes(env, box, friction=0.5)
    root = world.prepare("root")
    world.step(30)
    start = root[0, 0].item()
    root[0, 7] = 2.0
    world.write_root(root)
    world.step(10)
    assert root[0, 7].item() == pytest.approx(0.774, abs=0.03)
    world.step(20)
    stopped = root[0, 0].item()
    assert stopped - start == pytest.approx(0.27, abs=0.01)
    world.step(30)  # by position: TGS reports some mm/s for a body at rest in contact, though it does not move
    assert root[0, 0].item() == pytest.approx(stopped, abs=1e-4)


def test_F7_rebound_has_the_average_restitution(make_world):
    world = make_world()
    world.plane(restitution=0.0)
    env = world.env()
    ball = world.actor(env, world.sphere(0.1), (0.0, 0.0, 1.1))
    world.set_shapes(env, ball, restitution=1.0)
    root = world.prepare("root")
    heights, rising = [], []
    for _ in range(60):
        world.step()
        heights.append(root[0, 2].item())
        rising.append(root[0, 9].item() > 0)
    assert max(heights[rising.index(True) :]) == pytest.approx(0.35, abs=0.01)


def test_F8_damping_law(make_world):
    world = make_world(gravity=(0.0, 0.0, 0.0))
    box = world.box(0.5, 2.0, linear_damping=0.5, angular_damping=0.5)
    world.actor(world.env(), box, (0.0, 0.0, 1.0))
    root = world.prepare("root")
    root[0, 7], root[0, 12] = 1.0, 1.0
    world.write_root(root)
    world.step(60)
    assert root[0, 7].item() == pytest.approx(0.605897, abs=1e-4)
    assert root[0, 12].item() == pytest.approx(0.605897, abs=1e-4)


def weightless_boxes(world, quat=(0.0, 0.0, 0.0, 1.0)):
    """Two envs with a box of 2 kg and inertia 0.1 at height 1; env 1 is away from the world origin."""
    asset = world.box(math.sqrt(0.3), 2.0)
    for _ in range(2):
        world.actor(world.env(per_row=2), asset, (0.0, 0.0, 1.0), quat)
    return world.prepare("root")


def test_F9_force_lasts_one_simulate(make_world):
    world = make_world(gravity=(0.0, 0.0, 0.0))
    root = weightless_boxes(world)
    force = torch.zeros(2, 3)
    force[1, 0] = 4.0
    world.push(force)
    world.step()
    assert root[1, 7].item() == pytest.approx(0.033333, abs=1e-5)
    assert root[1, 0].item() == pytest.approx(0.000417, abs=2e-6)
    world.step()
    assert root[1, 7].item() == pytest.approx(0.033333, abs=1e-5)
    assert root[0, 7:].abs().max().item() == 0.0


def test_F9_forces_of_several_calls_add_up(make_world):
    world = make_world(gravity=(0.0, 0.0, 0.0))
    root = weightless_boxes(world)
    force = torch.zeros(2, 3)
    force[0, 0] = 4.0
    world.push(force)
    world.push(force)
    world.push(None, force)
    world.step()
    assert root[0, 7].item() == pytest.approx(2 * 0.033333, abs=1e-5)
    assert root[0, 10].item() == pytest.approx(4.0 / 0.1 / 60, abs=1e-4)


@pytest.mark.parametrize("space", ["ENV_SPACE", "GLOBAL_SPACE"])
def test_F10_force_at_a_point_turns_the_body(make_world, space):
    world = make_world(gravity=(0.0, 0.0, 0.0))
    root = weightless_boxes(world)
    force, at = torch.zeros(2, 3), torch.zeros(2, 3)
    force[1] = torch.tensor([0.0, 0.0, 1.0])
    at[1] = root[1, :3] + torch.tensor([0.1, 0.0, 0.0])
    if space == "GLOBAL_SPACE":
        origin = world.gym.get_env_origin(world.envs[1])
        assert abs(origin.x) + abs(origin.y) > 1.0
        at[1] += torch.tensor([origin.x, origin.y, origin.z])
    world.push(force, at=at, space=getattr(gymapi, space))
    world.step()
    assert root[1, 11].item() == pytest.approx(-0.016667, abs=1e-5)
    assert root[1, 9].item() == pytest.approx(0.008333, abs=1e-5)
    assert root[0, 7:].abs().max().item() == 0.0


def test_F11_local_force_turns_with_the_body(make_world):
    world = make_world(gravity=(0.0, 0.0, 0.0))
    root = weightless_boxes(world, YAW90)
    force = torch.zeros(2, 3)
    force[1, 0] = 1.0
    world.push(force, space=gymapi.LOCAL_SPACE)
    world.step()
    assert root[1, 7:10].tolist() == pytest.approx([0.0, 1 / 2 / 60, 0.0], abs=1e-6)


def test_F11_local_force_at_a_local_point(make_world):
    world = make_world(gravity=(0.0, 0.0, 0.0))
    root = weightless_boxes(world, YAW90)
    force, at = torch.zeros(2, 3), torch.zeros(2, 3)
    force[1, 2], at[1, 0] = 1.0, 0.1  # the arm of 0.1 along body x lies along world y: torque about +x
    world.push(force, at=at, space=gymapi.LOCAL_SPACE)
    world.step()
    assert root[1, 10:13].tolist() == pytest.approx([0.016667, 0.0, 0.0], abs=1e-5)


def box_on_slope(world, degrees: float, friction: float, spacing=2.0, envs=1):
    """A flat box at rest on a plane that falls towards +x; returns roots and the downhill direction."""
    angle = math.radians(degrees)
    normal = (math.sin(angle), 0.0, math.cos(angle))
    world.plane(friction=friction, normal=normal)
    asset = world.box((0.5, 0.5, 0.1), 1.0)
    for _ in range(envs):
        env = world.env(spacing, per_row=envs)
        origin = world.gym.get_env_origin(env)
        drop = -math.tan(angle) * origin.x  # the plane is a thing of the world: lower by that much in this env
        at = (0.05 * normal[0], 0.0, 0.05 * normal[2] + drop)
        actor = world.actor(env, asset, at, (0.0, math.sin(angle / 2), 0.0, math.cos(angle / 2)))
        world.set_shapes(env, actor, friction=friction)
    return world.prepare("root"), torch.tensor([math.cos(angle), 0.0, -math.sin(angle)])


@pytest.mark.parametrize(("degrees", "friction"), [(10.0, 0.2), (20.0, 0.4), (35.0, 0.8)])
def test_box_on_a_slope_below_the_friction_angle_stays(make_world, degrees, friction):
    world = make_world()
    root, _ = box_on_slope(world, degrees, friction)
    world.step(10)
    start = root[0, :3].clone()
    world.step(60)
    assert (root[0, :3] - start).norm().item() < 1e-3


@pytest.mark.parametrize(("degrees", "friction"), [(15.0, 0.2), (35.0, 0.5), (30.0, 0.0)])
def test_box_on_a_slope_above_the_friction_angle_slides(make_world, degrees, friction):
    world = make_world()
    root, downhill = box_on_slope(world, degrees, friction)
    world.step(10)
    before = (root[0, 7:10] @ downhill).item()
    world.step(30)
    angle = math.radians(degrees)
    expected = GRAVITY * (math.sin(angle) - friction * math.cos(angle))
    assert ((root[0, 7:10] @ downhill).item() - before) / 0.5 == pytest.approx(expected, rel=0.03)


def test_slope_is_at_its_true_place_in_every_env(make_world):
    world = make_world()
    root, _ = box_on_slope(world, 15.0, 0.6, envs=2)
    start = root[:, :3].clone()
    world.step(30)
    assert start[1, 2].item() < start[0, 2].item() - 0.5
    assert (root[:, :3] - start).norm(dim=1).max().item() < 2e-3


def test_B6_quaternions_are_xyzw_everywhere(make_world, tmp_path):
    world = make_world(gravity=(0.0, 0.0, 0.0))
    env = world.env()
    box = world.actor(env, world.box(), (0.0, 0.0, 1.0), YAW90)
    robot = world.load(urdf(tmp_path, "rock", link("rock")))
    world.actor(env, robot, (2.0, 0.0, 1.0), YAW90)
    before = world.gym.get_rigid_transform(env, world.gym.get_actor_rigid_body_handle(env, box, 0))
    assert (before.r.x, before.r.y, before.r.z, before.r.w) == pytest.approx(YAW90, abs=1e-6)
    root, body = world.prepare("root", "body")

    def check():
        for row in [*root, *body]:
            assert row[3:7].tolist() == pytest.approx(YAW90, abs=1e-6)

    check()
    world.step()
    check()
    root[:, 3:7] = torch.tensor([0.0, 0.0, 0.0, 1.0])
    world.write_root(root)
    world.step()
    assert root[0, 6].item() == pytest.approx(1.0, abs=1e-6)
    root[:, 3:7] = torch.tensor(YAW90)
    world.write_root(root, 0, 1)
    world.step()
    check()
    states = world.gym.get_actor_rigid_body_states(env, box, gymapi.STATE_ALL)
    assert [states["pose"]["r"][axis][0] for axis in "xyzw"] == pytest.approx(YAW90, abs=1e-6)
    after = world.gym.get_rigid_transform(env, world.gym.get_actor_rigid_body_handle(env, box, 0))
    assert (after.r.x, after.r.y, after.r.z, after.r.w) == pytest.approx(YAW90, abs=1e-6)


CUBE_OBJ = """v -0.1 -0.1 -0.1\nv 0.1 -0.1 -0.1\nv 0.1 0.1 -0.1\nv -0.1 0.1 -0.1
v -0.1 -0.1 0.1\nv 0.1 -0.1 0.1\nv 0.1 0.1 0.1\nv -0.1 0.1 0.1
f 1 3 2\nf 1 4 3\nf 5 6 7\nf 5 7 8\nf 1 2 6\nf 1 6 5\nf 2 3 7\nf 2 7 6\nf 3 4 8\nf 3 8 7\nf 4 1 5\nf 4 5 8\n"""


@pytest.mark.parametrize("ground", ["plane", "mesh"])
def test_B7_every_shape_kind_reports_its_contact(make_world, tmp_path, ground):
    (tmp_path / "cube.obj").write_text(CUBE_OBJ)
    world = make_world()
    if ground == "plane":
        world.plane()
    else:
        world.flat_mesh(0.0)
    env = world.env(0.0)
    kinds = {
        "box": world.box(0.2, 1.5),
        "sphere": world.sphere(0.1, 1.5),
        "capsule": world.gym.create_capsule(world.sim, 0.1, 0.3, asset_options()),
        "cylinder": world.load(urdf(tmp_path, "c", link("c", 1.5, shape='<cylinder radius="0.1" length="0.2"/>'))),
        "mesh": world.load(urdf(tmp_path, "m", link("m", 1.5, shape='<mesh filename="cube.obj"/>'))),
    }
    weights = []
    for i, (name, asset) in enumerate(kinds.items()):
        handle = world.gym.create_actor(env, asset, pose((1.3 * i - 2.6, 0.3, 0.105)), name, 0, 0)
        weights.append(GRAVITY * world.gym.get_actor_rigid_body_properties(env, handle)[0].mass)
    root, contact = world.prepare("root", "contact")
    world.step(60)
    assert contact[:, 2].tolist() == pytest.approx(weights, rel=0.05)
    assert root[:, 2].tolist() == pytest.approx([0.1] * 5, abs=2e-3)
