from __future__ import annotations

import csv
from dataclasses import replace

import pytest
from PIL import Image

from gymscale.scripts import outer_loop_toy as toy
from gymscale.scripts.outer_loop_toy import Settings

QUICK = Settings(iterations=600, inner_steps=15, dimensions=200, window=30)


def mean_loss(rows) -> float:
    """Mean over the second half, after a transient."""
    losses = [row["loss"] for row in rows[len(rows) // 2 + 60 :]]
    return sum(losses) / len(losses)


def test_theory_of_one_axis_by_hand() -> None:
    """Curvature 0.1 (the first axis), step 10: a = 1/2, x is autoregressive with 1/2, Var x = v / 3."""
    settings = Settings(dimensions=1, step=10.0, samples=4, noise=2.0)
    assert toy.plateau(settings) == pytest.approx(0.5 * 0.1 / 3)
    # A very old anchor rests at the optimum: what is left is the step from there, a half of the batch's mean.
    assert toy.plateau(replace(settings, com=1e9)) == pytest.approx(0.5 * 0.1 / 4)


def test_plateau_is_proportional_to_step_size_and_to_noise_for_small_steps() -> None:
    base = Settings(step=0.01, samples=100)
    level = toy.plateau(base)
    assert toy.plateau(replace(base, step=0.02)) / level == pytest.approx(2.0, rel=0.01)
    assert toy.plateau(replace(base, samples=200)) / level == pytest.approx(0.5)
    assert toy.plateau(replace(base, noise=3.0)) / level == pytest.approx(9.0)


@pytest.mark.parametrize("change", [{}, {"step": 0.3}, {"samples": 64}, {"com": 4.0}, {"step": 4.0}])
def test_runs_end_on_the_plateau_of_theory(change) -> None:
    settings = replace(QUICK, **change)
    assert mean_loss(toy.run(settings, settings)) == pytest.approx(toy.plateau(settings), rel=0.06)


def test_updates_stay_as_large_on_the_plateau_and_undo_each_other() -> None:
    rows = toy.run(QUICK, QUICK)
    steps = [row["parameter_step"] for row in rows]
    early, late = (sum(steps[a:b]) / (b - a) for a, b in ((100, 200), (500, 600)))
    assert late == pytest.approx(early, rel=0.05)
    assert sum(row["update_cosine"] for row in rows[100:]) / 500 < -0.05
    assert rows[-1]["straightness"] < 0.5 / QUICK.window**0.5


@pytest.mark.parametrize("name", ["step cut", "more samples"])
def test_after_the_cut_the_loss_falls_to_the_new_plateau(name: str) -> None:
    settings = replace(QUICK, cut=5.0)
    changed = settings.changed()[name]
    rows = toy.run(settings, changed)
    before = sum(row["loss"] for row in rows[200:300]) / 100
    assert before == pytest.approx(toy.plateau(settings), rel=0.1)
    assert mean_loss(rows) == pytest.approx(toy.plateau(changed), rel=0.1)
    assert mean_loss(rows) < 0.3 * before


def test_the_detector_calls_the_plateau_and_says_what_helped() -> None:
    settings = replace(QUICK, cut=8.0)
    said = [row["message"] for row in toy.run(settings, settings.changed()["more samples"]) if row["message"]]
    assert [message.split(":")[0] for message in said][:2] == ["stagnation", "samples 16 -> 128 helped"]
    assert toy.run(settings, settings)[299]["stagnant"] == 1


def test_runs_repeat_and_are_the_same_until_the_change() -> None:
    settings = replace(QUICK, iterations=40)
    a, b = (toy.run(settings, other) for other in (settings, settings.changed()["step cut"]))
    again = toy.run(settings, settings)
    losses = [[row["loss"] for row in rows[:20]] for rows in (a, again, b)]
    assert losses[0] == losses[1] == losses[2]
    assert a[20]["loss"] != b[20]["loss"]


def test_command_line_writes_table_and_charts(tmp_path, capsys) -> None:
    assert toy.main(["iterations=40", "dimensions=10", f"out={tmp_path}"]) == 0
    output = capsys.readouterr().out
    assert "step cut" in output
    assert f"wrote {tmp_path / 'toy.csv'}" in output
    with (tmp_path / "toy.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * 40
    assert {row["run"] for row in rows} == {"unchanged", "step cut", "more samples", "older anchor"}
    with Image.open(tmp_path / "toy.png") as image:
        assert image.size == (1280, 1200)
        colours = {colour for _, colour in image.getcolors(10_000)}
        assert {(31, 95, 191), (209, 73, 91), (46, 139, 87), (227, 155, 38)} <= colours  # the four runs


def test_help_names_the_keys(capsys) -> None:
    assert toy.main(["--help"]) == 0
    output = capsys.readouterr().out
    for name in vars(Settings()):
        assert f"{name}=" in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["stepp=1"], "unknown key 'stepp' (did you mean 'step'?)"),
        (["step=fast"], "outer_loop_toy.step: expected float, got 'fast'"),
        (["step=0"], "outer_loop_toy: step must be above 0, got 0.0"),
        (["samples=1"], "samples must be at least 2, got 1"),
        (["cut=1"], "cut must be above 1"),
        (["window=2"], "window must be at least 4"),
    ],
)
def test_wrong_words_give_one_line(words, message, capsys) -> None:
    assert toy.main(words) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
