"""Procedural terrain (API notes, section 15, test cases D1-D5)."""

from __future__ import annotations

import numpy as np
import pytest

from isaacgym import terrain_utils as terrain
from isaacgym.terrain_utils import SubTerrain


@pytest.fixture(autouse=True)
def _seed():
    np.random.seed(0)


def patch(width=20, length=20, vertical_scale=0.005, horizontal_scale=0.1):
    return SubTerrain("patch", width, length, vertical_scale, horizontal_scale)


def test_D1_convert_heightfield_to_trimesh():
    vertices, triangles = terrain.convert_heightfield_to_trimesh(np.array([[0, 1, 0], [0, 0, 2]]), 0.5, 0.1)
    expected = [(0, 0, 0), (0, 0.5, 0.1), (0, 1, 0), (0.5, 0, 0), (0.5, 0.5, 0), (0.5, 1, 0.2)]
    np.testing.assert_allclose(vertices, expected, atol=1e-6)
    assert triangles.tolist() == [[0, 4, 1], [0, 3, 4], [1, 5, 2], [1, 4, 5]]
    assert (vertices.dtype, triangles.dtype) == (np.float32, np.uint32)


def test_D1_triangles_face_up_and_cover_the_field():
    field = np.random.randint(-50, 50, (7, 5)).astype(np.int16)
    vertices, triangles = terrain.convert_heightfield_to_trimesh(field, 0.25, 0.005)
    assert vertices.shape == (35, 3)
    assert triangles.shape == (2 * 6 * 4, 3)
    a, b, c = (vertices[triangles[:, i]].astype(float) for i in range(3))
    normals = np.cross(b - a, c - a)
    assert (normals[:, 2] > 0).all()
    assert 0.5 * normals[:, 2].sum() == pytest.approx(6 * 4 * 0.25**2)
    np.testing.assert_allclose(vertices[:, 2], 0.005 * field.reshape(-1), rtol=1e-6)


def test_D2_steep_slopes_become_vertical():
    field = np.repeat([[0], [10], [10]], 3, axis=1)
    vertices, _ = terrain.convert_heightfield_to_trimesh(field, 0.1, 0.1, 0.75)
    np.testing.assert_allclose(vertices[0], [0.1, 0.1, 0], atol=1e-6)
    np.testing.assert_allclose(vertices[1], [0.1, 0.2, 0], atol=1e-6)
    np.testing.assert_allclose(vertices[3], [0.1, 0, 1], atol=1e-6)


def test_D2_a_step_down_moves_its_foot_the_other_way():
    field = np.repeat([[10], [10], [0]], 3, axis=1)
    vertices, _ = terrain.convert_heightfield_to_trimesh(field, 0.1, 0.1, 0.75)
    np.testing.assert_allclose(vertices.reshape(3, 3, 3)[2, :, 0], 0.1, atol=1e-6)
    np.testing.assert_allclose(vertices.reshape(3, 3, 3)[1, :, 0], 0.1, atol=1e-6)


def test_D2_slopes_below_the_threshold_stay_and_int16_does_not_overflow():
    field = np.array([[-30000, 30000], [30000, -30000]], np.int16)
    flat, _ = terrain.convert_heightfield_to_trimesh(field, 1.0, 0.001, 61.0)
    np.testing.assert_allclose(flat[:, :2], [[0, 0], [0, 1], [1, 0], [1, 1]])
    steep, _ = terrain.convert_heightfield_to_trimesh(field, 1.0, 0.001, 59.0)
    np.testing.assert_allclose(steep[:, :2], [[1, 1], [0, 1], [1, 0], [0, 0]])


def test_D3_pyramid_stairs():
    stairs = terrain.pyramid_stairs_terrain(patch(), 0.3, 0.1, 1.0)
    row = [0, 0, 20, 20, 40, 40, *[60] * 8, 40, 40, 20, 20, 0, 0]
    assert stairs.height_field_raw[10].tolist() == row
    assert stairs.height_field_raw[:, 10].tolist() == row
    pit = terrain.pyramid_stairs_terrain(patch(), 0.3, -0.1, 1.0)
    assert pit.height_field_raw[10].tolist() == [-height for height in row]


def test_D3_pyramid_stairs_of_a_long_field_stop_at_the_platform():
    heights = terrain.pyramid_stairs_terrain(patch(12, 40), 0.2, 0.05, 0.5).height_field_raw
    assert heights.max() == 20
    assert heights[4:8, 4:36].min() == 20
    assert (heights == 20).sum() == 4 * 32


def test_D4_pyramid_sloped():
    heights = terrain.pyramid_sloped_terrain(patch(), 0.4, 0.5).height_field_raw
    rise = [0, 8, 16, 24, 32, 40, 48]
    assert heights[10].tolist() == [*rise, *[51] * 7, *rise[:0:-1]]
    assert heights.dtype == np.int16
    pit = terrain.pyramid_sloped_terrain(patch(), -0.4, 0.5).height_field_raw
    np.testing.assert_array_equal(pit, -heights)


def test_D5_sloped_and_stairs():
    sloped = terrain.sloped_terrain(patch(8, 8), 0.2).height_field_raw
    assert sloped[:, 0].tolist() == list(range(0, 32, 4))
    assert (sloped == sloped[:, :1]).all()
    stairs = terrain.stairs_terrain(patch(8, 8), 0.2, 0.05).height_field_raw
    assert stairs[:, 0].tolist() == [10, 10, 20, 20, 30, 30, 40, 40]


