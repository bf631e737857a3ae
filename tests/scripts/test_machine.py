"""What is said of a machine that cannot run gymscale, and what is kept off the terminal of one that can."""

from __future__ import annotations

import logging
import os
import signal
import warnings
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from gymscale.scripts import preflight, train
from gymscale.scripts.output import QuietOutput
from gymscale.scripts.signals import InterruptedBySignal, StopSignals


def test_this_machine_lacks_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert preflight.problems() == []
    assert preflight.main() == 0
    assert capsys.readouterr().out.startswith("ok: Linux")


@pytest.mark.parametrize(("version", "fits"), [("2.34", False), ("2.35", True), ("2.100", True), (None, False)])
def test_glibc(version: str | None, fits: bool) -> None:
    line = preflight.glibc_problem(version)
    assert (line is None) == fits
    if line is not None:
        assert "PhysX needs glibc 2.35 or newer" in line


def test_avx() -> None:
    assert preflight.avx_problem("x86_64", {"sse4_2", "avx"}) is None
    assert preflight.avx_problem("aarch64", {"neon"}) is None
    assert "needs a processor with AVX" in (preflight.avx_problem("x86_64", {"sse4_2"}) or "")


def test_A6_other_platforms_are_named() -> None:
    assert preflight.platform_problem("Linux", "x86_64") is None
    assert "on Windows use WSL2" in (preflight.platform_problem("Windows", "AMD64") or "")


def test_python_versions() -> None:
    assert preflight.python_problem((3, 10)) is None
    assert preflight.python_problem((3, 13)) is None
    assert "needs Python 3.10 to 3.13, this is 3.9" in (preflight.python_problem((3, 9)) or "")
    assert preflight.python_problem((3, 14)) is not None


def test_A12_mismatched_wheels_are_named_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "0.2.9" if name == "ovstage" else real(name))
    (line,) = preflight.problems()
    assert line.startswith("ovstage 0.2.9 is installed, gymscale needs ==0.3.0")
    assert "pip install 'ovstage==0.3.0" in line


def test_a_missing_wheel_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    missing = preflight.wheel_problem(Requirement("no-such-wheel==1.0"))
    assert missing == "no-such-wheel is not installed: pip install 'no-such-wheel==1.0'"
    monkeypatch.setattr(preflight, "problems", lambda: [missing])
    assert train.main(["task=Ant"]) == 2
    assert capsys.readouterr().err == f"error: {missing}\n"


def test_the_native_wheels_are_pinned_exactly() -> None:
    pinned = {r.name: str(r.specifier) for r in preflight._pinned_requirements()}
    assert set(pinned) == {*preflight.NATIVE_WHEELS, "ovstage"}
    assert all(specifier.startswith("==") for specifier in pinned.values())


def test_the_terminal_gets_what_a_user_can_act_on_and_the_log_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with QuietOutput() as output:
        warnings.warn("old name", DeprecationWarning, stacklevel=1)
        warnings.warn("geom dropped", UserWarning, stacklevel=1)
        logging.getLogger("gymscale.physx").info("step one")
        logging.getLogger("gymscale.physx").warning("limits ignored")
        for _ in range(3):
            logging.getLogger("gymscale.physx").error("buffer full")
            logging.getLogger("ppo.trainer").warning("rate pinned")
        os.write(2, b"early native line\n")
        output.move_to(tmp_path / "events.log")
        os.write(1, b"late native line\n")
        assert output.tail(1) == "late native line"
    captured = capsys.readouterr()
    assert captured.err == "warning: geom dropped\nerror: buffer full\nwarning: rate pinned\n"
    assert captured.out == ""
    log = (tmp_path / "events.log").read_text()
    for line in (
        "old name",
        "geom dropped",
        "step one",
        "limits ignored",
        "buffer full",
        "early native line",
        "late native line",
    ):
        assert line in log


def test_an_existing_log_is_continued(tmp_path: Path) -> None:
    (tmp_path / "events.log").write_text("before\n")
    with QuietOutput() as output:
        os.write(1, b"after\n")
        output.move_to(tmp_path / "events.log")
    assert (tmp_path / "events.log").read_text() == "before\nafter\n"


def test_the_first_signal_asks_and_the_second_stops() -> None:
    asked: list[str] = []
    with StopSignals() as signals:
        with pytest.raises(InterruptedBySignal):
            signal.raise_signal(signal.SIGTERM)
        assert signals.exit_code == 0
        signals.ask(asked.append)
        signal.raise_signal(signal.SIGINT)
        assert (asked, signals.exit_code) == (["SIGINT"], 130)
        with pytest.raises(InterruptedBySignal) as stopped:
            signal.raise_signal(signal.SIGINT)
        assert stopped.value.exit_code == 130
