"""Composes the config of a run with Hydra and checks it, before anything heavy is imported or written.

Every mistake a user can make on the command line becomes a `UsageError`: one line, exit code 2. Nothing here imports
torch or PhysX.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from gymscale.scripts import devices, processes, scaled
from ppo.config import ConfigError, TrainConfig

CFG_DIR = Path(__file__).resolve().parent.parent / "cfg"
ASSET_DIR = Path(__file__).resolve().parent.parent / "assets"

BOOLEAN_KEYS = (
    "torch_deterministic",
    "multi_gpu",
    "test",
    "deterministic",
    "wandb_activate",
    "headless",
    "force_render",
)
"""Root keys that take True or False."""

WHOLE_NUMBER_KEYS = {"seed": -1, "num_threads": 0, "num_subscenes": 0, "graphics_device_id": -1, "num_episodes": 1}
"""Root keys that take a whole number, with the smallest allowed value."""

CHOICE_KEYS = {
    "solver_type": (0, 1),
    "physics_engine": ("physx",),
    "pipeline": ("auto", "gpu", "cpu"),
    "train.algo": ("ppo", "rl_games"),
}
"""Keys that take one of a few values."""


class UsageError(ValueError):
    """The command line, a config file or an input file is wrong; the message is one line for the user."""


def register_resolvers() -> None:
    """Register the resolvers that IsaacGymEnvs' config files use: eq, contains, if, resolve_default."""
    resolvers: dict[str, Callable[..., Any]] = {
        "eq": lambda x, y: str(x).lower() == str(y).lower(),
        "contains": lambda x, y: str(x).lower() in str(y).lower(),
        "if": lambda predicate, a, b: a if predicate else b,
        "resolve_default": lambda default, arg: default if arg == "" else arg,
    }
    for name, function in resolvers.items():
        OmegaConf.register_new_resolver(name, function, replace=True)


def _closest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate most like a word, underscores and case aside, or None when none is close."""
    folded = {name.lower().replace("_", ""): name for name in candidates}
    close = difflib.get_close_matches(word.lower().replace("_", ""), list(folded), n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return '; did you mean ...?' for the closest candidate, or an empty string when none is close."""
    close = _closest(word, candidates)
    return f"; did you mean '{close}'?" if close else ""


def load(overrides: Sequence[str], config_dir: str | None = None, saved: Mapping[str, Any] | None = None) -> DictConfig:
    """Compose the config of one run, check it and resolve its automatic values.

    Args:
        overrides: Hydra overrides as typed (`task=Ant`, `train.params.config.gamma=0.98`).
        config_dir: A folder of the user's own task and train files, searched after ours.
        saved: The plain config of an earlier run, whose task and train settings stand below the overrides.

    Returns:
        The config without interpolations left, including the `hydra` node.

    Raises:
        UsageError: Anything that is wrong with the overrides or the values they give.
    """
    register_resolvers()
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(CFG_DIR), version_base="1.3"):
            cfg = _compose_checked(list(overrides), config_dir)
        if saved is not None:
            _apply_saved(cfg, saved, overrides)
        _check_root_values(cfg)
        published = scaled.published_num_envs(cfg)
        _resolve_automatic_values(cfg)
        _resolve_interpolations(cfg)
    except (HydraException, OmegaConfBaseException) as error:
        raise UsageError(_first_line(error)) from None
    _check_train_params(cfg)
    if saved is None and not cfg.test:  # a saved config holds settings that are scaled already
        try:
            scaled.apply(cfg, published)
        except ConfigError as error:
            raise UsageError(f"scaling.{error}") from None
    return cfg


def to_plain(cfg: DictConfig) -> dict[str, Any]:
    """Return a config as plain dicts, lists and scalars, without Hydra's own node."""
    own = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
    plain = OmegaConf.to_container(own, resolve=True)
    assert isinstance(plain, dict)
    return {str(key): value for key, value in plain.items()}


def to_text(cfg: DictConfig) -> str:
    """Return the effective config, without interpolations and Hydra's own node, as YAML."""
    return OmegaConf.to_yaml(OmegaConf.create(to_plain(cfg)))


