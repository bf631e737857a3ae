"""The optional viewer window: keys, real-time pacing and frame recording."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from isaacgym import gymapi

KEYS = (
    (gymapi.KEY_ESCAPE, "QUIT"),
    (gymapi.KEY_V, "toggle_viewer_sync"),
    (gymapi.KEY_R, "record_frames"),
)


def open_viewer(gym: Any, sim: Any, up_axis: str, frame_period: float, fetch: bool) -> Viewer | None:
    """Open a window (arguments of `Viewer`), or say that there is none and return None."""
    viewer = Viewer(gym, sim, up_axis, frame_period, fetch)
    if viewer.handle is None:
        print("no viewer is available here: going on without a window")
        return None
    return viewer


class Viewer:
    """Window onto a running simulation; ESC quits, V toggles synchronised drawing, R records frames."""

    def __init__(self, gym: Any, sim: Any, up_axis: str, frame_period: float, fetch: bool) -> None:
        """Open the window.

        Args:
            gym: the Isaac Gym API object.
            sim: simulation handle.
            up_axis: "z" or "y".
            frame_period: shortest time between two frames in seconds.
            fetch: fetch results before drawing (pipelines that do not live on the CPU).
        """
        self.gym, self.sim = gym, sim
        self.frame_period = frame_period
        self.fetch = fetch
        self.synchronised = True
        self.record_dir: Path | None = None
        self._last_frame = 0.0
        self.handle = gym.create_viewer(sim, gymapi.CameraProperties())
        for key, action in KEYS:
            gym.subscribe_viewer_keyboard_event(self.handle, key, action)
        if up_axis == "z":
            self.look_at((20.0, 25.0, 3.0), (10.0, 15.0, 0.0))
        else:
            self.look_at((20.0, 3.0, 25.0), (10.0, 0.0, 15.0))

    def look_at(self, eye: tuple[float, float, float], target: tuple[float, float, float]) -> None:
        """Place the camera at `eye`, looking at `target` (metres, world frame)."""
        self.gym.viewer_camera_look_at(self.handle, None, gymapi.Vec3(*eye), gymapi.Vec3(*target))

    def draw(self, step: int) -> None:
        """Handle events and, when synchronised, draw one frame; `step` names a recorded frame."""
        if self.gym.query_viewer_has_closed(self.handle):
            sys.exit()
        self._handle_events()
        if self.fetch:
            self.gym.fetch_results(self.sim, True)
        if not self.synchronised:
            self.gym.poll_viewer_events(self.handle)
            return
        self.gym.step_graphics(self.sim)
        self.gym.draw_viewer(self.handle, self.sim, True)
        self.gym.sync_frame_time(self.sim)
        time.sleep(max(0.0, self.frame_period - (time.perf_counter() - self._last_frame)))
        self._last_frame = time.perf_counter()
        if self.record_dir is not None:
            self.gym.write_viewer_image_to_file(self.handle, str(self.record_dir / f"frame_{step}.png"))

    def _handle_events(self) -> None:
        for event in self.gym.query_viewer_action_events(self.handle):
            if event.value <= 0:
                continue
            if event.action == "QUIT":
                sys.exit()
            if event.action == "toggle_viewer_sync":
                self.synchronised = not self.synchronised
            elif event.action == "record_frames":
                self.record_dir = None if self.record_dir else self._new_record_dir()

    @staticmethod
    def _new_record_dir() -> Path:
        folder = Path("recorded_frames") / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        folder.mkdir(parents=True, exist_ok=True)
        return folder
