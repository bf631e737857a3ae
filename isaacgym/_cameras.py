"""Where cameras stand and how they project (API notes 9.15); there is no renderer, so this is all a camera has.

A camera looks along the x axis of its frame, z is up in its picture. Matrices follow the row convention:
``clip = point @ view @ projection`` with a homogeneous world point; in view space the camera looks along -z, x is to
the right and y up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from isaacgym._enums import FOLLOW_TRANSFORM
from isaacgym._gym_states import body_pose
from isaacgym._params import CameraProperties
from isaacgym._values import Quat, Transform, Vec3
from isaacgym.engine import spatial
from isaacgym.engine.scene import Env

VIEW_AXES = np.array([[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
"""Rows: forward, left and up of the camera frame in view space."""


@dataclass
class Camera:
    """One camera sensor: its pose in the env frame, or on a body of the env."""

    env: Env
    props: CameraProperties
    pose: Transform = field(default_factory=Transform)
    body: int | None = None
    """Index in the env of the body that carries it; ``pose`` is local to the body then."""
    mode: int = 0
    """Value of CameraFollowMode: whether the camera also turns with the body."""

    def place(self, pose: Transform, env: Env | None) -> None:
        """Put the camera at a pose in the env frame, or in the world where ``env`` is None."""
        shift = Vec3() if env is not None else Vec3(*self.env.origin)
        self.pose, self.body = Transform(pose.p - shift, pose.r), None

    def attach(self, body: int, local: Transform, mode: int) -> None:
        """Let the camera follow a body."""
        self.pose, self.body, self.mode = Transform(local.p, local.r), body, int(mode)

    def transform(self) -> Transform:
        """Return the pose in the env frame, from the present pose of the body that carries it."""
        if self.body is None:
            return Transform(self.pose.p, self.pose.r)
        carrier = body_pose(self.env, self.body)
        if self.mode == FOLLOW_TRANSFORM:
            return carrier * self.pose
        return Transform(carrier.p + self.pose.p, self.pose.r)

    def view_matrix(self) -> np.ndarray:
        """(4, 4) float32 that takes world points to view space."""
        here = self.transform()
        turn = spatial.to_matrix(np.array([here.r.x, here.r.y, here.r.z, here.r.w]))
        position = np.array([here.p.x, here.p.y, here.p.z]) + self.env.origin
        matrix = np.eye(4)
        matrix[:3, :3] = turn @ VIEW_AXES
        matrix[3, :3] = -position @ matrix[:3, :3]
        return matrix.astype(np.float32)

    def projection_matrix(self) -> np.ndarray:
        """(4, 4) float32 that takes view space to clip space, depths from -1 (near) to 1 (far)."""
        props = self.props
        across = 1.0 / np.tan(np.radians(props.horizontal_fov) / 2.0)
        near, far = props.near_plane, props.far_plane
        matrix = np.zeros((4, 4))
        matrix[0, 0], matrix[1, 1] = across, across * props.width / props.height
        matrix[2, 2], matrix[2, 3] = (far + near) / (near - far), -1.0
        matrix[3, 2] = 2.0 * far * near / (near - far)
        return matrix.astype(np.float32)


def look_at(position: Vec3, target: Vec3, up: Vec3) -> Transform:
    """Pose of a camera at ``position`` that looks at ``target``, upright where that is possible."""
    forward = (target - position).normalize()
    side = up.cross(forward)
    if side.length() < 1e-6:
        # Looking straight up or down: any side will do.
        side = Vec3(0.0, 1.0, 0.0) if abs(forward.y) < 0.5 else Vec3(1.0, 0.0, 0.0)
        side = side - forward * side.dot(forward)
    left = side.normalize()
    above = forward.cross(left)
    axes = np.array([[a.x, a.y, a.z] for a in (forward, left, above)]).T
    return Transform(position, Quat(*spatial.from_matrix(axes)))
