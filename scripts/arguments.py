"""Splits a command line into Hydra's flags and config overrides."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Collection, Sequence
from typing import Any, NoReturn

from hydra._internal.utils import get_args_parser

from gymscale.scripts.config import UsageError
from ppo.reading import ConfigError, build


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Read Hydra's flags; flags and overrides may come in any order.

    Returns:
        Hydra's namespace (`overrides`, `multirun`, `config_dir`, `cfg`, ...).

    Raises:
        UsageError: An unknown flag, or a flag without its value.
    """
    parser = get_args_parser()
    setattr(parser, "error", _raise_usage_error)  # noqa: B010 - the parser would print its usage and exit
    return parser.parse_intermixed_args(list(argv))


def flags_first(argv: Sequence[str], overrides: Sequence[str]) -> list[str]:
    """Return the command line with the overrides at its end, the only order that Hydra itself reads."""
    flags = list(argv)
    for override in overrides:
        flags.remove(override)
    return [*flags, *overrides]


def take_own(words: Sequence[str], keys: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """Return the values of a program's own keys, and all other words, which are config overrides."""
    own: dict[str, str] = {}
    overrides: list[str] = []
    for word in words:
        key, _, value = word.partition("=")
        if key in keys:
            own[key] = value
        else:
            overrides.append(word)
    return own, overrides


def read_settings(cls: type, words: Sequence[str], program: str) -> Any:
    """Make a program's settings, a dataclass, from key=value words; `none` stands for None where that is allowed.

    Raises:
        UsageError: An unknown key, or a value that cannot be used.
    """
    values: dict[str, Any] = {key: value for key, _, value in (word.partition("=") for word in words)}
    for field in dataclasses.fields(cls):
        if str(field.type).endswith("| None") and values.get(field.name) == "none":
            values[field.name] = None
    try:
        return build(cls, values, program)
    except ConfigError as error:
        raise UsageError(str(error)) from None


def _raise_usage_error(message: str) -> NoReturn:
    raise UsageError(f"{message} (see --help)")
