"""Robot tasks written against the Isaac Gym API; look them up by name in `tasks.registry`, or `make` one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

if TYPE_CHECKING:
    from tasks.gymnasium_env import GymnasiumEnv


def make(
    name: str,
    num_envs: int | None = None,
    *,
    arrays: str = "numpy",
    sim_device: str = "auto",
    rl_device: str = "auto",
    overrides: Sequence[str] = (),
) -> GymnasiumEnv:
    """Build a task as a `gymnasium.vector.VectorEnv`: `tasks.make("Ant", num_envs=64)`.

    Args:
        name: of the task, see `tasks.registry.names()`.
        num_envs: copies that are stepped together; None: 4096 on CUDA, 1024 on the CPU.
        arrays: "numpy", or "torch" for tensors on `rl_device`.
        sim_device: of the physics: "auto" (CUDA where there is one), "cpu", "cuda:0".
        rl_device: of what comes and goes: "auto" (that of the physics), "cpu", "cuda:0".
        overrides: config settings as on the command line of train.py, such as "task.env.episodeLength=100".

    Raises:
        ValueError: an unknown task, key or value; the message says which and what fits.
    """
    from tasks import gymnasium_env, registry

    arguments = gymnasium_env.read_settings()(name, num_envs, sim_device, rl_device, list(overrides))
    return gymnasium_env.GymnasiumEnv(registry.get(name)(**arguments), arrays)
