"""Rough terrain: layout (C13), curriculum (C14), height scan (C12) against the height field."""

import math

import numpy as np
import pytest
import torch

from tasks.terrain import Terrain, demotion_speed, heights_at, next_levels, scan_points, turn_by_yaw

CFG = {
    "numLevels": 10, "numTerrains": 20, "mapLength": 8.0, "mapWidth": 8.0, "curriculum": True,
    "terrainProportions": [0.1, 0.1, 0.35, 0.25, 0.2], "slopeTreshold": 0.5,
}  # fmt: skip


@pytest.fixture(scope="module")
def terrain():
    return Terrain(CFG, seed=3)


def tile(terrain, level, kind):
    x, y = 200 + 80 * level, 200 + 80 * kind
    return terrain.heights[x : x + 80, y : y + 80]


def test_C13_size_and_origins(terrain):
    assert terrain.heights.shape == (1200, 2000)
    assert terrain.heights.dtype == np.int16
    assert terrain.origins[3, 12, :2].tolist() == [28.0, 100.0]
    border = terrain.heights.copy()
    border[200:1000, 200:1800] = 0
    assert (border == 0).all()


def test_C13_kinds_of_columns(terrain):
    top = {0: -1, 1: 1, **dict.fromkeys(range(4, 11), -1), **dict.fromkeys(range(11, 16), 1)}
    for kind, sign in top.items():
        centre = tile(terrain, 5, kind)[40, 40]
        assert np.sign(centre) == sign, kind
    for kind in (2, 3):  # rough
        assert len(np.unique(tile(terrain, 0, kind))) > 20
        assert abs(tile(terrain, 0, kind)).max() <= 20
    for kind in range(16, 20):  # obstacles
        assert set(np.unique(tile(terrain, 4, kind))) <= {-16, -8, 0, 8, 16}
        assert (tile(terrain, 4, kind)[25:55, 25:55] == 0).all()


def test_C13_stairs(terrain):
    up = tile(terrain, 5, 12)
    assert len(np.unique(up)) == 10  # nine steps and the rim
    assert up.max() == 243
    assert (up[27:53, 27:53] == 243).all()
    assert up[26, 40] == 216
    assert (up[:3] == 0).all()
    assert up[3, 40] == 27
    assert terrain.origins[5, 12, 2] == pytest.approx(1.215)
    down = tile(terrain, 9, 6)
    assert down.min() == -369
    assert terrain.origins[9, 6, 2] == pytest.approx(-1.845)


def test_C13_slopes(terrain):
    up = tile(terrain, 9, 1)
    assert up.max() == up[40, 40] == 112
    assert (up[10, 40], up[79, 40]) == (72, 7)
    assert terrain.origins[9, 1, 2] == pytest.approx(0.56)
    down = tile(terrain, 5, 0)
    assert (down.min(), down[10, 40]) == (-62, -40)


def test_C13_whole_numbers_of_each_level(terrain):
    steps = [int(tile(terrain, level, 11)[3, 40]) for level in range(10)]
    assert steps == [10, 13, 16, 20, 24, 27, 31, 34, 38, 41]
    obstacles = [int(tile(terrain, level, 16).max()) for level in range(10)]
    assert obstacles == [5, 8, 11, 14, 16, 20, 22, 26, 28, 32]
    slopes = [int(0.4 * (level / 10) * 20 * 40) for level in range(10)]
    assert slopes == [0, 32, 64, 96, 128, 160, 192, 224, 256, 288]
    platforms = [int(slopes[level] * (25 / 40) ** 2) for level in range(10)]
    assert [int(tile(terrain, level, 1)[40, 40]) for level in range(10)] == platforms


def test_stepping_stones_take_the_rest():
    cfg = {**CFG, "numLevels": 10, "numTerrains": 2, "terrainProportions": [0.0, 0.0, 0.0, 0.0, 0.1]}
    stones = Terrain(cfg, seed=0)
    assert (tile(stones, 0, 0) >= -5).all()  # obstacles
    assert set(np.unique(tile(stones, 5, 1))) == {-2000, -1, 0}
    assert (tile(stones, 5, 1)[25:55, 25:55] == 0).all()


