"""The outer loop on a convex problem: `python scripts/outer_loop_toy.py step=1 samples=16 cut=10`.

Every outer step draws a batch, and minimises the batch's loss while staying near the previous iterate (or near an
average of past ones, `com=`). The loss falls to a plateau that belongs to the outer step size and to the noise of the
batches, and stays there while updates are as large as before. Half-way the step is cut, or the samples are raised, or
the anchor is made older, each by `cut`: the loss falls to the plateau of the new setting. Theory gives all plateaus.
To the detector of stagnation the return is minus log10 of the loss.

Keys: step=1.0 (outer step size), samples=16 (a batch), com=0 (mean age of the anchor, in outer steps), cut=10,
iterations=400, inner_steps=30 (gradient steps an outer step), dimensions=100, noise=1.0, window=50 (of the detector),
seed=1, out=runs/outer_loop_toy. Writes toy.csv and toy.png there.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from gymscale.scripts import charts, exits, tables
from gymscale.scripts.arguments import read_settings
from ppo.geometry import StepGeometry
from ppo.gradient_noise import NoiseScale, signal_and_noise, squares
from ppo.reading import require
from ppo.stagnation import StagnationDetector

FLATTEST = 0.1
"""Smallest curvature of the loss; the largest is 1."""
START = 10.0
"""Distance from the optimum along every axis at the start."""
GROUPS = 8
"""Parts of a batch whose gradients are compared for the noise scale."""


@dataclass(frozen=True)
class Settings:
    """The command line (see the module's docstring)."""

    step: float = 1.0
    samples: int = 16
    com: float = 0.0
    cut: float = 10.0
    iterations: int = 400
    inner_steps: int = 30
    dimensions: int = 100
    noise: float = 1.0
    window: int = 50
    seed: int = 1
    out: str = "runs/outer_loop_toy"

    def __post_init__(self) -> None:
        """Check values."""
        for name in ("step", "noise"):
            require(getattr(self, name) > 0, f"{name} must be above 0, got {getattr(self, name)}")
        for name in ("iterations", "inner_steps", "dimensions"):
            require(getattr(self, name) >= 1, f"{name} must be at least 1, got {getattr(self, name)}")
        require(self.samples >= 2, f"samples must be at least 2, got {self.samples}")
        require(self.com >= 0, f"com must be at least 0, got {self.com}")
        require(self.cut > 1, f"cut must be above 1, got {self.cut}")
        require(self.window >= 4, f"window must be at least 4, got {self.window}")

    def changed(self) -> dict[str, Settings]:
        """What the run goes on with from half-way, by name."""
        return {
            "unchanged": self,
            "step cut": replace(self, step=self.step / self.cut),
            "more samples": replace(self, samples=round(self.samples * self.cut)),
            "older anchor": replace(self, com=self.com + self.cut),
        }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    return exits.run_program(argv, __doc__, _main)


def _main(flags: argparse.Namespace) -> int:
    settings: Settings = read_settings(Settings, flags.overrides, "outer_loop_toy")
    rows = {name: run(settings, other) for name, other in settings.changed().items()}
    print(f"{'from half-way':14s} {'loss':>10s} {'theory':>10s}")
    for name, other in settings.changed().items():
        last = [row["loss"] for row in rows[name][-max(1, settings.iterations // 4) :]]
        print(f"{name:14s} {sum(last) / len(last):10.4g} {plateau(other):10.4g}")
    for name, own in rows.items():
        for row in own:
            if row["message"]:
                print(f"{name}, iteration {row['iteration']}: {row['message']}")
    folder = Path(settings.out)
    tables.write_csv(folder / "toy.csv", [{"run": name, **row} for name, own in rows.items() for row in own])
    charts.write_png(folder / "toy.png", panels(rows, settings))
    print(f"wrote {folder / 'toy.csv'} and {folder / 'toy.png'}")
    return 0


def curvatures(dimensions: int) -> torch.Tensor:
    """Curvatures (D,) of the loss along its axes, evenly spaced between FLATTEST and 1 on a logarithmic scale."""
    return torch.logspace(0.0, 1.0, dimensions, dtype=torch.float64) * FLATTEST


def plateau(settings: Settings) -> float:
    """Expected excess loss at which a run with these settings ends, the inner problem being solved exactly.

    Along an axis of curvature h the solution of the inner problem is x' = a y + (1 - a) z: y the anchor, z the mean of
    the batch (variance v = noise^2 / samples around the optimum), a = 1 / (1 + step h). With y' = b y + (1 - b) x',
    b = com / (com + 1), the anchor is autoregressive with coefficient r = 1 - (1 - b)(1 - a), so that
    Var y = (1 - r)^2 v / (1 - r^2) = (1 - r) v / (1 + r) and Var x = a^2 Var y + (1 - a)^2 v. For com = 0 that is
    v step h / (2 + step h): in proportion to step size and noise.
    """
    h = curvatures(settings.dimensions)
    v = settings.noise**2 / settings.samples
    a = 1.0 / (1.0 + settings.step * h)
    r = 1.0 - (1.0 - settings.com / (settings.com + 1.0)) * (1.0 - a)
    variance = a.square() * (1.0 - r) / (1.0 + r) * v + (1.0 - a).square() * v
    return float(0.5 * (h * variance).sum())


def run(first: Settings, second: Settings) -> list[dict[str, Any]]:
    """Optimise, from half-way with the second settings; returns one row an outer step."""
    generator = torch.Generator().manual_seed(first.seed)
    h = curvatures(first.dimensions)
    x = torch.full_like(h, START)
    anchor, geometry, noise_scale = x, StepGeometry(first.window), NoiseScale()
    detector = _detector(first)
    rows = []
    for iteration in range(first.iterations):
        settings = first if iteration < first.iterations // 2 else second
        if iteration == first.iterations // 2:
            state, detector = detector.state_dict(), _detector(second)
            detector.load_state_dict(state)
        batch = torch.randn(settings.samples, first.dimensions, generator=generator, dtype=h.dtype) * first.noise
        after = inner_loop(x, anchor, batch.mean(0), h, settings)
        row = measure(x, after, batch, h, geometry, noise_scale)
        x = after
        anchor = (settings.com * anchor + x) / (settings.com + 1.0)
        metrics = {"reward_mean": -math.log10(row["loss"]), **{f"outer/{name}": value for name, value in row.items()}}
        message = detector.check(metrics) or ""
        rows.append({"iteration": iteration + 1, **row, "stagnant": int(detector.stagnant), "message": message})
    return rows


def inner_loop(
    x: torch.Tensor, anchor: torch.Tensor, target: torch.Tensor, h: torch.Tensor, settings: Settings
) -> torch.Tensor:
    """Gradient steps from x on 1/2 sum h (x - target)^2 + |x - anchor|^2 / (2 step); all vectors are (D,)."""
    rate = 1.0 / (1.0 + 1.0 / settings.step)
    for _ in range(settings.inner_steps):
        x = x - rate * (h * (x - target) + (x - anchor) / settings.step)
    return x


def measure(
    x: torch.Tensor,
    after: torch.Tensor,
    batch: torch.Tensor,
    h: torch.Tensor,
    geometry: StepGeometry,
    noise_scale: NoiseScale,
) -> dict[str, float]:
    """The diagnostics of one outer step; x is taken for the mean of a Gaussian policy with unit variance."""
    groups = batch.chunk(min(GROUPS, len(batch)))
    gradients = [h * (x - group.mean(0)) for group in groups]
    small, big = squares(gradients, [len(group) / len(batch) for group in groups])
    signal, noise = signal_and_noise(small, big, len(batch) / len(groups), float(len(batch)))
    kl = 0.5 * (after - x).square().sum()
    tensors = {
        "loss": 0.5 * (h * after.square()).sum(),
        **geometry.step(x, after),
        "policy_step": (after - x).square().mean().sqrt(),
        "kl": kl,
        "ddr": len(batch) / kl,
        "noise_scale": noise_scale.update(signal, noise),
    }
    return {name: float(value) for name, value in tensors.items()}


def _detector(settings: Settings) -> StagnationDetector:
    known = {name: getattr(settings, name) for name in ("step", "samples", "com")}
    return StagnationDetector(settings.window, known)


def panels(rows: dict[str, list[dict[str, Any]]], settings: Settings) -> list[charts.Panel]:
    """The charts: loss with the plateaus of theory, and the diagnostics."""
    result = []
    for name, title, log in (
        ("loss", "excess loss; dashed: theory", True),
        ("parameter_step", "update magnitude", True),
        ("update_cosine", "cosine of successive updates", False),
        ("straightness", "net displacement / path length", True),
        ("ddr", "samples per unit of divergence", True),
        ("noise_scale", "gradient-noise scale", True),
    ):
        series = [
            charts.Series(label, [row["iteration"] for row in own], [row[name] for row in own], colour=number)
            for number, (label, own) in enumerate(rows.items())
        ]
        if name == "loss":
            half = range(settings.iterations // 2, settings.iterations)
            for number, other in enumerate(settings.changed().values()):
                series.append(charts.Series("", list(half), [plateau(other)] * len(half), "dashed", number))
        result.append(charts.Panel(title, "outer step", name, series, log_y=log))
    return result


if __name__ == "__main__":
    sys.exit(main())
