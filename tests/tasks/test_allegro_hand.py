"""AllegroHand on the stand-in for the simulator: scene, drives, observations, and what the variants change."""

import math

import pytest
import torch

from isaacgym import gymapi

LOWER = [-0.558488888889, -0.279244444444, -0.279244444444, -0.279244444444] * 3
LOWER += [0.279244444444, -0.331602777778, -0.279244444444, -0.279244444444]
UPPER = [0.558488888889, 1.727825, 1.727825, 1.727825] * 3 + [1.57075, 1.15188333333, 1.727825, 1.76273055556]


def close(actual, expected, atol=1e-5):
    expected = torch.as_tensor(expected, dtype=torch.float32)
    assert torch.allclose(actual, expected, atol=atol), actual


@pytest.fixture
def make(make_task):
    def build(name="AllegroHand", num_envs=2, **env):
        torch.manual_seed(0)
        return make_task(name, numEnvs=num_envs, **env)

    return build


@pytest.mark.parametrize(("kind", "size"), [("full_no_vel", 50), ("full", 72), ("full_state", 88)])
def test_sizes(make, kind, size):
    task = make(observationType=kind, asymmetric_observations=True)
    assert (task.num_obs, task.num_states, task.num_acts) == (size, 88, 16)
    obs = task.step(torch.zeros(2, 16))[0]
    assert (obs["obs"].shape, obs["states"].shape) == ((2, size), (2, 88))


def test_P1_scene(make, fake_gym):
    task = make()
    # Half a turn about y, then 0.47 about x: (0, 1, 0, 0) x (sin, 0, 0, cos) = (0, cos, -sin, 0); then 0.25 about z.
    sin, cos = math.sin(0.235 * math.pi), math.cos(0.235 * math.pi)
    sin_z, cos_z = math.sin(0.125 * math.pi), math.cos(0.125 * math.pi)
    expected = [cos * sin_z, cos * cos_z, -sin * cos_z, sin * sin_z]
    assert fake_gym.actors[0].start[3:] == pytest.approx(expected, abs=1e-6)
    assert fake_gym.actors[1].start == pytest.approx([0, -0.2, 0.56, 0, 0, 0, 1])
    close(task.goal_pose[0, :3], [0.0, -0.2, 0.52])
    assert fake_gym.all_options[0][1].default_dof_drive_mode == gymapi.DOF_MODE_POS
    assert fake_gym.all_options[1][0] == "objects/block_allegro.urdf"
    properties = fake_gym.dof_props[1]
    for field, value in {"effort": 0.5, "stiffness": 3.0, "damping": 0.1, "friction": 0.01, "armature": 0.001}.items():
        assert properties[field].tolist() == pytest.approx([value] * 16)
    close(task.lower_limits, LOWER)
    close(task.upper_limits, UPPER)
    assert fake_gym.calls["enable_actor_dof_force_sensors"] == 0
    assert task.targeted_dofs == list(range(16))


def test_full_state_observation(make, fake_gym):
    task = make()
    task.step(torch.zeros(2, 16))
    fake_gym.dof[0, :, 0] = torch.tensor(LOWER) * 0.25 + torch.tensor(UPPER) * 0.75
    fake_gym.dof[0, :, 1] = torch.arange(16) * 0.1
    fake_gym.root[1] = torch.tensor([0.01, -0.2, 0.5, 0, 0, math.sin(0.25), math.cos(0.25), 1, 2, 3, 1, 2, 3.0])
    task.goal_pose[0, 3:] = torch.tensor([math.sin(0.15), 0.0, 0.0, math.cos(0.15)])
    obs = task.step(torch.full((2, 16), -0.5))[0]["obs"][0]
    close(obs[0:16], [0.5] * 16)
    close(obs[16:32], torch.arange(16) * 0.02)
    close(obs[32:48], [0.0] * 16)
    close(obs[48:55], [0.01, -0.2, 0.5, 0.0, 0.0, math.sin(0.25), math.cos(0.25)])
    close(obs[55:61], [1.0, 2.0, 3.0, 0.2, 0.4, 0.6])
    close(obs[61:68], [0.0, -0.2, 0.52, math.sin(0.15), 0.0, 0.0, math.cos(0.15)])
    close(obs[68:72], [-0.144792, -0.036972, 0.244626, 0.958033])
    close(obs[72:88], [-0.5] * 16)


def test_K9_R1_targets_and_start_positions(make, fake_gym):
    task = make(num_envs=3000)
    task.step(torch.zeros(3000, 16))
    thumb = fake_gym.dof[:, 12, 0]
    assert (thumb.min().item(), thumb.max().item()) == (
        pytest.approx(0.055849, abs=1e-3),
        pytest.approx(0.31415, abs=1e-3),
    )
    task.step(torch.full((3000, 16), 0.25))
    assert fake_gym.targets[0, 1].item() == pytest.approx(0.975174, abs=1e-5)


def test_every_action_is_simulated_twice(make, fake_gym):
    task = make()
    task.step(torch.zeros(2, 16))
    assert fake_gym.calls["simulate"] == 2


def test_the_recurrent_variant_sees_no_velocities(make):
    task = make("AllegroHandLSTM")
    assert (task.num_obs, task.num_states) == (50, 0)
    assert task.signature()["task"] == "AllegroHandLSTM"
    assert task.max_episode_length == 600