def test_C13_mesh_size():
    small = Terrain({**CFG, "numLevels": 1, "numTerrains": 2}, seed=0)
    vertices, triangles = small.mesh()
    rows, columns = small.heights.shape
    assert vertices.shape == (rows * columns, 3)
    assert triangles.shape == (2 * (rows - 1) * (columns - 1), 3)
    assert 2 * 1199 * 1999 == 4_793_602
    assert (vertices.dtype, triangles.dtype) == (np.float32, np.uint32)
    assert vertices[:, 2].reshape(rows, columns) == pytest.approx(small.heights * 0.005, abs=1e-6)


def test_the_seed_decides_and_the_global_generator_is_left_alone():
    cfg = {**CFG, "numLevels": 2, "curriculum": False}
    np.random.seed(5)
    first = Terrain(cfg, seed=1).heights
    after = np.random.rand()
    np.random.seed(5)
    assert np.random.rand() == after
    assert np.array_equal(first, Terrain(cfg, seed=1).heights)
    assert not np.array_equal(first, Terrain(cfg, seed=2).heights)


def test_random_layout_has_all_kinds():
    heights = Terrain({**CFG, "curriculum": False}, seed=0)
    tiles = [tile(heights, i, j) for i in range(10) for j in range(20)]
    stairs = sum(abs(int(t[40, 40])) == 30 * 9 and len(np.unique(t)) == 10 for t in tiles)
    obstacles = sum(set(np.unique(t)) <= {-30, -15, 0, 15, 30} and (t[25:55, 25:55] == 0).all() for t in tiles)
    assert stairs / 200 == pytest.approx(0.5, abs=0.12)
    assert obstacles / 200 == pytest.approx(0.4, abs=0.12)
    assert stairs + obstacles < 200


def test_tiles_must_be_square():
    with pytest.raises(ValueError, match=r"mapLength 8\.0, mapWidth 6"):
        Terrain({**CFG, "mapWidth": 6}, seed=0)


def test_C14_levels():
    levels = torch.tensor([9, 0, 5, 5])
    demoted = torch.tensor([False, True, True, False])
    promoted = torch.tensor([True, False, True, True])
    assert next_levels(levels, demoted, promoted, 10).tolist() == [0, 0, 5, 6]


def test_Q20_demotion_looks_at_each_envs_own_command():
    commands = torch.tensor([[0.3, 0.4, 9.0, 9.0], [0.0, 1.2, 9.0, 9.0]])
    assert torch.allclose(demotion_speed(commands, per_env=True), torch.tensor([0.5, 1.2]))
    assert demotion_speed(commands, per_env=False).item() == pytest.approx(1.3)


def test_C12_scan_points(quat_rpy):
    points = scan_points("cpu")
    assert points.shape == (140, 2)
    for k, expected in ((0, (-0.8, -0.5)), (9, (-0.8, 0.5)), (10, (-0.7, -0.5)), (70, (0.2, -0.5)), (139, (0.8, 0.5))):
        assert points[k].tolist() == pytest.approx(expected)
    turned = turn_by_yaw(quat_rpy(0.05, -0.1, 0.7).unsqueeze(0), points)
    assert turned[0, 0].tolist() == pytest.approx((-0.287517, -0.898518), abs=1e-5)
    assert math.atan2(*turned[0, 0].tolist()[::-1]) - math.atan2(-0.5, -0.8) == pytest.approx(0.702503, abs=1e-5)


def test_C12_heights_are_those_of_the_field(terrain):
    """Within the height difference of one cell of the bilinear surface, and exact at known places."""
    field = torch.tensor(terrain.heights)
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(50_000, 2, generator=generator) * torch.tensor([120.0, 200.0]) - 20.0
    sampled = heights_at(field, points)
    cells = ((points + 20.0) / 0.1).long()
    i, j = cells[:, 0].clamp(max=1198), cells[:, 1].clamp(max=1998)
    corners = torch.stack([field[i + a, j + b] for a in (0, 1) for b in (0, 1)]).float() * 0.005
    assert (sampled >= corners.amin(0) - 1e-6).all()
    assert (sampled <= corners.amax(0) + 1e-6).all()
    top = torch.tensor([[44.0, 100.0]])  # centre of level 5, stairs
    assert heights_at(field, top).item() == pytest.approx(1.215)
    outside = torch.tensor([[-99.0, 5.0], [500.0, 500.0]])
    assert heights_at(field, outside).tolist() == [0.0, 0.0]
