"""Rules that carry settings from a base number of environments to another: pure functions, no side effects.

Notation: N environments, T horizon_length, B = N T samples an iteration, M minibatch_size, E mini_epochs. Which rule is
right is an open question of the field: growing M with N is the common advice, keeping M and letting the NUMBER of
minibatches grow is what Beukman et al. (2026, arXiv 2603.06009) find for PPO with thousands of environments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from ppo.reading import ConfigError, require

MIN_HORIZON = 8
"""Shortest rollout a rule chooses: with less, advantages are mostly the critic's guess."""
ML_AGENTS_BUFFER = 5
"""Samples between updates, in minibatches: the lower end of the 5 to 10 advised."""
ML_AGENTS_MAX_RATE = 2.0
"""Factor up to which the learning rate is raised; sqrt(N / N0) is advised too, and as often called too aggressive."""
ML_AGENTS_MAX_EPOCHS = 2
"""More passes over the data become dangerous with many environments."""
AGGRESSIVE_RATE = 3.0
"""Factor of the learning rate from which a warning is due."""
COM_RULES = ("none", "linear")


@dataclass(frozen=True)
class Settings:
    """What a rule reads and writes."""

    num_envs: int
    horizon_length: int
    minibatch_size: int
    learning_rate: float
    mini_epochs: int
    com: float | None = None
    """centre of mass of PPO-EWMA, None without it"""

    def __post_init__(self) -> None:
        """Check values."""
        for name in ("num_envs", "horizon_length", "minibatch_size", "mini_epochs"):
            require(getattr(self, name) >= 1, f"{name} must be at least 1, got {getattr(self, name)}")
        require(self.learning_rate > 0, f"learning_rate must be above 0, got {self.learning_rate}")

    @property
    def batch(self) -> int:
        """Samples an iteration."""
        return self.num_envs * self.horizon_length

    @property
    def minibatches(self) -> int:
        """Optimiser steps a mini-epoch."""
        return -(-self.batch // self.minibatch_size)


def fixed_minibatch(base: Settings, num_envs: int) -> Settings:
    """Only the number of minibatches grows (Beukman et al. 2026)."""
    return replace(base, num_envs=num_envs)


def fixed_count(base: Settings, num_envs: int) -> Settings:
    """The minibatch grows with N, their number stays: what rsl_rl, skrl and mjlab do by default."""
    return replace(base, num_envs=num_envs, minibatch_size=_times(base.minibatch_size, num_envs, base.num_envs))


def sqrt_lr(base: Settings, num_envs: int) -> Settings:
    """As `fixed_count`, and the rate grows with the root of N: the rule for Adam."""
    grown = fixed_count(base, num_envs)
    return replace(grown, learning_rate=base.learning_rate * math.sqrt(num_envs / base.num_envs))


def linear_lr(base: Settings, num_envs: int) -> Settings:
    """As `fixed_count`, and the rate grows with N: the rule for plain gradient descent."""
    return replace(fixed_count(base, num_envs), learning_rate=base.learning_rate * num_envs / base.num_envs)


def constant_batch(base: Settings, num_envs: int) -> Settings:
    """T falls as N grows, so that B stays: the sweeps of the Isaac Gym paper (arXiv 2108.10470)."""
    horizon = max(min(MIN_HORIZON, base.horizon_length), _times(base.horizon_length, base.num_envs, num_envs))
    return replace(base, num_envs=num_envs, horizon_length=horizon)


def ml_agents(base: Settings, num_envs: int) -> Settings:
    """What users of ML-Agents are told: a larger batch, a buffer of 5 batches, at most twice the rate, few epochs."""
    grown = fixed_count(base, num_envs)
    horizon = max(1, round(ML_AGENTS_BUFFER * grown.minibatch_size / num_envs))
    factor = min(max(1.0, math.sqrt(num_envs / base.num_envs)), ML_AGENTS_MAX_RATE)
    epochs = min(base.mini_epochs, ML_AGENTS_MAX_EPOCHS) if num_envs > base.num_envs else base.mini_epochs
    return replace(grown, horizon_length=horizon, learning_rate=base.learning_rate * factor, mini_epochs=max(1, epochs))


RULES: dict[str, Callable[[Settings, int], Settings]] = {
    rule.__name__: rule for rule in (fixed_minibatch, fixed_count, sqrt_lr, linear_lr, constant_batch, ml_agents)
}


def scale(base: Settings, num_envs: int, rule: str, com: str | float = "none") -> Settings:
    """Carry `base` to `num_envs`.

    Args:
        base: Settings that are known to work at `base.num_envs`.
        num_envs: The number of environments wanted.
        rule: A name in `RULES`.
        com: What happens to PPO-EWMA's centre of mass: `none`, `linear` (it grows with N), or a factor.

    Raises:
        ConfigError: An unknown rule, or a number that makes no sense.
    """
    require(rule in RULES, f"rule: expected one of {', '.join(RULES)}, got {rule!r}")
    require(num_envs >= 1, f"num_envs must be at least 1, got {num_envs}")
    scaled = RULES[rule](base, num_envs)
    factor = num_envs / base.num_envs if com == "linear" else 1.0 if com == "none" else _factor(com)
    require(base.com is not None or factor == 1.0 or com == "linear", "com: a factor needs train.ewma.com")
    return replace(scaled, com=None if base.com is None else base.com * factor)


def explain(base: Settings, scaled: Settings) -> list[str]:
    """Return a line for each consequence of the scaled settings that is easily missed."""
    notes = []
    rate = scaled.learning_rate / base.learning_rate
    if rate >= AGGRESSIVE_RATE:
        notes.append(f"learning_rate times {rate:.3g} is aggressive: 1.5 to 2 times is where to start")
    if scaled.horizon_length < base.horizon_length:
        notes.append(
            f"each environment is followed for {scaled.horizon_length} steps instead of {base.horizon_length} between "
            "updates: advantages lean more on the critic"
        )
    if scaled.minibatches > base.minibatches:
        notes.append(
            f"{scaled.minibatches * scaled.mini_epochs} optimiser steps an iteration instead of "
            f"{base.minibatches * base.mini_epochs}: KL adds up over them, and an adaptive rate shrinks"
        )
    if scaled.minibatch_size > scaled.batch:
        notes.append(f"a minibatch of {scaled.minibatch_size} is more than the batch of {scaled.batch}: one minibatch")
    if scaled.batch != base.batch:
        notes.append(
            f"an iteration is {scaled.batch} env steps instead of {base.batch}: max_iterations, save_frequency, "
            "save_best_after and schedules count iterations"
        )
    return notes


def table(base: Settings, scaled: Settings) -> list[tuple[str, str, str]]:
    """Return rows (name, before, after) of all settings and of what follows from them."""
    rows = []
    for name in ("num_envs", "horizon_length", "batch", "minibatch_size", "minibatches", "mini_epochs"):
        rows.append((name, f"{getattr(base, name)}", f"{getattr(scaled, name)}"))
    rows.append(("learning_rate", f"{base.learning_rate:.3g}", f"{scaled.learning_rate:.3g}"))
    if base.com is not None and scaled.com is not None:
        rows.append(("ewma.com", f"{base.com:.4g}", f"{scaled.com:.4g}"))
    return rows


def _times(value: int, numerator: int, denominator: int) -> int:
    """Integer nearest to value * numerator / denominator (halves round up), at least 1."""
    return max(1, (2 * value * numerator + denominator) // (2 * denominator))


def _factor(com: str | float) -> float:
    try:
        factor = float(com)
    except ValueError:
        raise ConfigError(f"com: expected {', '.join(COM_RULES)} or a factor, got {com!r}") from None
    require(factor > 0 and math.isfinite(factor), f"com: a factor must be above 0, got {com}")
    return factor
