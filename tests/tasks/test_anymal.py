"""Anymal on flat ground: numbers of the specification (C7), quirks Q11 and Q16, resets."""

import math

import pytest
import torch

from tasks import legged
from tasks.anymal import AnymalScales, anymal_observations, anymal_reward_terms

DEFAULT = torch.tensor([0.03, 0.4, -0.8, 0.03, -0.4, 0.8, -0.03, 0.4, -0.8, -0.03, -0.4, 0.8])
OFFSET = torch.linspace(-0.11, 0.11, 12).unsqueeze(0)
DOF_VEL = torch.linspace(-6, 5, 12).unsqueeze(0)
ACTIONS = torch.linspace(-1, 1, 12).unsqueeze(0)
TORQUES = torch.linspace(-30, 25, 12).unsqueeze(0)
COMMANDS = torch.tensor([[1.0, -0.3, 0.5, 0.0]])
SCALES = AnymalScales(2.0, 0.25, 1.0, 0.05)
WEIGHTS = {"lin_vel_xy": 1.0 * 0.02, "ang_vel_z": 0.5 * 0.02, "torques": -2.5e-5 * 0.02}


@pytest.fixture
def root(quat_rpy):
    state = torch.zeros(1, 13)
    state[0, 2] = 0.62
    state[0, 3:7] = quat_rpy(0.05, -0.1, 0.7)
    state[0, 7:] = torch.tensor([0.8, 0.3, -0.05, 0.1, -0.2, 0.4])
    return state


def close(actual, expected, atol=1e-5):
    assert torch.allclose(actual, torch.tensor(expected), atol=atol), actual


def test_C7_observation(root, quat_rpy):
    close(quat_rpy(0.05, -0.1, 0.7), (0.040585, -0.038374, 0.343536, 0.937477))
    out = torch.zeros(1, 48)
    obs = anymal_observations(legged.base_motion(root), COMMANDS, OFFSET, DOF_VEL, ACTIONS, SCALES, out)
    close(
        obs[0, :12],
        (1.592250, -0.584136, -0.231354, -0.003041, -0.049241, 0.103397, 0.044064, 0.102460, -0.993761, 2, -0.6, 0.125),
    )
    close(obs[0, [12, 24, 35, 47]], (-0.11, -0.3, 0.25, 1.0))


def test_Q11_gravity_is_turned_forward_here_and_projected_on_terrain(root):
    base = legged.base_motion(root)
    close(base.gravity_rotated_forward()[0], (0.044064, 0.102460, -0.993761))
    close(base.gravity()[0], (-0.099833, -0.049729, -0.993761))


def test_C7_reward(root):
    base = legged.base_motion(root)
    terms = anymal_reward_terms(base, COMMANDS, TORQUES, WEIGHTS)
    close(torch.cat(list(terms.values())), (0.016932259, 0.009705748, -0.001825), atol=1e-7)
    assert sum(terms.values()).item() == pytest.approx(0.0248130, abs=1e-6)
    commands = torch.tensor([[-2.0, 1.0, -1.0, 0.0]])
    assert sum(anymal_reward_terms(base, commands, 3 * TORQUES, WEIGHTS).values()).item() < 0


def test_C7_through_the_task(make_task, fake_gym, root):
    task = make_task("Anymal", numEnvs=2)
    assert task.max_episode_length == 2500
    assert torch.equal(task.default_dof_pos, DEFAULT)
    task.step(torch.zeros(2, 12))
    fake_gym.root[0] = root
    fake_gym.dof[0, :, 0], fake_gym.dof[0, :, 1] = DEFAULT + OFFSET[0], DOF_VEL[0]
    fake_gym.dof_force[0] = TORQUES[0]
    task.commands[0] = COMMANDS[0]
    obs, reward, _, _ = task.step(ACTIONS.repeat(2, 1))
    assert reward[0].item() == pytest.approx(0.0248130, abs=1e-6)
    close(obs["obs"][0, :3], (1.592250, -0.584136, -0.231354))
    close(fake_gym.targets[0, [0, 1, 11]], (-0.47, -0.009091, 1.3))
    task.commands[0] = torch.tensor([-2.0, 1.0, -1.0, 0.0])
    fake_gym.dof_force[0] = 3 * TORQUES[0]
    _, reward, _, _ = task.step(ACTIONS.repeat(2, 1))
    assert reward[0].item() == 0.0


@pytest.mark.parametrize(
    ("body", "force", "done"),
    [("base", 1.0, 0), ("base", 1.01, 1), ("RH_THIGH", 1.01, 1), ("LF_THIGH", 1.01, 1), ("LF_SHANK", 99.0, 0)],
)
def test_C7_contact_of_base_or_thigh_ends_the_episode(make_task, fake_gym, body, force, done):
    task = make_task("Anymal", numEnvs=2)
    task.step(torch.zeros(2, 12))
    fake_gym.contact[1, fake_gym.asset.bodies.index(body), 2] = force
    _, _, flags, extras = task.step(torch.zeros(2, 12))
    assert flags.tolist() == [0, done]
    assert not extras["time_outs"].any()


