"""The learners that benchmark.py compares: ours and, where they are installed, other PPO libraries.

A module of this package adapts one library. Its `run` builds the library's PPO from a `Job` and trains until told to
stop; every learner gets the same environment, network sizes, minibatches and number of optimiser steps.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ppo.config import TrainConfig, minibatch_samples


@dataclass(frozen=True)
class Variant:
    """One way to train.

    Attributes:
        module: The adapter, a module of this package.
        package: What it imports; None for ours.
        install: What pip installs for it.
        overrides: Config overrides that make this variant.
        options: Keyword arguments of the adapter's `run`.
    """

    module: str
    package: str | None = None
    install: str = ""
    overrides: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def is_installed(self) -> bool:
        """Whether its package can be imported."""
        return self.package is None or importlib.util.find_spec(self.package) is not None


_BF16 = "++train.params.config.mixed_precision_cpu=True"
_HAND_WRITTEN = "++train.params.config.cpu_update=hand_written"
_COMPILED = "++train.params.config.torch_compile=default"
_RL_GAMES = ("rl_games", "rl_games", "'gymscale[rl-games]'")

VARIANTS = {
    "ours": Variant("ours"),
    "ours_compiled": Variant("ours", overrides=(_COMPILED,)),
    "ours_fast": Variant("ours", overrides=(_HAND_WRITTEN,)),
    "ours_bf16": Variant("ours", overrides=(_BF16,)),
    "ours_fast_bf16": Variant("ours", overrides=(_HAND_WRITTEN, _BF16)),
    "rl_games": Variant(*_RL_GAMES),
    "rl_games_compiled": Variant(*_RL_GAMES, options={"compiled": True}),
    "rsl_rl": Variant("rsl_rl", "rsl_rl", "rsl-rl-lib"),
    "skrl": Variant("skrl", "skrl", "skrl"),
}
"""Learners by the names benchmark.py takes. Those with `compiled` use torch.compile, as rl-games does by default."""

ALL = tuple(name for name in VARIANTS if not name.endswith("_compiled"))
"""What `learners=all` measures: compiling takes longer than the rest."""

Turn = Callable[[], bool]
"""Called before every iteration; waits for this learner's turn and returns whether to go on."""


@dataclass(frozen=True)
class Job:
    """What a learner is given.

    Attributes:
        env: The environment (see `ppo.env.VectorEnv`).
        params: The plain `train.params` tree.
        config: The same, read.
        device: Torch device.
        seed: Seeds torch.
    """

    env: Any
    params: dict[str, Any]
    config: TrainConfig
    device: str
    seed: int

    @property
    def batch(self) -> int:
        """Samples an iteration."""
        return int(self.env.num_envs) * self.config.horizon_length

    @property
    def minibatches(self) -> int:
        """Minibatches a mini-epoch; they divide the batch."""
        return -(-self.batch // minibatch_samples(self.config, self.env.num_envs))


def run(name: str, job: Job, turn: Turn) -> None:
    """Train with the learner called `name` until `turn` returns False."""
    variant = VARIANTS[name]
    importlib.import_module(f"{__name__}.{variant.module}").run(job, turn, **variant.options)
