"""Terrain: F37 and F38 of the API notes."""

from __future__ import annotations

import numpy as np
import pytest
from scenes import slider

from isaacgym import gymapi, terrain_utils


def test_F37_sphere_rests_on_a_triangle_mesh(make_world):
    world = make_world()
    heights = np.full((4, 4), 3, dtype=np.int16)
    vertices, triangles = terrain_utils.convert_heightfield_to_trimesh(heights, 1.0, 0.1)
    params = gymapi.TriangleMeshParams()
    params.nb_vertices, params.nb_triangles = vertices.shape[0], triangles.shape[0]
    params.transform.p.x = 10.0
    params.static_friction = params.dynamic_friction = 1.0
    world.gym.add_triangle_mesh(world.sim, vertices.flatten(), triangles.flatten(), params)
    env, ball = world.env(0.0), world.sphere(0.05)
    world.actor(env, ball, (11.5, 1.5, 1.0))
    world.actor(env, ball, (0.0, 0.0, 1.0))
    root = world.prepare("root")
    world.step(120)
    assert root[0, :3].tolist() == pytest.approx([11.5, 1.5, 0.35], abs=2e-3)
    assert root[1, 2].item() < -1.0


@pytest.mark.parametrize("border", [0.0, 2.0])
def test_F38_first_axis_of_a_height_field_is_x(make_world, tmp_path, border):
    """Feelers (spheres on vertical sliders) find the one raised sample at x = 0.5, y = 1.5."""
    samples = np.zeros((3, 5), dtype=np.int16)
    samples[1, 3] = 20
    world = make_world()
    params = gymapi.HeightFieldParams()
    params.row_scale = params.column_scale = 0.5
    params.vertical_scale = 0.01
    params.nbRows, params.nbColumns = samples.shape[1], samples.shape[0]
    params.transform.p.x = params.transform.p.y = -border
    world.gym.add_heightfield(world.sim, samples.flatten(order="C"), params)
    env = world.env(0.0)
    feeler = world.load(slider(tmp_path, (0, 0, 1), '<sphere radius="0.05"/>'), fix_base_link=True)
    spots = {(0.5, 1.5): 0.2, (0.5, 0.5): 0.0, (0.1, 0.6): 0.0, (0.75, 1.5): 0.1, (0.5, 1.25): 0.1}
    for x, y in spots:
        actor = world.actor(env, feeler, (x - border, y - border, 0.8))
        world.set_dofs(env, actor, driveMode=gymapi.DOF_MODE_EFFORT, stiffness=0.0, damping=10.0)
    body = world.prepare("body")
    world.step(120)
    slope = np.hypot(1.0, 0.4)  # on a flank of 0.2 over 0.5 m the sphere's centre is that much higher
    expected = [z + 0.05 * (slope if z == 0.1 else 1.0) for z in spots.values()]
    assert body[1::2, 2].tolist() == pytest.approx(expected, abs=3e-3)


def test_F38_outside_the_height_field_nothing_holds(make_world):
    world = make_world()
    params = gymapi.HeightFieldParams()
    params.row_scale = params.column_scale = 0.5
    params.vertical_scale = 0.01
    params.nbRows, params.nbColumns = 5, 3  # 2.0 m along y, 1.0 m along x
    world.gym.add_heightfield(world.sim, np.zeros(15, dtype=np.int16), params)
    env, ball = world.env(0.0), world.sphere(0.05)
    for at in ((0.8, 1.8, 0.2), (1.2, 0.8, 0.2), (-0.2, 0.8, 0.2)):
        world.actor(env, ball, at)
    root = world.prepare("root")
    world.step(60)
    assert root[0, 2].item() == pytest.approx(0.05, abs=2e-3)
    assert root[1:, 2].max().item() < -1.0


def test_every_group_and_filter_stands_on_the_terrain(make_world):
    world = make_world()
    world.flat_mesh(0.3)
    env, ball = world.env(0.0), world.sphere(0.1)
    for i, (group, mask) in enumerate([(-1, 0), (0, 1), (7, 3), (900, -1)]):
        world.actor(env, ball, (0.5 * i + 0.2, 0.3, 0.45), group=group, mask=mask)
    root = world.prepare("root")
    world.step(60)
    assert root[:, 2].tolist() == pytest.approx([0.4] * 4, abs=2e-3)