def parse(overrides: Sequence[str]) -> list[Override]:
    """Parse overrides.

    Raises:
        UsageError: One of them is not of the form key=value.
    """
    try:
        return OverridesParser.create().parse_overrides(list(overrides))
    except HydraException as error:
        hint = "write key=value, with quotes where a value has special signs"
        raise UsageError(f"{_first_line(error)}: {hint}") from None


def _compose_checked(overrides: list[str], config_dir: str | None) -> DictConfig:
    """Compose with a check of groups and keys first, so that mistakes name what was probably meant."""
    if config_dir is not None:
        if not Path(config_dir).is_dir():
            raise UsageError(f"--config-dir: no folder '{config_dir}'")
        overrides = [f"hydra.searchpath=[file://{Path(config_dir).resolve()}]", *overrides]
    parsed = parse(overrides)
    for override in parsed:
        if override.is_sweep_override():
            raise UsageError(
                f"'{override.input_line}' lists several values: add -m for one run each, or quote the value as a list"
            )
    searchpath = [o.input_line or "" for o in parsed if o.key_or_group == "hydra.searchpath"]
    loader: ConfigLoader = GlobalHydra.instance().config_loader()
    groups = [o for o in parsed if group_options(loader, o.key_or_group, searchpath)]
    _check_groups(loader, groups, searchpath)
    base = compose("config", overrides=searchpath + [o.input_line or "" for o in groups], return_hydra_config=True)
    for override in parsed:
        if override not in groups:
            _check_key(base, override)
    return compose("config", overrides=overrides, return_hydra_config=True)


def _check_groups(loader: ConfigLoader, groups: Sequence[Override], searchpath: list[str]) -> None:
    """Check that the chosen task and train files exist."""
    chosen = {override.key_or_group: override.value() for override in groups if not override.is_delete()}
    tasks = group_options(loader, "task", searchpath)
    task = str(chosen.get("task", "Ant"))
    if task not in tasks:
        raise UsageError(f"unknown task '{task}'{did_you_mean(task, tasks)} (tasks: {', '.join(tasks)})")
    trainings = group_options(loader, "train", searchpath)
    training = str(chosen.get("train", f"{task}PPO"))
    if training not in trainings:
        raise UsageError(
            f"unknown train config '{training}'{did_you_mean(training, trainings)} (choices: {', '.join(trainings)})"
        )
    rules = group_options(loader, "scaling", searchpath)
    rule = str(chosen.get("scaling", "fixed_minibatch"))
    if rule not in rules:
        raise UsageError(f"unknown scaling rule '{rule}'{did_you_mean(rule, rules)} (rules: {', '.join(rules)})")


def group_options(loader: ConfigLoader, group: str, searchpath: list[str]) -> list[str]:
    """Return the names of the files in a config group, ours and those on the user's search path."""
    return loader.get_group_options(group, config_name="config", overrides=searchpath)


def _check_key(base: DictConfig, override: Override) -> None:
    """Check that the key exists (unless it is added on purpose with +) and that the value has its kind."""
    key = override.key_or_group
    if override.is_add() or override.is_force_add() or key.startswith("hydra"):
        return
    node: Any = base
    walked: list[str] = []
    for part in _split(key):
        if isinstance(node, ListConfig) and part.isdigit() and int(part) < len(node):
            node = node[int(part)]
        elif isinstance(node, DictConfig) and part in node:
            node = node._get_node(part)
        else:
            raise UsageError(_unknown_key(base, node, walked, key, part))
        walked.append(part)
    if override.is_delete() and len(walked) == 1:
        raise UsageError(f"'{key}' is a root key of the config and cannot be removed")
    if not override.is_delete():
        _check_kind(key, node, override.value())


def _unknown_key(base: DictConfig, node: Any, walked: list[str], key: str, part: str) -> str:
    """Describe a key that does not exist: the closest sibling, or the place where such a key does exist."""
    where = "".join(f"{name}." for name in walked)
    siblings = [str(name) for name in node if name != "hydra"] if isinstance(node, DictConfig) else []
    close = _closest(part, siblings)
    if close is None:
        places = {path.split(".")[-1]: path for path in _leaf_paths(base)}
        leaf = _closest(key.split(".")[-1], places)
        suggestion = places[leaf] if leaf is not None else None
    else:
        suggestion = where + close
    hint = f"; did you mean '{suggestion}'?" if suggestion else ""
    return f"unknown config key '{key}'{hint}"


