"""SIGINT and SIGTERM: the first one ends the run after the current iteration, the second one at once."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from types import FrameType

CAUGHT = (signal.SIGINT, signal.SIGTERM)


class InterruptedBySignal(BaseException):
    """A signal came while there was nothing to save; `exit_code` is 128 + its number."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"stopped by {signal.Signals(signum).name}")
        self.exit_code = 128 + signum


class StopSignals:
    """Turns the first SIGINT or SIGTERM into a polite request; use as a context manager around a run.

    Attributes:
        received: The number of the signal that came first, or None.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._request_stop: Callable[[str], None] | None = None
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> StopSignals:
        """Install the handlers."""
        for number in CAUGHT:
            self._undo.callback(signal.signal, number, signal.signal(number, self._handle))
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the handlers that were there before."""
        self._undo.close()

    def ask(self, request_stop: Callable[[str], None] | None) -> None:
        """From now on pass the first signal's name to `request_stop`; None: stop at once."""
        self._request_stop = request_stop

    @property
    def exit_code(self) -> int:
        """128 + the signal's number, or 0 when none came."""
        return 0 if self.received is None else 128 + self.received

    def _handle(self, signum: int, _frame: FrameType | None) -> None:
        if self.received is not None or self._request_stop is None:
            raise InterruptedBySignal(signum)
        self.received = signum
        self._request_stop(signal.Signals(signum).name)
