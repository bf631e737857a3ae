"""Turning an object in a hand: numbers of the specification (H1 to H11, A1 to A3, F1, R1) on plain tensors."""

import math

import pytest
import torch

from tasks import in_hand
from tasks.base.rotation import relative_rotation, rotation_angle, turn_x_then

IDENTITY = [0.0, 0.0, 0.0, 1.0]
BASE = {
    "distRewardScale": -10.0, "rotRewardScale": 1.0, "rotEps": 0.1, "actionPenaltyScale": -0.0002,
    "reachGoalBonus": 250, "fallDistance": 0.24, "fallPenalty": 0.0, "successTolerance": 0.1,
    "maxConsecutiveSuccesses": 0, "objectType": "block",
}  # fmt: skip
OPENAI = {"successTolerance": 0.4, "fallPenalty": -50.0, "maxConsecutiveSuccesses": 50}


def turn(axis, angle):
    norm = math.sqrt(sum(v * v for v in axis))
    return [math.sin(angle / 2) * v / norm for v in axis] + [math.cos(angle / 2)]


def multiply(a, b):
    (ax, ay, az, aw), (bx, by, bz, bw) = a, b
    return [
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    ]


X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)


def judge(place, quat, goal_place, actions, goal_quat=IDENTITY, progress=10, successes=0, limit=600, **changes):
    """Reward and flags of one env, in float64."""

    def row(values):
        return torch.tensor([values], dtype=torch.float64)

    distance = torch.linalg.vector_norm(row(place) - row(goal_place), dim=1)
    angle = rotation_angle(relative_rotation(row(quat), row(goal_quat)))
    outcome = in_hand.judge(
        distance, angle, row(actions), row(successes)[0:1], torch.tensor([progress]), limit,
        in_hand.read_goal({**BASE, **changes}),
    )  # fmt: skip
    expired = (outcome.progress >= limit - 1).item() and outcome.ended.item()
    reward = sum(outcome.terms.values()).item()
    flags = (outcome.reached.item(), outcome.ended.item(), expired, outcome.progress.item())
    return reward, distance.item(), angle.item(), flags


def test_H1_nothing_happens():
    reward, distance, angle, flags = judge([0.01, -0.38, 0.55], turn(Z, 0.5), [0, -0.39, 0.56], [0.1] * 20)
    assert (distance, angle) == (pytest.approx(0.017321, abs=1e-6), pytest.approx(0.5))
    assert reward == pytest.approx(1.493422, abs=1e-6)
    assert flags == (False, False, False, 10)


def test_H2_a_goal_is_reached():
    reward, _, _, flags = judge([0, -0.39, 0.55], turn(X, 0.05), [0, -0.39, 0.56], [-0.5] * 20, successes=3)
    assert reward == pytest.approx(256.565667, abs=1e-6)
    assert flags == (True, False, False, 10)


def test_H3_the_object_falls():
    quat, actions = turn(Y, 1.0), [1.0] * 20
    reward, distance, _, flags = judge(
        [0.1, -0.39, 0.30], quat, [0, -0.39, 0.56], actions, progress=20, limit=160, **OPENAI
    )
    assert distance == pytest.approx(0.278568, abs=1e-6)
    assert reward == pytest.approx(-51.880587, abs=1e-6)
    assert flags == (False, True, False, 20)


def test_H4_time_is_over():
    reward, _, _, flags = judge(
        [0, -0.37, 0.56], turn(Y, 1.0), [0, -0.39, 0.56], [0.0] * 20, progress=159, limit=160, **OPENAI
    )
    assert reward == pytest.approx(-24.290909, abs=1e-6)
    assert flags == (False, True, True, 159)


def test_H5_the_last_success_ends_the_episode_without_a_time_out():
    quat, place = turn((1, 1, 0), 0.39), [0, -0.39, 0.56]
    reward, _, _, flags = judge(place, quat, place, [0.0] * 20, progress=159, successes=49, limit=160, **OPENAI)
    assert reward == pytest.approx(252.040816, abs=1e-6)
    assert flags == (True, True, False, 0)


def test_H6_a_pen_has_twice_the_tolerance():
    place = [0, -0.39, 0.48]
    reward, _, _, flags = judge(place, turn(X, 0.15), place, [0.0] * 20, objectType="pen")
    assert reward == pytest.approx(254.0, abs=1e-6)
    assert flags == (True, False, False, 10)
    assert judge(place, turn(X, 0.15), place, [0.0] * 20)[3][0] is False


def test_H7_general_rotations():
    quat, goal = multiply(turn(X, 0.7), turn(Y, -0.3)), multiply(turn(X, -0.4), turn(Y, 1.1))
    actions = torch.linspace(-1, 1, 16, dtype=torch.float64).tolist()
    reward, _, angle, _ = judge([0.02, -0.2, 0.5], quat, [0, -0.2, 0.52], actions, goal_quat=goal)
    assert angle == pytest.approx(1.721031, abs=1e-6)
    assert reward == pytest.approx(0.265088, abs=1e-6)