def _leaf_paths(node: DictConfig, prefix: str = "") -> Iterator[str]:
    """Yield the dotted path of every value under a config node, Hydra's own node left out."""
    for name in node:
        if name == "hydra" and not prefix:
            continue
        child = node._get_node(name)
        path = prefix + str(name)
        if isinstance(child, DictConfig) and not child._is_interpolation() and not child._is_none():
            yield from _leaf_paths(child, f"{path}.")
        else:
            yield path


def _check_kind(key: str, node: Any, value: Any) -> None:
    """Check that a number is given where a number stands, and True or False where a switch stands."""
    if isinstance(node, DictConfig) and not node._is_none() and not isinstance(value, dict):
        raise UsageError(f"{key} is a group of keys, not one value: set one of {', '.join(str(name) for name in node)}")
    if node is None or OmegaConf.is_config(node) or node._is_interpolation():
        return
    if value is None or (isinstance(value, str) and "${" in value):
        return
    default = node._value()
    if isinstance(default, bool) and not isinstance(value, bool):
        raise UsageError(f"{key} must be True or False, got '{value}'")
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(default, (int, float)) and not isinstance(default, bool) and not is_number:
        raise UsageError(f"{key} must be a number, got '{value}'")


def _apply_saved(cfg: DictConfig, saved: Mapping[str, Any], overrides: Sequence[str]) -> None:
    """Put the task and train settings of an earlier run below the overrides."""
    for section in ("task", "train"):
        with open_dict(cfg[section]):
            _take_values(cfg[section], saved[section])
    for override in parse(overrides):
        if override.key_or_group.startswith(("task.", "train.")) and not override.is_delete():
            OmegaConf.update(cfg, override.key_or_group, override.value(), merge=True, force_add=True)


def _take_values(node: DictConfig, saved: Mapping[str, Any]) -> None:
    """Replace values by saved ones, except those that follow other keys (devices, num_envs) by interpolation."""
    for key, value in saved.items():
        if key in node and OmegaConf.is_interpolation(node, key):
            continue
        if isinstance(value, Mapping) and isinstance(node.get(key), DictConfig):
            _take_values(node[key], value)
        else:
            node[key] = value


def _check_root_values(cfg: DictConfig) -> None:
    """Check the root keys that need more than their kind."""
    for key in ("num_envs", "max_iterations"):
        if cfg[key] not in ("", "auto" if key == "num_envs" else ""):
            check_whole_number(key, cfg[key], 1, also=" or auto" if key == "num_envs" else "")
    for key, smallest in WHOLE_NUMBER_KEYS.items():
        check_whole_number(key, cfg[key], smallest)
    for key in BOOLEAN_KEYS:
        if not isinstance(cfg[key], bool):
            raise UsageError(f"{key} must be True or False, got '{cfg[key]}'")
    for key, choices in CHOICE_KEYS.items():
        value = OmegaConf.select(cfg, key)
        if value not in choices:
            allowed = ", ".join(str(choice) for choice in choices)
            raise UsageError(f"{key} must be one of {allowed}, got '{value}'")
    _check_processes(cfg)
    if cfg.test and cfg.train.algo != "ppo":
        raise UsageError(
            "test=True plays our own checkpoints: leave out train.algo (scripts/export.py converts others)"
        )
    if re.search(r"[/\\\s]", str(cfg.experiment)):
        raise UsageError(f"experiment names a folder, so it has no slashes or spaces; got '{cfg.experiment}'")
    _check_checkpoint(str(cfg.checkpoint or ""), needed=cfg.test)


def _check_processes(cfg: DictConfig) -> None:
    """Check that multi_gpu and the way the program was started agree."""
    if cfg.multi_gpu and not processes.started_by_torchrun():
        raise UsageError(f"multi_gpu=True is for several processes: start them with {processes.HOW_TO_START}")
    if not cfg.multi_gpu and processes.count() > 1:
        raise UsageError(f"torchrun started {processes.count()} processes: add multi_gpu=True, or start without it")
    if cfg.multi_gpu and cfg.test:
        raise UsageError("test=True plays in one process: leave out multi_gpu=True and torchrun")


