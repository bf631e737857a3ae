"""Jacobian, mass matrix, joint forces and sensors: F31-F35 of the API notes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from scenes import hopper, joint, link, slider, urdf

from isaacgym import gymapi, gymtorch

VX, VZ, WY = 0, 2, 4  # rows of one link of a Jacobian: linear xyz, then angular xyz
ROOT_WX, ROOT_WZ = 3, 5  # columns of a floating root


def tree(folder: Path) -> Path:
    """Two chains of two links of 1 kg; every hinge turns about y."""
    hinge = {"kind": "revolute", "axis": (0, 1, 0)}
    return urdf(
        folder,
        "tree",
        link("base", 4.0),
        *(link(name) for name in ("a1", "a2", "b1", "b2")),
        joint("ja1", parent="base", child="a1", xyz=(0.2, 0.3, 0.0), **hinge),
        joint("ja2", parent="a1", child="a2", xyz=(0.3, 0.0, 0.0), **hinge),
        joint("jb1", parent="base", child="b1", xyz=(0.2, -0.3, 0.0), **hinge),
        joint("jb2", parent="b1", child="b2", xyz=(0.3, 0.0, 0.0), **hinge),
    )


def tree_world(world, path, fixed: bool):
    asset = world.load(path, fix_base_link=fixed)
    assert world.gym.get_asset_rigid_body_names(asset) == ["base", "a1", "a2", "b1", "b2"]
    assert world.gym.get_asset_dof_names(asset) == ["ja1", "ja2", "jb1", "jb2"]
    world.actor(world.env(), asset, (0.0, 0.0, 2.0), name="tree")
    assert world.gym.prepare_sim(world.sim)
    jacobian = gymtorch.wrap_tensor(world.gym.acquire_jacobian_tensor(world.sim, "tree"))
    mass = gymtorch.wrap_tensor(world.gym.acquire_mass_matrix_tensor(world.sim, "tree"))
    world.gym.refresh_jacobian_tensors(world.sim)
    world.gym.refresh_mass_matrix_tensors(world.sim)
    return jacobian, mass


def test_F31_jacobian_of_a_fixed_base(make_world, tmp_path):
    jacobian, _ = tree_world(make_world(), tree(tmp_path), True)
    assert tuple(jacobian.shape) == (1, 4, 6, 4)
    a1, a2, b1, b2 = jacobian[0]
    assert a2[VZ, 0].item() == pytest.approx(-0.3, abs=1e-5)
    assert a2[WY, :2].tolist() == pytest.approx([1.0, 1.0], abs=1e-5)
    assert a1[WY].tolist() == pytest.approx([1.0, 0.0, 0.0, 0.0], abs=1e-5)
    assert torch.cat([a1, a2])[:, 2:].abs().max().item() == 0.0
    assert torch.cat([b1, b2])[:, :2].abs().max().item() == 0.0
    assert b2[VZ, 2].item() == pytest.approx(-0.3, abs=1e-5)


def test_F31_jacobian_follows_the_pose(make_world, tmp_path):
    world = make_world(gravity=(0.0, 0.0, 0.0))
    jacobian, _ = tree_world(world, tree(tmp_path), True)
    world.write_dof("state", torch.tensor([[torch.pi / 2, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]))
    world.step()
    world.gym.refresh_jacobian_tensors(world.sim)
    assert jacobian[0, 1, VX, 0].item() == pytest.approx(-0.3, abs=1e-4)  # the chain a now hangs down
    assert jacobian[0, 1, VZ, 0].item() == pytest.approx(0.0, abs=1e-4)


def test_F32_jacobian_and_mass_matrix_of_a_floating_base(make_world, tmp_path):
    jacobian, mass = tree_world(make_world(), tree(tmp_path), False)
    assert tuple(jacobian.shape) == (1, 5, 6, 10)
    b1 = jacobian[0, 3]
    assert b1[VX, ROOT_WZ].item() == pytest.approx(0.3, abs=1e-5)
    assert b1[VZ, ROOT_WX].item() == pytest.approx(-0.3, abs=1e-5)
    assert torch.allclose(jacobian[0, 0, :, :6], torch.eye(6), atol=1e-5)
    assert tuple(mass.shape) == (1, 4, 4)
    expected = torch.zeros(4, 4)
    expected[:2, :2] = expected[2:, 2:] = torch.tensor([[0.11, 0.01], [0.01, 0.01]])
    assert torch.allclose(mass[0], expected, atol=1e-5)


def test_F33_dof_force_of_enabled_actors(make_world, tmp_path):
    world = make_world()
    env, asset = world.env(), world.load(slider(tmp_path), fix_base_link=True)
    for i in range(2):
        actor = world.actor(env, asset, (0.0, 1.0 * i, 1.0))
        world.set_dofs(env, actor, driveMode=gymapi.DOF_MODE_EFFORT, stiffness=0.0, damping=0.0)
    assert world.gym.enable_actor_dof_force_sensors(env, 0)
    force = world.prepare("dof_force")
    assert tuple(force.shape) == (2,)
    world.write_dof("actuation_force", torch.tensor([6.0, 6.0]))
    world.step(3)
    assert force[0].item() == pytest.approx(6.0, abs=0.01)
    assert force[1].item() == 0.0


@pytest.mark.parametrize("world_frame", [False, True])
def test_F34_force_sensor_of_a_foot_at_rest_reads_zero(make_world, tmp_path, world_frame):
    world = make_world()
    world.plane()
    asset = world.load(hopper(tmp_path))
    props = gymapi.ForceSensorProperties()
    props.use_world_frame = world_frame
    foot = world.gym.find_asset_rigid_body_index(asset, "foot")
    assert world.gym.create_asset_force_sensor(asset, foot, gymapi.Transform(), props) == 0
    for _ in range(2):
        env = world.env(per_row=2)
        robot = world.actor(env, asset, (0.0, 0.0, 0.25))
        world.set_dofs(env, robot, driveMode=gymapi.DOF_MODE_POS, stiffness=5e3, damping=100.0)
    assert world.gym.get_sim_force_sensor_count(world.sim) == 2
    sensor, contact = world.prepare("sensor", "contact")
    assert tuple(sensor.shape) == (2, 6)
    world.step(60)
    weight = 3 * 9.81
    assert contact[1::2, 2].tolist() == pytest.approx([weight] * 2, rel=0.02)
    assert sensor[:, :3].abs().max().item() < 0.05 * weight


def test_F34_without_sensors_the_tensor_is_empty(make_world):
    world = make_world()
    world.actor(world.env(), world.box(), (0.0, 0.0, 1.0))
    sensor, dof = world.prepare("sensor", "dof")
    assert tuple(sensor.shape) == (0, 6)
    assert dof.numel() == 0
    assert world.gym.get_sim_force_sensor_count(world.sim) == 0


@pytest.mark.parametrize(("mode", "force"), [("CC_NEVER", 0.0), ("CC_LAST_SUBSTEP", 19.62), ("CC_ALL_SUBSTEPS", 19.62)])
def test_F35_contact_collection(make_world, mode, force):
    world = make_world(contact_collection=getattr(gymapi, mode))
    world.plane()
    world.actor(world.env(), world.box(0.5, 2.0), (0.0, 0.0, 0.25))
    contact = world.prepare("contact")
    world.step(60)
    assert contact[0].tolist() == pytest.approx([0.0, 0.0, force], abs=0.1 if force else 0.0)


def test_F35_last_substep_and_mean_of_all(make_world):
    """A box that lands in the second of two substeps: the mean holds half of the last force."""
    forces = []
    for mode in (gymapi.CC_LAST_SUBSTEP, gymapi.CC_ALL_SUBSTEPS):
        world = make_world(contact_collection=mode)
        world.plane()
        world.actor(world.env(), world.box(0.5, 2.0), (0.0, 0.0, 0.25 + 1.5 / 120))
        root, contact = world.prepare("root", "contact")
        root[0, 9] = -1.0
        world.write_root(root)
        world.step()
        forces.append(contact[0, 2].item())
    assert forces[0] > 100.0  # 2 kg stopped from 1 m/s within 1/120 s
    assert forces[1] == pytest.approx(forces[0] / 2, rel=1e-4)
