"""What a GPU does with this package, in ten minutes: `python scripts/gpu_check.py`.

First correctness: Cartpole, Ant and ShadowHand on the GPU against a reference computed on the CPU by another process.
Then five minutes of training ShadowHand at 16,384 environments, then throughput at 2048 and 16,384, and at larger
numbers while time is left. Results go to `gpu_check.json` and, as a table, `gpu_check.md` in `out`; the exit code is 1
if a correctness check failed or nothing could be trained.

Keys: `device` (cuda:0), `task` (ShadowHand), `num_envs` (16384), `train_s` (300), `budget_s` (600), `correctness_s`
(90), `counts` (2048,16384,32768,65536), `out` (runs/gpu_check). `device=cpu num_envs=64 train_s=30 counts=64` tries it
without a GPU.
"""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gymscale.scripts import exits, preflight
from gymscale.scripts.config import UsageError

PROBED = ("Cartpole", "Ant", "ShadowHand")
"""Tasks compared with the CPU: joints alone, contacts with the ground, a hand with tendons and an object."""

LIMITS = {"error_step_1": 2e-3, "isolation": 2e-3, "nonfinite": 0.0, "syncs": 0.0}
"""Largest values that pass; the difference after 8 steps is only reported."""

DEFAULTS = {
    "device": "cuda:0",
    "task": "ShadowHand",
    "num_envs": "16384",
    "train_s": "300",
    "budget_s": "600",
    "correctness_s": "90",
    "counts": "2048,16384,32768,65536",
    "out": "runs/gpu_check",
}
GRACE_S = 30.0
"""Seconds a training gets to save after it was asked to stop."""


@dataclass
class Check:
    """The settings, the time left, and what was found so far."""

    settings: dict[str, str]
    start: float = field(default_factory=time.monotonic)
    results: dict[str, Any] = field(default_factory=dict)

    @property
    def out(self) -> Path:
        """The folder of the results."""
        return Path(self.settings["out"]).resolve()

    def left(self, limit: float = float("inf")) -> float:
        """Seconds that may still be used, at most `limit`."""
        return max(1.0, min(limit, float(self.settings["budget_s"]) - (time.monotonic() - self.start)))

    def keep(self, name: str, value: Any) -> None:
        """Add a result, write all of them, and say it."""
        self.results[name] = value
        (self.out / "gpu_check.json").write_text(json.dumps(self.results, indent=1) + "\n", encoding="utf-8")
        print(f"{time.monotonic() - self.start:5.0f} s  {name}: {value}", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return exits.guarded(lambda: _main(arguments))


def _main(argv: Sequence[str]) -> int:
    if "--help" in argv or "-h" in argv:
        print(__doc__)
        return 0
    check = Check(_read(argv))
    for line in preflight.problems():
        raise UsageError(line)
    check.out.mkdir(parents=True, exist_ok=True)
    check.keep("machine", _machine(check.settings["device"]))
    passed = _correctness(check)
    trained = _training(check)
    _throughput(check)
    (check.out / "gpu_check.md").write_text(_table(check.results), encoding="utf-8")
    print(f"wrote {check.out / 'gpu_check.md'}")
    return 0 if passed and trained else 1


def _read(argv: Sequence[str]) -> dict[str, str]:
    """Return the settings.

    Raises:
        UsageError: An unknown key, or a number that is none.
    """
    given = dict(word.partition("=")[::2] for word in argv)
    unknown = sorted(set(given) - set(DEFAULTS))
    if unknown:
        raise UsageError(f"unknown key '{unknown[0]}'; gpu_check.py knows {', '.join(DEFAULTS)} (see --help)")
    settings = DEFAULTS | given
    for key in ("num_envs", "train_s", "budget_s", "correctness_s"):
        if not settings[key].isdigit() or int(settings[key]) < 1:
            raise UsageError(f"{key} must be a whole number of at least 1, got '{settings[key]}'")
    if not all(count.isdigit() and int(count) > 0 for count in settings["counts"].split(",")):
        raise UsageError(f"counts must be whole numbers with commas between them, got '{settings['counts']}'")
    return settings


def _machine(device: str) -> str:
    """Name the card, or say that there is none.

    Raises:
        UsageError: A CUDA device that this machine does not show.
    """
    import torch

    if device == "cpu":
        return "cpu"
    if not torch.cuda.is_available():
        raise UsageError(f"device={device}: this machine shows no CUDA device; device=cpu tries the script without one")
    return f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}"  # pragma: needs cuda


