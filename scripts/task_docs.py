"""Writes docs/tasks.md from the task classes and their configs: `python scripts/task_docs.py`."""

from __future__ import annotations

import sys
from pathlib import Path

from gymscale.scripts import config

PAGE = Path(__file__).resolve().parent.parent / "docs" / "tasks.md"

HEAD = """# Tasks

This page is generated from the task classes and their configs; `python scripts/task_docs.py` writes it anew.

Numbers in backquotes beside a value are config keys below `task`, for example `task.env.clipActions=0.5`. The frame
`env` is the world seen from the origin of a robot's own environment, z up; other frames are those of the named body.
Quaternions are x, y, z, w. Observations are in order and before clipping (`env.clipObservations`). Sums of reward
terms over an episode are logged as `episode/rew_<term>`; every task also logs `episode/nonfinite_resets`, how often an
environment had to be reset because a number in it was not finite.

`python scripts/play.py checkpoint=... num_envs=256 num_episodes=256` plays the first episode of 256 environments with
the mean actions of the policy and prints reward, length, and whatever else the task measures.
`python scripts/play.py task=AnymalTerrain terrain_preview=True` draws the terrain without a simulation.

Some behaviours of the original tasks are corrected. `task.reference_quirks=true` brings all of them back, a list
(`task.reference_quirks=[Q4,Q10]`) some:

| id | behaviour of the original |
|---|---|
"""


def main() -> int:
    """Write the page and say where; returns the exit code."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
    return 0


def page() -> str:
    """Return the whole page."""
    from tasks import registry
    from tasks.base.config import FIXED_QUIRKS
    from tasks.base.description import markdown

    quirks = "".join(f"| {quirk} | {text} |\n" for quirk, text in FIXED_QUIRKS.items())
    sections, shown = [], set()
    for name in registry.names():
        cfg = config.to_plain(config.load([f"task={name}", "num_envs=1", "sim_device=cpu", "rl_device=cpu"]).task)
        task_class = registry.get(name)
        description, kinds = task_class.description, []
        if task_class in shown:  # another config of a task: its own observation, and none of the other's measurements
            kinds = [cfg["env"]["observationType"]]
            unmeasured = tuple(result for result in description.results if not result.value)
            description = description._replace(results=unmeasured)
        shown.add(task_class)
        sections.append(markdown(name, description, cfg, kinds))
    return HEAD + quirks + "\n" + "\n".join(sections)


if __name__ == "__main__":
    sys.exit(main())
