"""Tasks on the real simulator: reset state (C16b), assets (C18), resets that leave others alone, resume, guard."""

import math
import resource
from pathlib import Path

from isaacgym import gymapi, gymtorch  # isort: skip
import numpy as np
import pytest
import torch

from tasks import registry


@pytest.fixture
def build(load_cfg):
    """Build a task on PhysX; the one built before is closed, since PhysX is global to a process."""
    living = []

    def make(name, num_envs, seed=0, randomization=None, sections=(), **env):
        while living:
            living.pop().close()
        torch.manual_seed(seed)
        np.random.seed(seed)
        cfg = load_cfg("task", name)
        cfg["env"].update(numEnvs=num_envs, **env)
        for section, changes in dict(sections).items():
            cfg["env"][section].update(changes)
        if randomization is not None:
            cfg["task"].update(randomize=True, randomization_params=randomization)
        living.append(registry.get(name)(cfg, "cpu", "cpu"))
        return living[-1]

    yield make
    while living:
        living.pop().close()


def action_sequence(steps, num_envs, num_actions):
    generator = torch.Generator().manual_seed(11)
    return torch.rand(steps, num_envs, num_actions, generator=generator) * 2 - 1


def rollout(task, actions):
    rows = []
    for action in actions:
        obs, reward, done, extras = task.step(action)
        rows.append(torch.cat([obs["obs"], reward[:, None], done[:, None], extras["time_outs"][:, None]], dim=1))
    return torch.stack(rows)


def test_C16b_first_reward_of_ant_depends_on_the_reset_state_only(build):
    task = build("Ant", 500)
    obs, reward, done, _ = task.step(task.zero_actions())
    assert done.sum() == 0
    assert set((reward * 10).round().tolist()) == {9.0, 10.0, 11.0}
    assert torch.allclose(reward, (reward * 10).round() / 10, atol=1e-4)
    assert reward.mean().item() == pytest.approx(0.996946, abs=0.012)
    assert torch.allclose(obs["obs"][:, 0], torch.tensor(0.44), atol=1e-6)
    assert torch.allclose(task.potentials, torch.tensor(-60240.965))


def test_C16b_first_reward_of_humanoid_depends_on_the_reset_state_only(build):
    task = build("Humanoid", 200)
    _, reward, done, _ = task.step(task.zero_actions())
    assert done.sum() == 0
    assert reward.max().item() == pytest.approx(2.6, abs=1e-4)
    assert reward.min().item() > 2.266666


def test_C18_humanoid_asset(build):
    task = build("Humanoid", 1)
    properties = task.gym.get_actor_rigid_body_properties(task.envs[0], task.actors[0])
    assert len(properties) == 16
    assert sum(p.mass for p in properties) == pytest.approx(40.844, abs=0.001)
    assert task.dof_names()[:4] == ["abdomen_z", "abdomen_y", "abdomen_x", "right_hip_x"]
    assert task.efforts.tolist() == [67.5] * 3 + [45, 45, 135, 90, 22.5, 22.5] * 2 + [67.5, 67.5, 45] * 2


def test_C18_ant_asset(build):
    task = build("Ant", 2)
    gym, env, actor = task.gym, task.envs[1], task.actors[1]
    masses = [p.mass for p in gym.get_actor_rigid_body_properties(env, actor)]
    assert masses == pytest.approx([0.483880] + [0.039158, 0.067592] * 4, abs=1e-6)
    assert sum(masses) == pytest.approx(0.910880, abs=1e-6)
    assert task.dof_names() == [f"{part}_{leg}" for leg in range(1, 5) for part in ("hip", "ankle")]
    front, back = [(-40, 40), (30, 100)], [(-40, 40), (-100, -30)]
    degrees = torch.tensor(front + back + back + front)
    assert torch.allclose(torch.stack([task.lower_limits, task.upper_limits], 1), degrees * math.pi / 180, atol=1e-5)
    assert task.motor_efforts == [15.0] * 8


def test_ant_stands_and_its_torques_move_the_right_joints(build):
    task = build("Ant", 9)
    task.step(task.zero_actions())
    for _ in range(60):
        obs, reward, done, _ = task.step(task.zero_actions())
    assert done.sum() == 0
    assert obs["obs"][:, 0].min() > 0.31
    flying = task.root_states.clone()
    flying[:, 2] = 3.0
    task.gym.set_actor_root_state_tensor(task.sim, gymtorch.unwrap_tensor(flying))
    before = task.dof_pos.clone()
    task.step(torch.eye(9, 8) * torch.tensor([1.0, 1.0, 1.0, -1.0, 1.0, -1.0, 1.0, 1.0]) * 0.3)
    moved = (task.dof_pos - before).abs()
    assert (moved[:8].diagonal() == moved[:8].amax(dim=1)).all()
    assert moved[8].max() < moved[:8].diagonal().min()


