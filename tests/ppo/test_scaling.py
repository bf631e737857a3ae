"""Rules that carry settings from one number of environments to another."""

import math

import pytest

from ppo import scaling
from ppo.reading import ConfigError
from ppo.scaling import Settings

ANT = Settings(num_envs=4096, horizon_length=16, minibatch_size=32768, learning_rate=3e-4, mini_epochs=4)
COUNTS = (10, 64, 256, 1000, 2048, 4096, 8192, 65536, 1048576)

# rule, N -> (T, M, learning rate as a multiple of the base's, E); from 4096 x 16, M 32768
EXPECTED = {
    "fixed_minibatch": {n: (16, 32768, 1.0, 4) for n in COUNTS},
    "fixed_count": {10: (16, 80, 1.0, 4), 256: (16, 2048, 1.0, 4), 1048576: (16, 8388608, 1.0, 4)},
    "sqrt_lr": {256: (16, 2048, 0.25, 4), 16384: (16, 131072, 2.0, 4), 1048576: (16, 8388608, 16.0, 4)},
    "linear_lr": {256: (16, 2048, 0.0625, 4), 8192: (16, 65536, 2.0, 4), 1048576: (16, 8388608, 256.0, 4)},
    "constant_batch": {256: (256, 32768, 1.0, 4), 8192: (8, 32768, 1.0, 4), 65536: (8, 32768, 1.0, 4)},
    "ml_agents": {4096: (40, 32768, 1.0, 4), 8192: (40, 65536, math.sqrt(2.0), 2), 65536: (40, 524288, 2.0, 2)},
}


@pytest.mark.parametrize(("rule", "num_envs"), [(rule, n) for rule, rows in EXPECTED.items() for n in rows])
def test_each_rule_gives_these_settings(rule, num_envs):
    scaled = scaling.scale(ANT, num_envs, rule)
    horizon, minibatch, factor, epochs = EXPECTED[rule][num_envs]
    assert (scaled.num_envs, scaled.horizon_length, scaled.minibatch_size) == (num_envs, horizon, minibatch)
    assert scaled.learning_rate == pytest.approx(3e-4 * factor, rel=1e-12)
    assert scaled.mini_epochs == epochs


def test_constant_batch_is_the_isaac_gym_papers_sweep():
    base = Settings(256, 512, 4096, 1e-3, 5)
    pairs = [(n, scaling.constant_batch(base, n).horizon_length) for n in (256, 512, 1024, 2048, 4096, 8192, 16384)]
    assert pairs == [(256, 512), (512, 256), (1024, 128), (2048, 64), (4096, 32), (8192, 16), (16384, 8)]


def test_the_ml_agents_example_from_10_to_1000_agents():
    base = Settings(num_envs=10, horizon_length=1000, minibatch_size=2048, learning_rate=3e-4, mini_epochs=3)
    rooted = scaling.scale(base, 1000, "sqrt_lr")
    assert rooted.minibatch_size == 204_800
    assert rooted.learning_rate == pytest.approx(3e-3)
    assert any("times 10 is aggressive" in note for note in scaling.explain(base, rooted))
    advised = scaling.scale(base, 1000, "ml_agents")
    assert advised.minibatch_size == 204_800
    assert 5 * advised.minibatch_size == advised.batch == 1_024_000
    assert advised.learning_rate == pytest.approx(6e-4)
    assert advised.mini_epochs == 2


@pytest.mark.parametrize("rule", scaling.RULES)
@pytest.mark.parametrize("base", [ANT, Settings(10, 1000, 2048, 3e-4, 3), Settings(7, 1, 1, 1e-2, 1)])
def test_any_number_of_environments_gives_usable_settings(rule, base):
    for num_envs in (1, *COUNTS):
        scaled = scaling.scale(base, num_envs, rule)
        assert min(scaled.horizon_length, scaled.minibatch_size, scaled.mini_epochs, scaled.minibatches) >= 1
        assert scaled.learning_rate > 0
    assert scaling.scale(base, base.num_envs, rule).learning_rate == base.learning_rate


def test_up_and_down_again_is_where_one_came_from():
    for rule in ("fixed_minibatch", "fixed_count", "sqrt_lr", "linear_lr"):
        there = scaling.scale(ANT, 65536, rule)
        back = scaling.scale(there, 4096, rule)
        assert (back.minibatch_size, back.horizon_length) == (32768, 16)
        assert back.learning_rate == pytest.approx(3e-4)


@pytest.mark.parametrize(("com", "expected"), [("none", 8.0), ("linear", 128.0), (2, 16.0), ("0.5", 4.0)])
def test_the_centre_of_mass_scales_as_asked(com, expected):
    base = Settings(4096, 16, 32768, 3e-4, 4, com=8.0)
    assert scaling.scale(base, 65536, "fixed_minibatch", com).com == expected
    assert scaling.scale(ANT, 65536, "fixed_minibatch", "linear").com is None


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ConfigError, match="rule: expected one of fixed_minibatch, .*, got 'sqrt'"):
        scaling.scale(ANT, 8, "sqrt")
    with pytest.raises(ConfigError, match="num_envs must be at least 1, got 0"):
        scaling.scale(ANT, 0, "fixed_count")
    with pytest.raises(ConfigError, match="com: expected none, linear or a factor, got 'much'"):
        scaling.scale(ANT, 8, "fixed_count", "much")
    with pytest.raises(ConfigError, match="a factor needs train.ewma.com"):
        scaling.scale(ANT, 8, "fixed_count", 3)
    with pytest.raises(ConfigError, match="learning_rate must be above 0"):
        Settings(1, 1, 1, 0.0, 1)


def test_consequences_are_told():
    grown = scaling.scale(ANT, 65536, "fixed_minibatch")
    assert scaling.table(ANT, grown)[:5] == [
        ("num_envs", "4096", "65536"),
        ("horizon_length", "16", "16"),
        ("batch", "65536", "1048576"),
        ("minibatch_size", "32768", "32768"),
        ("minibatches", "2", "32"),
    ]
    steps, iterations = scaling.explain(ANT, grown)
    assert steps.startswith("128 optimiser steps an iteration instead of 8")
    assert iterations.startswith("an iteration is 1048576 env steps instead of 65536")
    (short, _) = scaling.explain(ANT, scaling.scale(ANT, 65536, "constant_batch"))[:2]
    assert short.startswith("each environment is followed for 8 steps instead of 16")
    assert scaling.explain(ANT, ANT) == []
