"""Measures throughput: `python scripts/benchmark.py task=Ant,Cartpole num_envs=256,1024`.

For every task and number of environments, in one run of training: env steps a second of the physics alone (raw),
with the reads and the write a task needs (api), of the whole task (step), with the policy (step+inference) and with
learning (total). physics_share, api_share and task_share are the parts of a task's step spent inside PhysX, in the
reads and writes around it, and in the task's own code. A `checkpoint=` measures at the state of a trained policy.

`learners=all` (or `learners=ours,rl_games`) compares learners alone on an environment that costs nothing, with the
network, minibatches and settings of `size=Ant` or `size=ShadowHand`: env steps a second, the ratio to rl_games, peak
memory. `size=Pendulum iterations=300 seeds=1,2,3` has them solve a task instead: do they reach the same return?

Own keys: `iterations` (that count; two more warm up), `csv` (the file to write), `learners`, `size`, `seeds`. Every
other key is a config override, as on train.py's command line.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from gymscale.scripts import config, exits, learner_benchmark, learners, preflight, tables
from gymscale.scripts.arguments import take_own
from gymscale.scripts.config import UsageError
from gymscale.scripts.learner_benchmark import SIZES, Entry

OWN_KEYS = ("iterations", "csv", "learners", "size", "seeds")
"""Keys of this program; all others are config overrides."""

FLOAT32 = "++train.params.config.mixed_precision=False"
"""Learners are compared in float32, but for the variants that say otherwise."""

LEARNERS = tuple(learners.VARIANTS)
"""Learners that can be measured alone; `all` is every one that is installed."""


@dataclass(frozen=True)
class Request:
    """What to measure.

    Attributes:
        tasks: Task names.
        num_envs: Numbers of environments, as typed.
        iterations: Training iterations that count; two more warm up.
        csv: The file to write.
        learners: Learners to measure alone; empty: measure tasks.
        sizes: Names in `learner_benchmark.SIZES`, for learners alone.
        seeds: Seeds, for learners alone.
        overrides: Config overrides for all cases.
        config_dir: A folder of the user's own task and train files.
    """

    tasks: list[str]
    num_envs: list[str]
    iterations: int
    csv: Path
    learners: list[str]
    sizes: list[str]
    seeds: list[int]
    overrides: list[str] = field(default_factory=list)
    config_dir: str | None = None

    def cases(self) -> Iterator[list[str]]:
        """Yield the overrides of every case that measures a task."""
        for task in self.tasks or ["Ant"]:
            for number in self.num_envs:
                yield [f"task={task}", f"num_envs={number}", *self.overrides]

    def entries(self) -> Iterator[list[Entry]]:
        """Yield the learners that take turns with each other, one list a size, number of environments and seed."""
        for name in self.sizes:
            size = SIZES[name]
            for task in self.tasks or [size.task]:
                for number in self.num_envs:
                    common = [f"task={task}", f"num_envs={size.num_envs if number == 'auto' else number}"]
                    common += [*(size.overrides if not self.tasks else ()), FLOAT32, *self.overrides]
                    for seed in self.seeds:
                        yield [self._entry(learner, name, seed, common) for learner in self.learners]

    def _entry(self, learner: str, size: str, seed: int, overrides: list[str]) -> Entry:
        own = learners.VARIANTS[learner].overrides
        return Entry(learner, size, seed, (*overrides, *own), self.config_dir)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    return exits.run_program(argv, __doc__, _main)


def _main(flags: argparse.Namespace) -> int:
    for line in preflight.problems():
        raise UsageError(line)
    request = read_request(flags.overrides, flags.config_dir)
    rows, failed = _compare_all(request) if request.learners else _measure_all(request)
    if rows:
        _print_table(rows)
        tables.write_csv(request.csv, rows)
        print(f"wrote {request.csv}")
    return exits.FAILED if failed else 0


def read_request(words: Sequence[str], config_dir: str | None) -> Request:
    """Read the command line.

    Raises:
        UsageError: A value that cannot be used.
    """
    own, overrides = take_own(words, (*OWN_KEYS, "task", "num_envs"))
    iterations = own.get("iterations", "10")
    if not iterations.isdigit() or int(iterations) < 1:
        raise UsageError(f"iterations must be a whole number of at least 1, got '{iterations}'")
    sizes = own.get("size", "Ant").split(",")
    for name in sizes:
        if name not in SIZES:
            raise UsageError(f"unknown size '{name}' (choices: {', '.join(SIZES)})")
    seeds = own.get("seeds", "42").split(",")
    for seed in seeds:
        if not seed.isdigit():
            raise UsageError(f"seeds must be whole numbers with commas between, got '{own['seeds']}'")
    return Request(
        tasks=[name for name in own.get("task", "").split(",") if name],
        num_envs=own.get("num_envs", "auto").split(","),
        iterations=int(iterations),
        csv=Path(own.get("csv") or f"runs/benchmark_{time.strftime('%Y-%m-%d_%H-%M-%S')}.csv"),
        learners=_read_learners(own.get("learners", "")),
        sizes=sizes,
        seeds=[int(seed) for seed in seeds],
        overrides=overrides,
        config_dir=config_dir,
    )


def _read_learners(value: str) -> list[str]:
    """Return the learners to compare; `all` stands for those of `learners.ALL`."""
    names: list[str] = []
    for word in filter(None, value.split(",")):
        if word != "all" and word not in LEARNERS:
            raise UsageError(f"unknown learner '{word}' (choices: all, {', '.join(LEARNERS)})")
        names += learners.ALL if word == "all" else [word]
    return list(dict.fromkeys(names))


def _installed(request: Request) -> Request:
    """Return the request without the learners whose package is missing, each of which is named in one line."""
    missing = [name for name in request.learners if not learners.VARIANTS[name].is_installed]
    lines = [f"{name}: not installed (pip install {learners.VARIANTS[name].install})" for name in missing]
    if len(missing) == len(request.learners):
        raise UsageError("; ".join(lines))
    for line in lines:
        print(line)
    return replace(request, learners=[name for name in request.learners if name not in missing])


def _compare_all(request: Request) -> tuple[list[dict[str, Any]], int]:
    """Compare learners; returns the rows and the number of those that failed."""
    request = _installed(request)
    groups = list(request.entries())
    for entry in (entry for group in groups for entry in group):
        config.load(entry.overrides, entry.config_dir)
    rows: list[dict[str, Any]] = []
    failed = 0
    for group in groups:
        print(f"comparing {len(group)} learners: size={group[0].size} seed={group[0].seed}", flush=True)
        more, failures = learner_benchmark.compare(group, request.iterations)
        rows += more
        failed += failures
    return rows, failed


def _measure_all(request: Request) -> tuple[list[dict[str, Any]], int]:
    """Measure every case in a fresh process; returns the rows and the number of cases that failed."""
    for overrides in request.cases():
        config.load(overrides, request.config_dir)
    rows: list[dict[str, Any]] = []
    failed = 0
    for overrides in request.cases():
        print(f"measuring {' '.join(overrides)}", flush=True)
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            try:
                rows.append(pool.submit(_measure, request, overrides).result())
            except Exception as error:  # noqa: BLE001 - one case that breaks must not hide the others
                failed += 1
                print(f"error: {' '.join(overrides)}: {type(error).__name__}: {error}", file=sys.stderr)
    return rows, failed


def _measure(request: Request, overrides: list[str]) -> dict[str, Any]:
    """Measure one case; runs in a process of its own."""
    from gymscale.scripts import throughput  # brings torch and the simulator, into the child only

    return throughput.measure_task(config.load(overrides, request.config_dir), request.iterations)


def _print_table(rows: list[dict[str, Any]]) -> None:
    """Print all rows; numbers are env steps a second unless the column says otherwise."""
    columns = tables.columns(rows)
    table = Table(title="env steps a second (medians)", title_justify="left", box=box.SIMPLE_HEAD)
    for name in columns:
        left = any(isinstance(row.get(name), str) for row in rows)
        table.add_column(name, justify="left" if left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(_cell(row.get(name, "")) for name in columns))
    Console(width=max(Console().width, 200)).print(table)


def _cell(value: Any) -> str:
    """Format a value: ratios with three digits, speeds with thousands separators."""
    if isinstance(value, float):
        return f"{value:.3f}" if value < 10 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    sys.exit(main())
