"""Cameras without pictures: poses and matrices (API notes 9.15)."""

from __future__ import annotations

import numpy as np
import pytest

from isaacgym import gymapi

PIXELS = {"width": 640, "height": 320, "horizontal_fov": 90.0, "near_plane": 0.1, "far_plane": 100.0}


@pytest.fixture
def scene(make_world):
    """Two envs of 4 m, a yawed box in each at (0, 0, 1), and a camera in the second."""
    world = make_world(gravity=(0.0, 0.0, 0.0))
    for _ in range(2):
        world.actor(world.env(spacing=2.0, per_row=2), world.box(), (0.0, 0.0, 1.0), (0.0, 0.0, 0.5**0.5, 0.5**0.5))
    props = gymapi.CameraProperties()
    for name, value in PIXELS.items():
        setattr(props, name, value)
    return world, world.gym.create_camera_sensor(world.envs[1], props)


def project(world, camera, point) -> np.ndarray:
    """Picture coordinates (-1..1 to the right and up) and clip depth of a world point."""
    view = world.gym.get_camera_view_matrix(world.sim, world.envs[1], camera)
    projection = world.gym.get_camera_proj_matrix(world.sim, world.envs[1], camera)
    assert view.shape == projection.shape == (4, 4)
    assert view.dtype == projection.dtype == np.float32
    clip = np.array([*point, 1.0]) @ view @ projection
    return clip[:3] / clip[3]


def test_points_land_where_the_camera_sees_them(scene):
    world, camera = scene
    origin = world.gym.get_env_origin(world.envs[1])
    world.gym.set_camera_location(camera, world.envs[1], gymapi.Vec3(-2, 0, 1), gymapi.Vec3(0, 0, 1))
    at = np.array([origin.x, origin.y, origin.z])
    assert project(world, camera, at + (0, 0, 1))[:2] == pytest.approx([0, 0], abs=1e-6)
    assert project(world, camera, at + (0, -2, 1))[:2] == pytest.approx([1, 0], abs=1e-6)  # 45 degrees to the right
    assert project(world, camera, at + (0, 0, 2))[:2] == pytest.approx([0, 1], abs=1e-6)  # 26.6 degrees up: the edge
    assert project(world, camera, at + (-1.9, 0, 1))[2] == pytest.approx(-1, abs=1e-4)
    assert project(world, camera, at + (98, 0, 1))[2] == pytest.approx(1, abs=1e-4)


def test_camera_looks_along_its_x_axis(scene):
    world, camera = scene
    world.gym.set_camera_location(camera, world.envs[1], gymapi.Vec3(1, 2, 3), gymapi.Vec3(1, 0, 3))
    pose = world.gym.get_camera_transform(world.sim, world.envs[1], camera)
    ahead = pose.transform_vector(gymapi.Vec3(1, 0, 0))
    up = pose.transform_vector(gymapi.Vec3(0, 0, 1))
    assert [pose.p.x, pose.p.y, pose.p.z] == [1, 2, 3]
    assert [ahead.x, ahead.y, ahead.z, up.z] == pytest.approx([0, -1, 0, 1], abs=1e-6)


def test_looking_straight_down_is_possible(scene):
    world, camera = scene
    world.gym.set_camera_location(camera, world.envs[1], gymapi.Vec3(0, 0, 3), gymapi.Vec3(0, 0, 0))
    ahead = world.gym.get_camera_transform(world.sim, world.envs[1], camera).transform_vector(gymapi.Vec3(1, 0, 0))
    assert [ahead.x, ahead.y, ahead.z] == pytest.approx([0, 0, -1], abs=1e-6)


def test_without_an_env_the_pose_is_in_the_world(scene):
    world, camera = scene
    world.gym.set_camera_transform(camera, None, gymapi.Transform(gymapi.Vec3(1, 0, 0)))
    pose = world.gym.get_camera_transform(world.sim, world.envs[1], camera)
    assert pose.p.x == pytest.approx(1 - world.gym.get_env_origin(world.envs[1]).x)


@pytest.mark.parametrize(
    ("mode", "position", "ahead"),
    [(gymapi.FOLLOW_TRANSFORM, (0, 1, 1), (0, 1, 0)), (gymapi.FOLLOW_POSITION, (1, 0, 1), (1, 0, 0))],
)
def test_attached_camera_follows_its_body(scene, mode, position, ahead):
    world, camera = scene
    gym, env = world.gym, world.envs[1]
    gym.attach_camera_to_body(camera, env, 0, gymapi.Transform(gymapi.Vec3(1, 0, 0)), mode)
    root = world.prepare("root")
    root[1, 2] += 2.0
    world.write_root(root)
    pose = gym.get_camera_transform(world.sim, env, camera)
    looks = pose.transform_vector(gymapi.Vec3(1, 0, 0))
    assert [pose.p.x, pose.p.y, pose.p.z] == pytest.approx([position[0], position[1], position[2] + 2], abs=1e-5)
    assert [looks.x, looks.y, looks.z] == pytest.approx(ahead, abs=1e-5)


def test_reading_a_picture_is_refused_by_name(scene):
    world, camera = scene
    with pytest.raises(NotImplementedError, match=r"Gym\.get_camera_image is not supported: gymscale has no renderer"):
        world.gym.get_camera_image(world.sim, world.envs[1], camera, gymapi.IMAGE_COLOR)
