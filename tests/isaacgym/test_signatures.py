"""The signatures of gymapi.Gym against a published list (tests/data/gym_methods.json, its licence is inside)."""

from __future__ import annotations

import inspect
import json
import re
import typing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isaacgym import gymapi
from isaacgym._gym_unsupported import NAMES

METHODS = json.loads((Path(__file__).parents[1] / "data" / "gym_methods.json").read_text())["methods"]
SUPPORTED = sorted(name for name in METHODS if name not in NAMES)

DEVIATIONS: dict[str, str] = {}
"""Functions whose signature differs, each with the reason; empty."""

RETURNS = {
    "Sim": gymapi.Sim,
    "Env": gymapi.Env,
    "Asset": gymapi.Asset,
    "Tensor": gymapi.Tensor,
    "Viewer": gymapi.Viewer,
    "None": type(None),
    "bool": bool,
    "float": float,
    "int": int,
    "str": str,
    "List": list,
    "Dict": dict,
    "numpy.ndarray": np.ndarray,
}
"""Published return types by their outer name; all others have the same name in gymapi."""


class Argument(typing.NamedTuple):
    name: str
    kind: str
    default: str | None


def published(text: str) -> list[Argument]:
    """Arguments of ``(a: T, b: U = V)``; commas inside brackets do not separate."""
    parts = re.findall(r"(?:[^,(\[]|\[[^\]]*\]|\([^)]*\))+", text.strip()[1:-1])
    arguments = []
    for part in (part.strip() for part in parts if part.strip()):
        head, _, default = part.partition("=")
        name, _, kind = head.partition(":")
        arguments.append(Argument(name.strip(), kind.strip(), default.strip() or None))
    return arguments


def value_of(default: str, given: Any) -> Any:
    """Value of a published default such as ``- 1`` or ``SimType.SIM_FLEX``."""
    if default == "SimParams()" and given is None:
        return None  # a mutable default: None stands for a fresh SimParams()
    scope = {name: getattr(gymapi, name) for name in ("SimType", "CoordinateSpace", "SimParams")}
    return eval(default, scope)


def parameters(name: str) -> list[inspect.Parameter]:
    return list(inspect.signature(getattr(gymapi.Gym, name)).parameters.values())[1:]


def return_type(name: str) -> tuple[Any, ...]:
    """Possible return types of ours, containers without their content."""
    hint = typing.get_type_hints(getattr(gymapi.Gym, name))["return"]
    members = typing.get_args(hint) if "|" in str(hint) or typing.get_origin(hint) is typing.Union else (hint,)
    return tuple(typing.get_origin(member) or member for member in members)


def test_the_list_is_complete():
    assert len(METHODS) == 312
    assert sum(method["tier"] == "T1" for method in METHODS.values()) == 75
    ours = {name for name in dir(gymapi.Gym) if not name.startswith("_")}
    assert ours <= set(METHODS), "functions that Isaac Gym does not have"
    assert ours | NAMES >= set(METHODS)
    assert not ours & NAMES


@pytest.mark.parametrize("name", SUPPORTED)
def test_arguments(name):
    expected, found = published(METHODS[name]["args"]), parameters(name)
    same = len(expected) == len(found)
    for argument, parameter in zip(expected, found, strict=False):
        named = re.fullmatch(r"arg\d+", argument.name) is None
        same &= not named or argument.name == parameter.name
        same &= (argument.default is None) == (parameter.default is inspect.Parameter.empty)
        if argument.default is not None and parameter.default is not inspect.Parameter.empty:
            same &= value_of(argument.default, parameter.default) == parameter.default
        same &= parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert same != (name in DEVIATIONS), f"{METHODS[name]['args']} is published, ours is {[str(p) for p in found]}"


@pytest.mark.parametrize("name", SUPPORTED)
def test_return_types(name):
    published_type = METHODS[name]["returns"]
    found = return_type(name)
    outer = re.match(r"[\w.]+", published_type)[0]
    if outer == "object":
        assert found != (type(None),)
        return
    wanted = RETURNS.get(outer) or getattr(gymapi, outer)
    assert wanted in found, f"{published_type} is published, ours returns {found}"
    assert set(found) - {wanted} <= {type(None)}


def test_unsupported_functions_take_anything_and_say_their_name():
    gym = gymapi.acquire_gym()
    for name in sorted(NAMES):
        with pytest.raises(NotImplementedError, match=rf"gymapi\.Gym\.{name} is not supported: \w"):
            getattr(gym, name)(1, two=2)


def test_unknown_functions_do_not_exist():
    with pytest.raises(AttributeError, match="no method 'levitate'"):
        gymapi.acquire_gym().levitate  # noqa: B018 - the access itself is the test
