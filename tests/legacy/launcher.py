"""Runs scripts as ``python -m isaacgym --cpu SCRIPT`` does, each in a process of its own.

python tests/legacy/launcher.py FOLDER SCRIPT ...

The processes are forks of one that has imported the large packages, which take most of the time of a short script;
nothing of PhysX is loaded before the fork. Output and errors of SCRIPT go to FOLDER/<name>.txt, the last line there is
its exit code.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from pathlib import Path

SHARED = ("torch", "scipy.spatial", "scipy.interpolate", "trimesh", "lxml.etree", "pxr.Usd", "pxr.UsdPhysics")
SHARED += ("gymnasium",)


def run(script: str, output: Path) -> int:
    """Run one script in this process, its output into a file; return the exit code."""
    with output.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    from isaacgym.__main__ import main

    try:
        code = main(["--cpu", script])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    print(f"exit code {code}", flush=True)
    return code


def main(folder: Path, scripts: list[str]) -> None:
    """Run the scripts side by side, as many as there are cores."""
    for name in SHARED:
        importlib.import_module(name)
    running = 0
    for script in scripts:
        if running >= (os.cpu_count() or 1):
            os.wait()
            running -= 1
        if os.fork() == 0:
            os._exit(run(script, folder / f"{Path(script).stem}.txt"))
        running += 1
    while running:
        os.wait()
        running -= 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
