"""Tells when a run thrashes: no progress although the policy moves as far as ever, in steps that undo each other.

Seen as stochastic optimisation (Beukman et al. 2026, arXiv 2603.06009) such a run sits on the plateau that belongs to
its outer step size and to the noise of its batches. More training does not help it; a smaller step or more samples do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

IMPROVING = 1.28
"""z-score of the trend from which a return counts as rising: one chance in ten if it is flat"""
LARGE = 0.5
"""steps are large while their median is at least this part of the largest median the run has had"""
CANCELLING = 1.5
"""updates cancel while net displacement over a window of n is below this many times 1/sqrt(n) of the path, which is
what independent steps would reach"""
SETTLED = 0.01
"""a return at its best with less noise than this part of all it has gained is at the top, not on a plateau"""
RECOVERED = 2.0
"""standard deviations above the plateau from which a change of settings has helped"""
RECORD = 0.5
"""standard deviations above all that was reached more than a window ago from which a window's return is progress"""
MAX_POINTS = 30
"""points of a trend test; longer series are averaged in blocks"""

RETURN, STEP, STRAIGHTNESS = "reward_mean", "outer/policy_step", "outer/straightness"


class StagnationDetector:
    """Follows the logged numbers of a run; plain Python, nothing of it is random.

    Stagnation is called when for a while (a fifth of the window) all of these held:

    - the return has no rising trend, neither over `window` iterations nor over twice as many (Mann-Kendall test on the
      return's own noise, corrected for autocorrelation), and is no higher than it was before (RECORD);
    - the policy's steps are as large as they used to be (LARGE), and they cancel (CANCELLING);
    - the task is not solved: the return is below `solved`, and not resting at its best (SETTLED).

    Nothing is called in the first 3 `window` iterations. A run continued with other settings is told whether they
    helped: whether the return has left the plateau.
    """

    def __init__(self, window: int, settings: Mapping[str, Any], solved: float = math.inf) -> None:
        """Start without a history.

        Args:
            window: iterations without progress that are too many.
            settings: what may be changed against stagnation, by the names that users know; plain values.
            solved: return from which the task counts as solved.
        """
        self.window = window
        self.settings = dict(settings)
        self.solved = solved
        self._rows: list[list[float]] = []
        """(return, step, straightness) of the last 2 windows"""
        self._first: list[float] = []
        """returns the run began with"""
        self._levels: list[float] = []
        """median return of the window, for each of the last `window` iterations"""
        self._record = -math.inf
        """highest such median before those"""
        self._largest_step = 0.0
        self._held = 0
        self._plateau: dict[str, Any] | None = None
        """level, noise and settings at the last call"""
        self._changes = ""

    @property
    def stagnant(self) -> bool:
        """Whether stagnation has been called and the return has not left the plateau since."""
        return self._plateau is not None

    def check(self, metrics: Mapping[str, float]) -> str | None:
        """Take an iteration's metrics; returns one line when there is something to say."""
        row = [metrics.get(name, math.nan) for name in (RETURN, STEP, STRAIGHTNESS)]
        if not all(map(math.isfinite, row)):
            return None
        self._rows = [*self._rows[1 - 2 * self.window :], row]
        if len(self._first) < max(1, self.window // 5):
            self._first.append(row[0])
        if self._plateau is not None:
            return self._follow(self._plateau)
        if len(self._rows) < 2 * self.window:
            return None
        self._held = self._held + 1 if self._is_stagnant() else 0
        return self._call() if self._held > self.window // 5 else None

    def _is_stagnant(self) -> bool:
        returns, steps, straightness = (list(column) for column in zip(*self._rows[-self.window :], strict=True))
        level, step = median(returns), median(steps)
        self._levels.append(level)
        if len(self._levels) > self.window:
            self._record = max(self._record, self._levels.pop(0))
        self._largest_step = max(self._largest_step, step)
        cancelling = median(straightness) * math.sqrt(self.window) < CANCELLING
        if step < LARGE * self._largest_step or not cancelling or level >= self.solved:
            return False
        noise, best = scatter(returns), max(self._record, *self._levels)
        small = SETTLED * (best - median(self._first))
        if (level >= best - small and noise < small) or level > self._record + RECORD * noise:
            return False
        return trend(returns) < IMPROVING and trend([row[0] for row in self._rows]) < IMPROVING

    def _call(self) -> str:
        returns, steps, straightness = (list(column) for column in zip(*self._rows[-self.window :], strict=True))
        self._plateau = {"level": median(returns), "noise": scatter(returns), "settings": self.settings}
        self._held = 0
        return (
            f"stagnation: for {self.window} iterations the return is flat at {median(returns):.4g}, while every update "
            f"moves the policy by {median(steps):.2g} standard deviations and updates cancel (net progress "
            f"{median(straightness):.0%} of their path): the outer step is too large for the noise. Try more "
            "environments (num_envs), a larger train.ewma.com, fewer mini_epochs or a smaller e_clip"
        )

    def _follow(self, plateau: dict[str, Any]) -> str | None:
        """After a call: has the return left the plateau?"""
        recent = [row[0] for row in self._rows[-self.window :]]
        if len(recent) < self.window:
            return None
        level, before = median(recent), plateau["level"]
        if level > before + RECOVERED * plateau["noise"]:
            changes = self._changes
            self._plateau, self._changes = None, ""
            return f"{changes} helped: the return rose from {before:.4g} to {level:.4g}" if changes else None
        if self._changes and len(self._rows) == 2 * self.window:
            changes, self._changes = self._changes, ""
            return f"{changes} has not helped in {2 * self.window} iterations: return {before:.4g}, now {level:.4g}"
        return None

    def state_dict(self) -> dict[str, Any]:
        """Everything that a resumed run needs, in plain types."""
        return {
            "rows": self._rows,
            "first": self._first,
            "levels": self._levels,
            "record": self._record,
            "largest_step": self._largest_step,
            "held": self._held,
            "plateau": self._plateau,
            "changes": self._changes,
            "settings": self.settings,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue; with other settings than the saved ones the history starts anew, but not what was called."""
        self._plateau, self._changes = state["plateau"], state["changes"]
        self._first, self._record = list(state["first"]), state["record"]
        changes = _changes(state["settings"], self.settings)
        if not changes:
            self._rows = [list(row) for row in state["rows"]][-2 * self.window :]
            self._levels = list(state["levels"])
            self._largest_step, self._held = state["largest_step"], state["held"]
            return
        self._record = max([self._record, *state["levels"]])
        if self._plateau is not None:
            self._changes = changes


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What differs, as 'name old -> new, ...'."""
    names = [name for name in new if old.get(name) != new[name]]
    return ", ".join(f"{name} {_text(old.get(name))} -> {_text(new[name])}" for name in names)


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


# ---- robust statistics of short series


def trend(values: Sequence[float]) -> float:
    """z-score of a rising (+) or falling (-) trend: the Mann-Kendall test, corrected for autocorrelation.

    Ranks only, so outliers count no more than others. With lag-1 autocorrelation rho of the series around its
    Theil-Sen line a series of n is worth n (1 - rho) / (1 + rho) independent values.
    """
    points = _averaged(values)
    n = len(points)
    score = sum((points[j] > points[i]) - (points[j] < points[i]) for j in range(n) for i in range(j))
    variance = n * (n - 1) * (2 * n + 5) / 18.0
    for value in set(points):
        ties = points.count(value)
        variance -= ties * (ties - 1) * (2 * ties + 5) / 18.0
    if variance <= 0.0:
        return 0.0
    rho = _lag_one(_residuals(points))
    return score / math.sqrt(variance) * math.sqrt((1.0 - rho) / (1.0 + rho))


def scatter(values: Sequence[float]) -> float:
    """Robust standard deviation of a series around its Theil-Sen line: 1.48 times the median absolute residual."""
    spacing = -(-len(values) // MAX_POINTS)
    return 1.4826 * median(map(abs, _residuals(list(values[::spacing]))))


def _averaged(values: Sequence[float]) -> list[float]:
    """At most MAX_POINTS means of neighbours."""
    size = -(-len(values) // MAX_POINTS)
    return [fmean(values[i : i + size]) for i in range(0, len(values), size)]


def _residuals(values: list[float]) -> list[float]:
    """Distances from the Theil-Sen line: the median of the slopes of all pairs, and the median intercept."""
    n = len(values)
    slope = median((values[j] - values[i]) / (j - i) for j in range(n) for i in range(j)) if n > 1 else 0.0
    levelled = [value - slope * i for i, value in enumerate(values)]
    middle = median(levelled)
    return [value - middle for value in levelled]


def _lag_one(residuals: Sequence[float]) -> float:
    """Lag-1 autocorrelation, 0 where it is negative or there is nothing to correlate; at most 0.95."""
    total = sum(r * r for r in residuals)
    if total <= 0.0:
        return 0.0
    products = sum(a * b for a, b in zip(residuals[1:], residuals[:-1], strict=True))
    return min(0.95, max(0.0, products / total))
