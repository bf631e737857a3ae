"""Counts, indices and clocks: E7, E8, E10, F36, F39, F40 of the API notes, cost of building, B34."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest
from scenes import World, arm, joint, link, urdf

from isaacgym import gymapi, gymtorch


def arms_and_cubes(world, path):
    """Two envs with an arm (3 bodies, 2 DOFs) and a cube each."""
    asset, cube = world.load(path, fix_base_link=True), world.box(0.1, 1.0)
    for _ in range(2):
        env = world.env(per_row=2)
        world.actor(env, asset, (0.0, 0.0, 1.0), name="arm")
        world.actor(env, cube, (1.0, 0.0, 1.0), name="cube")


def check_counts(world):
    gym, sim = world.gym, world.sim
    assert gym.get_env_count(sim) == 2
    assert gym.get_sim_actor_count(sim) == 4
    assert gym.get_sim_rigid_body_count(sim) == 8
    assert gym.get_sim_dof_count(sim) == 4
    for env in world.envs:
        assert gym.get_actor_count(env) == 2
        assert gym.get_env_rigid_body_count(env) == 4
        assert gym.get_env_dof_count(env) == 2
        assert gym.get_actor_rigid_body_count(env, 0) == 3
        assert gym.get_actor_dof_count(env, 0) == 2
        assert gym.get_actor_dof_count(env, 1) == 0


def check_indices(world):
    gym, (env0, env1) = world.gym, world.envs
    assert [gym.get_actor_index(env1, h, gymapi.DOMAIN_SIM) for h in (0, 1)] == [2, 3]
    assert [gym.get_actor_index(env1, h, gymapi.DOMAIN_ENV) for h in (0, 1)] == [0, 1]
    assert gym.find_actor_index(env0, "cube", gymapi.DOMAIN_SIM) == 1
    assert gym.find_actor_handle(env1, "cube") == 1
    assert gym.get_actor_name(env1, 1) == "cube"
    find = gym.find_actor_rigid_body_index
    assert find(env1, 0, "link2", gymapi.DOMAIN_ACTOR) == 2
    assert find(env1, 0, "link2", gymapi.DOMAIN_ENV) == 2
    assert find(env1, 0, "link2", gymapi.DOMAIN_SIM) == 6
    assert gym.find_actor_rigid_body_handle(env1, 0, "link2") == 2
    assert gym.get_actor_rigid_body_handle(env1, 1, 0) == 3
    assert gym.find_actor_dof_handle(env1, 0, "joint2") == 1


def test_E7_counts_and_indices(make_world, tmp_path):
    world = make_world()
    arms_and_cubes(world, arm(tmp_path))
    check_counts(world)
    check_indices(world)
    world.prepare("root")
    check_counts(world)
    check_indices(world)


def test_E7_missing_names_are_minus_one(make_world, tmp_path):
    world = make_world()
    arms_and_cubes(world, arm(tmp_path))
    gym, env = world.gym, world.envs[1]
    assert gym.find_actor_handle(env, "table") == -1
    assert gym.find_actor_index(env, "table", gymapi.DOMAIN_SIM) == -1
    assert gym.find_actor_rigid_body_index(env, 0, "link9", gymapi.DOMAIN_SIM) == -1
    assert gym.find_actor_rigid_body_handle(env, 0, "link9") == gymapi.INVALID_HANDLE
    assert gym.find_actor_dof_handle(env, 0, "joint9") == -1


def test_E7_names_and_dictionaries(make_world, tmp_path):
    world = make_world()
    arms_and_cubes(world, arm(tmp_path))
    gym, env = world.gym, world.envs[1]
    assert gym.get_actor_rigid_body_names(env, 0) == ["base", "link1", "link2"]
    assert gym.get_actor_dof_names(env, 0) == ["joint1", "joint2"]
    assert gym.get_actor_rigid_body_dict(env, 0) == {"base": 0, "link1": 1, "link2": 2}
    assert gym.get_actor_dof_dict(env, 0) == {"joint1": 0, "joint2": 1}
    assert gym.get_actor_rigid_shape_count(env, 1) == 1
    at = gym.get_rigid_transform(env, gym.find_actor_rigid_body_handle(env, 0, "link2")).p
    assert (at.x, at.y, at.z) == pytest.approx((0.5, 0.0, 1.5), abs=1e-6)  # env-local, before prepare_sim


def test_E8_dof_properties_of_a_revolute_joint(make_world, tmp_path):
    world = make_world()
    hinge = joint("j", "revolute", "a", "b", lower=-1, upper=2, effort=33, velocity=21, damping=0.1)
    asset = world.load(urdf(tmp_path, "hinge", link("a"), link("b"), hinge))
    expected = (True, -1.0, 2.0, 0, 21.0, 33.0, 0.0, 0.1, 0.0, 0.0)
    fields = ("hasLimits", "lower", "upper", "driveMode", "velocity", "effort")
    fields += ("stiffness", "damping", "friction", "armature")
    env = world.env()
    actor = world.actor(env, asset)
    for props in (world.gym.get_asset_dof_properties(asset), world.gym.get_actor_dof_properties(env, actor)):
        assert props.dtype.names == fields
        assert props.dtype.itemsize == 40
        assert tuple(props[0].item()) == pytest.approx(expected)


def test_E10_asset_edits_reach_later_actors_only(make_world):
    world = make_world()
    asset = world.box()
    first = world.actor(world.env(), asset, (0.0, 0.0, 1.0))
    shapes = world.gym.get_asset_rigid_shape_properties(asset)
    shapes[0].friction = 0.3
    assert world.gym.set_asset_rigid_shape_properties(asset, shapes)
    second = world.actor(world.env(), asset, (0.0, 0.0, 1.0))

    def frictions():
        pairs = zip(world.envs, (first, second), strict=True)
        return [world.gym.get_actor_rigid_shape_properties(env, actor)[0].friction for env, actor in pairs]

    assert frictions() == pytest.approx([1.0, 0.3])
    world.prepare("root")
    world.step()
    assert frictions() == pytest.approx([1.0, 0.3])


def test_E10_friction_of_each_env_acts(make_world):
    world = make_world()
    world.plane(friction=0.0)
    asset = world.box(0.5, 1.0)
    shapes = world.gym.get_asset_rigid_shape_properties(asset)
    for friction in (0.2, 0.8, 0.4):
        shapes[0].friction = friction
        world.gym.set_asset_rigid_shape_properties(asset, shapes)
        world.actor(world.env(per_row=2), asset, (0.0, 0.0, 0.25))
    root = world.prepare("root")
    root[:, 7] = 2.0
    world.write_root(root)
    world.step(10)
    expected = [2.0 - mean * 9.81 / 6 for mean in (0.1, 0.4, 0.2)]
    assert root[:, 7].tolist() == pytest.approx(expected, abs=0.04)


def count_calls(work) -> int:
    """Number of Python and C function calls that `work` makes."""
    calls = 0

    def count(_frame, event, _arg):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def test_4096_actors_cost_the_same_work_each(make_world, tmp_path):
    """Recording an actor must not look at the actors before it (time is measured by hand, not here)."""
    world = make_world()
    asset = world.load(arm(tmp_path), fix_base_link=True)
    place = gymapi.Transform(gymapi.Vec3(0.0, 0.0, 1.0))

    def create(count: int):
        for _ in range(count):
            env = world.env(per_row=64)
            world.gym.create_actor(env, asset, place, "arm", len(world.envs) - 1, 1, 0)

    create(64)
    first = count_calls(lambda: create(256))
    create(4096 - 64 - 512)
    last = count_calls(lambda: create(256))
    assert last <= 1.05 * first
    assert last / 256 < 400
    assert world.gym.get_sim_actor_count(world.sim) == 4096
    assert world.gym.get_sim_rigid_body_count(world.sim) == 3 * 4096
    assert world.gym.get_actor_index(world.envs[-1], 0, gymapi.DOMAIN_SIM) == 4095


def test_F36_frame_count_and_time(make_world):
    world = make_world(dt=0.005, substeps=4)
    world.actor(world.env(), world.box(), (0.0, 0.0, 1.0))
    world.prepare("root")
    assert world.gym.get_frame_count(world.sim) == 0
    world.step(10)
    assert world.gym.get_frame_count(world.sim) == 10
    assert world.gym.get_sim_time(world.sim) == pytest.approx(0.05, abs=1e-6)
    assert world.gym.get_sim_params(world.sim).dt == pytest.approx(0.005, rel=1e-6)
    assert world.gym.get_elapsed_time(world.sim) > 0.0


def test_F39_headless_viewer_calls_are_harmless(make_world):
    world = make_world()
    gym, sim = world.gym, world.sim
    world.actor(world.env(), world.box(), (0.0, 0.0, 1.0))
    world.prepare("root")
    assert gym.query_viewer_has_closed(None) is False
    assert gym.step_graphics(sim) is None
    assert gym.draw_viewer(None, sim, True) is None
    assert gym.query_viewer_action_events(None) == []
    assert gym.sync_frame_time(sim) is None
    assert gym.clear_lines(None) is None
    assert gym.poll_viewer_events(None) is None
    assert gym.subscribe_viewer_keyboard_event(None, gymapi.KEY_V, "toggle") is None


def test_F40_unsupported_calls_name_themselves(make_world):
    gym = make_world().gym
    create = gym.create_cloth_grid  # taking the attribute is allowed
    with pytest.raises(NotImplementedError, match="create_cloth_grid"):
        create(None, None, None)
    with pytest.raises(NotImplementedError, match="set_rigid_body_state_tensor"):
        gym.set_rigid_body_state_tensor(None, None)
    with pytest.raises(AttributeError):
        gym.no_such_function  # noqa: B018


def test_gym_is_one_object():
    assert gymapi.acquire_gym() is gymapi.acquire_gym()


def test_sims_one_after_another(make_world):
    for height in (3.0, 4.0, 5.0):
        world = make_world()
        world.actor(world.env(), world.sphere(), (0.0, 0.0, height))
        root = world.prepare("root")
        world.step(6)
        assert root[0, 2].item() == pytest.approx(height - 9.81 / 120**2 * 12 * 13 / 2, abs=1e-4)


def resident_kib() -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def test_B34_a_step_does_not_grow_with_the_cycles(make_world, tmp_path):
    """Cycle 1000 makes the calls of cycle 10; neither Python objects nor memory pile up."""
    world: World = make_world()
    world.plane()
    arms_and_cubes(world, arm(tmp_path))
    root, dof, _, _ = world.prepare("root", "dof", "body", "contact")

    def cycle():
        world.gym.set_dof_actuation_force_tensor(world.sim, gymtorch.unwrap_tensor(0.1 * dof[:, 0].contiguous()))
        world.step()
        world.write_root(root, 1)

    for _ in range(10):
        cycle()
    calls = count_calls(cycle)
    for _ in range(190):
        cycle()
    gc.collect()
    objects, memory = len(gc.get_objects()), resident_kib()
    for _ in range(800):
        cycle()
    gc.collect()
    assert len(gc.get_objects()) - objects < 50
    assert resident_kib() - memory < 4096
    assert count_calls(cycle) <= calls
