"""benchmark.py: what it reads, measures, prints and writes."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gymscale.scripts import benchmark, config, throughput


def test_every_task_meets_every_number_of_envs() -> None:
    request = benchmark.read_request(["task=Ant,Cartpole", "num_envs=8,16", "sim_device=cpu", "iterations=3"], None)
    assert list(request.cases()) == [
        [f"task={task}", f"num_envs={number}", "sim_device=cpu"] for task in ("Ant", "Cartpole") for number in (8, 16)
    ]
    assert request.iterations == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["iterations=0"], "iterations must be a whole number of at least 1"),
        (["learners=theirs"], "unknown learner 'theirs' (choices: all, ours,"),
        (["size=Cat"], "unknown size 'Cat'"),
        (["seeds=1,x"], "seeds must be whole numbers"),
        (["task=Ant,Antt"], "unknown task 'Antt'"),
        (["num_envs=8,x"], "num_envs must be a whole number"),
    ],
)
def test_bad_input(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert benchmark.main(words) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_rows_are_printed_and_written_and_a_failed_case_sets_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"task": "Ant", "num_envs": 1024, "raw": 25000.0, "total/raw": 0.5}
    monkeypatch.setattr(benchmark, "_measure_all", lambda request: ([row, {**row, "num_envs": 2048}], 1))
    assert benchmark.main(["task=Ant", "num_envs=1024,2048", f"csv={tmp_path / 'out' / 'b.csv'}"]) == 1
    out = capsys.readouterr().out
    for shown in ("Ant", "1,024", "2,048", "25,000", "0.500"):
        assert shown in out
    with (tmp_path / "out" / "b.csv").open(newline="") as file:
        assert [(r["num_envs"], r["total/raw"]) for r in csv.DictReader(file)] == [("1024", "0.5"), ("2048", "0.5")]


def test_a_case_that_breaks_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class InThisProcess:
        """Stands in for the process pool."""

        def __init__(self, *_: Any, **__: Any) -> None: ...
        def __enter__(self) -> InThisProcess:
            return self

        def __exit__(self, *_: object) -> None: ...
        def submit(self, function: Callable[..., Any], *arguments: Any) -> InThisProcess:
            self._call = lambda: function(*arguments)
            return self

        def result(self) -> Any:
            return self._call()

    def measure(_request: benchmark.Request, overrides: list[str]) -> dict[str, Any]:
        if "num_envs=16" in overrides:
            raise RuntimeError("out of memory")
        return {"task": "Ant"}

    monkeypatch.setattr(benchmark, "ProcessPoolExecutor", InThisProcess)
    monkeypatch.setattr(benchmark, "_measure", measure)
    rows, failed = benchmark._measure_all(benchmark.read_request(["num_envs=8,16,32"], None))
    assert (len(rows), failed) == (2, 1)
    assert "num_envs=16: RuntimeError: out of memory" in capsys.readouterr().err


def test_speeds_of_a_task_on_real_physics_are_consistent() -> None:
    row = throughput.measure_task(config.load(["task=Cartpole", "num_envs=16", "sim_device=cpu", "rl_device=cpu"]), 3)
    assert (row["task"], row["num_envs"], row["device"]) == ("Cartpole", 16, "cpu")
    assert row["step"] >= row["step_inference"] >= row["total"] > 0
    assert row["api/raw"] > 0
    assert row["step/raw"] >= row["total/raw"] > 0
    shares = [row[f"{part}_share"] for part in ("physics", "api", "task")]
    assert all(0 < share < 1 for share in shares)
    assert sum(shares) == pytest.approx(1, abs=0.2)  # medians of each
    assert row["peak_MiB"] > 10


def test_a_clock_adds_up_the_time_inside_calls_only() -> None:
    class Slow:
        size = 3

        def work(self, seconds: float) -> float:
            time.sleep(seconds)
            return seconds

    clock = throughput.Clock(Slow(), "cpu")
    time.sleep(0.05)
    assert (clock.work(0.02), clock.size) == (0.02, 3)
    with pytest.raises(TypeError):
        clock.work("a")
    assert clock.seconds >= 0.02


def test_warm_up_does_not_count_and_enough_samples_end_the_run() -> None:
    extras = iter((1.0, 2.0, 5.0, 10.0))
    sampler = throughput.Sampler(2, lambda: {"extra": next(extras)})
    stops: list[str] = []
    sampler.request_stop = stops.append
    for speed in (1.0, 2.0, 10.0, 20.0):
        assert stops == []
        sampler.log({"fps_step": speed, "fps_step_inference": speed, "fps_total": speed}, 0)
    assert len(stops) == 1
    assert (sampler.median("step"), sampler.median("extra")) == (15.0, 7.5)
    assert sampler.median_ratio("step", "extra") == 2.0
