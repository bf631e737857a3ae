"""State tensors: F20-F25 of the API notes, indexed writes, repeatability."""

from __future__ import annotations

import math

import pytest
import torch
from scenes import arm, hopper, indices, slider

from isaacgym import gymapi, gymtorch


def four_boxes(world, *tensors):
    """Four envs in two rows of two, a box in each."""
    asset = world.box()
    for _ in range(4):
        world.actor(world.env(per_row=2), asset, (0.1, 0.2, 1.5))
    return world.prepare(*tensors)


def test_F20_root_positions_are_relative_to_the_env(make_world):
    world = make_world()
    root, body = four_boxes(world, "root", "body")
    origins = [(o.x, o.y, o.z) for o in map(world.gym.get_env_origin, world.envs)]
    assert len(set(origins)) == 4
    distances = [math.dist(a, b) for i, a in enumerate(origins) for b in origins[:i]]
    assert min(distances) >= 4.0 - 1e-6  # cells of 2 x 2 m half extents
    root[:] = 0.0
    root[:, 2], root[:, 6] = 1.0, 1.0
    world.write_root(root)
    root[:] = 7.0
    world.refresh()
    assert root[:, :3].tolist() == [[0.0, 0.0, 1.0]] * 4
    assert root[:, 3:7].tolist() == [[0.0, 0.0, 0.0, 1.0]] * 4
    world.step()
    assert torch.equal(body, root)
    assert root[:, :2].abs().max().item() < 1e-5


def falling_boxes(world):
    """Four boxes that hit the plane, tilted a little; returns root and contact tensors after 20 steps."""
    world.plane()
    asset = world.box()
    for i in range(4):
        world.actor(world.env(per_row=2), asset, (0.0, 0.0, 0.5 + 0.02 * i), (0.0, 0.1, 0.0, math.sqrt(0.99)))
    tensors = world.prepare("root", "contact")
    world.step(20)
    return tensors


def test_F21_indexed_root_reset_leaves_the_others_bit_equal(make_world):
    world = make_world()
    root, contact = falling_boxes(world)
    world.step(30)
    undisturbed, forces = root.clone(), contact.clone()
    assert forces[:, 2].min().item() > 1.0

    world = make_world()
    root, contact = falling_boxes(world)
    before = root.clone()
    garbage = torch.full_like(root, float("nan"))
    garbage[2] = torch.tensor([0.3, 0.4, 3.0, 0.0, 0.0, 0.0, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0])
    world.write_root(garbage, 2)
    world.refresh()
    others = [0, 1, 3]
    assert torch.equal(root[others], before[others])
    assert torch.equal(root[2], garbage[2])
    world.step(30)
    assert torch.equal(root[others], undisturbed[others])
    assert torch.equal(contact[others], forces[others])
    assert root[2, 0].item() == pytest.approx(0.3 + 0.5 * 0.5, abs=1e-4)


def test_same_scene_twice_is_bit_equal(make_world):
    runs = []
    for _ in range(2):
        world = make_world()
        root, contact = falling_boxes(world)
        world.step(30)
        runs.append(torch.cat([root, contact], dim=1).clone())
    assert torch.equal(runs[0], runs[1])


def three_arms(world, path, *tensors, **dofs):
    """Three envs with a cube and then an arm on a fixed base: actors 1, 3, 5 have the DOFs 0-1, 2-3, 4-5."""
    asset, cube = world.load(path, fix_base_link=True), world.box(0.1, 0.5, disable_gravity=True)
    for _ in range(3):
        env = world.env(per_row=2)
        world.actor(env, cube, (1.0, 1.0, 1.0), name="cube")
        world.set_dofs(env, world.actor(env, asset, (0.0, 0.0, 1.0), name="arm"), **dofs)
    return world.prepare(*tensors)


def test_F22_indexed_dof_reset_takes_actor_indices(make_world, tmp_path):
    world = make_world(gravity=(0.0, 0.0, 0.0))
    root, dof = three_arms(world, arm(tmp_path), "root", "dof")
    roots = root.clone()
    garbage = torch.full_like(dof, float("nan"))
    garbage[2:4] = torch.tensor([[0.3, 0.0], [-0.2, 0.0]])
    world.write_dof("state", garbage, 3)
    world.step()
    expected = torch.zeros(6, 2)
    expected[2:4] = garbage[2:4]
    assert torch.allclose(dof, expected, atol=1e-5)
    assert torch.equal(dof[[0, 1, 4, 5]], expected[[0, 1, 4, 5]])
    assert torch.allclose(root, roots, atol=1e-6)