def test_H8_average_of_successes():
    successes, ended = torch.tensor([2.0, 0, 5, 1]), torch.tensor([True, False, True, False])
    assert in_hand.average_successes(torch.tensor(1.0), successes, ended, 0.1).item() == pytest.approx(1.25)
    assert in_hand.average_successes(torch.tensor(1.0), successes, ended & False, 0.1).item() == 1.0


def close(actual, expected, atol=1e-6):
    assert torch.allclose(actual, torch.tensor(expected), atol=atol), actual


def test_H9_random_rotation():
    close(in_hand.random_rotation(torch.tensor([[0.3, -0.7]]))[0], (0.206107, -0.793893, -0.404508, 0.404508))
    quats = in_hand.random_rotation(torch.rand(1000, 2) * 2 - 1)
    close(torch.linalg.vector_norm(quats, dim=1), [1.0] * 1000)


def test_H10_pen_rotation():
    close(in_hand.random_pen_rotation(torch.tensor([0.25]))[0], (0.677315, -0.280553, 0.260263, 0.628330))


def test_H11_relative_rotation():
    quat, goal = torch.tensor([turn(Z, 0.5)]), torch.tensor([turn(X, 0.3)])
    close(relative_rotation(quat, goal)[0], (-0.144792, -0.036972, 0.244626, 0.958033))


@pytest.mark.parametrize("seed", range(3))
def test_rotation_helpers_agree_with_the_hamilton_product(seed):
    generator = torch.Generator().manual_seed(seed)
    a, b = (torch.nn.functional.normalize(torch.randn(4, generator=generator), dim=0) for _ in range(2))
    inverse = (b * torch.tensor([-1, -1, -1, 1])).tolist()
    close(relative_rotation(a[None], b[None])[0], multiply(a.tolist(), inverse))
    first, second = (torch.rand(2, generator=generator) * 4 - 2).tolist()
    angles = (torch.tensor([first]), torch.tensor([second]))
    close(turn_x_then("y", *angles)[0], multiply(turn(X, first), turn(Y, second)))
    close(turn_x_then("z", *angles)[0], multiply(turn(X, first), turn(Z, second)))
    angle = 2 * math.asin(min(1.0, torch.linalg.vector_norm(a[:3]).item()))
    assert rotation_angle(a[None]).item() == pytest.approx(angle, abs=1e-5)


def test_A1_absolute_targets_with_moving_average():
    lower, upper, action = torch.tensor([-0.489]), torch.tensor([0.14]), torch.tensor([[0.5]])
    close(in_hand.absolute_targets(action, torch.zeros(1, 1), lower, upper, 1.0), [[-0.01725]])
    close(in_hand.absolute_targets(action, torch.zeros(1, 1), lower, upper, 0.3), [[-0.005175]])
    close(in_hand.absolute_targets(action, torch.full((1, 1), 0.1), lower, upper, 0.3), [[0.064825]])
    far = in_hand.absolute_targets(action, torch.full((1, 1), 9.0), lower, upper, 0.3)
    close(far, [[0.14]])


def test_A2_relative_targets():
    limits = torch.tensor([0.0]), torch.tensor([1.571])
    for previous, action, expected in ((0.2, 0.5, 0.3667), (1.4, 1.0, 1.571), (0.1, -1.0, 0.0)):
        targets = in_hand.relative_targets(
            torch.tensor([[action]]), torch.tensor([[previous]]), *limits, reach=20 * 0.01667
        )
        close(targets, [[expected]])


def test_F1_push_probabilities():
    close(in_hand.push_probabilities(torch.tensor([0.0, 0.5, 1.0]), (0.001, 0.1)), [0.1, 0.01, 0.001])


def test_R1_start_positions():
    positions = in_hand.start_positions(torch.tensor([[0.5]]), torch.tensor([0.0]), torch.tensor([1.571]), 0.2)
    close(positions, [[0.235650]])
    limits = torch.tensor([0.279244444444]), torch.tensor([1.57075])
    ends = in_hand.start_positions(torch.tensor([[-1.0], [1.0]]), *limits, 0.2)
    close(ends, [[0.055849], [0.314150]])


def test_without_a_largest_number_of_successes_the_time_runs_on_and_costs_nothing():
    place = [0, -0.39, 0.56]
    reward, _, _, flags = judge(place, IDENTITY, place, [0.0] * 20, progress=599, limit=600, fallPenalty=-50.0)
    assert reward == pytest.approx(260.0)
    assert flags == (True, True, True, 599)
