"""The error that says what is wrong with a task's settings."""

from __future__ import annotations


class TaskError(ValueError):
    """A task cannot be built from its settings or asset; the message is one line that names the key and what fits."""
