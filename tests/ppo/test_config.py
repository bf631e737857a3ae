from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ppo.config import ConfigError, TrainConfig, minibatch_samples
from tests.ppo.settings import CONFIG, make_config


def isaacgymenvs_params() -> dict[str, Any]:
    """The Ant file of IsaacGymEnvs, in full."""
    return {
        "seed": 42,
        "algo": {"name": "a2c_continuous"},
        "model": {"name": "continuous_a2c_logstd"},
        "network": {
            "name": "actor_critic",
            "separate": False,
            "space": {
                "continuous": {
                    "mu_activation": "None",
                    "sigma_activation": "None",
                    "mu_init": {"name": "default"},
                    "sigma_init": {"name": "const_initializer", "val": 0},
                    "fixed_sigma": True,
                }
            },
            "mlp": {
                "units": [256, 128, 64],
                "activation": "elu",
                "d2rl": False,
                "initializer": {"name": "default"},
                "regularizer": {"name": "None"},
            },
        },
        "load_checkpoint": False,
        "load_path": "",
        "config": {
            "name": "Ant",
            "full_experiment_name": "Ant",
            "env_name": "rlgpu",
            "multi_gpu": False,
            "ppo": True,
            "mixed_precision": True,
            "normalize_input": True,
            "normalize_value": True,
            "value_bootstrap": True,
            "num_actors": 4096,
            "reward_shaper": {"scale_value": 0.01},
            "normalize_advantage": True,
            "gamma": 0.99,
            "tau": 0.95,
            "learning_rate": 3e-4,
            "lr_schedule": "adaptive",
            "schedule_type": "legacy",
            "kl_threshold": 0.008,
            "score_to_win": 20000,
            "max_epochs": 500,
            "save_best_after": 200,
            "save_frequency": 50,
            "grad_norm": 1.0,
            "entropy_coef": 0.0,
            "truncate_grads": False,
            "e_clip": 0.2,
            "horizon_length": 16,
            "minibatch_size": 32768,
            "mini_epochs": 4,
            "critic_coef": 2,
            "clip_value": True,
            "seq_len": 4,
            "bounds_loss_coef": 0.0001,
        },
    }


def test_reads_the_isaacgymenvs_tree():
    config = TrainConfig.from_params(isaacgymenvs_params())
    assert config.network.units == (256, 128, 64)
    assert config.network.separate is False
    assert config.network.sigma_init.val == 0.0
    assert config.reward_shaper.scale_value == 0.01
    assert (config.gamma, config.tau, config.critic_coef) == (0.99, 0.95, 2.0)
    assert (config.horizon_length, config.minibatch_size, config.mini_epochs) == (16, 32768, 4)
    assert (config.lr_schedule, config.schedule_type, config.truncate_grads) == ("adaptive", "legacy", False)
    assert config.mixed_precision
    assert not config.mixed_precision_cpu
    assert isinstance(config.score_to_win, float)


def test_defaults_follow_rl_games():
    config = make_config(lr_schedule=None)
    assert config.lr_schedule == "constant"
    assert (config.schedule_type, config.shuffle, config.kl_reference) == ("legacy", "none", "previous_visit")
    assert (config.min_lr, config.max_lr, config.games_to_track) == (1e-6, 1e-2, 100)
    assert config.clip_actions
    assert config.score_to_win == math.inf


def error_of(**overrides: Any) -> str:
    with pytest.raises(ConfigError) as error:
        make_config(**overrides)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_unknown_key_names_the_nearest():
    assert "unknown key 'gama' (did you mean 'gamma'?)" in error_of(gama=0.9)
    assert "unknown key 'scale' (did you mean 'scale_value'?)" in error_of(reward_shaper={"scale": 0.1})


