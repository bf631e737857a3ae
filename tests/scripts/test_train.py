"""A run from the command line to its folder: contents, resume, signals, crashes, play."""

from __future__ import annotations

import csv
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf

from gymscale.scripts import play

RunTrain = Callable[..., int]


def metrics(folder: Path) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def only_run(tmp_path: Path) -> Path:
    (folder,) = (tmp_path / "runs").iterdir()
    return folder


def test_the_run_folder_is_complete(run_folder: Path) -> None:
    assert run_folder.name.startswith(f"Fake_{time.strftime('%Y-')}")
    assert {path.name for path in run_folder.iterdir()} == {
        "config.yaml",
        "events.log",
        "metrics.csv",
        "nn",
        "summaries",
    }
    assert {"best.pth", "last.pth", "ep_2.pth", "ep_4.pth"} <= {path.name for path in (run_folder / "nn").iterdir()}
    assert list((run_folder / "summaries").glob("events.out.tfevents.*"))


def test_metrics_have_the_agreed_names_and_one_row_an_iteration(run_folder: Path) -> None:
    rows = metrics(run_folder)
    assert [float(row["iteration"]) for row in rows] == [1, 2, 3, 4]
    assert float(rows[-1]["frame"]) == 4 * 8 * 1024
    agreed = (
        "iteration frame wall_time_s reward_mean episode_length_mean fps_step fps_step_inference fps_total kl lr "
        "policy_loss value_loss entropy clip_fraction"
    )
    assert set(agreed.split()) <= set(rows[0])
    assert float(rows[-1]["episode_length_mean"]) == 5.0
    assert float(rows[0]["fps_step"]) >= float(rows[0]["fps_step_inference"]) >= float(rows[0]["fps_total"])


def test_E4_the_effective_config_is_saved(run_train: RunTrain, tmp_path: Path) -> None:
    assert run_train("task.env.numEnvs=16", "max_iterations=1", "train.params.config.gamma=0.5") == 0
    saved = OmegaConf.load(only_run(tmp_path) / "config.yaml")
    assert (saved.num_envs, saved.task.env.numEnvs, saved.train.params.config.num_actors) == (16, 16, 16)
    assert (saved.train.params.config.max_epochs, saved.train.params.config.gamma) == (1, 0.5)
    assert saved.sim_device in ("cpu", "cuda:0")
    assert "hydra" not in saved


