"""The plateau experiment: what it computes, and one run from end to end at a size that proves nothing."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from gymscale.scripts import plateau


def test_rank_correlation_is_spearmans() -> None:
    assert plateau.rank_correlation([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1.0)
    assert plateau.rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1.0)
    # 1 - 6 sum d^2 / (n (n^2 - 1)) with d = (0, 1, 1, 0): 1 - 12 / 60
    assert plateau.rank_correlation([1, 2, 3, 4], [1, 3, 2, 9]) == pytest.approx(0.8)
    low, high = plateau.confidence_interval([1, 2, 3, 4, 5, 6], [1, 3, 2, 5, 4, 6])
    assert low < 0.886 < high


def test_wrong_command_lines_are_told_in_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    for word, message in {
        "sed=1": "unknown key 'sed'",
        "com=much": "com: expected numbers",
        "window=2": "window",
    }.items():
        assert plateau.main([word]) == 2
        error = capfd.readouterr().err
        assert message in error
        assert error.count("\n") == 1


def test_runs_are_trained_continued_and_reported(tmp_path: Path) -> None:
    words = "seeds=1 com=none e_clip=0.2 num_envs=8 iterations=14 retrain_com=5 retrain_iterations=2 mini_epochs=1"
    assert plateau.main([*words.split(), "window=4", f"out={tmp_path}"]) == 0
    with (tmp_path / "runs.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert second["parent"] == first["name"] == "com=none_eps=0.2_envs=8_seed=1"
    assert second["com"] == "5.0"
    assert (tmp_path / "plateau.png").read_bytes().startswith(b"\x89PNG")
    assert "1 of 1 runs from scratch ended below -200" in (tmp_path / "report.md").read_text()
