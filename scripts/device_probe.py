"""How a task moves on a device, recorded so that two devices can be compared.

Each of the functions is one process: state of a simulator is global, and a reference on the CPU must not share it.
`python -m gymscale.scripts.device_probe task device folder reference|check`
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from gymscale.scripts import config
from gymscale.scripts.output import QuietOutput
from gymscale.scripts.seeding import seed_everything
from gymscale.scripts.session import build_env, close_env

NUM_ENVS = 32
STEPS = 8
"""Control steps that are compared: contacts amplify rounding, so that trajectories part later on any two devices."""

LONG = 200
"""Control steps of random actions that must stay finite."""


def reference(task: str, folder: Path) -> None:
    """Record the state after a reset and the observations that follow, on the CPU."""
    env = _build(task, "cpu")
    env.reset()
    env.step(_actions(env, 0))  # resets happen inside the first step
    torch.save(
        {
            "state": env.get_state(),
            "observations": torch.stack([env.step(_actions(env, t))[0]["obs"].clone() for t in range(1, STEPS + 1)]),
        },
        folder / f"{task}.pt",
    )
    close_env(env)


def check(task: str, device: str, folder: Path) -> dict[str, float]:
    """Start where the reference did and compare.

    Returns:
        `error_step_1`, `error_step_8`: largest difference of an observation, in the units of observations;
        `isolation`: largest difference between environments with equal states and actions;
        `nonfinite`: resets because of numbers that are not finite in 200 steps; `syncs`: warnings of torch's
        synchronisation debug mode in one step (0 on a CPU).
    """
    env = _build(task, device)
    saved = torch.load(folder / f"{task}.pt", weights_only=True)
    env.reset()
    env.step(_actions(env, 0))
    start = _to(saved["state"], device)
    env.set_state(start)
    own = torch.stack([env.step(_actions(env, t))[0]["obs"].cpu().clone() for t in range(1, STEPS + 1)])
    error = (own - saved["observations"]).abs().amax(dim=(1, 2))
    env.set_state(_all_alike(start, NUM_ENVS))
    same = torch.stack([env.step(_actions(env, t)[:1].expand(NUM_ENVS, -1))[0]["obs"].clone() for t in range(1, 4)])
    result = {
        "error_step_1": float(error[0]),
        f"error_step_{STEPS}": float(error[-1]),
        "isolation": float((same - same[:, :1]).abs().max()),
        "syncs": float(_count_syncs(env)),
    }
    bad = torch.zeros((), device=device)
    for t in range(LONG):
        observation, _, _, info = env.step(_actions(env, t))
        bad += (~torch.isfinite(observation["obs"])).sum() + info.get("episode", {}).get("nonfinite_resets", 0.0)
    close_env(env)
    return result | {"nonfinite": float(bad)}


def _build(task: str, device: str) -> Any:
    overrides = [f"task={task}", f"num_envs={NUM_ENVS}", f"sim_device={device}", f"rl_device={device}", "seed=1"]
    cfg = config.load(overrides)
    seed_everything(1, False)
    return build_env(cfg)


def _actions(env: Any, step: int) -> torch.Tensor:
    """Uniform actions (N, A), the same on every device."""
    generator = torch.Generator().manual_seed(step)
    return (2.0 * torch.rand(env.num_envs, env.action_space.shape[0], generator=generator) - 1.0).to(env.device)


def _to(state: Any, device: str) -> Any:
    """Move every tensor of a nested state; state of random generators stays what it is."""
    if torch.is_tensor(state):
        return state if state.dtype == torch.uint8 else state.to(device)
    if isinstance(state, dict):
        return {name: _to(value, device) for name, value in state.items()}
    return [_to(value, device) for value in state] if isinstance(state, list) else state


def _all_alike(state: Any, num_envs: int) -> Any:
    """The state with every environment in that of the first: tensors whose rows are envs, or equal shares of rows."""
    if torch.is_tensor(state):
        rows = len(state) if state.dim() > 0 else 0
        if rows == 0 or rows % num_envs or state.dtype == torch.uint8:
            return state
        share = state[: rows // num_envs]
        return share.repeat(num_envs, *([1] * (state.dim() - 1)))
    if isinstance(state, dict):
        return {name: _all_alike(value, num_envs) for name, value in state.items()}
    return state


def _count_syncs(env: Any) -> int:
    """Host synchronisations that torch knows of in one step."""
    if not str(env.device).startswith("cuda"):
        return 0
    torch.cuda.set_sync_debug_mode("warn")  # pragma: needs cuda
    with warnings.catch_warnings(record=True) as caught:  # pragma: needs cuda
        warnings.simplefilter("always")
        env.step(_actions(env, 0))
    torch.cuda.set_sync_debug_mode("default")  # pragma: needs cuda
    return sum("synchroniz" in str(w.message) for w in caught)  # pragma: needs cuda


def main(argv: Sequence[str]) -> int:
    """Run one part and print its result as JSON on the last line."""
    task, device, folder, part = argv
    with QuietOutput():
        if part == "reference":
            reference(task, Path(folder))
            return 0
        result = check(task, device, Path(folder))
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
