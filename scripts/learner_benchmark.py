"""Compares learners alone: each in a process of its own, taking turns iteration by iteration.

The environment costs next to nothing, and whatever else the machine does meets all learners alike: in every round each
trains one iteration while the others wait. Ratios are taken within a round.
"""

from __future__ import annotations

import math
import multiprocessing
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from gymscale.scripts import config

WARM_UP = 2
"""Rounds at the start that do not count: caches, first allocations, compilation."""

REFERENCE = "rl_games"
"""Whose speed the ratios are relative to, where it is measured."""


@dataclass(frozen=True)
class Size:
    """What is trained at a size: the settings of `task` and how many environments unless num_envs says otherwise."""

    task: str
    num_envs: int
    overrides: tuple[str, ...] = ()


SIZES = {
    "Ant": Size("Ant", 4096),
    "ShadowHand": Size("ShadowHand", 8192),
    "Pendulum": Size(
        "Cartpole",
        512,
        ("train.params.network.mlp.units=[64,64]", "train.params.config.minibatch_size=2048"),
    ),
}
"""By name: numbers of observations and actions of a task, or a task that is really solved."""


@dataclass(frozen=True)
class Entry:
    """One learner on one size; what its process is told.

    Attributes:
        learner: A name in `learners.VARIANTS`.
        size: A name in SIZES.
        seed: Seeds the learner and the environment.
        overrides: Config overrides.
        config_dir: A folder of the user's own config files.
    """

    learner: str
    size: str
    seed: int
    overrides: tuple[str, ...]
    config_dir: str | None = None


def compare(entries: Sequence[Entry], rounds: int) -> tuple[list[dict[str, Any]], int]:
    """Train all entries in turn for WARM_UP + `rounds` iterations; returns one row each and how many failed."""
    runners = [_Runner(entry) for entry in entries]
    try:
        active = [runner for runner in runners if runner.is_ready()]
        for number in range(WARM_UP + rounds):
            first = number % max(1, len(active))  # nobody always comes after the same one
            for runner in active[first:] + active[:first]:
                runner.take_turn(counts=number >= WARM_UP)
            active = [runner for runner in active if not runner.failed]
        finished = [(runner, row) for runner in active if (row := runner.finish()) is not None]
    finally:
        for runner in runners:
            runner.close()
    reference = next((runner for runner, _ in finished if runner.entry.learner == REFERENCE), None)
    for runner, row in finished:
        if reference is not None:
            row[f"/{REFERENCE}"] = median_ratio(reference.seconds, runner.seconds)
    return [order_columns(row) for _, row in finished], len(runners) - len(finished)


def median_ratio(reference: Sequence[float], own: Sequence[float]) -> float:
    """Return the median over rounds of how many times faster than the reference."""
    return statistics.median(r / o for r, o in zip(reference, own, strict=True))


def order_columns(row: dict[str, Any]) -> dict[str, Any]:
    """Put the columns in the order they are printed in."""
    order = ("learner", "size", "num_envs", "device", "seed", "networks", "steps", "total", f"/{REFERENCE}", "return")
    return {name: row[name] for name in (*order, "peak_MiB") if name in row}


class _Runner:
    """The parent's end of one learner's process."""

    def __init__(self, entry: Entry) -> None:
        """Start the process; it builds the learner at once."""
        self.entry = entry
        self.seconds: list[float] = []
        self.failed = False
        self._returns: list[float] = []
        self._pipe, child = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=_serve, args=(child, entry), daemon=True)
        self._process.start()
        child.close()

    def is_ready(self) -> bool:
        """Wait until the learner is built."""
        return self._receive() is not None

    def take_turn(self, counts: bool) -> None:
        """Let it train one iteration."""
        if self.failed:
            return
        self._pipe.send("go")
        result = self._receive()
        if result is not None and counts:
            self.seconds.append(result["seconds"])
            self._returns.append(result["return"])

    def finish(self) -> dict[str, Any] | None:
        """End the training and return the row, None if it failed."""
        self._pipe.send("stop")
        row = self._receive()
        if row is None:
            return None
        row["total"] = row.pop("batch") / statistics.median(self.seconds)
        last = [value for value in self._returns[-max(1, len(self._returns) // 10) :] if not math.isnan(value)]
        if last:
            row["return"] = statistics.fmean(last)
        return {"learner": self.entry.learner, "size": self.entry.size, "seed": self.entry.seed, **row}

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()

    def _receive(self) -> dict[str, Any] | None:
        """Return the next message; None, and a line on stderr, when the process failed."""
        try:
            message: dict[str, Any] = self._pipe.recv()
        except (EOFError, ConnectionError):
            message = {"error": "its process died"}
        if "error" in message:
            self.failed = True
            print(f"error: {self.entry.learner}, {self.entry.size}: {message['error']}", file=sys.stderr)
            return None
        return message


class _Turns:
    """The child's end: called by the learner before every iteration."""

    def __init__(self, pipe: Connection, env: Any) -> None:
        self._pipe, self._env = pipe, env
        self._start = time.perf_counter()
        self.iterations = -1  # the first call only says that all is built

    def __call__(self) -> bool:
        """Report the iteration that ended, wait for the next turn, return whether there is one."""
        seconds = time.perf_counter() - self._start
        reached = self._env.take_return() if hasattr(self._env, "take_return") else math.nan
        self.iterations += 1
        self._pipe.send({"seconds": seconds, "return": reached})
        try:
            go_on = bool(self._pipe.recv() == "go")
        except (EOFError, ConnectionError):
            go_on = False
        self._start = time.perf_counter()
        return go_on


def _serve(pipe: Connection, entry: Entry) -> None:
    """Train one learner, in a process of its own."""
    try:
        pipe.send(_train(pipe, entry))
    except Exception as error:  # noqa: BLE001 - told to the parent, which goes on with the others
        pipe.send({"error": f"{type(error).__name__}: {error}"})


def _train(pipe: Connection, entry: Entry) -> dict[str, Any]:
    """Train until the parent has had enough; returns the learner's part of the row."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    from gymscale.scripts import learners
    from gymscale.scripts.memory import peak_memory
    from gymscale.scripts.pendulum import PendulumEnv
    from gymscale.scripts.synthetic import SIZES as SYNTHETIC
    from gymscale.scripts.synthetic import SyntheticEnv
    from ppo.config import TrainConfig

    cfg = config.load(entry.overrides, entry.config_dir)
    params = config.to_plain(cfg.train)["params"]
    device, num_envs = str(cfg.rl_device), int(cfg.num_envs)
    env: Any
    if entry.size in SYNTHETIC:
        env = SyntheticEnv(num_envs, *SYNTHETIC[entry.size], device=device)
    else:
        env = PendulumEnv(num_envs, device, entry.seed)
    steps = [0]
    register_optimizer_step_post_hook(lambda *_: steps.__setitem__(0, steps[0] + 1))
    turns = _Turns(pipe, env)
    job = learners.Job(env, params, TrainConfig.from_params(params), device, entry.seed)
    learners.run(entry.learner, job, turns)
    separate = job.config.network.separate or entry.learner == "rsl_rl"
    return {
        "num_envs": num_envs,
        "device": device,
        "networks": "separate" if separate else "shared",
        "steps": steps[0] // max(1, turns.iterations),
        "batch": job.batch,
        "peak_MiB": peak_memory(device),
    }
