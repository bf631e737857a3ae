"""Exit codes of the programs, and what is printed with them."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence

from gymscale.scripts.arguments import parse_flags
from gymscale.scripts.config import UsageError
from gymscale.scripts.signals import InterruptedBySignal

FAILED = 1
WRONG_INPUT = 2


def run_program(
    argv: Sequence[str] | None, description: str | None, program: Callable[[argparse.Namespace], int]
) -> int:
    """Run a program with Hydra's flags and key=value words; `--help` prints its description instead.

    Args:
        argv: The words after the program's name; None: those it was started with.
        description: The docstring of the program's module.
        program: What takes the flags and returns the exit code.
    """
    words = list(sys.argv[1:] if argv is None else argv)

    def run() -> int:
        flags = parse_flags(words)
        if flags.help:
            print(description)
            return 0
        return program(flags)

    return guarded(run)


def guarded(program: Callable[[], int]) -> int:
    """Run a program and turn what it raises into a message on stderr and an exit code.

    Wrong input gives one line and 2, a signal 128 + its number, a crash its traceback and 1.
    """
    try:
        return program()
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG_INPUT
    except InterruptedBySignal as error:
        print(f"\n{error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except Exception:  # noqa: BLE001 - the last line of defence: a crash must not end with exit code 0
        traceback.print_exc()
        return FAILED
