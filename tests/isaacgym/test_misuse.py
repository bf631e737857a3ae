"""Calls in the wrong order or with wrong arguments are told in one line; unusual but right ones work."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scenes import World, asset_options, indices, pose, slider

from isaacgym import gymapi, gymtorch


def test_a_simulation_without_actors_steps_and_has_empty_tensors(make_world):
    world = make_world()
    world.plane()
    tensors = world.prepare("root", "dof", "body", "contact", "sensor", "dof_force")
    world.step(2)
    assert [tuple(tensor.shape) for tensor in tensors] == [(0, 13), (0, 2), (0, 13), (0, 3), (0, 6), (0,)]
    assert world.gym.acquire_jacobian_tensor(world.sim, "ant") is None
    assert world.gym.get_frame_count(world.sim) == 2


def test_an_env_without_actors_among_others(make_world):
    world = make_world()
    box = world.box()
    for filled in (True, False, True):
        env = world.env()
        if filled:
            world.actor(env, box, (0.0, 0.0, 3.0))
    root = world.prepare("root")
    assert root[:, :3].tolist() == [[0, 0, 3], [0, 0, 3]]


def test_nothing_can_be_added_after_prepare_sim(make_world):
    world = make_world()
    env, box = world.env(), world.box()
    world.actor(env, box)
    world.prepare("root")
    gym, sim = world.gym, world.sim
    for call in (
        lambda: gym.create_actor(env, box, pose(), "late", 0, 0),
        lambda: gym.create_env(sim, gymapi.Vec3(), gymapi.Vec3(), 1),
        lambda: gym.add_ground(sim, gymapi.PlaneParams()),
    ):
        with pytest.raises(RuntimeError, match="the simulation is prepared already"):
            call()
    assert gym.get_sim_actor_count(sim) == 1


def test_envs_are_filled_one_after_the_other(make_world):
    world = make_world()
    first, box = world.env(), world.box()
    world.env()
    with pytest.raises(ValueError, match="create_actor: a later env exists already"):
        world.gym.create_actor(first, box, pose(), "box", 0, 0)


def test_force_sensors_come_before_actors(make_world, tmp_path):
    world = make_world()
    asset = world.load(slider(tmp_path))
    assert world.gym.create_asset_force_sensor(asset, 7, pose()) == -1
    assert world.gym.create_asset_force_sensor(asset, 1, pose()) == 0
    env = world.env()
    actor = world.actor(env, asset)
    with pytest.raises(RuntimeError, match="create_asset_force_sensor: the asset has actors already"):
        world.gym.create_asset_force_sensor(asset, 1, pose())
    assert world.gym.get_actor_force_sensor_count(env, actor) == world.gym.get_sim_force_sensor_count(world.sim) == 1


def test_force_sensors_of_single_bodies_read_zero_and_that_is_said(make_world, caplog):
    world = make_world()
    box = world.box()
    world.gym.create_asset_force_sensor(box, 0, pose())
    world.actor(world.env(), box)
    sensor = world.prepare("sensor")
    world.step(2)
    assert sensor.tolist() == [[0.0] * 6]
    assert "force sensors on actors of a single body read zero; physx.always_use_articulations" in caplog.text


def test_force_sensors_of_single_bodies_as_articulations(make_world):
    world = make_world(always_use_articulations=True)
    box = world.box(mass=2.0)
    world.gym.create_asset_force_sensor(box, 0, pose())
    world.actor(world.env(), box)
    sensor = world.prepare("sensor")
    world.step(2)
    assert sensor[0].tolist() == pytest.approx([0, 0, -2 * 9.81, 0, 0, 0], abs=1e-3)  # free fall: mass times gravity


@pytest.mark.parametrize("wrong", [2, -1])
def test_there_is_no_such_actor(make_world, tmp_path, capsys, wrong):
    world = make_world()
    asset = world.load(slider(tmp_path))
    for _ in range(2):
        world.actor(world.env(), asset)
    root, dofs = world.prepare("root", "dof")
    gym, sim, wrap = world.gym, world.sim, gymtorch.unwrap_tensor
    for function, tensor in (
        (gym.set_actor_root_state_tensor_indexed, root),
        (gym.set_dof_state_tensor_indexed, dofs),
        (gym.set_dof_position_target_tensor_indexed, torch.zeros(2)),
    ):
        assert not function(sim, wrap(tensor), indices(0, wrong), 2)
        assert f"{function.__name__}: there is no actor {wrong}; the simulation has 2" in capsys.readouterr().err
        assert function(sim, wrap(tensor), indices(0, wrong), 1)  # only the first counts


def test_one_value_for_every_dof(make_world, tmp_path):
    world = make_world()
    env = world.env()
    world.actor(env, world.load(slider(tmp_path)), name="car")
    for function in (
        world.gym.set_actor_dof_position_targets,
        world.gym.set_actor_dof_velocity_targets,
        world.gym.apply_actor_dof_efforts,
    ):
        with pytest.raises(ValueError, match="3 values for the 1 DOFs of actor 'car'"):
            function(env, 0, np.zeros(3, np.float32))


@pytest.mark.parametrize(("dt", "substeps"), [(0.0, 2), (-0.1, 2), (0.1, 0), (float("nan"), 1)])
def test_time_goes_on(make_world, dt, substeps):
    params = gymapi.SimParams()
    params.dt, params.substeps = dt, substeps
    gym = gymapi.acquire_gym()
    with pytest.raises(ValueError, match=r"create_sim: dt is .*; dt > 0 and at least 1 substep are needed"):
        gym.create_sim(0, -1, gymapi.SIM_PHYSX, params)
    with pytest.raises(ValueError, match="set_sim_params: dt is"):
        gym.set_sim_params(make_world().sim, params)


def test_parameters_that_the_build_has_fixed_are_named_once(make_world, caplog):
    world = make_world()
    world.actor(world.env(), world.box())
    world.prepare("root")
    params = world.gym.get_sim_params(world.sim)
    params.gravity = gymapi.Vec3(0.0, 0.0, -1.0)
    world.gym.set_sim_params(world.sim, params)
    assert "set_sim_params" not in caplog.text
    params.physx.rest_offset, params.physx.num_position_iterations = 0.125, 9
    for _ in range(2):
        world.gym.set_sim_params(world.sim, params)
    message = "after prepare_sim this cannot change and is ignored: physx.num_position_iterations, physx.rest_offset"
    assert caplog.text.count(message) == 1
    assert world.gym.get_sim_params(world.sim).physx.rest_offset != 0.125


def test_a_destroyed_simulation_is_not_built_again(make_world):
    world = make_world()
    world.actor(world.env(), world.box())
    world.prepare("root")
    sim = world.sim
    world.destroy()
    world.gym.destroy_sim(sim)
    with pytest.raises(RuntimeError, match="the simulation has been destroyed; create a new one with create_sim"):
        world.gym.simulate(sim)


def test_a_failed_build_is_told_once_more_and_leaves_nothing_behind(make_world, monkeypatch):
    world = make_world()
    world.actor(world.env(), world.box())
    monkeypatch.setattr("isaacgym.engine.simulation.LiveProperties", None)
    with pytest.raises(TypeError):
        world.gym.prepare_sim(world.sim)
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="has been destroyed"):
        world.gym.simulate(world.sim)


def test_two_simulations_at_a_time_do_not_know_of_each_other(make_world):
    """Boxes fall h^2 n (n + 1) g / 2 in n steps, each in its own time."""

    def fallen(simulates: int) -> float:
        steps = 2 * simulates
        return 9.81 / 120**2 * steps * (steps + 1) / 2

    first = make_world()
    first.actor(first.env(), first.box(), (0.0, 0.0, 9.0))
    one = first.prepare("root")
    first.step(3)
    second = World()
    try:
        second.actor(second.env(), second.gym.create_box(second.sim, 0.2, 0.2, 0.2, asset_options()), (0.0, 0.0, 5.0))
        other = second.prepare("root")
        second.step(10)
        first.step(2)
        assert float(one[0, 2]) == pytest.approx(9.0 - fallen(5), abs=1e-4)
        assert float(other[0, 2]) == pytest.approx(5.0 - fallen(10), abs=1e-4)
    finally:
        second.destroy()
    first.step(1)
    assert float(one[0, 2]) == pytest.approx(9.0 - fallen(6), abs=1e-4)
