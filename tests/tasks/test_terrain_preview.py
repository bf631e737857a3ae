"""The picture of the terrain: the same terrain and places as training gets, and a PNG that says so."""

import struct
import zlib

import numpy as np
import pytest
import torch

from gymscale.scripts import play
from tasks import terrain_preview
from tasks.terrain import Terrain


def read_png(path):
    """Pixels (rows, columns, 3) of an 8-bit RGB PNG without row filters; checks every chunk's sum."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        chunks[kind] = body
        at += 12 + length
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, colour, rest, list(chunks)) == (8, 2, [0, 0, 0], [b"IHDR", b"IDAT", b"IEND"])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert (rows[:, 0] == 0).all()
    return rows[:, 1:].reshape(height, width, 3)


def test_png_is_read_back_pixel_by_pixel(tmp_path):
    picture = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    terrain_preview.write_png(tmp_path / "new" / "a.png", picture)
    assert (read_png(tmp_path / "new" / "a.png") == picture).all()


def test_marks_lie_at_the_origins_with_x_to_the_right_and_y_upwards(load_cfg):
    cfg = load_cfg("task", "AnymalTerrain")["env"]["terrain"]
    cfg.update(numLevels=2, numTerrains=3)
    terrain = Terrain(cfg, seed=1)
    picture = terrain_preview.draw(terrain, terrain.origins[1, :1])
    assert picture.shape == (640, 560, 3)
    # Tile (level, kind) has its centre at cell 200 + 80 level + 40 along x and 200 + 80 kind + 40 along y.
    assert picture[639 - 240, 320].tolist() == list(terrain_preview.ENV_COLOUR)
    assert picture[639 - 400, 240].tolist() == list(terrain_preview.TILE_COLOUR)
    coloured = (picture[..., 0] != picture[..., 1]).sum()
    assert coloured == 6 * 7 * 7


def test_slopes_that_face_the_light_are_brighter_than_those_that_do_not():
    heights = np.zeros((40, 20), np.int16)
    heights[10:20] = np.arange(10)[:, None] * 10
    heights[20:30] = 90 - np.arange(10)[:, None] * 10
    grey = terrain_preview.shade(heights)[..., 0].astype(int)
    assert grey[14, 10] > grey[5, 10] > grey[27, 10]


def test_the_preview_is_the_terrain_that_the_task_gets(make_task, fake_gym, load_cfg):
    env = load_cfg("task", "AnymalTerrain")["env"]
    env["terrain"].update(numLevels=3, numTerrains=4, maxInitMapLevel=2)

    def seed():
        np.random.seed(5)
        torch.manual_seed(5)

    seed()
    picture = terrain_preview.preview(env, 6)
    seed()
    cfg = load_cfg("task", "AnymalTerrain")
    cfg["env"] = env
    task = make_task("AnymalTerrain", cfg=cfg, numEnvs=6)
    first = task.tile_origins[task.terrain_levels, task.terrain_types].numpy()
    assert (picture == terrain_preview.draw(task.terrain, first)).all()


def test_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tiles = ["task.env.terrain.numLevels=2", "task.env.terrain.numTerrains=2"]
    assert play.main(["task=AnymalTerrain", "terrain_preview=True", "seed=7", *tiles]) == 0
    assert "wrote runs/AnymalTerrain_terrain_seed7.png (560 x 560 pixels" in capsys.readouterr().out
    assert read_png(tmp_path / "runs" / "AnymalTerrain_terrain_seed7.png").shape == (560, 560, 3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["task=Ant", "terrain_preview=True"], "this task has no terrain; use task=AnymalTerrain"),
        (["task=AnymalTerrain", "terrain_preview=yes"], "terrain_preview must be True or False, got 'yes'"),
        (
            ["task=AnymalTerrain", "terrain_preview=True", "task.env.terrain.terrainType=plane"],
            "env.terrain.terrainType is plane; set it to trimesh",
        ),
        (
            ["task=AnymalTerrain", "terrain_preview=True", "task.env.terrain.mapWidth=7"],
            "terrain tiles must be square: mapLength 8.0, mapWidth 7",
        ),
        (["task=AnymalTerrain", "terrain_preview=False"], "play.py needs checkpoint=PATH"),
    ],
)
def test_mistakes_are_one_line(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert play.main(words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
