"""Handles, scales, aggregates and DOF controls of single actors (API notes 9.5, 9.7)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scenes import GRAVITY, arm, indices, slider

from isaacgym import gymapi, gymtorch


@pytest.fixture
def arms(make_world, tmp_path):
    """Two envs with a cube and an arm (3 bodies, 2 DOFs) behind it."""
    world = make_world(gravity=(0.0, 0.0, 0.0))
    path = arm(tmp_path)
    asset, cube = world.load(path, fix_base_link=True), world.box(0.1, 1.0)
    for _ in range(2):
        env = world.env(per_row=2)
        world.actor(env, cube, (2.0, 0.0, 1.0), name="cube")
        world.actor(env, asset, (0.0, 0.0, 1.0), name="arm")
    return world


def test_handles_of_actors_bodies_and_dofs(arms):
    gym, env = arms.gym, arms.envs[1]
    assert [gym.get_actor_handle(env, i) for i in (0, 1, 2, -1)] == [0, 1, -1, -1]
    assert gym.get_actor_root_rigid_body_handle(env, 1) == 1
    domains = (gymapi.DOMAIN_ACTOR, gymapi.DOMAIN_ENV, gymapi.DOMAIN_SIM)
    assert [gym.get_actor_rigid_body_index(env, 1, 2, domain) for domain in domains] == [2, 3, 7]
    assert gym.get_actor_rigid_body_index(env, 1, 3, gymapi.DOMAIN_SIM) == -1
    assert [gym.get_actor_dof_index(env, 1, 1, domain) for domain in domains] == [1, 1, 3]
    assert [gym.find_actor_dof_index(env, 1, "joint2", domain) for domain in domains] == [1, 1, 3]
    assert [gym.get_actor_dof_handle(env, 1, i) for i in (0, 1, 2)] == [0, 1, -1]
    assert gym.get_actor_joint_count(env, 0) == 0
    assert gym.get_actor_asset(env, 1) is gym.get_actor_asset(arms.envs[0], 1)


@pytest.mark.parametrize("prepared", [False, True])
def test_frame_of_a_dof_in_the_env(arms, prepared):
    gym, env = arms.gym, arms.envs[1]
    bent = np.zeros(2, gymapi.DofState.dtype)
    bent["pos"] = [-0.5 * math.pi, 0.3]  # the first link points up
    if prepared:
        arms.prepare("root")
    assert gym.set_actor_dof_states(env, 1, bent, gymapi.STATE_ALL)
    first, second = (gym.get_dof_frame(env, gym.find_actor_dof_handle(env, 1, name)) for name in ("joint1", "joint2"))
    assert [first.origin.x, first.origin.y, first.origin.z] == pytest.approx([0, 0, 1.5], abs=1e-6)
    assert [second.origin.x, second.origin.y, second.origin.z] == pytest.approx([0, 0, 2.0], abs=1e-6)
    for frame in (first, second):
        assert [frame.axis.x, frame.axis.y, frame.axis.z] == pytest.approx([0, 1, 0], abs=1e-6)
    with pytest.raises(IndexError, match="there is no handle 2"):
        gym.get_dof_frame(env, 2)


def test_aggregates_change_nothing_but_warn_when_exceeded(make_world, caplog):
    world = make_world()
    world.plane()
    box = world.box(0.5, 2.0)
    for announced in (2, 1):
        env = world.env()
        assert world.gym.begin_aggregate(env, announced, announced, True)
        world.actor(env, box, (0.0, 0.0, 0.25))
        world.actor(env, box, (0.0, 0.0, 0.75))
        assert ("aggregate holds more" in caplog.text) is False
        assert world.gym.end_aggregate(env)
    assert "env 1: the aggregate holds more bodies or shapes than begin_aggregate said" in caplog.text
    assert not world.gym.end_aggregate(env)
    contact = world.prepare("contact")
    world.step(60)
    weight = 2 * GRAVITY
    torch.testing.assert_close(contact[:, 2], torch.tensor([weight] * 4), atol=0.3, rtol=0.0)


def test_scale_of_a_box(make_world):
    world = make_world()
    world.plane()
    env, box = world.env(), world.box(0.2, 1.0)
    large = world.actor(env, box, (0.0, 0.0, 0.25))
    world.actor(env, box, (2.0, 0.0, 0.1))
    assert world.gym.get_actor_scale(env, large) == 1.0
    assert world.gym.set_actor_scale(env, large, np.array([2.5]))
    assert world.gym.get_actor_scale(env, large) == 2.5
    scaled, plain = (world.gym.get_actor_rigid_body_properties(env, actor)[0] for actor in (0, 1))
    assert scaled.mass == pytest.approx(2.5**3)
    assert scaled.inertia.x.x == pytest.approx(2.5**5 * plain.inertia.x.x)
    root, contact = world.prepare("root", "contact")
    world.step(60)
    assert root[:, 2].tolist() == pytest.approx([0.25, 0.1], abs=1e-3)
    assert contact[:, 2].tolist() == pytest.approx([2.5**3 * GRAVITY, GRAVITY], rel=0.01)
    assert not world.gym.set_actor_scale(env, large, 1.0)


def test_a_scale_must_be_positive(make_world):
    world = make_world()
    env = world.env()
    world.actor(env, world.box())
    with pytest.raises(ValueError, match="set_actor_scale: the scale is 0"):
        world.gym.set_actor_scale(env, 0, 0.0)


def test_scale_of_a_robot(make_world, tmp_path):
    world = make_world(gravity=(0.0, 0.0, 0.0))
    asset, env = world.load(arm(tmp_path), fix_base_link=True), world.env()
    for scale in (1.0, 2.0):
        actor = world.actor(env, asset, (0.0, 0.0, 1.0))
        assert world.gym.set_actor_scale(env, actor, scale)
    body = world.prepare("body").view(2, 3, 13)
    # The hinges stand 0.5 m over the base and 0.5 m apart.
    expected = [[[0, 0, 1], [0, 0, 1.5], [0.5, 0, 1.5]], [[0, 0, 1], [0, 0, 2], [1, 0, 2]]]
    torch.testing.assert_close(body[..., :3], torch.tensor(expected), atol=1e-6, rtol=0.0)
    world.step(1)
    torch.testing.assert_close(body[..., :3], torch.tensor(expected), atol=1e-5, rtol=0.0)


@pytest.fixture
def sliders(make_world, tmp_path):
    """Two sliders with a car of 1 kg."""
    world = make_world(gravity=(0.0, 0.0, 0.0), substeps=1)
    asset = world.load(slider(tmp_path), fix_base_link=True)
    for _ in range(2):
        world.actor(world.env(), asset)
    return world


def test_efforts_of_one_actor_add_up_and_last_one_step(sliders):
    for env in sliders.envs:
        sliders.set_dofs(env, 0, driveMode=gymapi.DOF_MODE_EFFORT)
    dofs = sliders.prepare("dof")
    for effort in (4.0, 2.0):
        assert sliders.gym.apply_actor_dof_efforts(sliders.envs[1], 0, np.array([effort], np.float32))
    sliders.step(1)
    assert dofs[:, 1].tolist() == pytest.approx([0.0, 0.1], abs=1e-5)
    sliders.step(5)
    assert dofs[:, 1].tolist() == pytest.approx([0.0, 0.1], abs=1e-5)


def test_one_step_efforts_come_on_top_of_the_lasting_ones(sliders):
    for env in sliders.envs:
        sliders.set_dofs(env, 0, driveMode=gymapi.DOF_MODE_EFFORT)
    dofs = sliders.prepare("dof")
    sliders.write_dof("actuation_force", torch.tensor([6.0, 6.0]))
    assert sliders.gym.apply_actor_dof_efforts(sliders.envs[0], 0, np.array([6.0], np.float32))
    sliders.step(1)
    assert dofs[:, 1].tolist() == pytest.approx([0.2, 0.1], abs=1e-5)
    sliders.step(1)
    assert dofs[:, 1].tolist() == pytest.approx([0.3, 0.2], abs=1e-5)


def test_targets_of_one_actor_and_of_all(sliders):
    gym, sim = sliders.gym, sliders.sim
    sliders.set_dofs(sliders.envs[0], 0, driveMode=gymapi.DOF_MODE_POS, stiffness=100.0, damping=20.0)
    sliders.set_dofs(sliders.envs[1], 0, driveMode=gymapi.DOF_MODE_VEL, damping=100.0)
    dofs = sliders.prepare("dof")
    assert gym.set_actor_dof_position_targets(sliders.envs[0], 0, np.array([0.5], np.float32))
    assert gym.set_dof_velocity_target_tensor(sim, gymtorch.unwrap_tensor(torch.tensor([9.0, 0.4])))
    sliders.step(180)
    assert dofs[0].tolist() == pytest.approx([0.5, 0.0], abs=1e-3)
    assert float(dofs[1, 1]) == pytest.approx(0.4, abs=1e-3)
    assert gym.set_actor_dof_velocity_targets(sliders.envs[1], 0, np.array([-0.2], np.float32))
    sliders.step(60)
    assert float(dofs[1, 1]) == pytest.approx(-0.2, abs=1e-3)


def test_indexed_states_and_targets_reach_the_named_actors_only(sliders):
    gym, sim = sliders.gym, sliders.sim
    for env in sliders.envs:
        sliders.set_dofs(env, 0, driveMode=gymapi.DOF_MODE_POS, stiffness=100.0, damping=20.0)
    dofs = sliders.prepare("dof")
    states, targets = torch.tensor([[7.0, 7.0], [0.2, 0.0]]), torch.tensor([7.0, 0.3])
    assert gym.set_dof_state_tensor_indexed(sim, gymtorch.unwrap_tensor(states), indices(1), 1)
    assert gym.set_dof_position_target_tensor_indexed(sim, gymtorch.unwrap_tensor(targets), indices(1), 1)
    sliders.refresh()
    assert dofs.tolist() == [[0.0, 0.0], [pytest.approx(0.2), 0.0]]
    sliders.step(180)
    assert dofs[:, 0].tolist() == pytest.approx([0.0, 0.3], abs=1e-3)
    velocities = gymtorch.unwrap_tensor(torch.tensor([5.0, 5.0]))
    assert gym.set_dof_velocity_target_tensor_indexed(sim, velocities, indices(0), 1)
    sliders.step(60)
    assert dofs[:, 0].tolist() == pytest.approx([0.0, 0.3], abs=1e-3)  # these DOFs hold positions
