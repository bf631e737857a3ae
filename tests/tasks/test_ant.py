"""Ant: numbers of the specification (C3, C4, C5) and the step accounting (C16)."""

import math

import pytest
import torch

from tasks import locomotion
from tasks.ant import ant_observations, ant_reward_terms

DT = 0.0166
DEG = math.pi / 180
LOWER = torch.tensor([-40, 30, -40, -100, -40, -100, -40, 30]) * DEG
UPPER = torch.tensor([40, 100, 40, -30, 40, -30, 40, 100]) * DEG
ACTIONS = torch.tensor([[0.5, -0.5, 1.0, -1.0, 0.25, 0.0, -0.75, 0.1]])
DOF_POS = torch.tensor([[0.1, 0.8, -0.2, -0.9, 0.3, -1.7, 0.0, 0.55]])
DOF_VEL = torch.tensor([[1.0, -2.0, 3.0, -4.0, 0.5, 0.0, -1.5, 2.0]])
SENSORS = torch.arange(24.0).unsqueeze(0)
WEIGHTS = locomotion.Weights(0.5, 0.1, 0.5, 0.005, 0.05, 0.1, -2.0, 0.31)
PREVIOUS = torch.tensor([-998.03 / DT])


@pytest.fixture
def root(quat_rpy):
    state = torch.zeros(1, 13)
    state[0, :3] = torch.tensor([2.0, 1.0, 0.5])
    state[0, 3:7] = quat_rpy(0.1, -0.2, 0.3)
    state[0, 7:] = torch.tensor([1.5, 0.2, -0.1, 0.3, -0.4, 0.5])
    return state


@pytest.fixture
def observed(root):
    torso = locomotion.torso_features(root, DT)
    scale, offset = locomotion.unscale_coefficients(LOWER, UPPER)
    out = torch.zeros(1, 60)
    obs = ant_observations(root, torso, DOF_POS * scale + offset, DOF_VEL * 0.2, SENSORS * 0.1, ACTIONS, out)
    assert obs is out
    return obs, torso.potential


def close(actual, expected, atol=1e-5):
    assert torch.allclose(actual, torch.tensor(expected), atol=atol), actual


def test_C3_start_positions_and_reset_potential():
    close(
        locomotion.start_positions(LOWER, UPPER),
        (0.0, 0.523599, 0.0, -0.523599, 0.0, -0.523599, 0.0, 0.523599),
    )
    start = torch.tensor([[0.0, 0.0, 0.44, 0.0, 0.0, 0.0, 1.0] + [0.0] * 6])
    assert locomotion.torso_features(start, DT).potential.item() == pytest.approx(-60240.963855, abs=0.004)


def test_C3_set_up(make_task, fake_gym):
    task = make_task("Ant", numEnvs=4)
    assert (task.num_obs, task.num_acts, task.max_episode_length) == (60, 8, 1000)
    assert task.force_scale.tolist() == [15.0] * 8
    assert fake_gym.sensors == ["front_left_foot", "front_right_foot", "left_back_foot", "right_back_foot"]
    assert fake_gym.start == pytest.approx([0.0, 0.0, 0.44, 0.0, 0.0, 0.0, 1.0])
    assert fake_gym.options.angular_damping == 0.0
    assert fake_gym.options.default_dof_drive_mode == 0
    assert fake_gym.per_row == 2
    assert [actors for env in fake_gym.envs for actors in env] == [(i, 1) for i in range(4)]
    assert (fake_gym.plane.static_friction, fake_gym.plane.dynamic_friction, fake_gym.plane.restitution) == (1, 1, 0)
    assert fake_gym.calls["colour"] == 0
    assert task.signature()["dof_names"] == [f"{part}_{leg}" for leg in range(1, 5) for part in ("hip", "ankle")]


def test_C4_observation(observed):
    obs, potential = observed
    close(
        obs[0, :12],
        (0.5, 1.442499, -0.290332, -0.367293, 0.264371, -0.422857, 0.501298, 0.3, 0.1, -0.300501, 0.975170, 0.936003),
    )
    close(obs[0, 12:20], (0.143239, -0.547525, -0.286479, 0.383823, 0.429718, -0.925795, 0.0, -0.956781))
    close(obs[0, 20:28], (0.2, -0.4, 0.6, -0.8, 0.1, 0.0, -0.3, 0.4))
    close(obs[0, 28:52], (SENSORS[0] * 0.1).tolist())
    close(obs[0, 52:60], ACTIONS[0].tolist())
    assert potential.item() == pytest.approx(-60120.512108, abs=0.004)


def test_C5_reward(observed):
    obs, potential = observed
    terms = ant_reward_terms(obs, potential, PREVIOUS, ACTIONS, WEIGHTS)
    assert sum(terms.values()).item() == pytest.approx(2.761873, abs=0.01)
    assert terms["progress"].item() == pytest.approx(1.777048, abs=0.01)
    expected = {
        "alive": 0.5, "upright": 0.1, "heading": 0.5, "action_cost": -0.005 * 3.135, "energy_cost": -0.05 * 1.99,
        "joint_limit_cost": 0.0, "death": 0.0,
    }  # fmt: skip
    for name, value in expected.items():
        assert terms[name].item() == pytest.approx(value, abs=1e-6), name


