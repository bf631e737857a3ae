from __future__ import annotations

import csv
import logging
import sys
from types import SimpleNamespace

import pytest

from ppo.loggers import CsvLogger, LoggerGroup, TensorBoardLogger, WandbLogger


def rows(path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_csv_appends_and_continues_an_existing_file(tmp_path):
    path = tmp_path / "metrics.csv"
    CsvLogger(path).log({"iteration": 1.0, "reward_mean": 2.5}, 100)
    CsvLogger(path).log({"iteration": 2.0, "reward_mean": 3.5}, 200)
    assert [row["frame"] for row in rows(path)] == ["100", "200"]
    assert [row["reward_mean"] for row in rows(path)] == ["2.5", "3.5"]
    assert path.read_text().count("iteration") == 1


def test_csv_gains_a_column_for_a_metric_that_appears_later(tmp_path):
    path = tmp_path / "metrics.csv"
    logger = CsvLogger(path)
    logger.log({"frame": 1.0}, 1)
    logger.log({"frame": 2.0, "episode/progress": 0.5}, 2)
    logger.log({"frame": 3.0}, 3)
    assert [row["episode/progress"] for row in rows(path)] == ["", "0.5", ""]
    assert list(rows(path)[0]) == ["frame", "episode/progress"]
    assert [file.name for file in tmp_path.iterdir()] == ["metrics.csv"]


def test_tensorboard_writes_scalars_and_leaves_nan_out(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    logger = TensorBoardLogger(tmp_path)
    logger.log({"reward_mean": 3.0, "kl": float("nan")}, 10)
    logger.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    assert events.Tags()["scalars"] == ["reward_mean"]
    assert [(e.step, e.value) for e in events.Scalars("reward_mean")] == [(10, 3.0)]


class Broken:
    def __init__(self) -> None:
        self.calls = 0

    def log(self, metrics, step):
        self.calls += 1
        raise OSError("No space left on device")

    def close(self):
        raise OSError("still none")


class Collecting:
    def __init__(self) -> None:
        self.steps: list[int] = []

    def log(self, metrics, step):
        self.steps.append(step)

    def close(self):
        self.steps.append(-1)


def test_a_failing_logger_is_reported_once_and_left_out(caplog):
    broken, good = Broken(), Collecting()
    group = LoggerGroup([broken, good])
    with caplog.at_level(logging.WARNING):
        group.log({}, 1)
        group.log({}, 2)
        group.close()
    assert broken.calls == 1
    assert good.steps == [1, 2, -1]
    assert [record.getMessage() for record in caplog.records] == ["Broken stopped: No space left on device"]


def test_a_logger_that_does_not_close_stops_nothing(caplog):
    good = Collecting()
    with caplog.at_level(logging.WARNING):
        LoggerGroup([Broken(), good]).close()
    assert good.steps == [-1]
    assert "did not close" in caplog.text


def fake_wandb(monkeypatch: pytest.MonkeyPatch, failing_modes: set[str | None]) -> list[tuple]:
    calls: list[tuple] = []

    def init(mode=None, **options):
        calls.append(("init", mode, options))
        if mode in failing_modes:
            raise RuntimeError("no network\nsecond line")
        run = SimpleNamespace()
        run.log = lambda metrics, step: calls.append(("log", step, metrics))
        run.finish = lambda: calls.append(("finish",))
        return run

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init, Settings=SimpleNamespace))
    return calls


def test_F9_wandb_resumes_the_run_of_that_id(tmp_path, monkeypatch):
    calls = fake_wandb(monkeypatch, set())
    logger = WandbLogger(tmp_path, {"seed": 1}, "abc", project="p", entity=None)
    logger.log({"kl": 0.1}, 5)
    logger.close()
    _, mode, options = calls[0]
    assert (mode, options["id"], options["resume"], options["entity"]) == (None, "abc", "allow", None)
    assert calls[1:] == [("log", 5, {"kl": 0.1}), ("finish",)]


def test_F2_wandb_without_a_network_goes_on_offline(tmp_path, monkeypatch, caplog):
    calls = fake_wandb(monkeypatch, {None})
    logger = WandbLogger(tmp_path, {}, "abc")
    logger.log({"kl": 0.1}, 5)
    assert [call[1] for call in calls] == [None, "offline", 5]
    assert "offline" in caplog.text
    assert "second line" not in caplog.text


def test_F2_wandb_that_cannot_start_at_all_is_off(tmp_path, monkeypatch, caplog):
    fake_wandb(monkeypatch, {None, "offline"})
    logger = WandbLogger(tmp_path, {}, "abc")
    logger.log({"kl": 0.1}, 5)
    logger.close()
    assert "wandb is off: no network" in caplog.text


def test_F2_missing_wandb_package_is_a_warning(tmp_path, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "wandb", None)
    WandbLogger(tmp_path, {}, "abc").log({"kl": 0.1}, 5)
    assert "wandb is off" in caplog.text