def test_cartpole_force_accelerates_the_cart_and_not_the_neighbours(build):
    task = build("Cartpole", 3)
    task.step(task.zero_actions())
    before = task.obs_buf.clone()
    obs, _, _, _ = task.step(torch.tensor([[1.0], [0.0], [-1.0]]))
    change = (obs["obs"] - before)[:, 1]
    assert change[0].item() == pytest.approx(-change[2].item(), rel=0.1)
    assert change[0].item() > 400 * 0.0166 / 2 * 0.9  # cart and pole weigh 2 kg; the pole swings back
    assert abs(change[1].item()) < 0.2


@pytest.mark.parametrize("name", ["Ant", "Cartpole", "Humanoid", "Anymal"])
def test_same_seed_gives_the_same_numbers(build, name):
    rows = []
    for _ in range(2):
        task = build(name, 6)
        rows.append(rollout(task, action_sequence(60, 6, task.num_actions)))
    assert torch.equal(rows[0], rows[1])


@pytest.mark.parametrize("name", ["Ant", "Cartpole", "Humanoid", "Anymal"])
def test_a_reset_leaves_other_envs_bit_equal(build, name):
    others = [0, 1, 2, 4, 5]
    rows = []
    for disturb in (False, True):
        task = build(name, 6)
        actions = action_sequence(24, 6, task.num_actions) * 0.03
        first = rollout(task, actions[:12])
        if disturb:
            task.reset_buf[3] = 1
        second = rollout(task, actions[12:])
        rows.append(torch.cat([first, second]))
    assert rows[0][..., -2].sum() == 0  # nothing else was reset
    assert torch.equal(rows[0][:, others], rows[1][:, others])
    assert not torch.equal(rows[0][12:, 3], rows[1][12:, 3])


@pytest.mark.parametrize("name", ["Ant", "Cartpole", "Humanoid", "Anymal"])
def test_F1_resume_in_a_new_simulation_is_bit_exact(build, name):
    task = build(name, 6, episodeLength=40)
    actions = action_sequence(90, 6, task.num_actions)
    rollout(task, actions[:45])
    state, generator = task.get_state(), torch.get_rng_state()
    task.set_state(task.get_state())
    expected = rollout(task, actions[45:])
    assert expected[..., -2].sum() > 0
    resumed = build(name, 6, seed=77, episodeLength=40)
    resumed.set_state(state)
    torch.set_rng_state(generator)
    assert torch.equal(rollout(resumed, actions[45:]), expected)


def test_C5_a_nonfinite_ant_is_reset_and_leaves_the_others_alone(build):
    clean = rollout(build("Ant", 9), action_sequence(20, 9, 8) * 0.1)
    task = build("Ant", 9)
    actions = action_sequence(20, 9, 8) * 0.1
    rows = [rollout(task, actions[:10])]
    poisoned = actions[10].clone()
    poisoned[7] = math.nan
    rows.append(rollout(task, [poisoned]))
    assert task.nonfinite_count.tolist() == [0] * 7 + [1, 0]
    rows.append(rollout(task, actions[11:]))
    rows = torch.cat(rows)
    assert torch.isfinite(rows).all()
    others = [i for i in range(9) if i != 7]
    assert torch.equal(rows[:, others], clean[:, others])
    assert rows[12, 7, 0].item() == pytest.approx(0.44)  # in step 11 old sensor values are still visible
    assert task.nonfinite_count.sum() == 1


def test_randomised_masses_gains_and_limits_reach_the_simulation(build, load_cfg):
    params = load_cfg("task", "Ant")["task"]["randomization_params"]
    params["frequency"] = 5
    params["sim_params"] = {"gravity": {"range": [0, 0.4], "operation": "additive", "distribution": "gaussian"}}
    task = build("Ant", 4, randomization=params, episodeLength=6)
    gym = task.gym

    def state():
        masses = [[p.mass for p in gym.get_actor_rigid_body_properties(env, 0)] for env in task.envs]
        damping = [gym.get_actor_dof_properties(env, 0)["damping"] for env in task.envs]
        gravity = gym.get_sim_params(task.sim).gravity
        return np.array(masses), np.array(damping), gravity.z

    masses, damping, gravity = state()
    nominal = np.array([0.483880] + [0.039158, 0.067592] * 4)
    assert ((masses > 0.49 * nominal) & (masses < 1.51 * nominal)).all()
    assert len(np.unique(masses)) == masses.size
    assert ((damping >= 0.05 - 1e-6) & (damping <= 0.15 + 1e-6)).all()
    rollout(task, action_sequence(20, 4, 8))
    later = state()
    assert np.array_equal(later[0], masses)  # drawn once
    assert not np.array_equal(later[1], damping)
    assert later[2] != gravity
    assert task.nonfinite_count.sum() == 0


