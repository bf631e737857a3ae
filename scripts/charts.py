"""Line and dot charts as PNG files, drawn with Pillow, which TensorBoard brings along."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT = 640, 400
"""Of one panel, in pixels."""
LEFT, RIGHT, TOP, BOTTOM = 84, 16, 34, 50
"""Margins of a panel."""
COLOURS = ("#1f5fbf", "#d1495b", "#2e8b57", "#e39b26", "#7b4fa3", "#3aa6a6", "#8c6b4f", "#555555")
INK, GRID = "#222222", "#dddddd"
TEXT_SIZE = 13


@dataclass(frozen=True)
class Series:
    """Points of one colour: joined by a `line` or `dashed`, or as `dots`; points that are not finite are left out."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    style: str = "line"
    colour: int = 0


@dataclass(frozen=True)
class Panel:
    """One chart; with `log_x` or `log_y` only positive values can be shown."""

    title: str
    x_label: str
    y_label: str
    series: list[Series] = field(default_factory=list)
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Axis:
    """Maps values to a range of pixels."""

    low: float
    high: float
    log: bool
    start: float
    end: float

    @classmethod
    def fit(cls, values: Sequence[float], log: bool, start: float, end: float) -> Axis:
        """Cover all values with some room."""
        scaled = [math.log10(v) if log else v for v in values if shown(v, log)] or [0.0, 1.0]
        low, high = min(scaled), max(scaled)
        room = 0.04 * (high - low) or 0.5 * abs(low) or 0.5
        return cls(low - room, high + room, log, start, end)

    def pixel(self, value: float) -> float:
        """Place of a value."""
        scaled = math.log10(value) if self.log else value
        return self.start + (scaled - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round values inside the range."""
        if self.log and self.high - self.low >= 1.0:
            return [10.0**k for k in range(math.ceil(self.low), math.floor(self.high) + 1)]
        low, high = (10.0**self.low, 10.0**self.high) if self.log else (self.low, self.high)
        raw = (high - low) / 5.0
        unit = 10.0 ** math.floor(math.log10(raw))
        step = unit * next(m for m in (1, 2, 5, 10) if m * unit >= raw)
        return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def shown(value: float, log: bool) -> bool:
    """Whether a value has a place on an axis."""
    return math.isfinite(value) and (value > 0.0 or not log)


def write_png(path: Path, panels: Sequence[Panel], columns: int = 2) -> None:
    """Draw the panels in rows of `columns`; folders are made where they are missing."""
    rows = -(-len(panels) // columns)
    image = Image.new("RGB", (WIDTH * min(columns, len(panels)), HEIGHT * rows), "white")
    draw = ImageDraw.Draw(image)
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        _draw_panel(draw, panel, column * WIDTH, row * HEIGHT)
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, "PNG")


def _draw_panel(draw: ImageDraw.ImageDraw, panel: Panel, left: int, top: int) -> None:
    font = ImageFont.load_default(TEXT_SIZE)
    points = [
        (x, y)
        for series in panel.series
        for x, y in zip(series.x, series.y, strict=True)
        if shown(x, panel.log_x) and shown(y, panel.log_y)
    ]
    x_axis = Axis.fit([x for x, _ in points], panel.log_x, left + LEFT, left + WIDTH - RIGHT)
    y_axis = Axis.fit([y for _, y in points], panel.log_y, top + HEIGHT - BOTTOM, top + TOP)
    for tick in x_axis.ticks():
        x = x_axis.pixel(tick)
        draw.line((x, y_axis.start, x, y_axis.end), GRID)
        draw.text((x, y_axis.start + 5), f"{tick:g}", INK, font, "ma")
    for tick in y_axis.ticks():
        y = y_axis.pixel(tick)
        draw.line((x_axis.start, y, x_axis.end, y), GRID)
        draw.text((x_axis.start - 6, y), f"{tick:.4g}", INK, font, "rm")
    draw.rectangle((x_axis.start, y_axis.end, x_axis.end, y_axis.start), outline=INK)
    for series in panel.series:
        _draw_series(draw, series, x_axis, y_axis)
    draw.text((left + LEFT, top + 8), f"{panel.title}   [{panel.y_label}]", INK, font)
    draw.text(((x_axis.start + x_axis.end) / 2, top + HEIGHT - 8), panel.x_label, INK, font, "ms")
    _draw_legend(draw, panel, font, x_axis.end - 10, y_axis.end + 8)


def _draw_series(draw: ImageDraw.ImageDraw, series: Series, x_axis: Axis, y_axis: Axis) -> None:
    colour = COLOURS[series.colour % len(COLOURS)]
    previous: tuple[float, float] | None = None
    for number, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
        if not (shown(x, x_axis.log) and shown(y, y_axis.log)):
            previous = None
            continue
        point = (x_axis.pixel(x), y_axis.pixel(y))
        if series.style == "dots":
            draw.ellipse((point[0] - 4, point[1] - 4, point[0] + 4, point[1] + 4), fill=colour)
        elif previous is not None and (series.style == "line" or number % 2):
            draw.line((*previous, *point), colour, 2)
        previous = point


def _draw_legend(
    draw: ImageDraw.ImageDraw,
    panel: Panel,
    font: ImageFont.FreeTypeFont | ImageFont.ImageFont,
    right: float,
    top: float,
) -> None:
    labelled = [series for series in panel.series if series.label]
    if len(labelled) < 2:
        return
    width = max(draw.textlength(series.label, font) for series in labelled)
    for number, series in enumerate(labelled):
        y = top + number * (TEXT_SIZE + 4)
        draw.text((right - width, y), series.label, INK, font)
        draw.line((right - width - 26, y + 8, right - width - 6, y + 8), COLOURS[series.colour % len(COLOURS)], 3)