def test_D5_stairs_add_and_leave_the_rest():
    field = patch(9, 4)
    field.height_field_raw[:] = 1
    heights = terrain.stairs_terrain(field, 0.2, 0.05).height_field_raw
    assert heights[:, 0].tolist() == [11, 11, 21, 21, 31, 31, 41, 41, 1]


def test_sub_terrain_defaults():
    field = SubTerrain()
    assert (field.terrain_name, field.width, field.length) == ("terrain", 256, 256)
    assert (field.vertical_scale, field.horizontal_scale) == (1.0, 1.0)
    assert field.height_field_raw.shape == (256, 256)
    assert field.height_field_raw.dtype == np.int16
    assert SubTerrain(width=3, length=5).height_field_raw.shape == (3, 5)


def test_generators_change_and_return_the_terrain():
    field = patch()
    for generate in (
        lambda: terrain.random_uniform_terrain(field, -0.05, 0.05, 0.005, 0.2),
        lambda: terrain.sloped_terrain(field, 0.1),
        lambda: terrain.pyramid_sloped_terrain(field, 0.1),
        lambda: terrain.discrete_obstacles_terrain(field, 0.2, 0.5, 1.0, 3),
        lambda: terrain.wave_terrain(field),
        lambda: terrain.stairs_terrain(field, 0.3, 0.05),
        lambda: terrain.pyramid_stairs_terrain(field, 0.3, 0.05),
        lambda: terrain.stepping_stones_terrain(field, 0.5, 0.1, 0.05),
    ):
        before = field.height_field_raw.copy()
        assert generate() is field
        assert field.height_field_raw.dtype == np.int16
        assert (field.height_field_raw != before).any()


def test_random_uniform_on_the_full_grid_has_the_levels_asked_for():
    heights = terrain.random_uniform_terrain(patch(60, 40), -0.05, 0.05, 0.025).height_field_raw
    assert sorted(set(heights.reshape(-1).tolist())) == [-10, -5, 0, 5, 10]


def test_random_uniform_adds_and_interpolates_linearly():
    field = patch(9, 9, vertical_scale=0.001)
    field.height_field_raw[:] = 100
    terrain.random_uniform_terrain(field, -0.08, 0.08, 0.016, downsampled_scale=0.3)  # 3 x 3 corners, every 4th cell
    noise = field.height_field_raw - 100
    corners = noise[::4, ::4]
    assert set(corners.reshape(-1).tolist()) <= set(range(-80, 81, 16))
    np.testing.assert_array_equal(noise[2, ::4], (corners[0] + corners[1]) // 2)
    np.testing.assert_array_equal(noise[::4, 6], (corners[:, 1] + corners[:, 2]) // 2)
    np.random.seed(0)
    again = terrain.random_uniform_terrain(patch(9, 9, 0.001), -0.08, 0.08, 0.016, 0.3)
    np.testing.assert_array_equal(again.height_field_raw, noise)


def test_discrete_obstacles_have_four_heights_and_a_platform():
    heights = terrain.discrete_obstacles_terrain(patch(60, 80), 0.075, 0.5, 1.5, 200, 2.0).height_field_raw
    assert sorted(set(heights.reshape(-1).tolist())) == [-15, -8, 0, 7, 15]
    assert not heights[20:40, 30:50].any()


def test_wave():
    heights = terrain.wave_terrain(patch(20, 40), num_waves=2, amplitude=0.5).height_field_raw
    i, j = np.meshgrid(np.arange(20), np.arange(40), indexing="ij")
    scale = 40 / (2 * 2 * np.pi)
    np.testing.assert_array_equal(heights, (50 * np.cos(j / scale) + 50 * np.sin(i / scale)).astype(np.int16))
    assert not terrain.wave_terrain(patch(), num_waves=0).height_field_raw.any()


@pytest.mark.parametrize("shape", [(40, 61), (61, 40), (40, 40)])
def test_stepping_stones(shape):
    heights = terrain.stepping_stones_terrain(patch(*shape), 0.5, 0.2, 0.05, 1.0, depth=-2.0).height_field_raw
    hole = heights == -400
    assert heights[~hole].min() >= -11
    assert heights[~hole].max() <= 9
    centre_x, centre_y = shape[0] // 2, shape[1] // 2
    assert not heights[centre_x - 5 : centre_x + 5, centre_y - 5 : centre_y + 5].any()
    rows = hole.T if shape[1] >= shape[0] else hole  # rows of stones follow the longer axis
    assert (rows.all(1)[:14] == np.array([False] * 5 + [True] * 2 + [False] * 5 + [True] * 2)).all()


@pytest.mark.parametrize(
    "generate",
    [
        lambda field: terrain.stairs_terrain(field, 0.05, 0.1),
        lambda field: terrain.pyramid_stairs_terrain(field, 0.05, 0.1),
        lambda field: terrain.stepping_stones_terrain(field, 0.05, 0.1, 0.1),
        lambda field: terrain.random_uniform_terrain(field, -0.1, 0.1, 0.001),
    ],
)
def test_sizes_below_the_resolution_are_refused(generate):
    with pytest.raises(ValueError, match="below (horizontal|vertical)_scale"):
        generate(patch())


def test_star_import_gives_what_terrain_scripts_use():
    names: dict = {}
    exec("from isaacgym.terrain_utils import *", names)
    assert names["np"] is np
    assert names["choice"] is np.random.choice
    assert names["interpolate"].__name__ == "scipy.interpolate"
    assert names["sqrt"](4) == 2
