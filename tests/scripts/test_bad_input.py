"""Wrong input gives one line that helps, exit code 2, and nothing is created or imported for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gymscale.scripts import config, devices, play, train

CONFIG_DIR = str(Path(__file__).parent / "cfg")

TABLE = [
    (["task=Fakee"], "unknown task 'Fakee'; did you mean 'Fake'?"),
    (["task=Antt"], "unknown task 'Antt'; did you mean 'Ant'?"),
    (["train=FakPPO"], "unknown train config 'FakPPO'; did you mean 'FakePPO'?"),
    (["num_envs=0"], "num_envs must be a whole number of at least 1 or auto, got '0'"),
    (["num_envs=-1"], "num_envs must be a whole number of at least 1 or auto, got '-1'"),
    (["num_envs=abc"], "num_envs must be a whole number of at least 1 or auto, got 'abc'"),
    (["num_envs=inf"], "num_envs must be a whole number of at least 1 or auto, got 'inf'"),
    (["num_envs=4096.5"], "num_envs must be a whole number of at least 1 or auto, got '4096.5'"),
    (["num_envs=True"], "num_envs must be a whole number of at least 1 or auto, got 'True'"),
    (["task.env.numEnvs=0"], "task.env.numEnvs must be a whole number of at least 1, got '0'"),
    (["num_envs=8", "task.env.numEnvs=9"], "num_envs=8 and task.env.numEnvs=9 contradict each other"),
    (["max_iterations=0"], "max_iterations must be a whole number of at least 1, got '0'"),
    (["seed=-2"], "seed must be a whole number of at least -1, got '-2'"),
    (["num_env=3"], "unknown config key 'num_env'; did you mean 'num_envs'?"),
    (["numEnvs=3"], "unknown config key 'numEnvs'; did you mean 'num_envs'?"),
    (["resume=True"], "unknown config key 'resume'"),
    (["learning_rate=1e-3"], "did you mean 'train.params.config.learning_rate'?"),
    (["train.params.config.gama=0.9"], "did you mean 'train.params.config.gamma'?"),
    (["train.params.config.gamma=high"], "train.params.config.gamma must be a number, got 'high'"),
    (["train.params.config.gamma=1.5"], "gamma must be in [0, 1], got 1.5"),
    (["+train.params.config.e_clipp=0.1"], "unknown key 'e_clipp' (did you mean 'e_clip'?)"),
    (["task.env=3"], "task.env is a group of keys"),
    (["test=maybe"], "test must be True or False, got 'maybe'"),
    (["test=True"], "test=True needs checkpoint=PATH"),
    (["~seed"], "'seed' is a root key of the config and cannot be removed"),
    (["num_envs=3,4"], "'num_envs=3,4' lists several values: add -m"),
    (["num_envs"], "write key=value"),
    (["sim_device=gpu"], "sim_device must be auto, cpu or cuda:N, got 'gpu'"),
    (["pipeline=gpu", "sim_device=cpu"], "pipeline=gpu needs physics on CUDA"),
    (["physics_engine=flex"], "physics_engine must be one of physx, got 'flex'"),
    (["multi_gpu=True"], "multi_gpu=True is for several processes: start them with torchrun --nproc_per_node=K"),
    (["solver_type=2"], "solver_type must be one of 0, 1, got '2'"),
    (["experiment=a/b"], "experiment names a folder"),
    (["checkpoint=missing.pth"], "checkpoint 'missing.pth': no such file"),
    (["checkpoint=."], "checkpoint '.' is a folder"),
    (["task.env.fault=asset"], "assets/broken.xml:7: a link with shapes has mass 0"),
    (["-m", "num_envs=8,abc"], "num_envs must be a whole number of at least 1 or auto, got 'abc'"),
    (["-m", "task=Fake,Fakee"], "unknown task 'Fakee'"),
    (["--config-dir", "nowhere"], "--config-dir: no folder 'nowhere'"),
    (["--fast"], "unrecognized arguments: --fast"),
    (["--config-name", "other"], "--config-name is not supported"),
]


@pytest.mark.parametrize(
    ("argv", "message"), TABLE, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_bad_input_is_one_line_and_exit_code_2(
    argv: list[str],
    message: str,
    run_train: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_train(*argv) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_A10_cuda_asked_for_and_absent_says_how_to_switch(
    run_train: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "cuda_device_count", lambda: 0)
    assert run_train("sim_device=cuda:0") == 2
    error = capsys.readouterr().err
    assert "sim_device=cuda:0: this machine shows no CUDA device" in error
    assert "sim_device=cpu rl_device=cpu" in error


def test_E1_a_device_that_is_not_there_lists_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "cuda_reason", lambda: (2, ""))
    assert devices.resolve("cuda:1", "auto") == ("cuda:1", "cuda:1")
    assert devices.resolve("auto", "cpu") == ("cuda:0", "cpu")
    assert devices.resolve("cuda", "cuda:1") == ("cuda:0", "cuda:1")
    with pytest.raises(devices.DeviceError, match="no such device; this machine has cuda:0, cuda:1"):
        devices.resolve("cuda:2", "auto")


def test_a_driver_without_a_cuda_build_of_torch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "cuda_device_count", lambda: 1)
    monkeypatch.setattr(devices, "torch_cuda_version", lambda: None)
    assert devices.resolve("auto", "auto") == ("cpu", "cpu")
    with pytest.raises(devices.DeviceError, match="the installed torch is a CPU build"):
        devices.resolve("cuda:0", "auto")


def test_a_truncated_checkpoint_is_refused(
    run_train: Callable[..., int], run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut.pth"
    cut.write_bytes((run_folder / "nn" / "last.pth").read_bytes()[:500])
    capsys.readouterr()
    assert run_train(f"checkpoint={cut}") == 2
    assert "cut.pth: truncated or not a checkpoint" in capsys.readouterr().err
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_B5_a_checkpoint_with_other_dof_names_is_refused(
    run_train: Callable[..., int], run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run_train(f"checkpoint={run_folder}/nn/last.pth", "task.env.dofNames=[hinge]") == 2
    error = capsys.readouterr().err
    assert "the checkpoint is of another task: dof_names: checkpoint ['slide'], environment ['hinge']" in error
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_a_checkpoint_of_another_network_is_refused_before_a_folder_exists(
    run_train: Callable[..., int], run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run_train(f"checkpoint={run_folder}/nn/last.pth", "train.params.network.mlp.units=[16]") == 2
    assert "does not fit these settings" in capsys.readouterr().err
    assert len(list((tmp_path / "runs").iterdir())) == 1


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (("</link>", "</lnk>"), "broken.urdf:15: not well-formed XML"),
        (('<mass value="7.2"/>', '<mass value="heavy"/>'), "broken.urdf:9:"),
    ],
)
def test_an_asset_file_that_does_not_parse_is_named_with_its_line(
    damage: tuple[str, str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (config.ASSET_DIR / "cartpole" / "cartpole.urdf").read_text()
    (tmp_path / "broken.urdf").write_text(text.replace(*damage, 1))
    asset = ["task.env.asset.assetRoot=.", "task.env.asset.assetFileName=broken.urdf"]
    assert train.main(["task=Cartpole", "num_envs=2", *asset]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["broken.urdf"]


def test_an_actor_with_a_zero_mass_link_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (config.ASSET_DIR / "cartpole" / "cartpole.urdf").read_text()
    (tmp_path / "light.urdf").write_text(text.replace('<mass value="1"/>', '<mass value="0"/>', 1))
    asset = ["task.env.asset.assetRoot=.", "task.env.asset.assetFileName=light.urdf"]
    assert train.main(["task=Cartpole", "num_envs=2", *asset]) == 2
    error = capsys.readouterr().err
    assert "light.urdf:19: mass 0 of 'cart'" in error
    assert [path.name for path in tmp_path.iterdir()] == ["light.urdf"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("task.reference_quirks=[Q3]", "reference_quirks: 'Q3' cannot be chosen; did you mean Q30?"),
        ("task.sim.up_axis=x", "sim.up_axis is 'x'; allowed are 'z' and 'y'"),
        ("task.env.controlFrequencyInv=0", "env.controlFrequencyInv is 0; at least 1 is needed"),
        ("+task.sim.physx.solver=1", "sim.physx.solver is not a PhysX parameter"),
        ("task.task.randomization_params.actions.distribution=normal", "allowed are uniform, gaussian"),
        ("~task.task.randomization_params.actor_params", "task.randomization_params.actor_params is missing"),
    ],
)
def test_a_setting_that_the_task_cannot_use_is_one_line(
    override: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert train.main(["task=Ant", "num_envs=2", "task.task.randomize=True", override]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_given_as_checkpoint_names_the_file_inside(
    run_train: Callable[..., int], run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run_train(f"checkpoint={run_folder}") == 2
    assert f"did you mean '{run_folder}/nn/last.pth'?" in capsys.readouterr().err


def test_play_without_a_checkpoint_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert play.main(["num_episodes=3"]) == 2
    assert "play.py needs checkpoint=PATH" in capsys.readouterr().err


def test_checks_import_neither_torch_nor_physx() -> None:
    code = (
        "import sys; from gymscale.scripts import train; rc = train.main(['task=Antt'])\n"
        "heavy = {'torch', 'ovphysx', 'ovstage', 'pxr', 'warp', 'scipy'} & set(sys.modules)\n"
        "assert rc == 2 and not heavy, (rc, heavy)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True)


def test_did_you_mean_ignores_case_and_underscores() -> None:
    assert config.did_you_mean("NumEnvs", ["num_envs", "seed"]) == "; did you mean 'num_envs'?"
    assert config.did_you_mean("zzz", ["num_envs", "seed"]) == ""


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["task=Fake"], "torchrun started 2 processes: add multi_gpu=True"),
        (["-m", "task=Fake", "multi_gpu=True"], "a sweep (-m) starts its own processes: run it without torchrun"),
        (["task=Fake", "multi_gpu=True", "test=True", f"checkpoint={__file__}"], "test=True plays in one process"),
    ],
)
def test_under_torchrun(
    argv: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (("RANK", "1"), ("LOCAL_RANK", "1"), ("WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    assert train.main([*argv, "--config-dir", CONFIG_DIR]) == 2
    assert message in capsys.readouterr().err


def test_every_process_takes_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("RANK", "1"), ("LOCAL_RANK", "1"), ("WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(devices, "cuda_reason", lambda: (2, ""))
    cfg = config.load(["task=Fake", "multi_gpu=True"], CONFIG_DIR)
    assert (cfg.sim_device, cfg.rl_device) == ("cuda:1", "cuda:1")
    monkeypatch.setattr(devices, "cuda_reason", lambda: (1, ""))
    with pytest.raises(config.UsageError, match="multi_gpu=cuda:1: no such device; this machine has cuda:0"):
        config.load(["task=Fake", "multi_gpu=True"], CONFIG_DIR)
