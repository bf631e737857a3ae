"""Keeps the terminal for the program: native libraries, log records and warnings go to a log file."""

from __future__ import annotations

import contextlib
import ctypes
import io
import logging
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import IO, Any, TextIO

HIDDEN_WARNINGS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning, ImportWarning)
"""Warnings meant for the authors of libraries; they are logged and not shown."""

NATIVE_LOGGER = "gymscale.physx"
"""The logger that carries the messages of PhysX."""


class QuietOutput:
    """Sends file descriptors 1 and 2 to a log file, while `print` still reaches the terminal.

    The log starts as a temporary file, since a run folder exists only once everything has been checked; `move_to`
    carries it over. Log records of level INFO and warnings go to the same file; warnings for users, our own log
    records of level WARNING and errors of PhysX are shown on stderr too. Use as a context manager.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._path: Path | None = None
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> QuietOutput:
        """Start to redirect."""
        self._undo.callback(self._close_file)
        descriptor, name = tempfile.mkstemp(prefix="gymscale_", suffix=".log")
        self._path = Path(name)
        self._file = os.fdopen(descriptor, "r+b", buffering=0)
        sys.stdout.flush()
        sys.stderr.flush()
        for number, stream_name in ((1, "stdout"), (2, "stderr")):
            self._redirect(number, stream_name)
        self._capture_logging()
        self._capture_warnings()
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the descriptors; a log that was never moved is deleted."""
        ctypes.CDLL(None).fflush(None)  # what C libraries still hold belongs to the log, not to the terminal
        self._undo.close()

    def move_to(self, path: Path) -> None:
        """Append what was logged so far to `path` and log there from now on."""
        assert self._file is not None
        target = path.open("ab", buffering=0)
        self._file.seek(0)
        shutil.copyfileobj(self._file, target)
        self._close_file()
        self._file = target
        for number in (1, 2):
            os.dup2(target.fileno(), number)

    def tail(self, lines: int) -> str:
        """Return the last lines of the log, for the message about a crash."""
        assert self._file is not None
        size = os.fstat(self._file.fileno()).st_size
        start = max(0, size - 200 * lines)
        name = self._path or Path(self._file.name)
        with name.open("rb") as log:
            log.seek(start)
            return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])

    def write(self, text: str) -> int:
        """Append text to the log (the stream interface of `logging`); a full disk is no reason to stop."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.write(text.encode())
        return len(text)

    def flush(self) -> None:
        """Do nothing: the log is not buffered."""

    def _redirect(self, number: int, stream_name: str) -> None:
        """Point descriptor `number` at the log and Python's stream at a copy of the old descriptor."""
        assert self._file is not None
        saved = os.dup(number)
        os.dup2(self._file.fileno(), number)
        self._undo.callback(os.close, saved)
        self._undo.callback(os.dup2, saved, number)
        stream = getattr(sys, stream_name)
        if _descriptor(stream) != number:
            return  # already replaced by someone who wants what Python prints (a test, a notebook)
        mine = os.fdopen(os.dup(saved), "w", encoding=stream.encoding, errors="replace", buffering=1)
        setattr(sys, stream_name, mine)
        self._undo.callback(mine.close)
        self._undo.callback(setattr, sys, stream_name, stream)

    def _capture_logging(self) -> None:
        root = logging.getLogger()
        to_file = logging.StreamHandler(self)
        to_file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        to_terminal = _TerminalHandler()
        previous = root.level
        root.setLevel(logging.INFO)
        self._undo.callback(root.setLevel, previous)
        for handler in (to_file, to_terminal):
            root.addHandler(handler)
            self._undo.callback(root.removeHandler, handler)

    def _capture_warnings(self) -> None:
        self._undo.enter_context(warnings.catch_warnings())
        warnings.simplefilter("default")
        warnings.showwarning = self._show_warning

    def _show_warning(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        self.write(f"{filename}:{lineno}: {category.__name__}: {message}\n")
        if not issubclass(category, HIDDEN_WARNINGS):
            print(f"warning: {message}", file=sys.stderr)

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None


class _TerminalHandler(logging.Handler):
    """Prints each different record once, to whatever stderr is now (a live display swaps it).

    PhysX warns of much that needs no action, once for every environment: only its errors are shown.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        message = record.getMessage()
        native = record.name.startswith(NATIVE_LOGGER)
        if message in self._shown or (native and record.levelno < logging.ERROR):
            return
        self._shown.add(message)
        print(f"{record.levelname.lower()}: {message}", file=sys.stderr)


def _descriptor(stream: Any) -> int | None:
    """Return the file descriptor of a stream, or None when it has none."""
    try:
        return int(stream.fileno())
    except (AttributeError, ValueError, io.UnsupportedOperation):
        return None
