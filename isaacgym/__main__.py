"""Runs or reads programs written for NVIDIA's Isaac Gym.

python -m isaacgym [--cpu] SCRIPT [ARGS ...]     run a script; --cpu where it asks for CUDA and there is none
python -m isaacgym --check SCRIPT_OR_FOLDER      read it, without running, and list the functions it uses
python -m isaacgym --capabilities                list all functions and whether they are supported, in Markdown

Exit codes: those of the script; of --check 0 if everything is supported, 1 if not; 2 for a wrong command line.
"""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import isaacgym

USAGE = (__doc__ or "").split("\n\n")[1]


def main(args: Sequence[str]) -> int:
    """Do what the command line says and return the exit code."""
    options = []
    rest = list(args)
    while rest and rest[0].startswith("-"):
        options.append(rest.pop(0))
    if "-h" in options or "--help" in options:
        print(__doc__)
        return 0
    unknown = [option for option in options if option not in ("--cpu", "--check", "--capabilities")]
    if unknown:
        return _refuse(f"unknown option {unknown[0]} before the script")
    if "--capabilities" in options:
        from isaacgym import _capabilities

        print(_capabilities.table())
        return 0
    if not rest:
        return _refuse("no script given")
    path = Path(rest[0])
    if "--check" in options:
        if not path.exists():
            return _refuse(f"{path}: no such file or folder")
        from isaacgym import _check

        return _check.report(path)
    if not path.is_file():
        return _refuse(f"{path}: no such file")
    run(path, rest[1:], cpu="--cpu" in options)
    return 0


def _refuse(problem: str) -> int:
    print(f"python -m isaacgym: {problem}\n{USAGE}", file=sys.stderr)
    return 2


def run(path: Path, args: Sequence[str], cpu: bool) -> None:
    """Run the script at ``path`` as ``__main__`` with the command line ``args``."""
    from isaacgym import _legacy

    done = _legacy.install(path.resolve().parent)
    if cpu:
        done.append(_legacy.force_cpu())
    print(
        f"gymscale {isaacgym.__version__} stands in for NVIDIA's Isaac Gym, on PhysX 5; {', '.join(done)}",
        file=sys.stderr,
    )
    sys.argv = [str(path), *args]
    try:
        runpy.run_path(str(path), run_name="__main__")
    except Exception as error:
        _explain(error, path)


def _explain(error: Exception, path: Path) -> NoReturn:
    """Print the script's own traceback, and the way out where only CUDA is missing; end with exit code 1."""
    from isaacgym import _legacy

    frames = error.__traceback__
    while frames is not None and Path(frames.tb_frame.f_code.co_filename).resolve() != path.resolve():
        frames = frames.tb_next
    traceback.print_exception(error.with_traceback(frames or error.__traceback__))
    if _legacy.asks_for_cuda(error):
        print(
            f"The script asks for CUDA, which this machine does not have. To run it on the CPU: "
            f"python -m isaacgym --cpu {' '.join([os.fspath(path), *sys.argv[1:]])}",
            file=sys.stderr,
        )
    sys.exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
