from __future__ import annotations

import math
import os
from collections import OrderedDict

import pytest
import torch

from ppo import checkpoint
from ppo.checkpoint import CheckpointError
from ppo.trainer import Trainer
from tests.ppo.envs import Pendulum
from tests.ppo.settings import make_config


@pytest.fixture
def trainer(tmp_path) -> Trainer:
    config = make_config((8,), max_epochs=1, mini_epochs=1, horizon_length=4)
    return Trainer(Pendulum(4), config, "cpu", tmp_path, full_config={"task": {"name": "Pendulum"}})


def one_line(error: pytest.ExceptionInfo) -> str:
    assert "\n" not in str(error.value)
    return str(error.value)


def test_write_and_read_plain_content(tmp_path):
    content = {"epoch": 3, "weights": OrderedDict(a=torch.arange(3)), "nested": [1.5, None, "x", (True, b"y")]}
    checkpoint.write(tmp_path / "nn" / "last.pth", content)
    read = checkpoint.read(tmp_path / "nn" / "last.pth")
    assert read["epoch"] == 3
    assert torch.equal(read["weights"]["a"], torch.arange(3))
    assert read["nested"] == [1.5, None, "x", (True, b"y")]
    assert [path.name for path in (tmp_path / "nn").iterdir()] == ["last.pth"]


def test_content_that_could_not_be_read_back_is_refused(tmp_path):
    with pytest.raises(CheckpointError) as error:
        checkpoint.write(tmp_path / "last.pth", {"env_state": {"path": [tmp_path]}})
    assert "env_state.path[0]: PosixPath" in one_line(error)
    assert not list(tmp_path.iterdir())


def test_missing_file(tmp_path):
    with pytest.raises(CheckpointError) as error:
        checkpoint.read(tmp_path / "nothing.pth")
    assert "no such checkpoint file" in one_line(error)


@pytest.mark.parametrize("size", [0, 10, 1000, -1])
def test_truncated_file(trainer, tmp_path, size):
    trainer.train()
    path = tmp_path / "nn" / "last.pth"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(CheckpointError) as error:
        checkpoint.read(path)
    assert "truncated or not a checkpoint" in one_line(error)


@pytest.mark.parametrize("content", [b"hello", b"PK\x03\x04" + bytes(200), os.urandom(4096)])
def test_file_that_is_no_checkpoint(tmp_path, content):
    (tmp_path / "last.pth").write_bytes(content)
    with pytest.raises(CheckpointError) as error:
        checkpoint.read(tmp_path / "last.pth")
    assert "truncated or not a checkpoint" in one_line(error)


@pytest.mark.parametrize("content", [{"model": {}}, [1, 2], {"format": "gymscale-ppo-99"}])
def test_checkpoint_of_another_format(tmp_path, content):
    torch.save(content, tmp_path / "last.pth")
    with pytest.raises(CheckpointError) as error:
        checkpoint.read(tmp_path / "last.pth")
    assert "expected format 'gymscale-ppo-1'" in one_line(error)


def test_signature_of_another_task_names_the_difference():
    saved = {"task": "Ant", "num_observations": 60, "dof_names": ["hip_1", "ankle_1"]}
    checkpoint.check_signature(saved, dict(saved))
    with pytest.raises(CheckpointError) as error:
        checkpoint.check_signature(saved, {**saved, "task": "Cartpole", "dof_names": ["slider"]})
    message = one_line(error)
    assert "task: checkpoint 'Ant', environment 'Cartpole'" in message
    assert "dof_names" in message
    assert "num_observations" not in message


def test_restoring_another_tasks_checkpoint_changes_nothing(trainer, tmp_path):
    class Other(Pendulum):
        def signature(self):
            return {**super().signature(), "task": "Other"}

    trainer.train()
    other = Trainer(Other(4), make_config((8,)), "cpu", None)
    before = [p.clone() for p in other.agent.parameters()]
    with pytest.raises(CheckpointError, match="another task"):
        other.restore(tmp_path / "nn" / "last.pth")
    assert all(torch.equal(a, b) for a, b in zip(before, other.agent.parameters(), strict=True))


def test_restoring_another_network_is_one_line(trainer, tmp_path):
    trainer.train()
    with pytest.raises(CheckpointError) as error:
        Trainer(Pendulum(4), make_config((16,)), "cpu", None).restore(tmp_path / "nn" / "last.pth")
    assert "does not fit these settings" in one_line(error)


def test_checkpoint_holds_what_the_format_promises(trainer, tmp_path):
    trainer.train()
    content = torch.load(tmp_path / "nn" / "last.pth", weights_only=True)
    assert content["format"] == checkpoint.FORMAT
    assert (content["epoch"], content["frame"], content["collector"]["num_envs"]) == (1, 16, 4)
    assert content["config"] == {"task": {"name": "Pendulum"}}
    assert content["env_signature"]["dof_names"] == ["hinge"]
    assert content["run_id"] == trainer.run_id
    assert {"model", "optimizer", "lr", "rng", "env_state", "collector"} <= set(content)
    assert {"obs_normalizer.mean", "value_normalizer.count", "network.log_std"} <= set(content["model"])


def test_F14_a_nan_model_never_overwrites_the_last_good_one(trainer, tmp_path, caplog):
    trainer.train()
    path = tmp_path / "nn" / "last.pth"
    good = path.read_bytes()
    with torch.no_grad():
        trainer.agent.network.mean.weight[0, 0] = math.nan
    assert not trainer.save(path.absolute())
    assert path.read_bytes() == good
    assert "non-finite" in caplog.text


def test_F14_keep_last_leaves_the_newest(tmp_path):
    config = make_config((8,), max_epochs=12, mini_epochs=1, horizon_length=2, save_frequency=1, keep_last=3)
    Trainer(Pendulum(4), config, "cpu", tmp_path).train()
    assert sorted(p.name for p in (tmp_path / "nn").iterdir()) == ["ep_10.pth", "ep_11.pth", "ep_12.pth", "last.pth"]


def test_a_full_disk_does_not_stop_training(trainer, tmp_path, monkeypatch, caplog):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", refuse)
    assert trainer.train().epochs == 1
    assert "No space left on device" in caplog.text
    assert not list((tmp_path / "nn").iterdir())


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "last.pth"
    checkpoint.write(path, {"epoch": 1})

    def half(content, file):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(CheckpointError, match="cannot be written"):
        checkpoint.write(path, {"epoch": 2})
    assert checkpoint.read(path)["epoch"] == 1
    assert [p.name for p in tmp_path.iterdir()] == ["last.pth"]
