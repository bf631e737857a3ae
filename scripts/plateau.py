"""Plateaus of a small task, and what lifts them: `python scripts/plateau.py seeds=1,2,3 com=none,50,200 e_clip=0.2,1`.

Trains the torch pendulum with few environments once for every seed and every combination of `com` (PPO-EWMA's centre
of mass in optimiser steps; none: PPO), `e_clip` and `num_envs`. A run that ends below `solved` is continued from its
last checkpoint for `retrain_iterations`, once with `retrain_com` and once with `retrain_envs` environments.

Keys: seeds=1,2,3  com=none,200  e_clip=0.2,1.0  num_envs=32  iterations=300  retrain_com=200 (none: do not)
retrain_envs=none  retrain_iterations=300  mini_epochs=8  learning_rate=0.001  minibatch_size=256  window=50 (of the
detector)  solved=-200 (return that counts as solved)  processes=1  out=runs/plateau.
Writes runs.csv (one row a run), curves.csv, plateau.png and report.md there.
"""

from __future__ import annotations

import argparse
import itertools
import math
import multiprocessing
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from gymscale.scripts import charts, exits, tables
from gymscale.scripts.arguments import read_settings
from ppo.reading import ConfigError, require

HORIZON = 16
BOOTSTRAPS = 10_000
"""Resamples of the runs from which the confidence interval of the correlation is read."""


@dataclass(frozen=True)
class Settings:
    """The command line (see the module's docstring); lists are read by `split`."""

    seeds: str = "1,2,3"
    com: str = "none,200"
    e_clip: str = "0.2,1.0"
    num_envs: str = "32"
    iterations: int = 300
    retrain_com: float | None = 200.0
    retrain_envs: int | None = None
    retrain_iterations: int = 300
    mini_epochs: int = 8
    learning_rate: float = 1e-3
    minibatch_size: int = 256
    window: int = 50
    solved: float = -200.0
    processes: int = 1
    out: str = "runs/plateau"

    def __post_init__(self) -> None:
        """Check values."""
        for name in ("iterations", "retrain_iterations", "mini_epochs", "minibatch_size", "processes"):
            require(getattr(self, name) >= 1, f"{name} must be at least 1, got {getattr(self, name)}")
        require(self.window >= 4, f"window must be at least 4, got {self.window}")
        require(self.learning_rate > 0, f"learning_rate must be above 0, got {self.learning_rate}")
        for name, lowest in (("seeds", 0), ("num_envs", 1), ("e_clip", 1e-6), ("com", 0)):
            for value in split(name, getattr(self, name)):
                require(value is None or value >= lowest, f"{name} must be at least {lowest}, got {value}")

    def runs(self) -> Iterator[Run]:
        """Every run from scratch."""
        names = ("num_envs", "e_clip", "com", "seeds")
        for num_envs, e_clip, com, seed in itertools.product(*(split(name, getattr(self, name)) for name in names)):
            assert num_envs is not None
            assert e_clip is not None
            assert seed is not None
            yield Run(com, e_clip, int(num_envs), int(seed))


@dataclass(frozen=True)
class Run:
    """One training: from scratch, or from the last checkpoint of the run called `parent`."""

    com: float | None
    e_clip: float
    num_envs: int
    seed: int
    parent: str = ""

    @property
    def setting(self) -> str:
        """What it trains with, but for the seed."""
        com = "none" if self.com is None else f"{self.com:g}"
        return f"com={com} eps={self.e_clip:g} envs={self.num_envs}"

    @property
    def name(self) -> str:
        """Name of its folder."""
        words = f"{self.setting} seed={self.seed}".replace(" ", "_")
        return f"{words}_from_{self.parent}" if self.parent else words


def split(name: str, words: str) -> list[float | None]:
    """Read numbers with commas between them; only `com` may be `none`.

    Raises:
        ConfigError: Something else.
    """
    values: list[float | None] = []
    for word in words.split(","):
        if word == "none" and name == "com":
            values.append(None)
            continue
        try:
            values.append(float(word))
        except ValueError:
            raise ConfigError(f"{name}: expected numbers with commas between, got '{words}'") from None
    return values


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    return exits.run_program(argv, __doc__, _main)


