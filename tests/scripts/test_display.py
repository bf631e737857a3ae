"""The progress displays."""

from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from gymscale.scripts import display

METRICS = {
    "iteration": 3.0,
    "frame": 49152.0,
    "reward_mean": 1234.5,
    "episode_length_mean": 87.25,
    "fps_step": 25000.0,
    "fps_step_inference": 22000.0,
    "fps_total": 15000.0,
    "kl": 0.0081,
    "lr": 3e-4,
}


def test_the_live_table_shows_every_quantity() -> None:
    screen = io.StringIO()
    live = display.LiveProgress("Ant", 500, Console(file=screen, force_terminal=True, width=100))
    live.log(METRICS, 49152)
    live.close()
    text = screen.getvalue()
    for shown in ("Ant: iteration 3 of 500", "1,234.50", "87.2", "25,000", "22,000", "15,000", "0.0081", "3.00e-04"):
        assert shown in text
    assert "49,152" in text


def test_the_plain_line_shows_every_quantity(capsys: pytest.CaptureFixture[str]) -> None:
    display.PlainProgress(500).log(METRICS, 49152)
    assert capsys.readouterr().out == (
        "iteration 3/500  frame 49152  reward 1234.50  length 87.2  fps_step 25000  fps_step_inference 22000  "
        "fps_total 15000  kl 0.0081  lr 3.00e-04  eta -\n"
    )


def test_what_is_not_known_yet_is_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    display.PlainProgress(-1).log({"iteration": 1.0, "reward_mean": math.nan}, 10)
    line = capsys.readouterr().out
    assert line.startswith("iteration 1  frame 10  reward -  length -  ")


def test_a_pipe_gets_plain_lines() -> None:
    assert isinstance(display.progress("Ant", 10), display.PlainProgress)


def test_eta_is_the_rest_at_the_recent_pace() -> None:
    eta = display.Eta(10)
    assert eta.update(1, 100.0) == "-"
    assert eta.update(2, 102.0) == "0:00:16"
    assert eta.update(4, 110.0) == "0:00:20"
    assert eta.update(10, 120.0) == "0:00:00"


def test_eta_forgets_a_slow_start() -> None:
    eta = display.Eta(1000)
    eta.update(0, 0.0)
    for iteration in range(1, display.RECENT_ITERATIONS + 2):
        left = eta.update(iteration, 500.0 + iteration)
    assert left == display.duration(1000 - iteration)


def test_duration() -> None:
    assert display.duration(3661.4) == "1:01:01"
