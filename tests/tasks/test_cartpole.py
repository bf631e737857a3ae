"""Cartpole: numbers of the specification (C2) and the step accounting (C16)."""

import math

import pytest
import torch

from tasks.base.errors import TaskError
from tasks.cartpole import cartpole_reward_terms, has_failed


def reward_and_failure(cart_pos, cart_vel, pole_angle, pole_vel):
    values = [torch.tensor([float(v)]) for v in (cart_pos, cart_vel, pole_angle, pole_vel)]
    failed = has_failed(values[0], values[2], 3.0)
    terms = cartpole_reward_terms(*values[1:], failed)
    return sum(terms.values()).item(), bool(failed)


@pytest.mark.parametrize(
    ("state", "reward", "failed"),
    [
        ((0.5, -1.2, 0.1, 0.8), 0.974, False),
        ((3.0, 0.0, 0.0, 0.0), 1.0, False),
        ((-3.01, 0.3, 0.2, 0.0), -2.0, True),
        ((0.5, 0.0, 1.6, 0.0), -2.0, True),
    ],
)
def test_C2_reward(state, reward, failed):
    assert reward_and_failure(*state) == (pytest.approx(reward, abs=1e-6), failed)


def test_C2_time_limit_is_flagged_at_progress_499(make_task, fake_gym):
    task = make_task("Cartpole", numEnvs=2)
    task.step(torch.zeros(2, 1))
    fake_gym.dof[:] = torch.tensor([[0.5, -1.2], [0.1, 0.8]])
    task.progress_buf[:] = torch.tensor([497, 498])
    _, reward, done, extras = task.step(torch.zeros(2, 1))
    assert done.tolist() == [0, 1]
    assert extras["time_outs"].tolist() == [False, True]
    assert torch.allclose(reward, torch.tensor(0.974))


def test_C2_action_becomes_a_force_on_the_cart_only(make_task, fake_gym):
    task = make_task("Cartpole", numEnvs=3)
    task.step(torch.tensor([[0.25], [-1.0], [7.0]]))
    assert fake_gym.forces.tolist() == [[100.0, 0.0], [-400.0, 0.0], [400.0, 0.0]]


def test_C2_observation_is_the_joint_state_clipped_to_5(make_task, fake_gym):
    task = make_task("Cartpole", numEnvs=2)
    task.step(torch.zeros(2, 1))
    fake_gym.dof[0] = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    fake_gym.dof[1] = torch.tensor([[0.1, -9.0], [0.2, 6.0]])
    obs, reward, _, _ = task.step(torch.zeros(2, 1))
    assert obs["obs"].tolist() == [[1.0, 2.0, 3.0, 4.0], pytest.approx([0.1, -5.0, 0.2, 5.0])]
    assert reward[1].item() == pytest.approx(1 - 0.04 - 0.09 - 0.03)


def test_C2_reset_range(make_task, fake_gym):
    task = make_task("Cartpole", numEnvs=4000)
    task.step(torch.zeros(4000, 1))
    position, velocity = fake_gym.dof.unbind(-1)
    for values, bound in ((position, 0.1), (velocity, 0.25)):
        assert values.abs().max() <= bound
        assert values.abs().amax(0).min() > 0.99 * bound
        assert values.mean(0).abs().max() < 0.05 * bound


def test_C2_scene(make_task, fake_gym):
    task = make_task("Cartpole", numEnvs=5)
    assert fake_gym.start == [0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0]
    assert fake_gym.options.fix_base_link
    assert fake_gym.per_row == 2
    assert [actors for env in fake_gym.envs for actors in env] == [(i, 1) for i in range(5)]
    for properties in fake_gym.dof_props.values():
        assert properties["driveMode"].tolist() == [3, 0]
        assert properties["stiffness"].tolist() == properties["damping"].tolist() == [0.0, 0.0]
    lower, upper = fake_gym.env_bounds
    assert (lower.x, lower.y, lower.z, upper.x, upper.y, upper.z) == (-2.0, -4.0, 0.0, 2.0, 4.0, 4.0)
    assert (fake_gym.plane.normal.x, fake_gym.plane.normal.y, fake_gym.plane.normal.z) == (0.0, 0.0, 1.0)
    assert task.signature() == {
        "task": "Cartpole", "num_observations": 4, "num_states": 0, "num_actions": 1,
        "dof_names": ["slider_to_cart", "cart_to_pole"],
    }  # fmt: skip


def test_C2_scene_with_y_up(make_task, fake_gym, load_cfg):
    cfg = load_cfg("task", "Cartpole")
    cfg["sim"]["up_axis"] = "y"
    make_task("Cartpole", cfg=cfg, numEnvs=1)
    root = math.sqrt(0.5)
    assert fake_gym.start == pytest.approx([0.0, 2.0, 0.0, -root, 0.0, 0.0, root])
    assert fake_gym.plane.normal.y == 1.0
    assert (fake_gym.env_bounds[0].y, fake_gym.env_bounds[0].z) == (0.0, -4.0)


def test_C16_time_outs_are_500_steps_apart(make_task):
    task = make_task("Cartpole", numEnvs=2)
    action = torch.zeros(2, 1)
    done_at = []
    for step in range(1, 1002):
        _, _, done, extras = task.step(action)
        if step == 1:
            assert task.progress_buf.tolist() == [0, 0]
        assert extras["time_outs"].tolist() == done.bool().tolist()
        if done.any():
            done_at.append(step)
    assert done_at == [500, 1000]


def test_without_velocities_the_states_keep_them_and_the_reward_stays_the_same(make_task, fake_gym):
    results = {}
    for name in ("Cartpole", "CartpolePartial"):
        task = make_task(name, numEnvs=2)
        task.step(torch.zeros(2, 1))
        fake_gym.dof[0] = torch.tensor([[0.5, -1.2], [0.1, 0.8]])
        fake_gym.dof[1] = torch.tensor([[0.5, 7.0], [1.6, 0.0]])
        results[name] = task.step(torch.zeros(2, 1))
        fake_gym.__init__()
    obs, reward, done, _ = results["CartpolePartial"]
    assert obs["obs"].tolist() == [pytest.approx([0.5, 0.1]), pytest.approx([0.5, 1.6])]
    assert obs["states"].tolist() == [pytest.approx([0.5, -1.2, 0.1, 0.8]), pytest.approx([0.5, 5.0, 1.6, 0.0])]
    assert reward.tolist() == results["Cartpole"][1].tolist() == pytest.approx([0.974, -2.0])
    assert done.tolist() == [0, 1]
    assert "states" not in results["Cartpole"][0]


def test_an_unknown_observation_type_names_those_that_exist(make_task):
    with pytest.raises(TaskError, match="env.observationType is 'none'; allowed are full, no_velocities"):
        make_task("Cartpole", observationType="none")
