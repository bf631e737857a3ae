"""Tables of results as CSV files."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def columns(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the columns of all rows, in the order of the first row that has them."""
    return list(dict.fromkeys(name for row in rows for name in row))


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write all rows to a file; folders are made where they are missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns(rows))
        writer.writeheader()
        writer.writerows(rows)
