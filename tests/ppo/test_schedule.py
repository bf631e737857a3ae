from __future__ import annotations

import pytest
import torch

from ppo import schedule


def adapted(rate: float, kl: float) -> float:
    return schedule.adapt_to_kl(torch.tensor(rate), torch.tensor(kl), 0.008, 1e-6, 1e-2).item()


def test_rate_falls_above_twice_and_rises_below_half_the_threshold():
    assert adapted(3e-4, 0.0161) == pytest.approx(2e-4)
    assert adapted(3e-4, 0.0039) == pytest.approx(4.5e-4)
    assert adapted(3e-4, 0.016) == pytest.approx(3e-4)
    assert adapted(3e-4, 0.004) == pytest.approx(3e-4)
    assert adapted(3e-4, -0.01) == pytest.approx(4.5e-4)  # rl_games' estimator can be negative


def test_D10_rate_stays_within_its_bounds():
    assert adapted(9e-3, 0.0) == pytest.approx(1e-2)
    assert adapted(1e-2, 0.0) == pytest.approx(1e-2)
    assert adapted(1.2e-6, 1.0) == pytest.approx(1e-6)
    assert adapted(1e-6, 1.0) == pytest.approx(1e-6)


@pytest.mark.parametrize(("kl", "rate"), [("nan", 3e-4), ("inf", 2e-4), ("-inf", 3e-4)])
def test_D5_a_non_finite_kl_never_raises_the_rate(kl, rate):
    assert adapted(3e-4, float(kl)) == pytest.approx(rate)


def test_linear_decay_reaches_the_end_and_stays():
    assert schedule.linear_decay(3e-4, 1e-6, 0.0) == pytest.approx(3e-4)
    assert schedule.linear_decay(3e-4, 1e-6, 0.5) == pytest.approx(1.505e-4)
    assert schedule.linear_decay(3e-4, 1e-6, 1.0) == pytest.approx(1e-6)
    assert schedule.linear_decay(3e-4, 1e-6, 1.5) == pytest.approx(1e-6)
