"""Set inertia and centre of mass: what the motion says, for bodies whose principal axes are turned."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scenes import urdf

from isaacgym import gymapi, torch_utils

FIRST = np.array([[0.05, 0.01, -0.015], [0.01, 0.08, 0.02], [-0.015, 0.02, 0.1]])
SECOND = np.array([[0.09, -0.02, 0.01], [-0.02, 0.06, 0.005], [0.01, 0.005, 0.08]])
TORQUE = np.array([0.3, 0.5, -0.2])
COM = (0.1, 0.02, -0.03)


def turned_body(folder):
    """One link with products of inertia."""
    entries = {f"i{'xyz'[i]}{'xyz'[j]}": FIRST[i, j] for i in range(3) for j in range(i, 3)}
    inertia = " ".join(f'{name}="{value}"' for name, value in entries.items())
    origin = f'<origin xyz="{COM[0]} {COM[1]} {COM[2]}"/>'
    return urdf(
        folder, "turned", f'<link name="body"><inertial>{origin}<mass value="2"/><inertia {inertia}/></inertial></link>'
    )


def change(world, env, inertia, com=None, recompute=False, mass=2.0):
    props = world.gym.get_actor_rigid_body_properties(env, 0)
    props[0].mass = mass
    for row, values in zip((props[0].inertia.x, props[0].inertia.y, props[0].inertia.z), inertia, strict=True):
        row.x, row.y, row.z = map(float, values)
    if com is not None:
        props[0].com = gymapi.Vec3(*com)
    assert world.gym.set_actor_rigid_body_properties(env, 0, props, recompute)


def spin_up(world, root):
    """Angular accelerations under TORQUE in one small step, from rest."""
    world.push(torque=torch.tensor(np.stack([TORQUE] * len(world.envs)), dtype=torch.float))
    world.step()
    return root[:, 10:13].numpy() / world.gym.get_sim_params(world.sim).dt


@pytest.mark.parametrize("articulated", [False, True], ids=["single body", "articulation"])
def test_set_inertia_turns_the_principal_axes(make_world, tmp_path, articulated):
    world = make_world(gravity=(0.0, 0.0, 0.0), always_use_articulations=articulated, dt=1e-3, substeps=1)
    asset = world.load(turned_body(tmp_path))
    for _ in range(4):
        world.actor(world.env(), asset)
    change(world, world.envs[1], SECOND)  # before the build
    root = world.prepare("root")
    change(world, world.envs[2], SECOND)  # after it
    change(world, world.envs[3], FIRST, recompute=True, mass=6.0)  # inertia goes with the mass
    found = spin_up(world, root)
    expected = [np.linalg.solve(inertia, TORQUE) for inertia in (FIRST, SECOND, SECOND, 3 * FIRST)]
    np.testing.assert_allclose(found, expected, rtol=2e-3)


@pytest.mark.parametrize("articulated", [False, True], ids=["single body", "articulation"])
def test_set_centre_of_mass_moves_the_point_and_keeps_the_inertia(make_world, tmp_path, articulated):
    world = make_world(gravity=(0.0, 0.0, 0.0), always_use_articulations=articulated, dt=1e-3, substeps=1)
    asset = world.load(turned_body(tmp_path))
    for _ in range(2):
        world.actor(world.env(), asset)
    root = world.prepare("root")
    change(world, world.envs[1], FIRST, com=(-0.2, 0.0, 0.1))
    np.testing.assert_allclose(spin_up(world, root), [np.linalg.solve(FIRST, TORQUE)] * 2, rtol=2e-3)
    world.push(torque=torch.tensor(500 * np.stack([TORQUE] * 2), dtype=torch.float))
    world.step(200)
    # The centres of mass stay where they were at the start; the origins of the bodies turn about them.
    centres = torch.tensor([COM, (-0.2, 0.0, 0.1)])
    moved = root[:, :3] + torch_utils.quat_rotate(root[:, 3:7], centres) - centres
    assert moved.abs().max().item() < 1e-3
    assert root[:, :3].norm(dim=1).min().item() > 0.02
