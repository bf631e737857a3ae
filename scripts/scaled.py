"""Applies a scaling rule (`scaling=sqrt_lr num_envs=65536`) to the settings of `train`."""

from __future__ import annotations

import re
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf, open_dict

from ppo import scaling
from ppo.config import TrainConfig, minibatch_samples
from ppo.reading import ConfigError
from ppo.scaling import Settings


def published_num_envs(cfg: DictConfig) -> int | None:
    """Return the number of environments a task was published with: the default in its own config file."""
    node = cfg.task.env._get_node("numEnvs")
    value = str(node._value()) if node is not None else ""
    default = re.match(r"\$\{resolve_default:\s*(\d+)\s*,", value)
    return int(default.group(1)) if default else None


def apply(cfg: DictConfig, published: int | None) -> None:
    """Scale the settings of a resolved config from the base number of environments to `num_envs`, in place.

    What they were stays in `scaling.base`.

    Raises:
        ConfigError: The rule, or the base it needs, is missing or makes no sense.
    """
    given = cfg.scaling.base_num_envs
    if given != "" and not (isinstance(given, int) and given >= 1):
        raise ConfigError(f"base_num_envs must be a whole number of at least 1, or empty, got {given!r}")
    base_envs = published if given == "" else given
    if base_envs is None:
        if cfg.scaling.rule == "fixed_minibatch" and cfg.scaling.com == "none":
            return
        raise ConfigError("base_num_envs is needed: the task's file does not say where its settings are known to work")
    base = _read(cfg, base_envs)
    result = scaling.scale(base, int(cfg.num_envs), str(cfg.scaling.rule), cfg.scaling.com)
    with open_dict(cfg):
        cfg.scaling.base = {name: getattr(base, name) for name in base.__dataclass_fields__}
        if result != scaling.fixed_minibatch(base, result.num_envs):
            _write(cfg, base, result)


def describe(cfg: DictConfig) -> list[str]:
    """Return the lines that show what was scaled, from what to what, and what follows; empty if nothing was."""
    if "base" not in cfg.scaling:
        return []
    base = Settings(**cfg.scaling.base)
    result = _read(cfg, int(cfg.num_envs))
    if result == scaling.fixed_minibatch(base, result.num_envs) and cfg.scaling.rule == "fixed_minibatch":
        return []
    width = max(len(before) for _, before, _ in scaling.table(base, result))
    rows = [f"  {name:15} {before:>{width}} -> {after}" for name, before, after in scaling.table(base, result)]
    return [f"scaling={cfg.scaling.rule}:", *rows, *(f"  {note}" for note in scaling.explain(base, result))]


def _read(cfg: DictConfig, num_envs: int) -> Settings:
    train = TrainConfig.from_tree(cast(dict[str, Any], OmegaConf.to_container(cfg.train, resolve=True)))
    return Settings(
        num_envs=num_envs,
        horizon_length=train.horizon_length,
        minibatch_size=minibatch_samples(train, num_envs),
        learning_rate=train.learning_rate,
        mini_epochs=train.mini_epochs,
        com=train.ewma.com,
    )


def _write(cfg: DictConfig, base: Settings, result: Settings) -> None:
    """Write the scaled settings; a central critic's minibatch and rate follow the actor's."""
    settings = cfg.train.params.config
    for name in ("horizon_length", "learning_rate", "mini_epochs"):
        settings[name] = getattr(result, name)
    _write_minibatch(settings, base, result)
    central = settings.get("central_value_config")
    if central:
        _write_minibatch(central, base, result)
        central.learning_rate = central.learning_rate * result.learning_rate / base.learning_rate
    if result.com is not None:
        cfg.train.ewma.com = result.com


def _write_minibatch(settings: DictConfig, base: Settings, result: Settings) -> None:
    if settings.get("minibatch_size") is not None:
        settings.minibatch_size = max(1, round(settings.minibatch_size * result.minibatch_size / base.minibatch_size))
    elif result.minibatch_size == base.minibatch_size:  # a size per environment would grow by itself
        settings.minibatch_size = settings.minibatch_size_per_env * base.num_envs
