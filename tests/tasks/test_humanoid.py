"""Humanoid: numbers of the specification (C6), efforts by name (Q18) and step accounting (C16)."""

import math

import pytest
import torch

from tasks import locomotion
from tasks.humanoid import humanoid_observations, humanoid_reward_terms, wrapped

DT = 0.0166
EFFORTS = torch.tensor([67.5] * 3 + [45, 45, 135, 90, 22.5, 22.5] * 2 + [67.5, 67.5, 45] * 2)
WEIGHTS = locomotion.Weights(0.5, 0.1, 2.0, 0.01, 0.05, 0.25, -1.0, 0.8)
PREVIOUS = torch.tensor([-997.04 / DT])
ACTIONS = torch.linspace(1, -1, 21).unsqueeze(0)
DOF_VEL = torch.linspace(-5, 5, 21).unsqueeze(0)
DOF_FORCE = torch.linspace(-40, 40, 21).unsqueeze(0)
SENSORS = (torch.arange(12.0) * 10).unsqueeze(0)


@pytest.fixture
def root(quat_rpy):
    state = torch.zeros(1, 13)
    state[0, :3] = torch.tensor([3.0, -2.0, 1.3])
    state[0, 3:7] = quat_rpy(-0.05, 0.1, -0.4)
    state[0, 7:] = torch.tensor([2.0, -0.5, 0.1, 0.2, 0.4, -0.6])
    return state


@pytest.fixture
def joints():
    """Normalised joint positions."""
    positions = torch.linspace(-0.9, 0.9, 21).unsqueeze(0)
    positions[0, 0], positions[0, 5] = 0.999, -0.99
    return positions


@pytest.fixture
def observed(root, joints):
    torso = locomotion.torso_features(root, DT, 0.25)
    out = torch.zeros(1, 108)
    obs = humanoid_observations(root, torso, joints, DOF_VEL * 0.1, DOF_FORCE * 0.01, SENSORS * 0.01, ACTIONS, out)
    return obs, torso.potential


def terms_of(obs, potential):
    return humanoid_reward_terms(obs, potential, PREVIOUS, ACTIONS, EFFORTS / 135, WEIGHTS)


def test_C6_observation(observed):
    obs, _ = observed
    expected = (
        1.3,
        2.016672,
        0.302772,
        0.318374,
        0.022051,
        0.118862,
        -0.142779,
        -0.4,
        -0.05,
        0.398696,
        0.993761,
        0.915680,
    )
    assert torch.allclose(obs[0, :12], torch.tensor(expected), atol=1e-5)
    picked = obs[0, [33, 54, 76, 86, 87]]
    assert torch.allclose(picked, torch.tensor([-0.5, -0.4, 0.1, 1.1, 1.0]), atol=1e-6)
    assert obs[0, 12].item() == pytest.approx(0.999)


def test_C6_reward(observed):
    terms = terms_of(*observed)
    assert sum(terms.values()).item() == pytest.approx(4.480669, abs=0.01)
    assert terms["progress"].item() == pytest.approx(2.288794, abs=0.01)
    assert terms["action_cost"].item() == pytest.approx(-0.01 * 7.7)
    assert terms["energy_cost"].item() == pytest.approx(-0.05 * 1.747500)
    assert terms["joint_limit_cost"].item() == pytest.approx(-0.243750, abs=1e-5)


def test_C6_fallen(observed):
    obs, potential = observed
    obs[0, 0] = 0.79
    assert sum(terms_of(obs, potential).values()).item() == -1.0


def test_angles_are_wrapped():
    assert torch.allclose(
        wrapped(torch.tensor([3.5, -3.5, 7.0])), torch.tensor([-2.783185, 2.783185, 0.716815]), atol=1e-5
    )


def test_C6_set_up(make_task, fake_gym):
    task = make_task("Humanoid", numEnvs=3)
    assert (task.num_obs, task.num_acts, task.max_episode_length) == (108, 21, 1000)
    assert fake_gym.sensors == ["right_foot", "left_foot"]
    assert fake_gym.start == pytest.approx([0.0, 0.0, 1.34, 0.0, 0.0, 0.0, 1.0])
    assert (fake_gym.options.angular_damping, fake_gym.options.max_angular_velocity) == (pytest.approx(0.01), 100.0)
    assert [actors for env in fake_gym.envs for actors in env] == [(i, 0) for i in range(3)]
    assert fake_gym.calls["enable_actor_dof_force_sensors"] == 3
    assert task.start_dof_pos.eq(0).all()


def test_Q18_efforts_follow_the_joint_names(make_task):
    """The stand-in lists its motors in reverse."""
    task = make_task("Humanoid", numEnvs=1)
    assert torch.equal(task.efforts, EFFORTS)
    assert torch.allclose(task.effort_ratio, EFFORTS / 135)


def test_C6_through_the_task(make_task, fake_gym, root, joints):
    task = make_task("Humanoid", numEnvs=1)
    task.step(torch.zeros(1, 21))
    fake_gym.root[:] = root
    fake_gym.dof[..., 0] = 0.5 * (joints + 1) * (task.upper_limits - task.lower_limits) + task.lower_limits
    fake_gym.dof[..., 1] = DOF_VEL
    fake_gym.dof_force[:] = DOF_FORCE
    fake_gym.sensor.view(1, 12)[:] = SENSORS
    task.potentials[:] = PREVIOUS
    obs, reward, done, extras = task.step(ACTIONS)
    assert reward.item() == pytest.approx(4.480669, abs=0.01)
    assert obs["obs"][0, 54].item() == pytest.approx(-0.4)
    assert done.item() == 0
    assert torch.allclose(fake_gym.forces, ACTIONS * EFFORTS)
    fake_gym.root[:, 2] = 0.79
    _, reward, done, _ = task.step(ACTIONS)
    assert (reward.item(), done.item()) == (-1.0, 1)


def test_C16_first_reward(make_task):
    task = make_task("Humanoid", numEnvs=500)
    _, reward, _, _ = task.step(torch.zeros(500, 21))
    assert reward.max().item() == pytest.approx(2.6, abs=1e-4)
    assert 2.266 < reward.min().item() < 2.4
    assert reward.gt(2.6 - 1e-4).float().mean().item() == pytest.approx(
        (0.5 + 0.5 * math.radians(0.3) / 0.2) ** 2, abs=0.1
    )


def test_an_asset_without_the_sensor_body_is_an_error(make_task, fake_gym, monkeypatch):
    monkeypatch.setattr(type(fake_gym), "find_asset_rigid_body_index", lambda *args: -1)
    with pytest.raises(ValueError, match=r"humanoid/humanoid\.xml has no body right_foot"):
        make_task("Humanoid", numEnvs=1)
