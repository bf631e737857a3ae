"""Plain values from YAML into typed settings, with one-line complaints that name the key."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any


class ConfigError(ValueError):
    """The settings cannot be used; the message is one line that names the key."""


def build(cls: type, values: Mapping[str, Any], where: str, **ready: Any) -> Any:
    """Make a dataclass from plain values, converting each to its field's type, plus `ready` fields."""
    fields = {f.name: f for f in dataclasses.fields(cls) if f.name not in ready}
    required = [f.name for f in fields.values() if _is_required(f) and f.name not in values]
    require_known(values, fields, where, missing=required)
    converted = {}
    for key, value in values.items():
        converted[key] = convert(str(fields[key].type), value, f"{where}.{key}")
    try:
        return cls(**converted, **ready)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _is_required(f: dataclasses.Field[Any]) -> bool:
    return f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING


def convert(kind: Any, value: Any, where: str) -> Any:
    """Convert a YAML value to `kind` (int, float, bool, str, or an annotation string such as 'int | None')."""
    kind = kind if isinstance(kind, str) else kind.__name__
    if kind.endswith("| None"):
        if value in (None, "None", ""):
            return None
        kind = kind.removesuffix("| None").strip()
    try:
        if kind == "bool" and isinstance(value, bool):
            return value
        if kind == "int" and not isinstance(value, bool) and float(value) == int(float(value)):
            return int(float(value))
        if kind == "float" and not isinstance(value, bool) and not math.isnan(float(value)):
            return float(value)
        if kind not in ("bool", "int", "float"):
            return value
    except (TypeError, ValueError, OverflowError):
        pass
    raise ConfigError(f"{where}: expected {kind}, got {value!r}")


def section(tree: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    """Return the mapping under `key`, or complain."""
    section = tree.get(key)
    require(
        isinstance(section, Mapping),
        f"{where}.{key} is missing" if section is None else f"{where}.{key} must be a mapping",
    )
    assert isinstance(section, Mapping)
    return section


def require_known(values: Mapping[str, Any], known: Iterable[str], where: str, missing: Iterable[str] = ()) -> None:
    """Complain about unknown keys, with the closest known one, and about `missing` ones."""
    known = list(known)
    complaints = [f"missing key {key!r}" for key in missing]
    for key in values:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, n=1)
            complaints.append(f"unknown key {key!r}" + (f" (did you mean {close[0]!r}?)" if close else ""))
    require(not complaints, f"{where}: " + ", ".join(complaints))


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    """Complain unless the value is one of those allowed."""
    require(value in allowed, f"{name}: expected one of {', '.join(allowed)}, got {value!r}")


def require(condition: bool, message: str) -> None:
    """Complain with `message` unless the condition holds."""
    if not condition:
        raise ConfigError(message)
