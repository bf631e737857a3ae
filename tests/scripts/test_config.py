"""Composition of the config: automatic values, precedence, resolvers, warnings."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from gymscale.scripts import arguments, config, devices

CONFIG_DIR = str(Path(__file__).parent / "cfg")


@pytest.mark.parametrize(("count", "num_envs", "pipeline"), [(0, 1024, "cpu"), (1, 4096, "gpu")])
def test_automatic_values_follow_the_machine(
    count: int, num_envs: int, pipeline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "cuda_reason", lambda: (count, ""))
    cfg = config.load(["task=Fake"], CONFIG_DIR)
    device = "cuda:0" if count else "cpu"
    assert (cfg.num_envs, cfg.task.env.numEnvs, cfg.pipeline) == (num_envs, num_envs, pipeline)
    assert (cfg.sim_device, cfg.rl_device) == (device, device)
    assert (cfg.task.sim.use_gpu_pipeline, cfg.task.sim.physx.use_gpu) == (bool(count), bool(count))


def test_an_empty_num_envs_means_the_tasks_own() -> None:
    assert config.load(["task=Fake", "num_envs=''"], CONFIG_DIR).num_envs == 8


def test_E4_an_explicit_value_wins_over_the_automatic_one() -> None:
    cfg = config.load(["task=Fake", "task.env.numEnvs=33"], CONFIG_DIR)
    assert (cfg.num_envs, cfg.train.params.config.num_actors) == (33, 33)


def test_E5_composing_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config.load(["task=Fake"], CONFIG_DIR)


def test_a_plus_adds_a_key() -> None:
    assert config.load(["task=Fake", "+task.env.extra=3"], CONFIG_DIR).task.env.extra == 3


def test_plain_config_has_no_hydra_node_and_no_interpolation() -> None:
    plain = config.to_plain(config.load(["task=Fake"], CONFIG_DIR))
    assert "hydra" not in plain
    assert "${" not in str(plain)
    assert plain["task_name"] == "Fake"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("${eq:GPU,gpu}", True),
        ("${eq:cpu,gpu}", False),
        ("${contains:cuda,CUDA:1}", True),
        ("${contains:cuda,cpu}", False),
        ("${if:true,a,b}", "a"),
        ("${if:false,a,b}", "b"),
        ("${resolve_default:5,''}", 5),
        ("${resolve_default:5,7}", 7),
    ],
)
def test_resolvers(expression: str, value: object) -> None:
    config.register_resolvers()
    assert OmegaConf.create({"x": expression}).x == value


@pytest.mark.parametrize("task", ["Ant", "Cartpole"])
def test_shipped_tasks_compose(task: str) -> None:
    cfg = config.load([f"task={task}", "num_envs=64", "max_iterations=7"])
    assert (cfg.task_name, cfg.task.env.numEnvs, cfg.train.params.config.max_epochs) == (task, 64, 7)


def test_flags_and_overrides_may_be_mixed() -> None:
    argv = ["task=Ant", "-m", "num_envs=1,2", "--config-dir", "x", "seed=3"]
    flags = arguments.parse_flags(argv)
    assert (flags.multirun, flags.config_dir, flags.overrides) == (True, "x", ["task=Ant", "num_envs=1,2", "seed=3"])
    assert arguments.flags_first(argv, flags.overrides) == [
        "-m", "--config-dir", "x", "task=Ant", "num_envs=1,2", "seed=3",
    ]  # fmt: skip