def _main(flags: argparse.Namespace) -> int:
    settings: Settings = read_settings(Settings, flags.overrides, "plateau")
    folder = Path(settings.out)
    folder.mkdir(parents=True, exist_ok=True)
    rows, curves = train_all(list(settings.runs()), settings)
    more_rows, more_curves = train_all(list(retrained(rows, settings)), settings)
    rows, curves = rows + more_rows, curves + more_curves
    tables.write_csv(folder / "runs.csv", rows)
    tables.write_csv(folder / "curves.csv", [point for curve in curves for point in curve])
    charts.write_png(folder / "plateau.png", panels(rows, curves))
    report = write_report(rows, settings, ["scripts/plateau.py", *flags.overrides])
    (folder / "report.md").write_text(report, encoding="utf-8")
    print(report)
    print(f"wrote runs.csv, curves.csv, plateau.png and report.md in {folder}")
    return 0


def retrained(rows: Sequence[dict[str, Any]], settings: Settings) -> Iterator[Run]:
    """What the runs that ended below `solved` go on with."""
    for row in rows:
        if row["return"] >= settings.solved:
            continue
        names = [f.name for f in fields(Run)]
        first = replace(Run(**{name: row[name] for name in names}), parent=row["name"])
        if settings.retrain_com is not None and first.com != settings.retrain_com:
            yield replace(first, com=settings.retrain_com)
        if settings.retrain_envs is not None and first.num_envs != settings.retrain_envs:
            yield replace(first, num_envs=settings.retrain_envs)


# ---- training


