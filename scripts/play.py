"""Plays a checkpoint: `python scripts/play.py checkpoint=runs/.../nn/best.pth num_episodes=100`.

The task and its settings come from the checkpoint; overrides on the command line change them.
`python scripts/play.py task=AnymalTerrain terrain_preview=True` draws a task's terrain instead, without a simulation.

Keys that matter here: `num_envs` (64 unless given), `num_episodes`, `deterministic=False` (sample actions instead of
taking the policy's means), `sim_device`, `rl_device`, `seed`, and any `task.` key. `nn/last.pth` is there after every
run, `nn/best.pth` from iteration `train.params.config.save_best_after` on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from gymscale.scripts import config, exits, preflight
from gymscale.scripts.arguments import take_own
from gymscale.scripts.config import UsageError

PLAYED_ENVS = 64
"""Environments played at once unless num_envs says otherwise."""

RETURNS = ("episodes", "reward_mean", "reward_std", "episode_length_mean")
"""Results of every task; all others are measures of the task's own."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    return exits.run_program(argv, __doc__, _main)


def _main(flags: argparse.Namespace) -> int:
    for line in preflight.problems():
        raise UsageError(line)
    if flags.multirun:
        raise UsageError("play.py plays one checkpoint: -m is not supported")
    preview, overrides = _take_switch("terrain_preview", flags.overrides)
    if preview:
        return preview_terrain(config.load(overrides, flags.config_dir))
    overrides, saved = _with_saved_task(overrides)
    return play(config.load(overrides, flags.config_dir, saved))


def _take_switch(name: str, overrides: Sequence[str]) -> tuple[bool, list[str]]:
    """Return a switch of this program's own (off unless it is given) and the overrides without it."""
    own, rest = take_own(overrides, (name,))
    value = own.get(name, "False")
    if value not in ("True", "true", "False", "false"):
        raise UsageError(f"{name} must be True or False, got '{value}'")
    return value in ("True", "true"), rest


def _with_saved_task(overrides: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the overrides with the checkpoint's task in front, and the config saved in the checkpoint.

    Raises:
        UsageError: No checkpoint is named, or it cannot be read.
    """
    given = {override.key_or_group: override.value() for override in config.parse(overrides)}
    if not given.get("checkpoint"):
        raise UsageError("play.py needs checkpoint=PATH, for example checkpoint=runs/Ant_.../nn/last.pth")
    # Imported here, since they bring torch: a mistyped command line is answered before.
    from gymscale.scripts.session import input_errors_as_usage_errors
    from ppo import checkpoint

    with input_errors_as_usage_errors():
        saved = checkpoint.read(Path(str(given["checkpoint"])).expanduser())["config"]
    defaults = [] if "task" in given else [f"task={saved['task_name']}"]
    if "num_envs" not in given and "task.env.numEnvs" not in given:
        defaults.append(f"num_envs={PLAYED_ENVS}")
    return [*defaults, *overrides], saved


def play(cfg: DictConfig) -> int:
    """Play the checkpoint named in the config and print the mean return; returns the exit code.

    Raises:
        UsageError: The checkpoint cannot be used.
    """
    from gymscale.scripts.output import QuietOutput
    from gymscale.scripts.session import describe, open_session
    from gymscale.scripts.signals import StopSignals

    cfg.test = True
    with StopSignals(), QuietOutput():
        session = open_session(cfg)
        print("\n".join(describe(cfg, session)[:-1]))
        result = session.trainer.play(int(cfg.num_episodes), deterministic=bool(cfg.deterministic))
        session.close()
    print(
        f"{result['episodes']:.0f} episodes: reward {result['reward_mean']:.2f} (standard deviation "
        f"{result['reward_std']:.2f}), length {result['episode_length_mean']:.1f}"
    )
    for name in (name for name in result if name not in RETURNS):
        print(f"{name} {result[name]:.4f}")
    return 0


def preview_terrain(cfg: DictConfig) -> int:
    """Write a picture of the terrain that training with this config gets, and say where; returns the exit code.

    Raises:
        UsageError: The task has no terrain.
    """
    from gymscale.scripts.seeding import seed_everything
    from gymscale.scripts.session import input_errors_as_usage_errors
    from tasks import terrain_preview

    seed = seed_everything(int(cfg.seed), bool(cfg.torch_deterministic))
    with input_errors_as_usage_errors():
        picture = terrain_preview.preview(config.to_plain(cfg.task)["env"], int(cfg.num_envs))
    path = Path("runs") / f"{cfg.task_name}_terrain_seed{seed}.png"
    terrain_preview.write_png(path, picture)
    size = f"{picture.shape[1]} x {picture.shape[0]} pixels of 0.1 m"
    print(f"wrote {path} ({size}, x to the right; tile centres blue, env origins red)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
