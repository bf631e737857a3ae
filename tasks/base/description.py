"""What a task says about itself: the source of its page in docs/tasks.md and of the tests that keep it true."""

from __future__ import annotations

import re
from typing import Any, Iterator, Mapping, NamedTuple, Sequence, Union

Number = Union[float, str]
"""A value, or the key below `task` in the config that holds it; a minus before the key turns its sign."""


class Part(NamedTuple):
    """Some consecutive numbers of an observation."""

    size: int
    quantity: str
    unit: str = ""
    frame: str = ""
    scale: Number = 1.0
    """Factor of the observed number."""


class Term(NamedTuple):
    """One term of the reward, under the name that it is logged with."""

    name: str
    formula: str
    weight: Number = 1.0


class Result(NamedTuple):
    """A measured result; empty strings where nothing has been measured."""

    measure: str
    command: str
    value: str = ""
    conditions: str = ""


class Description(NamedTuple):
    """A task in words and numbers; `{env.key}` in a text stands for the value that the config has there."""

    summary: str
    observations: Mapping[str, tuple[Part, ...]]
    """Observation type -> its parts, in order; tasks with one type call it "obs"."""
    action: str
    reward: str
    """How the terms combine."""
    terms: tuple[Term, ...]
    termination: tuple[str, ...]
    results: tuple[Result, ...] = ()


def slices(parts: tuple[Part, ...]) -> Iterator[tuple[int, int, Part]]:
    """First index, index after the last, and the part, for each part in order."""
    start = 0
    for part in parts:
        yield start, start + part.size, part
        start += part.size


def look_up(cfg: Mapping[str, Any], number: Number) -> float:
    """Value of a number; `cfg` is the task's config.

    Raises:
        KeyError: the config has no such key.
    """
    if not isinstance(number, str):
        return float(number)
    value: Any = cfg
    for key in number.lstrip("-").split("."):
        value = value[key]
    return -float(value) if number.startswith("-") else float(value)


def markdown(name: str, description: Description, cfg: Mapping[str, Any], kinds: Sequence[str] = ()) -> str:
    """Page of one task, with the numbers of its config; `kinds` are the observation types shown, none means all."""
    lines = [f"## {name}", "", description.summary, ""]
    for kind, parts in description.observations.items():
        if kinds and kind not in kinds:
            continue
        title = "Observation" if kind == "obs" else f"Observation `{kind}`"
        rows = [
            (_slice(start, end), part.quantity, part.unit, part.frame, _number(cfg, part.scale))
            for start, end, part in slices(parts)
        ]
        lines += [f"**{title}** ({sum(part.size for part in parts)} numbers)", ""]
        lines += [*_table("slice quantity unit frame scale", rows), ""]
    lines += ["**Action**", "", description.action, "", "**Reward**", "", description.reward, ""]
    terms = [(f"`{term.name}`", term.formula, _number(cfg, term.weight)) for term in description.terms]
    lines += [*_table("term value weight", terms), "", "**An episode ends**", ""]
    lines += [f"- {end}" for end in description.termination]
    results = [(r.measure, r.value, r.conditions, f"`{r.command}`") for r in description.results]
    lines += [
        "",
        "**Results** (empty: not measured yet)",
        "",
        *_table("measure result conditions command", results),
        "",
    ]
    return re.sub(r"\{([\w.]+)\}", lambda key: f"{look_up(cfg, key[1]):g}", "\n".join(lines))


def _slice(start: int, end: int) -> str:
    return str(start) if end == start + 1 else f"{start}:{end}"


def _number(cfg: Mapping[str, Any], number: Number) -> str:
    value = f"{look_up(cfg, number):g}"
    return f"{value} (`{number.lstrip('-')}`)" if isinstance(number, str) else value


def _table(titles: str, rows: Sequence[tuple[str, ...]]) -> list[str]:
    head = titles.split()
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