def train_all(runs: Sequence[Run], settings: Settings) -> tuple[list[dict[str, Any]], list[list[dict[str, Any]]]]:
    """Train runs, `processes` at a time, each in a process of its own; returns their rows and curves."""
    rows, curves = [], []
    with ProcessPoolExecutor(settings.processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        for row, curve in pool.map(train, runs, itertools.repeat(settings)):
            print(f"{row['name']}: return {row['return']:.1f}, DDR {row['ddr']:.3g}, {row['verdict']}", flush=True)
            rows.append(row)
            curves.append(curve)
    return rows, curves


def train(run: Run, settings: Settings) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Train one run; returns its row and one point an iteration."""
    import torch

    from gymscale.scripts.pendulum import PendulumEnv
    from ppo.trainer import Trainer

    torch.set_num_threads(1)
    log = _Log()
    own = Path(settings.out) / run.name
    env = PendulumEnv(run.num_envs, "cpu", run.seed)
    trainer = Trainer(env, _config(run, settings), "cpu", own, [log], run.seed)
    if run.parent:
        trainer.restore(Path(settings.out) / run.parent / "nn" / "last.pth")
    trainer.train()
    last = log.rows[-max(1, len(log.rows) // 6) :]
    row = {
        "name": run.name,
        **asdict(run),
        "return": _median(last, "reward_mean"),
        "ddr": _median(log.rows, "outer/ddr"),
        "verdict": "stagnation" if any(row["outer/stagnant"] for row in log.rows) else "silent",
    }
    names = ("iteration", "reward_mean", "outer/policy_step", "outer/ddr", "outer/straightness", "outer/stagnant")
    return row, [{"name": run.name, **{name: point[name] for name in names}} for point in log.rows]


def _config(run: Run, settings: Settings) -> Any:
    from ppo.config import TrainConfig

    length = settings.iterations + (settings.retrain_iterations if run.parent else 0)
    network = {"separate": True, "mlp": {"units": [64, 64], "activation": "elu"}}
    config = {
        "learning_rate": settings.learning_rate,
        "horizon_length": HORIZON,
        "mini_epochs": settings.mini_epochs,
        "minibatch_size": settings.minibatch_size,
        "e_clip": run.e_clip,
        "gamma": 0.95,
        "tau": 0.9,
        "truncate_grads": True,
        "shuffle": "epoch",
        "cpu_update": "hand_written",
        "reward_shaper": {"scale_value": 0.1},
        "max_epochs": length,
    }
    diagnostics = {"window": settings.window, "solved": settings.solved}
    return TrainConfig.from_params(
        {"network": network, "config": config}, ewma={"com": run.com}, diagnostics=diagnostics
    )


class _Log:
    """Keeps the metrics of every iteration."""

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []

    def log(self, metrics: dict[str, float], step: int) -> None:
        """Keep them."""
        del step
        self.rows.append(metrics)

    def close(self) -> None:
        """Nothing is held open."""


def _median(rows: Sequence[dict[str, float]], name: str) -> float:
    values = [row[name] for row in rows if math.isfinite(row[name])]
    return statistics.median(values) if values else math.nan


# ---- results


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's rank correlation; ties have their mean rank. NaN where one side is constant."""
    if len(set(x)) < 2 or len(set(y)) < 2:
        return math.nan
    return statistics.correlation(_ranks(x), _ranks(y))


def _ranks(values: Sequence[float]) -> list[float]:
    return [sum(other < value for other in values) + (values.count(value) + 1) / 2 for value in values]


def confidence_interval(x: Sequence[float], y: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """95 % interval of the rank correlation, from runs drawn again with replacement."""
    source, pairs = random.Random(seed), list(zip(x, y, strict=True))
    drawn = [rank_correlation(*zip(*source.choices(pairs, k=len(pairs)), strict=True)) for _ in range(BOOTSTRAPS)]
    kept = sorted(value for value in drawn if not math.isnan(value))
    if not kept:
        return math.nan, math.nan
    return kept[round(0.025 * (len(kept) - 1))], kept[round(0.975 * (len(kept) - 1))]


def write_report(rows: Sequence[dict[str, Any]], settings: Settings, command: Sequence[str]) -> str:
    """Say what came out, as Markdown."""
    scratch = [row for row in rows if not row["parent"]]
    ddr, returns = [row["ddr"] for row in scratch], [row["return"] for row in scratch]
    low, high = confidence_interval(ddr, returns)
    below = [row for row in scratch if not row["return"] >= settings.solved]  # one that ended no episode too
    called = sum(row["verdict"] == "stagnation" for row in below)
    wrong = sum(row["verdict"] == "stagnation" for row in scratch if row["return"] >= settings.solved)
    lines = [
        "# Plateaus of the pendulum",
        "",
        f"Command: `{' '.join(command)}`",
        "",
        f"- {len(below)} of {len(scratch)} runs from scratch ended below {settings.solved:g}; stagnation was called in "
        f"{called} of them, and in {wrong} of the {len(scratch) - len(below)} others.",
        f"- Spearman correlation of DDR (median over a run) and final return over the runs from scratch: "
        f"{rank_correlation(ddr, returns):.2f}, 95 % interval {low:.2f} to {high:.2f} (bootstrap over runs).",
        "",
        "Final return: median over the last sixth of a run's iterations.",
        "",
        "| trained with | continued from | runs | final return: median (each seed) | DDR | stagnation called |",
        "|---|---|---|---|---|---|",
    ]
    for (setting, parent), group in _grouped(rows).items():
        each = ", ".join(f"{row['return']:.0f}" for row in group)
        level, ratio = (statistics.median(row[name] for row in group) for name in ("return", "ddr"))
        calls = sum(row["verdict"] == "stagnation" for row in group)
        lines.append(f"| {setting} | {parent} | {len(group)} | {level:.0f} ({each}) | {ratio:.3g} | {calls} |")
    return "\n".join([*lines, "", "![curves](plateau.png)", ""])


def _setting(row: dict[str, Any]) -> str:
    return Run(row["com"], row["e_clip"], row["num_envs"], row["seed"]).setting


def _grouped(rows: Sequence[dict[str, Any]]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Rows by setting and by the setting they were continued from, in order."""
    settings = {row["name"]: _setting(row) for row in rows}
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((_setting(row), settings.get(row["parent"], "")), []).append(row)
    return groups


def panels(rows: Sequence[dict[str, Any]], curves: Sequence[Sequence[dict[str, Any]]]) -> list[charts.Panel]:
    """Returns and steps over iterations, one line a run and one colour a setting, and returns over DDR."""
    groups = list(_grouped(rows))
    settings = {row["name"]: _setting(row) for row in rows}
    result = []
    for name, title, log in (
        ("reward_mean", "return", False),
        ("outer/policy_step", "policy step", True),
        ("outer/straightness", "net displacement / path length", True),
    ):
        series, seen = [], set()
        for row, curve in zip(rows, curves, strict=True):
            key = (settings[row["name"]], settings.get(row["parent"], ""))
            label = "" if key in seen else " after ".join(filter(None, key))
            seen.add(key)
            x, y = [point["iteration"] for point in curve], [point[name] for point in curve]
            series.append(charts.Series(label, x, y, colour=groups.index(key)))
        result.append(charts.Panel(title, "iteration", name, series, log_y=log))
    dots = [
        charts.Series("", [row["ddr"] for row in group], [row["return"] for row in group], "dots", number)
        for number, (key, group) in enumerate(_grouped(rows).items())
        if not key[1]
    ]
    return [*result, charts.Panel("runs from scratch", "DDR (samples a nat)", "final return", dots, log_x=True)]


if __name__ == "__main__":
    sys.exit(main())
