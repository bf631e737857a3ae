"""Progress of a training run: a live table on a terminal, one plain line an iteration elsewhere."""

from __future__ import annotations

import math
import time
from collections import deque

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table

RECENT_ITERATIONS = 20
"""Iterations whose mean duration the ETA is taken from."""

ROWS = (
    (("reward", "reward_mean", "{:,.2f}"), ("step/s, physics and task", "fps_step", "{:,.0f}")),
    (
        ("length", "episode_length_mean", "{:,.1f}"),
        ("step/s, with inference", "fps_step_inference", "{:,.0f}"),
    ),
    (("KL", "kl", "{:.4f}"), ("step/s, with training", "fps_total", "{:,.0f}")),
    (("learning rate", "lr", "{:.2e}"), ("env steps", "frame", "{:,.0f}")),
)
"""The live table: two columns of (label, metric, format)."""

LINE = (
    ("reward", "reward_mean", "{:.2f}"),
    ("length", "episode_length_mean", "{:.1f}"),
    ("fps_step", "fps_step", "{:.0f}"),
    ("fps_step_inference", "fps_step_inference", "{:.0f}"),
    ("fps_total", "fps_total", "{:.0f}"),
    ("kl", "kl", "{:.4f}"),
    ("lr", "lr", "{:.2e}"),
)
"""The plain line: (label, metric, format)."""


class Eta:
    """Estimates the time left from the duration of recent iterations."""

    def __init__(self, last_iteration: int) -> None:
        self.last_iteration = last_iteration
        self._ends: deque[tuple[float, float]] = deque(maxlen=RECENT_ITERATIONS + 1)

    def update(self, iteration: float, now: float) -> str:
        """Return the time left as h:mm:ss, or '-' while nothing is known.

        Args:
            iteration: The iteration that just ended, counted from 1.
            now: Seconds on any clock that only goes forward.
        """
        self._ends.append((iteration, now))
        (first, start), (last, end) = self._ends[0], self._ends[-1]
        if last <= first or self.last_iteration <= 0:
            return "-"
        seconds = (self.last_iteration - iteration) * (end - start) / (last - first)
        return duration(max(0.0, seconds))


def duration(seconds: float) -> str:
    """Format seconds as h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


class PlainProgress:
    """One line an iteration, for log files and pipes."""

    def __init__(self, last_iteration: int) -> None:
        self._eta = Eta(last_iteration)

    def log(self, metrics: dict[str, float], step: int) -> None:
        """Print the line of one iteration."""
        iteration = metrics["iteration"]
        values = [f"{label} {_format(metrics, name, form)}" for label, name, form in LINE]
        eta = self._eta.update(iteration, time.monotonic())
        total = f"/{self._eta.last_iteration}" if self._eta.last_iteration > 0 else ""
        print(f"iteration {iteration:.0f}{total}  frame {step}  {'  '.join(values)}  eta {eta}", flush=True)

    def close(self) -> None:
        """Nothing is held open."""


class LiveProgress:
    """A table that is redrawn in place after every iteration."""

    def __init__(self, title: str, last_iteration: int, console: Console) -> None:
        self._title = title
        self._eta = Eta(last_iteration)
        self._live = Live(console=console, auto_refresh=False, transient=False)
        self._live.start()

    def log(self, metrics: dict[str, float], step: int) -> None:
        """Redraw with the metrics of one iteration."""
        eta = self._eta.update(metrics["iteration"], time.monotonic())
        table = Table.grid(padding=(0, 2))
        for row in ROWS:
            cells: list[str] = []
            for label, name, form in row:
                cells += [f"[dim]{label}[/dim]", _format({**metrics, "frame": step}, name, form)]
            table.add_row(*cells)
        total = f" of {self._eta.last_iteration}" if self._eta.last_iteration > 0 else ""
        title = f"{self._title}: iteration {metrics['iteration']:.0f}{total}, {eta} left"
        self._live.update(Panel(table, title=title, title_align="left", expand=False), refresh=True)

    def close(self) -> None:
        """Leave the last table on the screen."""
        self._live.stop()


def progress(title: str, last_iteration: int) -> PlainProgress | LiveProgress:
    """Return the display that suits standard output.

    Args:
        title: What is trained.
        last_iteration: The iteration at which the run ends, 0 or less when it is open-ended.
    """
    console = Console()
    return LiveProgress(title, last_iteration, console) if console.is_terminal else PlainProgress(last_iteration)


def _format(metrics: dict[str, float], name: str, form: str) -> str:
    """Format one metric; '-' when it is absent or not yet defined (no episode has ended)."""
    value = metrics.get(name, math.nan)
    return form.format(value) if math.isfinite(value) else "-"
