"""Trains a policy: `python scripts/train.py task=Ant num_envs=1024`.

Everything on the command line is checked before torch or PhysX is imported and before any folder exists. Exit codes:
0 done, 1 failed, 2 wrong input, 130 and 143 stopped by SIGINT and SIGTERM after a checkpoint was saved.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from gymscale.scripts import config, exits, multirun, preflight, processes, scaled
from gymscale.scripts.arguments import flags_first, parse_flags
from gymscale.scripts.config import UsageError

INFORMATION_FLAGS = ("help", "hydra_help", "info", "shell_completion", "cfg")
"""Hydra's flags that print something and run nothing."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return exits.guarded(lambda: _main(arguments))


def _main(argv: list[str]) -> int:
    flags = parse_flags(argv)
    argv = flags_first(argv, flags.overrides)
    if flags.help or flags.hydra_help or flags.shell_completion:
        multirun.hand_to_hydra(argv)
        return 0
    check(flags)
    if flags.cfg == "job" and not (flags.package or flags.multirun):
        print_config(flags)
        return 0
    if any(getattr(flags, name) for name in INFORMATION_FLAGS):
        multirun.hand_to_hydra(argv)
        return 0
    if flags.multirun:
        return multirun.run(argv)
    cfg = config.load(flags.overrides, flags.config_dir)
    if cfg.test:
        from gymscale.scripts.play import play

        return play(cfg)
    run_dir_is_chosen = any(o.startswith("hydra.run.dir=") for o in flags.overrides)
    if cfg.train.algo == "rl_games":
        from gymscale.scripts import rl_games_training

        return rl_games_training.train(cfg, run_dir_is_chosen)
    from gymscale.scripts.training import train

    return train(cfg, run_dir_is_chosen)


def print_config(flags: argparse.Namespace) -> None:
    """Print the config as training would use it, with what its scaling rule changed as comments."""
    cfg = config.load(flags.overrides, flags.config_dir)
    print(config.to_text(cfg), end="")
    print("".join(f"# {line}\n" for line in scaled.describe(cfg)), end="")


def check(flags: argparse.Namespace) -> None:
    """Check the machine and the command line.

    Raises:
        UsageError: The first thing that is wrong.
    """
    for line in preflight.problems():
        raise UsageError(line)
    for flag in ("config_path", "config_name", "experimental_rerun"):
        if getattr(flags, flag):
            raise UsageError(f"--{flag.replace('_', '-')} is not supported: add files of your own with --config-dir")
    if flags.multirun and processes.count() > 1:
        raise UsageError("a sweep (-m) starts its own processes: run it without torchrun")
    if flags.multirun:
        multirun.check(flags.overrides, flags.config_dir)
    else:
        config.load(flags.overrides, flags.config_dir)


if __name__ == "__main__":
    sys.exit(main())