def test_F22_actors_without_dofs_are_ignored(make_world, tmp_path):
    world = make_world(gravity=(0.0, 0.0, 0.0))
    dof = three_arms(world, arm(tmp_path), "dof")
    wanted = torch.tensor([[0.1, 0.0], [0.2, 0.0]]).repeat(3, 1)
    world.write_dof("state", wanted, 0, 1, 4)
    world.step()
    assert torch.allclose(dof[:2], wanted[:2], atol=1e-5)
    assert dof[2:].abs().max().item() == 0.0


def test_F23_two_indexed_calls_before_one_simulate(make_world, tmp_path):
    world = make_world(gravity=(0.0, 0.0, 0.0))
    mode = {"driveMode": gymapi.DOF_MODE_POS, "stiffness": 400.0, "damping": 40.0}
    dof = three_arms(world, arm(tmp_path), "dof", **mode)
    targets = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    world.write_dof("position_target", targets, 1)
    world.write_dof("position_target", targets, 3)
    world.step(120)
    assert dof[:, 0].tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.0, 0.0], abs=2e-3)


def test_F24_refresh_after_prepare_gives_the_authored_state(make_world, tmp_path):
    world = make_world()
    world.plane()
    asset, cube = world.load(arm(tmp_path), fix_base_link=True), world.box()
    yaw = (0.0, 0.0, math.sin(0.35), math.cos(0.35))
    for i in range(3):
        env = world.env(per_row=2)
        world.actor(env, asset, (0.1, -0.3, 1.3 + 0.1 * i), yaw, name="arm")
        world.actor(env, cube, (0.7, 0.9, 0.25), yaw, name="cube")
    root, dof, body, contact = world.prepare("root", "dof", "body", "contact")
    assert root.shape == (6, 13)
    assert dof.shape == (6, 2)
    assert body.shape == (12, 13)
    assert contact.shape == (12, 3)
    x, y = math.cos(0.7), math.sin(0.7)
    for i in range(3):
        place = torch.tensor([[0.1, -0.3, 1.3 + 0.1 * i], [0.7, 0.9, 0.25]])
        assert torch.equal(root[2 * i : 2 * i + 2, :3], place)
        links = place[0] + torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.5], [0.5 * x, 0.5 * y, 0.5]])
        assert torch.allclose(body[4 * i : 4 * i + 4, :3], torch.cat([links, place[1:]]), atol=1e-6)
    assert torch.allclose(root[:, 3:7], torch.tensor(yaw), atol=1e-6)
    assert torch.allclose(body[:, 3:7], torch.tensor(yaw), atol=1e-6)
    assert root[:, 7:].abs().max().item() == 0.0
    assert body[:, 7:].abs().max().item() == 0.0
    assert dof.abs().max().item() == 0.0
    assert contact.abs().max().item() == 0.0


def test_F24_simulation_starts_from_the_authored_state(make_world):
    """Building the scene must leave no trace: one step of a fresh sim is one step of free fall."""
    world = make_world(substeps=1)
    root = four_boxes(world, "root")
    world.step()
    assert root[:, 9].tolist() == pytest.approx([-9.81 / 60] * 4, abs=1e-6)
    assert root[:, 2].tolist() == pytest.approx([1.5 - 9.81 / 3600] * 4, abs=1e-6)


def test_F25_buffers_change_only_by_refresh(make_world, tmp_path):
    world = make_world()
    world.plane()
    world.actor(world.env(), world.load(hopper(tmp_path)), (0.0, 0.0, 0.27))
    tensors = world.prepare("root", "dof", "body", "contact")
    before = [tensor.clone() for tensor in tensors]
    pointers = [tensor.data_ptr() for tensor in tensors]
    for _ in range(5):
        world.gym.simulate(world.sim)
    assert all(torch.equal(a, b) for a, b in zip(tensors, before, strict=True))
    world.refresh()
    assert not any(torch.equal(a, b) for a, b in zip(tensors, before, strict=True))
    assert pointers == [tensor.data_ptr() for tensor in tensors]


def test_simulate_needs_no_fetch_results(make_world):
    world = make_world()
    root = four_boxes(world, "root")
    for _ in range(60):
        world.gym.simulate(world.sim)
    world.gym.refresh_actor_root_state_tensor(world.sim)
    assert root[:, 9].tolist() == pytest.approx([-9.81] * 4, abs=1e-4)


def test_prepare_is_implied_by_the_first_simulate(make_world):
    world = make_world()
    world.actor(world.env(), world.box(), (0.0, 0.0, 10.0))
    world.gym.simulate(world.sim)
    root = gymtorch.wrap_tensor(world.gym.acquire_actor_root_state_tensor(world.sim))
    world.gym.refresh_actor_root_state_tensor(world.sim)
    assert root[0, 9].item() == pytest.approx(-9.81 / 60, abs=1e-5)


