"""Gym methods of viewers and cameras (API notes 9.15): harmless without a renderer.

There is no renderer. Viewers are None, cameras can be created and placed (with one warning) and tell their matrices,
and reading an image raises NotImplementedError.
"""

from __future__ import annotations

import logging
from copy import copy
from typing import Any

import numpy as np

from isaacgym._cameras import Camera, look_at
from isaacgym._enums import UP_AXIS_Z
from isaacgym._params import CameraProperties
from isaacgym._values import ActionEvent, Transform, Vec3
from isaacgym.engine.scene import Env
from isaacgym.engine.simulation import Simulation

_logger = logging.getLogger(__name__)


class Viewer:
    """Type of viewers in annotations; none is ever made."""


class GraphicsMethods:
    """No window, no images, no errors on the way."""

    _cameras: list[Camera]

    def create_viewer(self, sim: Simulation, props: CameraProperties) -> Viewer | None:
        """Return None: there is no renderer."""
        _logger.warning("create_viewer: gymscale has no renderer; run headless")
        return None

    def destroy_viewer(self, viewer: Viewer | None) -> None:
        """Do nothing."""

    def query_viewer_has_closed(self, viewer: Viewer | None) -> bool:
        """Return False: a viewer that does not exist is not closed either."""
        return False

    def query_viewer_action_events(self, viewer: Viewer | None) -> list[ActionEvent]:
        """Return no events."""
        return []

    def subscribe_viewer_keyboard_event(self, viewer: Viewer | None, key: int, action: str) -> None:
        """Do nothing."""

    def subscribe_viewer_mouse_event(self, viewer: Viewer | None, button: int, action: str) -> None:
        """Do nothing."""

    def poll_viewer_events(self, viewer: Viewer | None) -> None:
        """Do nothing."""

    def step_graphics(self, sim: Simulation) -> None:
        """Do nothing."""

    def draw_viewer(self, viewer: Viewer | None, sim: Simulation, render_collision: bool = True) -> None:
        """Do nothing."""

    def sync_frame_time(self, sim: Simulation) -> None:
        """Do nothing: without a viewer there is no real time to keep."""

    def clear_lines(self, viewer: Viewer | None) -> None:
        """Do nothing."""

    def add_lines(self, viewer: Viewer | None, env: Env | None, num_lines: int, vertices: Any, colors: Any) -> None:
        """Do nothing."""

    def draw_env_rigid_contacts(
        self, viewer: Viewer | None, env: Env, color: Vec3, scale: float, sync_with_step: bool
    ) -> None:
        """Do nothing."""

    def viewer_camera_look_at(self, viewer: Viewer | None, env: Env | None, pos: Vec3, target: Vec3) -> None:
        """Do nothing."""

    def get_viewer_camera_handle(self, viewer: Viewer | None) -> int:
        """Return -1: no viewer, no camera."""
        return -1

    def get_viewer_camera_transform(self, viewer: Viewer | None, env: Env | None) -> Transform:
        """Return the identity."""
        return Transform()

    def write_viewer_image_to_file(self, viewer: Viewer | None, path: str) -> None:
        """Write nothing and say so."""
        _logger.warning("write_viewer_image_to_file: gymscale has no renderer; %s was not written", path)

    def set_light_parameters(self, sim: Simulation, light: int, intensity: Vec3, ambient: Vec3, pos: Vec3) -> None:
        """Do nothing."""

    def create_texture_from_file(self, sim: Simulation, path: str) -> int:
        """Return a handle that means nothing."""
        return 0

    def create_camera_sensor(self, env: Env, props: CameraProperties) -> int:
        """Return a new camera handle; the first one warns that images cannot be read."""
        if not hasattr(self, "_cameras"):
            _logger.warning("create_camera_sensor: gymscale has no renderer; reading a camera image raises an error")
            self._cameras = []
        self._cameras.append(Camera(env, copy(props)))
        return len(self._cameras) - 1

    def destroy_camera_sensor(self, sim: Simulation, env: Env, camera: int) -> None:
        """Do nothing: handles stay as they are."""

    def set_camera_location(self, camera: int, env: Env | None, pos: Vec3, target: Vec3) -> None:
        """Place the camera at ``pos``, looking at ``target``, in the env frame (``env`` None: in the world)."""
        chosen = self._cameras[camera]
        up = Vec3(0.0, 0.0, 1.0) if chosen.env.scene.params.up_axis == UP_AXIS_Z else Vec3(0.0, 1.0, 0.0)
        chosen.place(look_at(pos, target, up), env)

    def set_camera_transform(self, camera: int, env: Env | None, transform: Transform) -> None:
        """Place the camera in the env frame (``env`` None: in the world); it looks along its x axis."""
        self._cameras[camera].place(transform, env)

    def get_camera_transform(self, sim: Simulation, env: Env, camera: int) -> Transform:
        """Return the camera's pose in the env frame."""
        return self._cameras[camera].transform()

    def get_camera_view_matrix(self, sim: Simulation, env: Env, camera: int) -> np.ndarray:
        """Return the (4, 4) float32 view matrix, world to view, for row vectors."""
        return self._cameras[camera].view_matrix()

    def get_camera_proj_matrix(self, sim: Simulation, env: Env, camera: int) -> np.ndarray:
        """Return the (4, 4) float32 projection matrix for row vectors."""
        return self._cameras[camera].projection_matrix()

    def attach_camera_to_body(self, camera: int, env: Env, body: int, local: Transform, mode: int) -> None:
        """Let the camera follow a body (index in the env) at a local pose; ``mode`` is a CameraFollowMode."""
        self._cameras[camera].attach(body, local, mode)

    def render_all_camera_sensors(self, sim: Simulation) -> None:
        """Do nothing."""

    def start_access_image_tensors(self, sim: Simulation) -> None:
        """Do nothing."""

    def end_access_image_tensors(self, sim: Simulation) -> None:
        """Do nothing."""
