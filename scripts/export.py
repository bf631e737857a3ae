"""Converts checkpoints: `python scripts/export.py from_rl_games=Ant.pth to=ant.pth task=Ant`.

`from_rl_games=` reads a checkpoint of rl-games' PPO (rl-games need not be installed) and writes one of ours that acts
the same and can be played and trained on: networks, recurrent layers, central critic, statistics of observations and
values, epoch, frame and learning rate; the optimiser's moments start afresh. Task, train config and network settings
are those of the run it is from, given as on train.py's command line; for a run of train.algo=rl_games they are known.
`trusted=True` loads a checkpoint that holds more than tensors and numbers; only for files from a source you trust,
since loading them may run code.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from gymscale.scripts import config, exits, preflight
from gymscale.scripts.arguments import take_own
from gymscale.scripts.config import UsageError

OWN_KEYS = ("from_rl_games", "to", "trusted")
"""Keys of this program; all others are config overrides."""

ON_CPU = ("sim_device=cpu", "rl_device=cpu")
"""The physics only tells the names of the joints, so it need not run on a GPU."""


@dataclass(frozen=True)
class Request:
    """What to convert.

    Attributes:
        source: rl-games' checkpoint.
        target: The file to write.
        trusted: Load Python objects of any kind from the source.
        overrides: Config overrides.
    """

    source: Path
    target: Path
    trusted: bool
    overrides: list[str] = field(default_factory=list)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    return exits.run_program(argv, __doc__, _main)


def _main(flags: argparse.Namespace) -> int:
    for line in preflight.problems():
        raise UsageError(line)
    request = read_request(flags.overrides)
    saved = None if _names_task(request.overrides) else saved_settings(request.source)
    task = [f"task={saved['task_name']}"] if saved is not None else []
    return convert(request, config.load([*ON_CPU, *task, *request.overrides], flags.config_dir, saved))


def read_request(words: Sequence[str]) -> Request:
    """Read the command line.

    Raises:
        UsageError: A value that is missing or cannot be used.
    """
    own, overrides = take_own(words, OWN_KEYS)
    for key, example in (("from_rl_games", "nn/Ant.pth"), ("to", "ant.pth")):
        if not own.get(key):
            raise UsageError(f"{key}= is missing, for example {key}={example}")
    if own.get("trusted", "False") not in ("True", "False"):
        raise UsageError(f"trusted must be True or False, got '{own['trusted']}'")
    source, target = (Path(own[key]).expanduser().resolve() for key in ("from_rl_games", "to"))
    if not source.is_file():
        raise UsageError(f"from_rl_games: no file '{source}'")
    if target.exists():
        raise UsageError(f"to: '{target}' exists already; choose another name or remove it")
    return Request(source, target, own.get("trusted") == "True", overrides)


def _names_task(overrides: Sequence[str]) -> bool:
    return any(word.startswith("task=") for word in overrides)


def saved_settings(source: Path) -> dict[str, Any]:
    """Return the config of the run folder that a checkpoint lies in, with our learner in place of rl-games.

    Raises:
        UsageError: It lies elsewhere.
    """
    path = source.parent.parent / "config.yaml"
    saved = OmegaConf.to_container(OmegaConf.load(path)) if path.is_file() else None
    if not isinstance(saved, dict) or not {"task_name", "task", "train"} <= saved.keys():
        raise UsageError("task= is missing: the task that the checkpoint was trained on, for example task=Ant")
    return {"task_name": saved["task_name"], "task": saved["task"], "train": {**saved["train"], "algo": "ppo"}}


def convert(request: Request, cfg: DictConfig) -> int:
    """Write our checkpoint; returns the exit code.

    Raises:
        UsageError: The checkpoint cannot be read or does not fit the config.
    """
    from gymscale.scripts import rl_games_checkpoint
    from gymscale.scripts.output import QuietOutput
    from gymscale.scripts.session import RunLoggers, build_env, build_trainer, close_env, input_errors_as_usage_errors

    content = rl_games_checkpoint.read(request.source, request.trusted)
    state = rl_games_checkpoint.convert(content)
    small = cfg.copy()
    small.task.env.numEnvs = 1
    with QuietOutput(), input_errors_as_usage_errors():
        env = build_env(small)
        trainer = build_trainer(cfg, env, 0, RunLoggers())
        rl_games_checkpoint.check_fit(state, trainer.agent.state_dict())
        trainer.agent.load_state_dict(state)
        trainer.epoch, trainer.frame = int(content.get("epoch", 0)), int(content.get("frame", 0))
        if groups := content.get("optimizer", {}).get("param_groups"):
            trainer.update.optimizer.set_rate(float(groups[0]["lr"]))
        written = trainer.save(request.target, with_env=False)
        close_env(env)
    if not written:
        raise UsageError(f"{request.target} cannot be written, or the checkpoint holds values that are not finite")
    print(f"wrote {request.target}: {cfg.task_name} after epoch {trainer.epoch}, frame {trainer.frame}")
    print(f"play it with: python scripts/play.py checkpoint={request.target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
