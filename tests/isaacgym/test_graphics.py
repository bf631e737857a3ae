"""Viewer and graphics calls without a renderer (API notes 9.15), and what raises for lack of one."""

from __future__ import annotations

import pytest

from isaacgym import gymapi


@pytest.fixture
def world(make_world):
    made = make_world()
    made.actor(made.env(), made.box())
    return made


def test_there_is_no_viewer_and_it_is_said(world, caplog):
    assert world.gym.create_viewer(world.sim, gymapi.CameraProperties()) is None
    assert "create_viewer: gymscale has no renderer; run headless" in caplog.text


def test_calls_on_the_missing_viewer_do_nothing(world):
    gym, sim, env = world.gym, world.sim, world.envs[0]
    here, there = gymapi.Vec3(1, 2, 3), gymapi.Vec3(0, 0, 0)
    assert gym.subscribe_viewer_keyboard_event(None, gymapi.KEY_V, "toggle") is None
    assert gym.subscribe_viewer_mouse_event(None, gymapi.MOUSE_LEFT_BUTTON, "shoot") is None
    assert gym.viewer_camera_look_at(None, None, here, there) is None
    assert gym.viewer_camera_look_at(None, env, here, there) is None
    assert gym.add_lines(None, env, 1, [[0, 0, 0, 1, 1, 1]], [[1, 0, 0]]) is None
    assert gym.add_lines(None, None, 0, [], []) is None
    assert gym.clear_lines(None) is None
    assert gym.draw_env_rigid_contacts(None, env, here, 0.1, True) is None
    assert gym.poll_viewer_events(None) is None
    assert gym.get_viewer_camera_handle(None) == -1
    pose = gym.get_viewer_camera_transform(None, env)
    assert (pose.p.x, pose.p.y, pose.p.z, pose.r.w) == (0, 0, 0, 1)
    assert gym.destroy_viewer(None) is None
    assert gym.step_graphics(sim) is None
    assert gym.sync_frame_time(sim) is None


def test_a_viewer_image_is_not_written_and_that_is_said(world, tmp_path, caplog):
    path = tmp_path / "frame.png"
    assert world.gym.write_viewer_image_to_file(None, str(path)) is None
    assert not path.exists()
    assert f"write_viewer_image_to_file: gymscale has no renderer; {path} was not written" in caplog.text


def test_colours_textures_and_lights_are_accepted(world):
    gym, sim, env = world.gym, world.sim, world.envs[0]
    red = gymapi.Vec3(1, 0, 0)
    texture = gym.create_texture_from_file(sim, "no_such_picture.jpg")
    assert isinstance(texture, int)
    assert gym.set_rigid_body_color(env, 0, 0, gymapi.MESH_VISUAL_AND_COLLISION, red) is None
    assert gym.set_rigid_body_texture(env, 0, 0, gymapi.MESH_VISUAL, texture) is None
    assert gym.set_rigid_body_segmentation_id(env, 0, 0, 3) is None
    assert gym.set_light_parameters(sim, 0, red, red, red) is None


def test_rendering_cameras_does_nothing_and_their_pictures_are_refused(world):
    gym, sim, env = world.gym, world.sim, world.envs[0]
    props = gymapi.CameraProperties()
    props.enable_tensors = True
    camera = gym.create_camera_sensor(env, props)
    assert gym.render_all_camera_sensors(sim) is None
    assert gym.start_access_image_tensors(sim) is None
    assert gym.end_access_image_tensors(sim) is None
    for name in ("get_camera_image", "get_camera_image_gpu_tensor"):
        with pytest.raises(NotImplementedError, match=rf"gymapi\.Gym\.{name} is not supported: gymscale has no rend"):
            getattr(gym, name)(sim, env, camera, gymapi.IMAGE_COLOR)


def test_attractors_and_usd_export_are_refused_with_a_hint(world):
    gym, sim, env = world.gym, world.sim, world.envs[0]
    with pytest.raises(NotImplementedError, match=r"create_rigid_body_attractor .*apply_rigid_body_force_at_pos_tens"):
        gym.create_rigid_body_attractor(env, gymapi.AttractorProperties())
    with pytest.raises(NotImplementedError, match=r"create_usd_exporter is not supported: USD export"):
        gym.create_usd_exporter(gymapi.UsdExportOptions())
    with pytest.raises(NotImplementedError, match=r"export_usd_sim is not supported: USD export"):
        gym.export_usd_sim(None, sim, "scene.usd")
