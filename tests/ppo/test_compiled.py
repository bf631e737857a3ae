"""torch.compile changes the speed and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ppo.compiled import compiled
from ppo.config import ConfigError, TrainConfig
from ppo.trainer import Trainer
from tests.ppo.envs import Pendulum
from tests.ppo.settings import CONFIG, make_config


def test_none_is_the_function_itself():
    assert compiled(torch.sin, "none") is torch.sin


@pytest.mark.parametrize(
    ("given", "mode"), [(True, "default"), (False, "none"), ("reduce-overhead", "reduce-overhead")]
)
def test_rl_games_switch_is_understood(given, mode):
    assert make_config(torch_compile=given).torch_compile == mode


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"torch_compile": "fast"}, "torch_compile: expected one of none, default, reduce-overhead, got 'fast'"),
        ({"torch_compile": "default", "cpu_update": "hand_written"}, "torch_compile needs cpu_update autograd"),
        ({"torch_compile": "reduce-overhead", "rnn": True}, "reduce-overhead is not for recurrent networks"),
    ],
)
def test_unusable_settings(settings: dict[str, Any], message: str):
    network: dict[str, Any] = {"mlp": {"units": [8]}}
    if settings.get("rnn"):
        network["rnn"] = {"name": "lstm", "units": 4}
    config = {**CONFIG, **{key: value for key, value in settings.items() if key != "rnn"}}
    with pytest.raises(ConfigError) as error:
        TrainConfig.from_params({"network": network, "config": config})
    assert message in str(error.value)


def compare(device: str, mode: str) -> None:
    """Policy and losses of a compiled and an eager trainer with equal weights, on the same rollout."""
    settings = {"horizon_length": 8, "minibatch_size": 64, "micro_batch_size": 64, "kl_reference": "behaviour"}
    eager = Trainer(Pendulum(32), make_config((16, 16), **settings), device, None, seed=3)
    fast = Trainer(Pendulum(32), make_config((16, 16), torch_compile=mode, **settings), device, None, seed=3)
    buffer = fast.collector.collect()
    for step in range(8):
        observed = {"obs": buffer.observations[:, step]}
        expected = eager.agent.evaluate(observed, eager.agent.initial_hidden(32))
        torch.testing.assert_close(buffer.means[:, step], expected.mean, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(buffer.values[:, step], expected.value, atol=1e-5, rtol=1e-5)
    gradients = []
    for trainer in (eager, fast):
        batch = buffer.batch(buffer.values, buffer.advantages, buffer.values + buffer.advantages, 0)
        minibatch = next(batch.split([64, 192]))
        statistics = trainer.update._accumulate_gradients(minibatch)
        gradients.append(torch.cat([statistics, *(g.flatten() for g in trainer.update.optimizer.gradients())]))
    torch.testing.assert_close(gradients[1], gradients[0], atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_compiled_gradients_and_actions_are_those_of_autograd():
    compare("cpu", "default")


@pytest.mark.gpu
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled_gradients_and_actions_are_those_of_autograd_on_a_gpu(mode: str):  # pragma: needs cuda
    compare("cuda:0", mode)
