"""What guards the native engine: versions checked before it loads, GPU buffers sized and logged, overflows reported."""

from __future__ import annotations

import logging
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch
from pxr import Usd
from scenes import asset_options, pose, sim_params

from isaacgym import gymapi
from isaacgym.engine import runtime, simulation
from isaacgym.engine.gpu_buffers import capacities
from isaacgym.engine.usd import StageWriter
from isaacgym.engine.usd_basics import SCENE_PATH


def pretend_versions(monkeypatch, **versions: str | None) -> None:
    """Let the wheels have these versions; None: not installed."""
    real = metadata.version

    def version(name: str) -> str:
        found = versions.get(name, "") if name in versions else real(name)
        if found is None:
            raise metadata.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(metadata, "version", version)


@pytest.mark.parametrize(
    ("versions", "line"),
    [
        ({"ovphysx": "0.8.1"}, "ovphysx 0.8.1 is installed, gymscale needs ovphysx 0.7.0*: pip install gymscale again"),
        ({"ovstage": "0.4.0"}, "ovstage 0.4.0 is installed, gymscale needs ovstage 0.3.*: pip install gymscale again"),
        ({"ovphysx": None}, "ovphysx is not installed; gymscale needs ovphysx 0.7.0*: pip install gymscale again"),
        ({"ovstage": None}, "ovstage is not installed; gymscale needs ovstage 0.3.*: pip install gymscale again"),
    ],
)
def test_versions_are_checked_before_anything_native_is_loaded(monkeypatch, versions, line):
    pretend_versions(monkeypatch, **versions)
    for name in ("warp", "ovphysx", "ovstage"):
        monkeypatch.setitem(sys.modules, name, None)  # importing it would raise ImportError
    with pytest.raises(runtime.RuntimeUnavailableError) as error:
        runtime.Runtime(Path("no-such-stage.usda"), torch.device("cpu"), 0)
    assert str(error.value) == line


def test_installed_versions_are_the_wanted_ones():
    runtime.check_versions()


@pytest.mark.parametrize(
    ("shapes", "contacts", "multiplier", "expected"),
    [
        # A small scene: the least capacities, and what the user asked for.
        (10, 1 << 20, 2.0, (1 << 20, 5 << 14, 1 << 18)),
        (10, 1 << 23, 2.0, (1 << 23, 5 << 14, 1 << 18)),
        # 100,000 shapes: 16 contacts, 4 patches and 16 pairs each, the multiplier's neutral value being 2.
        (100_000, 1 << 20, 2.0, (1_600_000, 400_000, 1_600_000)),
        (100_000, 1 << 20, 5.0, (4_000_000, 1_000_000, 4_000_000)),
    ],
)
def test_gpu_buffers_grow_with_the_scene_and_the_users_settings(shapes, contacts, multiplier, expected):
    found = capacities(shapes, contacts, multiplier)
    assert (found.contacts, found.patches, found.found_lost_pairs) == expected


def test_no_gpu_buffer_exceeds_what_physx_can_count():
    found = capacities(10**9, 1 << 40, 8.0)
    assert max(value for _, _, value in found.attributes()) == 2**31 - 1


def gpu_sim(num_envs: int, **physx) -> simulation.Simulation:
    """A scene for the GPU, described only."""
    gym = gymapi.acquire_gym()
    sim = simulation.Simulation(sim_params(**physx), torch.device("cuda", 0))
    box = gym.create_box(sim, 0.1, 0.1, 0.1, asset_options())
    for _ in range(num_envs):
        env = gym.create_env(sim, gymapi.Vec3(), gymapi.Vec3(), 1)
        gym.create_actor(env, box, pose(), "box", -1, 0)
    return sim


def test_gpu_buffers_are_written_into_the_stage(tmp_path):
    sim = gpu_sim(2, max_gpu_contact_pairs=2**23, default_buffer_size_multiplier=5)
    sim.anchors = simulation.placement.anchors(sim.scene, sim.device)
    path = tmp_path / "scene.usda"
    StageWriter(sim.scene, sim._plan()).save(path)
    stage = Usd.Stage.Open(str(path))
    prim = stage.GetPrimAtPath(SCENE_PATH)
    for name, _, value in capacities(2, 2**23, 5).attributes():
        assert prim.GetAttribute(f"physxScene:{name}").Get() == value, name
    assert prim.GetAttribute("physxScene:gpuMaxRigidContactCount").Get() == 2**23
    assert prim.GetAttribute("physxScene:enableGPUDynamics").Get() is True


class _StopError(Exception):
    pass


def test_gpu_buffers_are_logged_at_the_start(monkeypatch, caplog):
    def stop(*_: object) -> None:
        raise _StopError

    monkeypatch.setattr(simulation, "Runtime", stop)
    sim = gpu_sim(2)
    with caplog.at_level(logging.INFO), pytest.raises(_StopError):
        sim.prepare()
    (line,) = [record.getMessage() for record in caplog.records if "GPU buffers" in record.getMessage()]
    assert "gpuMaxRigidContactCount 1048576" in line
    assert "gpuMaxRigidPatchCount 81920" in line


PATCH_OVERFLOW = "Patch buffer overflow detected, please increase its size to at least 83000 in the scene desc!"


def test_an_overflow_becomes_a_counted_error_that_names_the_settings(make_world, caplog):
    world = make_world()
    world.actor(world.env(), world.box())
    world.prepare("root")
    physx_log = logging.getLogger(runtime.LOGGER_NAME)
    world.step(1)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    for expected in (2, 3):
        caplog.clear()
        physx_log.warning("something else happened")
        if expected == 2:
            physx_log.error(PATCH_OVERFLOW)
        physx_log.error("The application needs to increase the found lost pairs capacity to 300000")
        world.step(3)
        (record,) = [record for record in caplog.records if record.name == simulation.__name__]
        assert record.levelno == logging.ERROR
        text = record.getMessage()
        assert f"PhysX dropped contacts (message {expected})" in text
        assert "capacity to 300000" in text
        assert "raise sim.physx.max_gpu_contact_pairs or sim.physx.default_buffer_size_multiplier" in text


def test_a_gone_simulation_counts_no_longer(make_world):
    world = make_world()
    world.actor(world.env(), world.box())
    world.prepare("root")
    counter = world.sim.runtime.overflow
    world.destroy()
    logging.getLogger(runtime.LOGGER_NAME).error(PATCH_OVERFLOW)
    assert counter.count == 0
