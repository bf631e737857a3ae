# ruff: noqa: I001, N801, D106
"""Every viewer and camera call of a play script, on a machine without a display: nothing happens, physics goes on."""

from isaacgym import gymapi, gymutil
from robots.config import RobotCfg
from robots.legged_robot import LeggedRobot, TEST_ASSETS, get_args

import math

import numpy as np
import torch


class Cfg(RobotCfg):
    class env(RobotCfg.env):
        num_envs = 2

    class init_state(RobotCfg.init_state):
        pos = [0.0, 0.0, 0.0]
        default_joint_angles = {"hinge": -0.3}

    class control(RobotCfg.control):
        decimation = 1

    class asset(RobotCfg.asset):
        folder = TEST_ASSETS
        file = "pendulum.urdf"
        name = "pendulum"
        fix_base_link = True

    class sim(RobotCfg.sim):
        dt = 0.002


class Shown(LeggedRobot):
    def __init__(self, cfg, args):
        super().__init__(cfg, args)
        gym, env = self.gym, self.envs[0]
        gym.subscribe_viewer_keyboard_event(self.viewer, gymapi.KEY_R, "record")
        gym.subscribe_viewer_mouse_event(self.viewer, gymapi.MOUSE_LEFT_BUTTON, "shoot")
        gym.viewer_camera_look_at(self.viewer, None, gymapi.Vec3(3.0, 3.0, 2.0), gymapi.Vec3(0.0, 0.0, 1.0))
        gym.set_light_parameters(self.sim, 0, gymapi.Vec3(1, 1, 1), gymapi.Vec3(0.2, 0.2, 0.2), gymapi.Vec3(1, 1, 1))
        camera_props = gymapi.CameraProperties()
        camera_props.width, camera_props.height = 720, 480
        self.camera = gym.create_camera_sensor(env, camera_props)
        gym.set_camera_location(self.camera, env, gymapi.Vec3(0, -3, 1), gymapi.Vec3(0, 0, 1))
        gym.set_rigid_body_color(env, 0, 1, gymapi.MESH_VISUAL, gymapi.Vec3(0.9, 0.2, 0.1))
        self.sphere = gymutil.WireframeSphereGeometry(0.05, 4, 4, None, color=(1, 1, 0))
        self.axes = gymutil.AxesGeometry(scale=0.2)

    def render(self, sync_frame_time=True):
        gym = self.gym
        assert gym.query_viewer_has_closed(self.viewer) is False
        for _ in gym.query_viewer_action_events(self.viewer):
            raise AssertionError("an event from nowhere")
        gym.poll_viewer_events(self.viewer)
        gym.clear_lines(self.viewer)
        pose = gymapi.Transform(gymapi.Vec3(0.0, 0.0, 1.0), r=None)
        gymutil.draw_lines(self.sphere, gym, self.viewer, self.envs[0], pose)
        gymutil.draw_lines(self.axes, gym, self.viewer, self.envs[1], pose)
        start, end, red = gymapi.Vec3(0, 0, 0), gymapi.Vec3(1, 0, 0), gymapi.Vec3(1, 0, 0)
        gymutil.draw_line(start, end, red, gym, self.viewer, self.envs[0])
        line, colour = np.array([0, 0, 0, 1, 1, 1], np.float32), np.array([1, 0, 0], np.float32)
        gym.add_lines(self.viewer, self.envs[0], 1, line, colour)
        gym.draw_env_rigid_contacts(self.viewer, self.envs[0], gymapi.Vec3(1, 0, 0), 0.5, True)
        gym.step_graphics(self.sim)
        gym.render_all_camera_sensors(self.sim)
        gym.start_access_image_tensors(self.sim)
        gym.end_access_image_tensors(self.sim)
        gym.draw_viewer(self.viewer, self.sim, True)
        if sync_frame_time:
            gym.sync_frame_time(self.sim)


def swing(kind, headless):
    args = get_args(headless)
    robot = kind(Cfg, args)
    angles = []
    for _ in range(1500):
        robot.step(torch.zeros(2, 1, device=robot.device))
        angles.append(robot.dof_pos[:, 0].clone())
    viewer = robot.viewer
    robot.gym.destroy_viewer(viewer)
    robot.close()
    assert viewer is None
    return torch.stack(angles)


seen, unseen = swing(Shown, False), swing(LeggedRobot, True)
assert torch.equal(seen, unseen)
# Released 0.3 rad below the level, without friction: it swings as high on the other side, and back.
lowest = float(seen.min())
assert abs(lowest - (0.3 - math.pi)) < 0.01, lowest
assert abs(float(seen[600:].max()) + 0.3) < 0.01, seen[600:].max()
print("ok: viewer")
