"""Measures throughput: `python scripts/benchmark.py task=Ant,Cartpole num_envs=256,1024`.

For every task and number of environments, in one run of training: env steps a second of the physics alone (raw),
with the reads and the write a task needs (api), of the whole task (step), with the policy (step+inference) and with
learning (total). physics_share, api_share and task_share are the parts of a task's step spent inside PhysX, in the
reads and writes around it, and in the task's own code. A `checkpoint=` measures at the state of a trained policy.
`learners=ours` measures the learner alone, on an environment that costs nothing.
"""

from __future__ import annotations

import csv
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from gymscale.scripts import config, exits, preflight
from gymscale.scripts.arguments import parse_flags
from gymscale.scripts.config import UsageError

OWN_KEYS = ("iterations", "csv", "learners", "size")
"""Keys of this program; all others are config overrides."""

SIZES = ("Ant", "ShadowHand")
"""Observation and action sizes of the learner-only mode, named after the tasks they are taken from."""

LEARNERS = ("ours",)
"""Learners that can be measured alone."""


@dataclass(frozen=True)
class Request:
    """What to measure.

    Attributes:
        tasks: Task names.
        num_envs: Numbers of environments, as typed.
        iterations: Training iterations that count; two more warm up.
        csv: The file to write.
        learners: Learners to measure alone; empty: measure tasks.
        size: One of SIZES, for the learner-only mode.
        overrides: Config overrides for all cases.
        config_dir: A folder of the user's own task and train files.
    """

    tasks: list[str]
    num_envs: list[str]
    iterations: int
    csv: Path
    learners: list[str]
    size: str
    overrides: list[str] = field(default_factory=list)
    config_dir: str | None = None

    def cases(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the learner (empty: none alone) and the overrides of every case."""
        for learner in self.learners or [""]:
            for task in self.tasks:
                for number in self.num_envs:
                    yield learner, [f"task={task}", f"num_envs={number}", *self.overrides]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return exits.guarded(lambda: _main(arguments))


def _main(argv: list[str]) -> int:
    flags = parse_flags(argv)
    if flags.help:
        print(__doc__)
        return 0
    for line in preflight.problems():
        raise UsageError(line)
    request = read_request(flags.overrides, flags.config_dir)
    for _, overrides in request.cases():
        config.load(overrides, request.config_dir)
    rows, failed = _measure_all(request)
    if rows:
        _print_table(rows)
        _write_csv(request.csv, rows)
    return exits.FAILED if failed else 0


def read_request(words: Sequence[str], config_dir: str | None) -> Request:
    """Read the command line.

    Raises:
        UsageError: A value that cannot be used.
    """
    own: dict[str, str] = {}
    overrides: list[str] = []
    for word in words:
        key, _, value = word.partition("=")
        if key in (*OWN_KEYS, "task", "num_envs"):
            own[key] = value
        else:
            overrides.append(word)
    iterations = own.get("iterations", "10")
    if not iterations.isdigit() or int(iterations) < 1:
        raise UsageError(f"iterations must be a whole number of at least 1, got '{iterations}'")
    if own.get("size", "Ant") not in SIZES:
        raise UsageError(f"unknown size '{own['size']}' (choices: {', '.join(SIZES)})")
    learners = [name for name in own.get("learners", "").split(",") if name]
    for name in learners:
        if name not in LEARNERS:
            raise UsageError(f"unknown learner '{name}' (choices: {', '.join(LEARNERS)})")
    return Request(
        tasks=own.get("task", "Ant").split(","),
        num_envs=own.get("num_envs", "auto").split(","),
        iterations=int(iterations),
        csv=Path(own.get("csv") or f"runs/benchmark_{time.strftime('%Y-%m-%d_%H-%M-%S')}.csv"),
        learners=learners,
        size=own.get("size", "Ant"),
        overrides=overrides,
        config_dir=config_dir,
    )


def _measure_all(request: Request) -> tuple[list[dict[str, Any]], int]:
    """Measure every case in a fresh process; returns the rows and the number of cases that failed."""
    rows: list[dict[str, Any]] = []
    failed = 0
    for learner, overrides in request.cases():
        print(f"measuring {learner or 'task'}: {' '.join(overrides)}", flush=True)
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            try:
                rows.append(pool.submit(_measure, request, learner, overrides).result())
            except Exception as error:  # noqa: BLE001 - one case that breaks must not hide the others
                failed += 1
                print(f"error: {' '.join(overrides)}: {type(error).__name__}: {error}", file=sys.stderr)
    return rows, failed


def _measure(request: Request, learner: str, overrides: list[str]) -> dict[str, Any]:
    """Measure one case; runs in a process of its own."""
    from gymscale.scripts import throughput  # brings torch and the simulator, into the child only

    cfg = config.load(overrides, request.config_dir)
    if learner:
        return throughput.measure_learner(cfg, request.iterations, request.size)
    return throughput.measure_task(cfg, request.iterations)


def _print_table(rows: list[dict[str, Any]]) -> None:
    """Print all rows; numbers are env steps a second unless the column says otherwise."""
    columns = list(rows[0])
    table = Table(title="env steps a second (medians)", title_justify="left", box=box.SIMPLE_HEAD)
    for name in columns:
        table.add_column(name, justify="left" if isinstance(rows[0][name], str) else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(_cell(row[name]) for name in columns))
    Console(width=max(Console().width, 200)).print(table)


def _cell(value: Any) -> str:
    """Format a value: ratios with three digits, speeds with thousands separators."""
    if isinstance(value, float):
        return f"{value:.3f}" if value < 10 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write all rows to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    print(f"wrote {path}")


if __name__ == "__main__":
    sys.exit(main())
