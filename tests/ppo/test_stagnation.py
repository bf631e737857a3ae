from __future__ import annotations

import math
import random

import pytest
import torch

from ppo import checkpoint, stagnation
from ppo.stagnation import StagnationDetector
from ppo.trainer import Trainer
from tests.ppo.envs import Pendulum
from tests.ppo.settings import make_config

W = 40
LARGE, SMALL = 0.3, 0.03
CANCELLING, STRAIGHT = 0.1, 0.6
"""net displacement / path length; 40 independent steps would have 0.16"""


def rise(t: int, length: float = 60.0) -> float:
    """A learning curve from 0 to 100."""
    return 100.0 * (1.0 - math.exp(-t / length))


def feed(detector: StagnationDetector, rows) -> list[tuple[int, str]]:
    """Feed (return, policy step, straightness); returns (iteration, message)."""
    said = []
    for t, (value, step, straightness) in enumerate(rows):
        metrics = {stagnation.RETURN: value, stagnation.STEP: step, stagnation.STRAIGHTNESS: straightness}
        if (message := detector.check(metrics)) is not None:
            said.append((t, message))
    return said


def noise(seed: int, scale: float, correlation: float = 0.0):
    """Autoregressive Gaussian noise of the given standard deviation, for ever."""
    source, value = random.Random(seed), 0.0
    while True:
        value = correlation * value + math.sqrt(1.0 - correlation**2) * source.gauss(0.0, scale)
        yield value


def thrashing(seed: int, length: int = 400, correlation: float = 0.0):
    wobble = noise(seed, 5.0, correlation)
    return [(rise(min(t, 60)) + next(wobble), LARGE, CANCELLING) for t in range(length)]


@pytest.mark.parametrize("seed", range(20))
def test_a_plateau_with_thrashing_is_called_once(seed: int) -> None:
    detector = StagnationDetector(W, {})
    said = feed(detector, thrashing(seed))
    assert len(said) == 1
    assert detector.stagnant
    iteration, message = said[0]
    assert 2 * W < iteration < 250  # the plateau begins at 60
    assert message.count("\n") == 0
    for words in ("stagnation: for 40 iterations the return is flat at 6", "0.3 standard deviations", "10%"):
        assert words in message
    for advice in ("num_envs", "train.ewma.com", "mini_epochs", "e_clip"):
        assert advice in message


@pytest.mark.parametrize("seed", range(10))
def test_a_plateau_whose_returns_are_correlated_is_called_too(seed: int) -> None:
    assert len(feed(StagnationDetector(W, {}), thrashing(seed, 800, correlation=0.8))) >= 1


@pytest.mark.parametrize("seed", range(20))
def test_noisy_improvement_is_not_called(seed: int) -> None:
    """The return rises by one standard deviation of its noise a window, steps being large and cancelling."""
    wobble = noise(seed, 5.0)
    rows = [(5.0 * t / W + next(wobble), LARGE, CANCELLING) for t in range(1000)]
    assert feed(StagnationDetector(W, {}), rows) == []


@pytest.mark.parametrize("seed", range(5))
def test_improvement_in_a_smooth_mean_is_not_called(seed: int) -> None:
    """As reward_mean over many episodes is: noise correlated over ten iterations, two deviations a window."""
    wobble = noise(seed, 5.0, correlation=0.9)
    rows = [(10.0 * t / W + next(wobble), LARGE, CANCELLING) for t in range(600)]
    assert feed(StagnationDetector(W, {}), rows) == []


@pytest.mark.parametrize("seed", range(10))
def test_a_plateau_with_small_steps_is_not_called(seed: int) -> None:
    rows = [(value, LARGE if t < 80 else SMALL, way) for t, (value, _, way) in enumerate(thrashing(seed))]
    assert feed(StagnationDetector(W, {}), rows) == []


@pytest.mark.parametrize("seed", range(10))
def test_steps_that_go_somewhere_are_not_called(seed: int) -> None:
    rows = [(value, step, STRAIGHT) for value, step, _ in thrashing(seed)]
    assert feed(StagnationDetector(W, {}), rows) == []


@pytest.mark.parametrize("seed", range(10))
def test_a_solved_task_is_not_called(seed: int) -> None:
    assert feed(StagnationDetector(W, {}, solved=50.0), thrashing(seed)) == []
    # Every episode reaches the top, so that there is next to no noise.
    wobble = noise(seed, 0.1)
    rows = [(rise(t, 20.0) + next(wobble), LARGE, CANCELLING) for t in range(400)]
    assert feed(StagnationDetector(W, {}), rows) == []


def test_a_run_that_has_just_begun_is_not_called() -> None:
    wobble = noise(0, 1.0)
    rows = [(next(wobble), LARGE, CANCELLING) for _ in range(2 * W)]
    assert feed(StagnationDetector(W, {}), rows) == []


def test_iterations_without_a_return_do_not_count() -> None:
    detector = StagnationDetector(W, {})
    assert feed(detector, [(math.nan, LARGE, CANCELLING)] * 500) == []
    rows = thrashing(3)
    gaps = [row if t % 3 else (math.nan, *row[1:]) for t, row in enumerate(rows)]
    assert len(feed(detector, gaps)) == 1
    assert detector.check({}) is None


