"""scaling=RULE on the command line."""

from __future__ import annotations

import pytest

from gymscale.scripts import config, scaled, train
from gymscale.scripts.config import UsageError


def settings(*overrides: str) -> tuple[int, int, float, int]:
    cfg = config.load(overrides)
    own = cfg.train.params.config
    return own.horizon_length, own.minibatch_size, own.learning_rate, own.mini_epochs


def test_by_default_nothing_changes() -> None:
    for num_envs in (1024, 65536):
        assert settings("task=Ant", f"num_envs={num_envs}") == (16, 32768, 3e-4, 4)
    assert scaled.describe(config.load(["task=Ant", "num_envs=65536"])) == []


def test_rules_start_from_the_published_number_of_environments() -> None:
    assert settings("task=Ant", "num_envs=65536", "scaling=fixed_count") == (16, 524288, 3e-4, 4)
    assert settings("task=Ant", "num_envs=16384", "scaling=sqrt_lr") == (16, 131072, pytest.approx(6e-4), 4)
    assert settings("task=Ant", "num_envs=8192", "scaling=constant_batch") == (8, 32768, 3e-4, 4)
    assert settings("task=Ant", "num_envs=4096", "scaling=linear_lr") == (16, 32768, 3e-4, 4)


def test_the_users_own_settings_are_the_base() -> None:
    overrides = ("task=Ant", "num_envs=1000", "scaling=linear_lr", "scaling.base_num_envs=10")
    own = ("train.params.config.learning_rate=1e-5", "train.params.config.minibatch_size=80")
    assert settings(*overrides, *own) == (16, 8000, pytest.approx(1e-3), 4)


def test_the_centre_of_mass_scales() -> None:
    cfg = config.load(["task=Ant", "num_envs=16384", "train.ewma.com=8", "scaling.com=linear"])
    assert cfg.train.ewma.com == 32.0
    assert cfg.scaling.base.com == 8.0


def test_the_central_critic_follows() -> None:
    overrides = ["task=ShadowHand", "train=ShadowHandOpenAI_FFPPO", "task.env.asymmetric_observations=True"]
    base = config.load([*overrides, "num_envs=16384"]).train.params.config
    own = config.load([*overrides, "num_envs=65536", "scaling=sqrt_lr"]).train.params.config
    before, after = base.central_value_config, own.central_value_config
    assert after.minibatch_size == 4 * before.minibatch_size
    assert after.learning_rate == pytest.approx(2 * before.learning_rate)


def test_before_and_after_are_printed_without_training(capfd: pytest.CaptureFixture[str]) -> None:
    assert train.main(["task=Ant", "num_envs=16384", "scaling=fixed_count", "--cfg", "job"]) == 0
    out = capfd.readouterr().out
    assert "minibatch_size: 131072" in out
    assert "# scaling=fixed_count:\n" in out
    assert "#   minibatch_size   32768 -> 131072\n" in out
    assert out.endswith("count iterations\n")


def test_mistakes_are_told_in_a_line() -> None:
    for override, message in {
        "scaling=sqr_lr": "unknown scaling rule 'sqr_lr'; did you mean 'sqrt_lr'",
        "scaling.rule=root": "scaling.rule: expected one of fixed_minibatch, ",
        "scaling.com=much": "scaling.com: expected none, linear or a factor, got 'much'",
        "scaling.base_num_envs=0": "scaling.base_num_envs must be a whole number of at least 1, or empty, got 0",
    }.items():
        with pytest.raises(UsageError, match=message):
            config.load(["task=Ant", override])
    with pytest.raises(UsageError, match=r"scaling\.base_num_envs is needed"):
        config.load(["task=Ant", "task.env.numEnvs=64", "scaling=sqrt_lr"])