def test_tracking_error_is_the_mean_distance_between_commanded_and_actual_velocity(make_task, fake_gym):
    task = make_task("Anymal", numEnvs=2)
    task.step(torch.zeros(2, 12))
    task.commands[:, :3] = torch.tensor([[1.0, -0.5, 0.3], [0.0, 0.0, 1.0]])
    task.episodes.means.sums.zero_()
    for speed in (1.0, 4.0):
        fake_gym.root[:, 7] = speed
        fake_gym.contact[1, 0, 2] = speed - 1.0  # the second step ends the second env's episode
        _, _, done, extras = task.step(torch.zeros(2, 12))
    assert done.tolist() == [0, 1]
    expected = [(0.5 + math.hypot(3.0, 0.5)) / 2, (1.0 + 4.0) / 2]
    close(extras["measures"]["tracking_error"], expected)
    fake_gym.root[:, 7] = 0.0
    extras = task.step(torch.zeros(2, 12))[3]
    assert extras["episode"]["tracking_error"].item() == pytest.approx(2.5)


def test_Q7_a_contact_that_is_still_reported_ends_the_next_episode_too(make_task, fake_gym):
    task = make_task("Anymal", numEnvs=1)
    fake_gym.contact[:, 0, 2] = 5.0
    assert [task.step(torch.zeros(1, 12))[2].item() for _ in range(3)] == [1, 1, 1]
    fake_gym.contact[:] = 0.0
    assert task.step(torch.zeros(1, 12))[2].item() == 0


def test_C7_reset_draws_joints_and_commands(make_task, fake_gym):
    n = 4000
    task = make_task("Anymal", numEnvs=n)
    ratio = fake_gym.dof[..., 0] / DEFAULT
    assert ratio.min().item() == pytest.approx(0.5, abs=0.001)
    assert ratio.max().item() == pytest.approx(1.5, abs=0.001)
    before = task.commands.clone()
    task.step(torch.zeros(n, 12))
    assert not torch.equal(task.commands, before)
    for column, bound in ((0, 2.0), (1, 1.0), (2, 1.0)):
        values = task.commands[:, column]
        assert values.abs().max().item() == pytest.approx(bound, abs=0.01)
        assert values.mean().item() == pytest.approx(0.0, abs=0.05)
    assert fake_gym.dof[..., 1].abs().max().item() == pytest.approx(0.1, abs=0.001)
    close(fake_gym.root[3], [0.0, 0.0, 0.62, 0.0, 0.0, 0.0, 1.0] + [0.0] * 6)
    assert task.extras["episode"] == {"nonfinite_resets": 0.0}


def test_C7_scene(make_task, fake_gym):
    make_task("Anymal", numEnvs=3)
    options = fake_gym.options
    assert options.collapse_fixed_joints
    assert options.replace_cylinder_with_capsule
    assert not options.fix_base_link
    assert (options.density, options.thickness) == (pytest.approx(0.001), pytest.approx(0.01))
    assert (options.angular_damping, options.linear_damping, options.armature) == (0.0, 0.0, 0.0)
    for properties in fake_gym.dof_props.values():
        assert properties["driveMode"].tolist() == [1] * 12
        assert properties["stiffness"].tolist() == [85.0] * 12
        assert properties["damping"].tolist() == [2.0] * 12
    assert [actors for env in fake_gym.envs for actors in env] == [(i, 1) for i in range(3)]
    assert fake_gym.calls["enable_actor_dof_force_sensors"] == 3


@pytest.mark.parametrize(("quirks", "changes"), [([], True), (["Q16"], False)])
def test_Q16_properties_are_randomised_again(make_task, fake_gym, load_cfg, quirks, changes):
    cfg = load_cfg("task", "Anymal")
    cfg["reference_quirks"] = quirks
    cfg["env"]["learn"]["episodeLength_s"] = 0.1
    cfg["task"]["randomize"] = True
    cfg["task"]["randomization_params"].update(frequency=2)
    for fields in cfg["task"]["randomization_params"]["actor_params"]["anymal"].values():
        for description in fields.values() if isinstance(fields, dict) else ():
            description.pop("schedule", None)
    task = make_task("Anymal", cfg=cfg, numEnvs=2)
    before = fake_gym.dof_props[0]["damping"].copy()
    for _ in range(12):
        task.step(torch.zeros(2, 12))
    assert (fake_gym.dof_props[0]["damping"] != before).any() == changes


def test_a_joint_without_default_angle_is_named(make_task, load_cfg):
    cfg = load_cfg("task", "Anymal")
    del cfg["env"]["defaultJointAngles"]["LF_HFE"]
    with pytest.raises(ValueError, match=r"env\.defaultJointAngles has no LF_HFE"):
        make_task("Anymal", cfg=cfg, numEnvs=1)


def test_C1_wrap_to_pi():
    close(legged.wrap_to_pi(torch.tensor([3.5, -3.5, 7.0])), (-2.783185, 2.783185, 0.716815))