@pytest.mark.parametrize("seed", range(5))
def test_whether_a_change_of_settings_helped_is_said_once(seed: int) -> None:
    first = StagnationDetector(W, {"num_envs": 64, "train.ewma.com": None})
    assert len(feed(first, thrashing(seed))) == 1
    second = StagnationDetector(W, {"num_envs": 64, "train.ewma.com": 200.0})
    second.load_state_dict(first.state_dict())
    wobble = noise(seed + 100, 5.0)
    said = feed(second, [(100.0 + next(wobble), LARGE, STRAIGHT) for _ in range(300)])
    assert [message.split(":")[0] for _, message in said] == ["train.ewma.com none -> 200 helped"]
    assert not second.stagnant


@pytest.mark.parametrize("seed", range(5))
def test_a_change_that_does_not_help_is_said_too(seed: int) -> None:
    first = StagnationDetector(W, {"num_envs": 64})
    rows = thrashing(seed)
    feed(first, rows[:-100])
    second = StagnationDetector(W, {"num_envs": 128})
    second.load_state_dict(first.state_dict())
    wobble = noise(seed + 50, 5.0)
    said = feed(second, [(rise(60) + next(wobble), LARGE, CANCELLING) for _ in range(300)])
    assert [t for t, _ in said] == [79]
    assert said[0][1].startswith("num_envs 64 -> 128 has not helped in 80 iterations: return 6")
    assert second.stagnant


def test_a_change_before_anything_was_called_is_not_commented() -> None:
    first = StagnationDetector(W, {"num_envs": 64})
    feed(first, [(float(t), LARGE, CANCELLING) for t in range(100)])
    second = StagnationDetector(W, {"num_envs": 128})
    second.load_state_dict(first.state_dict())
    assert feed(second, [(100.0 + t, LARGE, CANCELLING) for t in range(300)]) == []


@pytest.mark.parametrize("cut", [50, 99, 130, 300])
def test_a_resumed_detector_says_the_same(cut: int) -> None:
    rows = thrashing(1)
    whole = feed(StagnationDetector(W, {"a": 1.0}), rows)
    first, second = StagnationDetector(W, {"a": 1.0}), StagnationDetector(W, {"a": 1.0})
    said = feed(first, rows[:cut])
    second.load_state_dict(first.state_dict())
    assert said + [(t + cut, message) for t, message in feed(second, rows[cut:])] == whole


def test_state_goes_through_a_checkpoint(tmp_path) -> None:
    config = make_config((8,), horizon_length=8, minibatch_size=64, mini_epochs=1, max_epochs=20)
    trainer = Trainer(Pendulum(32), config, "cpu", tmp_path)
    trainer.train()
    saved = checkpoint.read(tmp_path / "nn" / "last.pth")["stagnation"]
    assert saved == trainer._stagnation.state_dict()
    assert saved["settings"]["num_envs"] == 32
    assert len(saved["rows"]) > 0
    other = Trainer(Pendulum(16), config, "cpu", None)
    other.restore(tmp_path / "nn" / "last.pth")
    assert other._stagnation.state_dict()["rows"] == []  # other settings: a new history


def test_a_message_reaches_the_log(caplog) -> None:
    config = make_config((8,), horizon_length=8, minibatch_size=64, mini_epochs=1, max_epochs=1)
    trainer = Trainer(Pendulum(32), config, "cpu", None)
    trainer._stagnation.check = lambda metrics: f"return {metrics['outer/policy_step']:.0e}"
    trainer.train()
    assert any(record.message.startswith("return ") for record in caplog.records)


# ---- statistics


def test_trend_of_known_series() -> None:
    # Mann-Kendall of 1..10: S = 45, variance 10 * 9 * 25 / 18 = 125.
    assert stagnation.trend([float(i) for i in range(10)]) == pytest.approx(45 / math.sqrt(125))
    assert stagnation.trend([float(-i) for i in range(10)]) == pytest.approx(-45 / math.sqrt(125))
    assert stagnation.trend([3.0] * 10) == 0.0
    # Two pairs of ties: 1 1 2 2 has S = 4, variance (4 * 3 * 13 - 2 * 2 * 9) / 18; no autocorrelation is left.
    assert stagnation.trend([1.0, 1.0, 2.0, 2.0]) == pytest.approx(4 / math.sqrt(120 / 18), rel=0.5)


def test_trend_of_flat_noise_has_the_chances_it_states() -> None:
    """White noise: about one in ten is above 1.28; correlated noise hardly more, thanks to the correction."""
    for correlation, most in ((0.0, 0.16), (0.7, 0.2)):
        above = 0
        for seed in range(300):
            source = noise(seed, 1.0, correlation)
            above += stagnation.trend([next(source) for _ in range(50)]) > stagnation.IMPROVING
        assert 0.04 < above / 300 < most


def test_scatter_is_the_deviation_around_the_line() -> None:
    source = noise(0, 2.0)
    values = [3.0 * t + next(source) for t in range(2000)]
    assert stagnation.scatter(values) == pytest.approx(2.0, rel=0.35)
    assert stagnation.scatter([2.0 * t for t in range(100)]) == pytest.approx(0.0, abs=1e-9)


def test_the_detector_draws_no_random_numbers() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    feed(StagnationDetector(W, {}), thrashing(0, 150))
    assert torch.equal(before, torch.get_rng_state())
