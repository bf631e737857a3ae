"""Taking and restoring everything a bit-exact resume of a task needs (torch's own generators excepted)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isaacgym import gymtorch  # isort: skip  (the original package wants to be imported before torch)
from torch import Tensor

if TYPE_CHECKING:
    from tasks.base.vec_task import VecTask

_REFRESH = {
    "root_states": "refresh_actor_root_state_tensor",
    "dof_state": "refresh_dof_state_tensor",
}
"""Attribute of the task -> Gym call that brings it up to date."""

_WRITE = {
    "root_states": "set_actor_root_state_tensor",
    "dof_state": "set_dof_state_tensor",
    "dof_targets": "set_dof_position_target_tensor",
    "dof_forces": "set_dof_actuation_force_tensor",
}
"""Attribute of the task -> Gym call that writes it into the simulation, in the order of writing."""


def take(task: VecTask) -> dict[str, Any]:
    """Copies of the simulation state, the task's buffers, counters and statistics."""
    for name in task.sim_state:
        if name in _REFRESH:
            getattr(task.gym, _REFRESH[name])(task.sim)
    return {
        "sim": {name: getattr(task, name).clone() for name in task.sim_state},
        "buffers": {name: getattr(task, name).clone() for name in task.saved_buffers},
        "randomizer": None if task.randomizer is None else task.randomizer.get_state(),
        "episodes": task.episodes.get_state(),
        "control_steps": task.control_steps,
        "frame_count": task.frame_count,
        "total_train_env_frames": task.total_train_env_frames,
    }


def restore(task: VecTask, state: dict[str, Any]) -> None:
    """Bring task and simulation into the state that `take` saw.

    Raises:
        ValueError: a saved tensor is missing or has another shape (other task or number of envs).
    """
    for group, names in (("sim", task.sim_state), ("buffers", task.saved_buffers)):
        for name in names:
            _copy_into(getattr(task, name), state[group].get(name), name)
    for name, setter in _WRITE.items():
        if name in task.sim_state:
            getattr(task.gym, setter)(task.sim, gymtorch.unwrap_tensor(getattr(task, name)))
    if task.randomizer is not None:
        if state["randomizer"] is None:
            raise ValueError("the saved environment state has no domain randomization; set task.task.randomize=False")
        task.randomizer.set_state(state["randomizer"])
    task.episodes.set_state(state["episodes"])
    task.control_steps = int(state["control_steps"])
    task.frame_count = int(state["frame_count"])
    task.total_train_env_frames = int(state["total_train_env_frames"])
    task.extras["episode"] = task.episode_report()


def _copy_into(buffer: Tensor, saved: Tensor | None, name: str) -> None:
    if saved is None:
        raise ValueError(f"the saved environment state has no {name}")
    if saved.shape != buffer.shape:
        raise ValueError(
            f"the saved environment state does not fit: {name} is {tuple(saved.shape)}, here {tuple(buffer.shape)}"
        )
    buffer.copy_(saved)