def test_E8_the_first_lines_name_versions_devices_and_sizes(
    run_train: RunTrain, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_train("num_envs=100", "max_iterations=1", "sim_device=cpu") == 0
    out = capfd.readouterr().out
    assert "gymscale " in out
    assert "ovphysx " in out
    assert "task Fake, physics on cpu" in out
    assert "learner on cpu" in out
    assert torch.cuda.is_available() or "this machine shows no CUDA device: everything runs on the CPU" in out
    assert "seed 42" in out
    assert "batch 100 envs x 8 steps = 800 samples, 2 epochs of 4 x 200 samples" in out


def test_native_output_goes_to_the_log_and_python_output_to_the_terminal(
    run_train: RunTrain, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_train("max_iterations=1") == 0
    captured = capfd.readouterr()
    assert "a line from Python" in captured.out
    assert "native code" not in captured.out + captured.err
    assert "a line from native code" in (only_run(tmp_path) / "events.log").read_text()


def test_plain_progress_has_a_line_an_iteration(run_train: RunTrain, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_train("num_envs=8", "max_iterations=3") == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("iteration ")]
    assert [line.split()[1] for line in lines] == ["1/3", "2/3", "3/3"]
    for name in ("reward", "length", "fps_step", "fps_step_inference", "fps_total", "kl", "lr", "eta"):
        assert f" {name} " in lines[-1]


def test_an_experiment_names_the_folder_and_hydra_run_dir_overrides_it(run_train: RunTrain, tmp_path: Path) -> None:
    assert run_train("experiment=walk", "max_iterations=1") == 0
    assert only_run(tmp_path).name.startswith("walk_")
    assert run_train("hydra.run.dir=here/mine", "max_iterations=1") == 0
    assert (tmp_path / "here" / "mine" / "nn" / "last.pth").is_file()


def test_two_runs_in_one_second_do_not_share_a_folder(
    run_train: RunTrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamp = "hydra.run.dir=runs/Fake_2026-01-01_00-00-00"
    from gymscale.scripts import run_folder

    first = run_folder.create(tmp_path / "runs" / "Fake", chosen_by_user=False)
    second = run_folder.create(tmp_path / "runs" / "Fake", chosen_by_user=False)
    assert (first.name, second.name) == ("Fake", "Fake_1")
    assert run_train(stamp, "max_iterations=1") == 0
    assert run_train(stamp, "max_iterations=2", "checkpoint=runs/Fake_2026-01-01_00-00-00/nn/last.pth") == 0
    assert [float(row["iteration"]) for row in metrics(tmp_path / "runs" / "Fake_2026-01-01_00-00-00")] == [1, 2]


def test_F1_two_iterations_and_a_resume_equal_four(run_train: RunTrain, tmp_path: Path) -> None:
    common = ("num_envs=8", "train.params.config.minibatch_size=16", "train.params.config.save_frequency=2")
    assert run_train(*common, "max_iterations=4", "hydra.run.dir=whole") == 0
    assert run_train(*common, "max_iterations=2", "hydra.run.dir=first") == 0
    assert run_train(*common, "max_iterations=4", "hydra.run.dir=second", "checkpoint=first/nn/last.pth") == 0
    whole, resumed = (torch.load(tmp_path / name / "nn" / "last.pth") for name in ("whole", "second"))
    for key in ("epoch", "frame", "lr", "reward_mean"):
        assert whole[key] == resumed[key], key
    for name, value in whole["model"].items():
        assert torch.equal(value, resumed["model"][name]), name
    first = torch.load(tmp_path / "first" / "nn" / "last.pth")
    assert first["run_id"] == resumed["run_id"]


@pytest.mark.parametrize(("fault", "code"), [("interrupt", 130), ("terminate", 143)])
def test_F10_a_signal_saves_and_sets_the_exit_code(
    fault: str, code: int, run_train: RunTrain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGINT)
    assert run_train("num_envs=8", f"task.env.fault={fault}", "max_iterations=50") == code
    folder = only_run(tmp_path)
    assert torch.load(folder / "nn" / "last.pth")["epoch"] == 3  # step 20 falls into the third iteration of 8 steps
    assert len(metrics(folder)) == 3
    assert f"stopped by {'SIGINT' if code == 130 else 'SIGTERM'}" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGINT) is before


def test_F10_B3_a_crash_sets_the_exit_code_and_says_where_the_run_stood(
    run_train: RunTrain, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_train("num_envs=8", "task.env.fault=crash") == 1
    folder = only_run(tmp_path)
    error = capfd.readouterr().err
    assert "RuntimeError: the simulator broke" in error
    assert "training stopped in iteration 3 (frame 128, 8 envs)" in error
    assert f"last checkpoint: {folder}/nn/last.pth" in error
    assert "native last words" in error
    assert torch.load(folder / "nn" / "last.pth")["epoch"] == 2


def test_F2_wandb_that_cannot_start_does_not_stop_the_run(
    run_train: RunTrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wandb = pytest.importorskip("wandb")

    def unreachable(**_: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(wandb, "init", unreachable)
    assert run_train("num_envs=8", "max_iterations=1", "wandb_activate=True") == 0
    assert "wandb is off: no network" in capsys.readouterr().err
    assert len(metrics(only_run(tmp_path))) == 1


def test_F8_wandb_gets_the_names_of_the_config_and_no_entity_by_default(
    run_train: RunTrain, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = pytest.importorskip("wandb")
    seen: dict[str, object] = {}
    monkeypatch.setattr(wandb, "init", lambda **options: seen.update(options))
    assert run_train("num_envs=8", "max_iterations=1", "wandb_activate=True", "wandb_tags=[a,b]") == 0
    assert (seen["entity"], seen["group"], seen["project"], seen["tags"]) == (None, None, "gymscale", ["a", "b"])


def test_play_takes_task_and_settings_from_the_checkpoint(
    run_train: RunTrain, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_train("num_envs=8", "max_iterations=1", "task.env.episodeLength=7", "hydra.run.dir=run") == 0
    capsys.readouterr()
    monkeypatch.setattr(play, "PLAYED_ENVS", 3)
    flags = ["--config-dir", str(Path(__file__).parent / "cfg")]
    assert play.main([*flags, "checkpoint=run/nn/last.pth", "num_episodes=5"]) == 0
    assert "5 episodes: reward " in (out := capsys.readouterr().out)
    assert "length 7.0" in out
    assert play.main([*flags, "checkpoint=run/nn/last.pth", "num_episodes=5", "task.env.episodeLength=4"]) == 0
    assert "length 4.0\nsteps 4.0000\n" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


def test_test_mode_plays_the_checkpoint_and_writes_nothing(
    run_train: RunTrain, run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run_train("test=True", f"checkpoint={run_folder}/nn/last.pth", "num_envs=4", "num_episodes=8") == 0
    assert "8 episodes: reward " in capsys.readouterr().out
    assert only_run(tmp_path) == run_folder
