"""Task names and the classes behind them; a task's module is imported only when it is asked for."""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.base.vec_task import VecTask

_TASKS = {
    "AllegroHand": "tasks.allegro_hand",
    "AllegroHandLSTM": "tasks.allegro_hand:AllegroHand",
    "Ant": "tasks.ant",
    "Anymal": "tasks.anymal",
    "AnymalTerrain": "tasks.anymal_terrain",
    "Cartpole": "tasks.cartpole",
    "CartpolePartial": "tasks.cartpole:Cartpole",
    "Humanoid": "tasks.humanoid",
    "ShadowHand": "tasks.shadow_hand",
    "ShadowHandOpenAI_FF": "tasks.shadow_hand:ShadowHand",
    "ShadowHandOpenAI_LSTM": "tasks.shadow_hand:ShadowHand",
}
"""Task name -> module that defines its class, and the class where it has another name."""


class UnknownTaskError(KeyError):
    """No task has this name."""

    def __init__(self, name: str) -> None:
        """Compose the one-line message, with the nearest known name if there is one."""
        near = difflib.get_close_matches(name, _TASKS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        self.message = f"unknown task {name!r}{hint} (known: {', '.join(names())})"
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message


def names() -> list[str]:
    """Names of all tasks, sorted."""
    return sorted(_TASKS)


def get(name: str) -> type[VecTask]:
    """Class of the task called `name`; raises `UnknownTaskError` if there is none."""
    if name not in _TASKS:
        raise UnknownTaskError(name)
    module, _, class_name = _TASKS[name].partition(":")
    task_class: type[VecTask] = getattr(importlib.import_module(module), class_name or name)
    return task_class
