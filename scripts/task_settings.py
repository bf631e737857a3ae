"""From the config to the arguments of a task's class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omegaconf import DictConfig

from gymscale.scripts import config


def arguments(cfg: DictConfig) -> dict[str, Any]:
    """Return the arguments of the task's class for a config from `config.load`."""
    task_cfg = config.to_plain(cfg.task)
    task_cfg["asset_root"] = str(config.ASSET_DIR)
    return {
        "cfg": task_cfg,
        "rl_device": str(cfg.rl_device),
        "sim_device": str(cfg.sim_device),
        "graphics_device_id": int(cfg.graphics_device_id),
        "headless": bool(cfg.headless),
        "force_render": bool(cfg.force_render),
    }


def read(
    task: str, num_envs: int | None, sim_device: str, rl_device: str, overrides: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the arguments of the class of `task` for a few settings; this is what `tasks.make` calls.

    Raises:
        UsageError: An unknown task, key or value.
    """
    words = [f"task={task}", f"sim_device={sim_device}", f"rl_device={rl_device}", *overrides]
    return arguments(config.load([*words, f"num_envs={'auto' if num_envs is None else num_envs}"]))