def test_C5_partly_turned_not_upright_and_one_joint_at_its_limit(observed):
    obs, potential = observed
    obs[0, 11], obs[0, 10], obs[0, 12] = 0.4, 0.9, 0.995
    terms = ant_reward_terms(obs, potential, PREVIOUS, ACTIONS, WEIGHTS)
    assert sum(terms.values()).item() == pytest.approx(2.311873, abs=0.01)
    assert terms["heading"].item() == pytest.approx(0.25)
    assert terms["upright"].item() == 0.0
    assert terms["joint_limit_cost"].item() == pytest.approx(-0.1)


def test_C5_fallen(observed):
    obs, potential = observed
    obs[0, 0] = 0.30
    assert sum(ant_reward_terms(obs, potential, PREVIOUS, ACTIONS, WEIGHTS).values()).item() == -2.0


def test_C5_heading_is_negative_when_running_away():
    close(locomotion.heading_reward(torch.tensor([-1.0, 0.0, 0.8, 1.0]), 0.5), (-0.625, 0.0, 0.5, 0.5))


def test_C5_Q13_lower_limits_cost_nothing(observed):
    obs, potential = observed
    obs[0, 12:20] = -0.999
    assert ant_reward_terms(obs, potential, PREVIOUS, ACTIONS, WEIGHTS)["joint_limit_cost"].item() == 0.0


def test_C4_C5_through_the_task(make_task, fake_gym, root):
    task = make_task("Ant", numEnvs=2)
    task.step(torch.zeros(2, 8))
    fake_gym.root[0] = root[0]
    fake_gym.dof[0, :, 0], fake_gym.dof[0, :, 1] = DOF_POS[0], DOF_VEL[0]
    fake_gym.sensor.view(2, 24)[0] = SENSORS[0]
    task.potentials[:] = PREVIOUS
    obs, reward, done, extras = task.step(ACTIONS.repeat(2, 1) * torch.tensor([[1.0], [9.0]]))
    close(obs["obs"][0, :4], (0.5, 1.442499, -0.290332, -0.367293))
    assert reward[0].item() == pytest.approx(2.761873, abs=0.01)
    assert done.tolist() == [0, 0]
    assert extras["true_objective"][0].item() == 1.5
    close(fake_gym.forces[0], (ACTIONS[0] * 15).tolist())
    assert fake_gym.forces[1].abs().max() == 15.0
    fake_gym.root[0, 2] = 0.3
    _, reward, done, extras = task.step(ACTIONS.repeat(2, 1))
    assert reward[0].item() == -2.0
    assert done.tolist() == [1, 0]
    assert extras["time_outs"].tolist() == [False, False]


def test_C16_first_step_resets_all_without_progress(make_task, fake_gym):
    torch.manual_seed(0)
    task = make_task("Ant", numEnvs=2000)
    fake_gym.root[:, 0] = 3.0  # a stray position that the first step must forget
    _, reward, done, _ = task.step(torch.zeros(2000, 8))
    assert task.progress_buf.eq(0).all()
    assert done.eq(0).all()
    tenths = torch.round(reward * 10)
    assert torch.allclose(reward, tenths / 10, atol=1e-4)
    assert set(tenths.tolist()) == {9.0, 10.0, 11.0}
    assert reward.mean().item() == pytest.approx(0.996946, abs=0.006)
    low, high = task.lower_limits, task.upper_limits
    position, velocity = fake_gym.dof.unbind(-1)
    assert ((position >= low) & (position <= high)).all()
    assert position[:, 0].abs().max() == pytest.approx(0.2, abs=0.001)
    assert velocity.abs().max() == pytest.approx(0.1, abs=0.001)
    assert fake_gym.root[:, 0].eq(0).all()


def test_C16_time_outs_are_1000_steps_apart(make_task):
    task = make_task("Ant", numEnvs=1)
    action = torch.zeros(1, 8)
    done_at = []
    for step in range(1, 2002):
        _, _, done, extras = task.step(action)
        assert extras["time_outs"].tolist() == done.bool().tolist()
        if done.any():
            done_at.append(step)
    assert done_at == [1000, 2000]


def test_C10_position_is_the_same_after_100_resets(make_task, fake_gym):
    task = make_task("Ant", numEnvs=2)
    for _ in range(100):
        task.reset_buf[1] = 1
        task.step(torch.zeros(2, 8))
        assert fake_gym.root[1, :3].tolist() == pytest.approx([0.0, 0.0, 0.44])


def test_painted_when_something_is_rendered(make_task, fake_gym, load_cfg):
    from tasks.ant import Ant

    cfg = load_cfg("task", "Ant")
    cfg["env"].update(numEnvs=2, enableCameraSensors=True)
    Ant(cfg, "cpu", "cpu", graphics_device_id=0)
    assert fake_gym.calls["colour"] == 18


def test_a_joint_without_motor_is_named(make_task, fake_gym, monkeypatch):
    monkeypatch.setattr(type(fake_gym), "get_asset_actuator_joint_name", lambda self, asset, i: "hip_1")
    with pytest.raises(ValueError, match="no motor on: ankle_1, hip_2"):
        make_task("Ant", numEnvs=1)


def test_limits_written_the_wrong_way_round_are_swapped():
    lower, upper = locomotion.joint_limits([{"lower": 2.0, "upper": 1.0}, {"lower": -1.0, "upper": 3.0}], "cpu")
    assert lower.tolist() == [1.0, -1.0]
    assert upper.tolist() == [2.0, 3.0]
