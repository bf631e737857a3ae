"""A small training configuration that tests vary."""

from __future__ import annotations

from typing import Any

from ppo.config import TrainConfig

CONFIG: dict[str, Any] = {
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


def make_config(units: tuple[int, ...] = (64, 64), separate: bool = False, **overrides: Any) -> TrainConfig:
    network = {"separate": separate, "mlp": {"units": units, "activation": "elu"}}
    return TrainConfig.from_params({"network": network, "config": {**CONFIG, **overrides}})
