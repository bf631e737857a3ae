"""Splits a command line into Hydra's flags and config overrides."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from typing import NoReturn

from hydra._internal.utils import get_args_parser

from gymscale.scripts.config import UsageError


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


def _raise_usage_error(message: str) -> NoReturn:
    raise UsageError(f"{message} (see --help)")
