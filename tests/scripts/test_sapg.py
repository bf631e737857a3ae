"""SAPG on the command line: blocks are settled and checked before anything is built; shipped configs."""

from __future__ import annotations

import pytest

from gymscale.scripts import config
from gymscale.scripts.config import UsageError
from ppo.config import TrainConfig, minibatch_samples


def settings(*overrides: str) -> TrainConfig:
    return TrainConfig.from_tree(config.to_plain(config.load(overrides).train))


def test_a_block_size_is_saved_as_the_number_of_blocks_for_play_with_other_num_envs() -> None:
    cfg = config.load(["task=Cartpole", "num_envs=96", "train.sapg.block_size=16"])
    assert (cfg.train.sapg.num_blocks, cfg.train.sapg.block_size) == (6, "")
    played = config.load(["task=Cartpole", "num_envs=1"], saved=config.to_plain(cfg))
    assert TrainConfig.from_tree(config.to_plain(played.train)).sapg.count(1) == 6


def test_a_block_size_that_does_not_divide_is_one_line() -> None:
    with pytest.raises(UsageError) as error:
        config.load(["task=Cartpole", "num_envs=96", "train.sapg.block_size=17"])
    assert str(error.value) == (
        "train.sapg.block_size 17 does not divide num_envs 96: take num_envs 85 or 102, block_size 16 or 24, "
        "or num_blocks, which need not divide num_envs"
    )


@pytest.mark.parametrize(("task", "scale"), [("Ant", 0.005), ("ShadowHand", 0.005), ("AllegroHand", 0.0)])
def test_shipped_configs_are_the_published_ones(task: str, scale: float) -> None:
    train = settings(f"task={task}", f"train={task}PPO_SAPG", "num_envs=24576")
    plain = settings(f"task={task}", "num_envs=24576")
    assert (train.sapg.num_blocks, train.sapg.entropy_scale, train.sapg.conditioning_size) == (6, scale, 32)
    assert minibatch_samples(train, 24_576) == 98_304
    assert (train.horizon_length, train.network, train.max_epochs) == (
        plain.horizon_length,
        plain.network,
        plain.max_epochs,
    )
    variant = settings(f"task={task}", f"train={task}PPO_SAPG", "train.params.config.minibatch_size=16384")
    assert minibatch_samples(variant, 24_576) == 16_384