def test_indexed_write_counts_only_the_first_n(make_world):
    world = make_world()
    root = four_boxes(world, "root")
    start, wanted = root.clone(), root.clone()
    wanted[:, 2] = 4.0
    value = gymtorch.unwrap_tensor(wanted)
    assert world.gym.set_actor_root_state_tensor_indexed(world.sim, value, indices(3, 1), 0)
    world.refresh()
    assert torch.equal(root, start)
    assert world.gym.set_actor_root_state_tensor_indexed(world.sim, value, indices(3, 1), 1)
    world.refresh()
    assert root[:, 2].tolist() == [1.5, 1.5, 1.5, 4.0]
    column = gymtorch.unwrap_tensor(torch.tensor([[1], [1], [0]], dtype=torch.int32))
    assert world.gym.set_actor_root_state_tensor_indexed(world.sim, value, column, 3)
    world.refresh()
    assert root[:, 2].tolist() == [4.0, 4.0, 1.5, 4.0]


def test_set_then_refresh_returns_what_was_written(make_world):
    world = make_world()
    root = four_boxes(world, "root")
    generator = torch.Generator().manual_seed(3)
    wanted = torch.randn(4, 13, generator=generator)
    wanted[:, 3:7] /= wanted[:, 3:7].norm(dim=1, keepdim=True)
    world.write_root(wanted.clone())
    world.refresh()
    assert torch.allclose(root, wanted, atol=1e-6)
    assert torch.equal(root[:, :3], wanted[:, :3])


def test_setters_refuse_a_wrong_size(make_world, tmp_path):
    world = make_world()
    three_arms(world, arm(tmp_path), "root", "dof")
    wrong = gymtorch.unwrap_tensor(torch.zeros(2, 13))
    assert not world.gym.set_actor_root_state_tensor(world.sim, wrong)
    assert not world.gym.set_dof_state_tensor(world.sim, wrong)
    assert not world.gym.set_dof_position_target_tensor(world.sim, wrong)
    assert not world.gym.set_dof_actuation_force_tensor_indexed(world.sim, wrong, indices(1), 1)


def test_fixed_base_is_moved_by_a_root_write(make_world, tmp_path):
    """Section 9.9: a root write re-places the base of a fixed-base actor; its DOFs stay."""
    world = make_world(gravity=(0.0, 0.0, 0.0))
    root, dof, body = three_arms(world, arm(tmp_path), "root", "dof", "body")
    world.write_dof("state", torch.tensor([[0.3, 0.0]]).repeat(6, 1))
    root[3, :3] = torch.tensor([0.5, 0.6, 0.7])
    world.write_root(root, 3)
    world.step(2)
    assert root[3, :3].tolist() == pytest.approx([0.5, 0.6, 0.7], abs=1e-5)
    assert body[4 + 2, :3].tolist() == pytest.approx([0.5, 0.6, 1.2], abs=1e-5)
    assert dof[:, 0].tolist() == pytest.approx([0.3] * 6, abs=1e-5)
    assert root[1, :3].tolist() == pytest.approx([0.0, 0.0, 1.0], abs=1e-5)


def test_fixed_primitive_occupies_constant_rows(make_world):
    world = make_world()
    env = world.env()
    world.actor(env, world.box(0.4, 1.0, fix_base_link=True), (0.2, 0.1, 1.0), name="table")
    world.actor(env, world.box(0.2, 1.0), (0.2, 0.1, 1.31), name="cube")
    root, body, contact = world.prepare("root", "body", "contact")
    world.step(60)
    assert root[0].tolist() == pytest.approx([0.2, 0.1, 1.0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0], abs=1e-6)
    assert body[0].tolist() == root[0].tolist()
    assert root[1, 2].item() == pytest.approx(1.3, abs=2e-3)
    assert contact[1, 2].item() == pytest.approx(9.81, abs=0.1)


def test_classic_dof_calls_before_and_after_prepare(make_world, tmp_path):
    world = make_world(gravity=(0.0, 0.0, 0.0))
    env = world.env()
    actor = world.actor(env, world.load(slider(tmp_path), fix_base_link=True), (0.0, 0.0, 1.0))
    states = world.gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)
    assert states["pos"].tolist() == [0.0]
    states["pos"][0] = 0.4
    assert world.gym.set_actor_dof_states(env, actor, states, gymapi.STATE_POS)
    dof = world.prepare("dof")
    assert dof[0].tolist() == pytest.approx([0.4, 0.0], abs=1e-6)
    states["vel"][0] = 0.6
    assert world.gym.set_actor_dof_states(env, actor, states, gymapi.STATE_ALL)
    world.step()
    assert world.gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)["vel"][0] == pytest.approx(0.6, abs=1e-5)
    assert dof[0].tolist() == pytest.approx([0.41, 0.6], abs=1e-4)
