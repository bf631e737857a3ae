from __future__ import annotations

import torch

from ppo.config import TrainConfig
from ppo.trainer import Trainer
from tests.ppo.envs import Pendulum


def make_config(**overrides: object) -> TrainConfig:
    config = {
        "learning_rate": 3e-4,
        "horizon_length": 16,
        "mini_epochs": 4,
        "minibatch_size": 2048,
        "lr_schedule": "adaptive",
        "kl_threshold": 0.008,
        "truncate_grads": True,
        "bounds_loss_coef": 1e-4,
        "reward_shaper": {"scale_value": 0.1},
    }
    network = {"mlp": {"units": [64, 64], "activation": "elu"}}
    return TrainConfig.from_params({"network": network, "config": {**config, **overrides}})


def test_pendulum_is_learned():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    trainer = Trainer(Pendulum(256), make_config(max_epochs=110), "cpu", None, seed=1)
    result = trainer.train()
    torch.set_num_threads(threads)
    assert result.stop_reason == "max_epochs"
    assert result.frames == 110 * 256 * 16
    assert result.reward_mean > -22.0  # a random policy gets about -60