def test_randomised_gravity_changes_the_fall(build):
    gravity = {"range": [0.5, 0.5], "operation": "scaling", "distribution": "uniform"}
    falls = []
    for params in (None, {"sim_params": {"gravity": gravity}, "actor_params": {}}):
        task = build("Ant", 1, randomization=params)
        task.step(task.zero_actions())
        high = task.root_states.clone()
        high[:, 2] = 5.0
        task.gym.set_actor_root_state_tensor(task.sim, gymtorch.unwrap_tensor(high))
        rollout(task, action_sequence(10, 1, 8) * 0)
        falls.append(5.0 - task.root_states[0, 2].item())
    assert falls[1] == pytest.approx(0.5 * falls[0], rel=0.02)
    assert gymapi.acquire_gym() is task.gym


def test_C18_anymal_assets(build):
    for name, mass, shapes in (("Anymal", 52.13485, 37), ("AnymalTerrain", 53.16426, 9)):
        task = build(name, 1) if name == "Anymal" else build_terrain(build, 1)
        gym, env = task.gym, task.envs[0]
        properties = gym.get_actor_rigid_body_properties(env, 0)
        assert len(properties) == 13
        assert sum(p.mass for p in properties) == pytest.approx(mass, abs=1e-4)
        assert len(gym.get_actor_rigid_shape_properties(env, 0)) == shapes
        legs = ("LF", "LH", "RF", "RH")
        assert task.dof_names() == [f"{leg}_{joint}" for leg in legs for joint in ("HAA", "HFE", "KFE")]
        assert (task.base_index, task.knees, task.feet) == (0, [2, 5, 8, 11], [3, 6, 9, 12])


def test_anymal_stands_for_five_seconds_on_zero_actions(build):
    task = build("Anymal", 8)
    task.step(task.zero_actions())
    task.dof_pos[:] = task.default_dof_pos
    task.dof_vel[:] = 0.0
    task.gym.set_dof_state_tensor(task.sim, gymtorch.unwrap_tensor(task.dof_state))
    for _ in range(250):
        _, _, done, _ = task.step(task.zero_actions())
        assert done.sum() == 0
    forces = task.contact_forces
    assert task.root_states[:, 2].min() > 0.45
    assert task.root_states[:, 7:].abs().max() < 0.05
    assert forces[:, task.feet, 2].min() > 20.0
    assert forces[..., 2].sum(dim=1) == pytest.approx([52.13485 * 9.81] * 8, rel=0.05)


def build_terrain(build, num_envs, kind="plane", **learn):
    terrain = {"terrainType": kind, "numLevels": 2, "numTerrains": 4}
    return build("AnymalTerrain", num_envs, sections={"terrain": terrain, "learn": learn})


@pytest.mark.parametrize("kind", ["plane", "trimesh"])
def test_anymal_terrain_stands_with_its_own_torques(build, kind):
    task = build_terrain(build, 4, kind, pushRobots=False)
    task.dof_pos[:] = task.default_dof_pos
    task.gym.set_dof_state_tensor(task.sim, gymtorch.unwrap_tensor(task.dof_state))
    falls = 0
    for _ in range(150):
        obs, reward, done, _ = task.step(task.zero_actions())
        falls += int(done.sum())
    assert torch.isfinite(obs["obs"]).all()
    assert falls <= 1
    clearance = task.root_states[:, 2] - task._scan_heights(task.root_states).mean(dim=1)
    assert clearance.min() > 0.3
    assert (task.contact_forces[:, task.feet, 2] > 5.0).sum() >= 12


def test_1000_randomised_steps_of_anymal_without_drift_or_growing_memory(build, load_cfg):
    params = load_cfg("task", "Anymal")["task"]["randomization_params"]
    params["frequency"] = 20
    task = build("Anymal", 8, randomization=params)
    gym = task.gym
    groups = {group.group: group for group in task.randomizer.groups}
    originals = {name: {f: v.copy() for f, v in group.original.items()} for name, group in groups.items()}

    def dampings():
        return np.array([gym.get_actor_dof_properties(env, 0)["damping"] for env in task.envs])

    actions = action_sequence(1000, 8, 12)
    before, memory, changes = dampings(), 0.0, np.zeros(8, int)
    for step, action in enumerate(actions):
        resetting = task.reset_buf.bool().numpy().copy()
        task.step(action)
        after = dampings()
        changed = (after != before).any(axis=1)
        assert not (changed & ~resetting).any()
        changes += changed
        before = after
        if step == 300:
            memory = resident_mebibytes()
    assert (changes > 10).all()
    assert resident_mebibytes() - memory < 10
    for name, group in groups.items():
        assert all(np.array_equal(group.original[f], originals[name][f]) for f in originals[name])
    assert ((after > 2.0 * 0.49) & (after < 2.0 * 1.51)).all()
    assert len(np.unique(after)) == after.size
    friction = np.array([[s.friction for s in gym.get_actor_rigid_shape_properties(env, 0)] for env in task.envs])
    assert ((friction > 0.69) & (friction < 1.31)).all()
    assert len(np.unique(friction)) > 100


def resident_mebibytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20