def _correctness(check: Check) -> bool:
    """Compare each probed task with the CPU; returns whether all are within LIMITS."""
    device, passed, deadline = check.settings["device"], True, time.monotonic() + int(check.settings["correctness_s"])
    for task in PROBED:
        for part, where in (("reference", "cpu"), ("check", device)):
            command = [sys.executable, "-m", "gymscale.scripts.device_probe", task, where, str(check.out), part]
            code, text = _run(command, check.left(max(1.0, deadline - time.monotonic())))
            if code != 0:
                break
        found: dict[str, Any] = {"failed": text.strip()[-300:]}
        if code == 0:
            found = json.loads(text.splitlines()[-1])
        wrong = [name for name, limit in LIMITS.items() if not found.get(name, float("inf")) <= limit]
        passed &= not wrong
        check.keep(f"correctness {task}", found | {"passed": not wrong})
    return passed


def _run(command: Sequence[str], limit: float) -> tuple[int, str]:
    """Run a program for at most `limit` seconds; returns its exit code and what it printed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return 124, f"took longer than {limit:.0f} s"
    return done.returncode, done.stdout if done.returncode == 0 else done.stdout + done.stderr


def _training(check: Check) -> bool:
    """Train for `train_s` seconds, building included; returns whether there was any progress to report."""
    s, folder = check.settings, check.out / "training"
    scripts = Path(__file__).resolve().parent
    command = [sys.executable, str(scripts / "train.py"), f"task={s['task']}", f"num_envs={s['num_envs']}"]
    command += [f"sim_device={s['device']}", f"rl_device={s['device']}", f"hydra.run.dir={folder}"]
    log = check.out / "training.log"
    start = time.monotonic()
    with log.open("w") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            process.wait(check.left(int(s["train_s"])))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
    rows = _rows(folder / "metrics.csv")
    if not rows:
        check.keep("training", {"failed": log.read_text(errors="replace").strip()[-300:]})
        return False
    last = rows[-1]
    settled = rows[len(rows) // 2 :]
    check.keep(
        "training",
        {
            "num_envs": int(s["num_envs"]),
            "wall_s": round(time.monotonic() - start, 1),
            "training_s": round(float(last["wall_time_s"]), 1),
            "frames": int(float(last["frame"])),
            "env_steps_per_s": round(sum(float(row["fps_total"]) for row in settled) / len(settled)),
            "reward_mean": _number(last["reward_mean"]),
            "consecutive_successes": _number(last.get("episode/consecutive_successes", "")),
        },
    )
    return True


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _number(text: str) -> float | None:
    """Return a number of metrics.csv; None where nothing is known yet."""
    return round(float(text), 4) if text not in ("", "nan") else None


def _throughput(check: Check) -> None:
    """Measure speed at each of `counts`, while there is time."""
    s = check.settings
    benchmark = Path(__file__).resolve().parent / "benchmark.py"
    for count in s["counts"].split(","):
        if check.left() < 20:
            check.keep(f"throughput {count}", "no time left")
            continue
        table = check.out / f"throughput_{count}.csv"
        command = [sys.executable, str(benchmark), f"task={s['task']}", f"num_envs={count}", "iterations=5"]
        command += [f"sim_device={s['device']}", f"rl_device={s['device']}", f"csv={table}"]
        code, text = _run(command, check.left())
        rows = _rows(table)
        check.keep(f"throughput {count}", _speeds(rows[0]) if code == 0 and rows else {"failed": text.strip()[-300:]})


def _speeds(row: dict[str, str]) -> dict[str, float]:
    names = ("raw", "api", "step", "step_inference", "total", "build_s", "peak_MiB")
    return {name: round(float(row[name]), 1) for name in names if row.get(name)}


def _table(results: dict[str, Any]) -> str:
    """The results as Markdown."""
    lines = [f"# GPU check: {results['machine']}", "", "| check | result |", "|---|---|"]
    for name, value in results.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key} {item}" for key, item in value.items())
        lines.append(f"| {name} | {str(value).replace('|', '/')} |".replace("\n", " "))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