def _check_checkpoint(path: str, needed: bool) -> None:
    """Check that the checkpoint is a file; what is inside is checked when it is read."""
    if not path:
        if needed:
            raise UsageError("test=True needs checkpoint=PATH: there is no policy to play without one")
        return
    file = Path(path).expanduser()
    if file.is_dir():
        last = file / "nn" / "last.pth"
        hint = f"; did you mean '{last}'?" if last.is_file() else ""
        raise UsageError(f"checkpoint '{path}' is a folder{hint}")
    if not file.is_file():
        raise UsageError(f"checkpoint '{path}': no such file")


def check_whole_number(key: str, value: Any, smallest: int, also: str = "") -> None:
    """Check that a value is an int of at least `smallest`.

    Raises:
        UsageError: It is not; the message names the key and the value.
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < smallest:
        raise UsageError(f"{key} must be a whole number of at least {smallest}{also}, got '{value}'")


def _resolve_automatic_values(cfg: DictConfig) -> None:
    """Replace `auto` by what this machine has, and let an explicit task.env.numEnvs decide num_envs."""
    try:
        sim_device, rl_device = devices.resolve(str(cfg.sim_device), str(cfg.rl_device))
        if cfg.multi_gpu:
            sim_device, rl_device = (_device_of_process(name) for name in (sim_device, rl_device))
    except devices.DeviceError as error:
        raise UsageError(str(error)) from None
    cfg.sim_device, cfg.rl_device = sim_device, rl_device
    on_cuda = sim_device.startswith("cuda")
    if cfg.pipeline == "auto":
        cfg.pipeline = "gpu" if on_cuda else "cpu"
    if cfg.pipeline == "gpu" and not on_cuda:
        raise UsageError(f"pipeline=gpu needs physics on CUDA, but sim_device is {sim_device}: use pipeline=cpu")
    _resolve_num_envs(cfg, default=4096 if on_cuda else 1024)


def _device_of_process(name: str) -> str:
    """Return the device for this process of several: each has a GPU of its own."""
    return name if name == "cpu" else devices.existing("multi_gpu", f"cuda:{processes.local_rank()}")


def _resolve_num_envs(cfg: DictConfig, default: int) -> None:
    """Settle num_envs between the root key, an explicit task.env.numEnvs and the automatic value."""
    env = cfg.task.env
    explicit = None if env._get_node("numEnvs")._is_interpolation() else env.numEnvs
    if explicit is not None:
        check_whole_number("task.env.numEnvs", explicit, 1)
        if cfg.num_envs not in ("auto", "", explicit):
            raise UsageError(f"num_envs={cfg.num_envs} and task.env.numEnvs={explicit} contradict each other: give one")
        cfg.num_envs = explicit
    elif cfg.num_envs == "auto":
        cfg.num_envs = default
    cfg.num_envs = env.numEnvs


def _resolve_interpolations(cfg: DictConfig) -> None:
    """Resolve every interpolation outside Hydra's node, so that errors in user files surface here."""
    for key in cfg:
        if key == "hydra":
            continue
        if OmegaConf.is_config(cfg[key]):
            OmegaConf.resolve(cfg[key])
        else:
            cfg[key] = cfg[key]


def _check_train_params(cfg: DictConfig) -> None:
    """Let the learner check its own settings; the number of SAPG's blocks is settled, since play has other num_envs."""
    try:
        settings = TrainConfig.from_tree(to_plain(cfg.train))
        if settings.sapg.block_size is not None:
            cfg.train.sapg.num_blocks, cfg.train.sapg.block_size = settings.sapg.count(int(cfg.num_envs)), ""
    except ConfigError as error:
        raise UsageError(f"train.{error}") from None


def _split(key: str) -> list[str]:
    """Split a dotted key, with list indices in brackets or as dotted numbers."""
    return [part for part in re.split(r"[.\[\]]", key) if part]


def _first_line(error: Exception) -> str:
    """Return the first line of an error message that says something."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
