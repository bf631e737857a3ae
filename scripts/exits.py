"""Exit codes of the programs, and what is printed with them."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

from gymscale.scripts.config import UsageError
from gymscale.scripts.signals import InterruptedBySignal

FAILED = 1
WRONG_INPUT = 2


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