def test_missing_keys_are_listed_with_unknown_ones():
    config = {k: v for k, v in CONFIG.items() if k != "horizon_length"} | {"horizon_lenght": 16}
    with pytest.raises(ConfigError, match="missing key 'horizon_length', unknown key 'horizon_lenght'"):
        TrainConfig.from_params({"network": {"mlp": {"units": [8]}}, "config": config})


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"gamma": "fast"}, "config.gamma: expected float, got 'fast'"),
        ({"gamma": float("nan")}, "config.gamma: expected float"),
        ({"horizon_length": 16.5}, "config.horizon_length: expected int"),
        ({"horizon_length": True}, "config.horizon_length: expected int"),
        ({"clip_value": 1}, "config.clip_value: expected bool"),
        ({"gamma": 1.5}, "gamma must be in"),
        ({"mini_epochs": 0}, "mini_epochs must be at least 1"),
        ({"minibatch_size": 0}, "minibatch_size must be at least 1"),
        ({"minibatch_size": None}, "minibatch_size (or minibatch_size_per_env) is missing"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"min_lr": 1e-2, "max_lr": 1e-3}, "min_lr 0.01 is above max_lr 0.001"),
        ({"schedule_type": "standart"}, "schedule_type: expected one of legacy, standard"),
        ({"kl_reference": "last"}, "kl_reference: expected one of previous_visit, behaviour"),
        ({"lr_schedule": "linear"}, "lr_schedule linear needs max_epochs or max_frames"),
    ],
)
def test_unusable_values(overrides, message):
    assert message in error_of(**overrides)


@pytest.mark.parametrize("mixture", ["adaptive+linear", ["adaptive", "linear"]])
def test_D5_mixed_rate_schedules_are_rejected(mixture):
    assert "lr_schedule: expected one of adaptive, linear, constant" in error_of(lr_schedule=mixture)


def test_D8_minibatch_size_wins_over_minibatch_size_per_env():
    assert minibatch_samples(make_config(minibatch_size=512, minibatch_size_per_env=4), 1000) == 512
    assert minibatch_samples(make_config(minibatch_size=None, minibatch_size_per_env=4), 1000) == 4000


def network_error(**changes: Any) -> str:
    tree = {"mlp": {"units": [8]}, **changes}
    with pytest.raises(ConfigError) as error:
        TrainConfig.from_params({"network": tree, "config": CONFIG})
    return str(error.value)


def test_unusable_networks():
    assert "units is missing" in network_error(mlp={})
    assert "units must all be at least 1" in network_error(mlp={"units": [8, 0]})
    assert "units: expected int" in network_error(mlp={"units": ["wide"]})
    assert "activation: expected one of elu" in network_error(mlp={"units": [8], "activation": "elo"})
    assert "d2rl is not supported" in network_error(mlp={"units": [8], "d2rl": True})
    assert "did you mean 'separate'" in network_error(seperate=True)
    assert "network.name must be actor_critic" in network_error(name="resnet")
    assert "initializer.name: expected one of" in network_error(mlp={"units": [8], "initializer": {"name": "xavier"}})


def test_other_algorithms_and_unknown_sections_are_rejected():
    params = {"algo": {"name": "sac"}, "network": {"mlp": {"units": [8]}}, "config": CONFIG}
    with pytest.raises(ConfigError, match="algo.name: expected a2c_continuous, got 'sac'"):
        TrainConfig.from_params(params)
    params["algo"] = {"name": "a2c_continuous"}
    config = TrainConfig.from_params(params, ewma=None, sapg={"num_blocks": ""})
    assert [getattr(config, name).enabled for name in ("ewma", "sapg", "capo")] == [False] * 3
    assert TrainConfig.from_params(params, ewma={"com": "3"}).ewma.com == 3.0
    with pytest.raises(ConfigError, match="train: unknown key 'ewm'"):
        TrainConfig.from_params(params, ewm={"com": 3})
    with pytest.raises(ConfigError, match="ewma: unknown key 'comm' .did you mean 'com'"):
        TrainConfig.from_params(params, ewma={"comm": 3})
    with pytest.raises(ConfigError, match="sapg: give num_blocks or block_size, not both"):
        TrainConfig.from_params(params, sapg={"num_blocks": 2, "block_size": 8})
    with pytest.raises(ConfigError, match="params.config is missing"):
        TrainConfig.from_params({"network": {"mlp": {"units": [8]}}})


def test_reading_settings_does_not_import_torch():
    code = "import sys, ppo.config; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2]).returncode == 0
