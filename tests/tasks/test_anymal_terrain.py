"""AnymalTerrain: numbers of the specification (C8-C12, C16), quirks Q4, Q10, Q20, resets, pushes, guard."""

import math

import numpy as np
import pytest
import torch

from tasks import legged, rough_walking

DEFAULT = torch.tensor([0.03, 0.4, -0.8, 0.03, -0.4, 0.8, -0.03, 0.4, -0.8, -0.03, -0.4, 0.8])
DOF_POS = DEFAULT + torch.linspace(-0.11, 0.11, 12)
DOF_VEL = torch.linspace(-6, 5, 12)
ACTIONS = torch.linspace(-1, 1, 12)
TORQUES = torch.tensor(
    [-19.2, -15.527273, -11.854545, -8.181818, -4.509091, -0.836364, 2.836364, 6.509091, 10.181818, 13.854545,
     17.527273, 21.2]
)  # fmt: skip
FEET = [3, 6, 9, 12]
KNEES = [2, 5, 8, 11]


@pytest.fixture
def root(quat_rpy):
    state = torch.zeros(1, 13)
    state[0, 2] = 0.62
    state[0, 3:7] = quat_rpy(0.05, -0.1, 0.7)
    state[0, 7:] = torch.tensor([0.8, 0.3, -0.05, 0.1, -0.2, 0.4])
    return state


@pytest.fixture
def make(make_task, load_cfg):
    """Build the task, on a small terrain or on a plane; settings of `learn` are keywords."""

    def build(num_envs=2, kind="plane", quirks=(), curriculum=True, seed=0, levels=2, types=4, **learn):
        torch.manual_seed(seed)
        np.random.seed(seed)
        cfg = load_cfg("task", "AnymalTerrain")
        cfg["env"]["terrain"].update(terrainType=kind, curriculum=curriculum, numLevels=levels, numTerrains=types)
        cfg["env"]["learn"].update(learn)
        cfg["reference_quirks"] = list(quirks)
        return make_task("AnymalTerrain", cfg=cfg, numEnvs=num_envs)

    return build


def step(task, times=1):
    for _ in range(times):
        result = task.step(torch.zeros(task.num_envs, 12))
    return result


# ---- numbers ---------------------------------------------------------------------------------------------------


def test_C8_timing_and_noise(make):
    task = make()
    assert (task.step_dt, task.max_episode_length, task.push_interval) == (pytest.approx(0.02), 1000, 750)
    picked = task.noise[[0, 3, 6, 9, 12, 24, 36, 176]]
    assert torch.allclose(picked, torch.tensor([0.2, 0.05, 0.05, 0, 0.01, 0.075, 0.3, 0]))
    assert task.noise.shape == (188,)
    assert task.noise.sum().item() == pytest.approx(43.92, abs=1e-4)


def test_C8_noise_is_uniform_and_can_be_switched_off(make, fake_gym):
    task = make(num_envs=3000)
    noisy = step(task)[0]["obs"]
    task.learn["addNoise"] = False
    clean = step(task)[0]["obs"]
    assert torch.equal(clean, step(task)[0]["obs"])
    spread = noisy - clean
    assert torch.allclose(spread.abs().amax(0), task.noise, atol=0.002)
    assert spread.mean(0).abs().max() < 0.02


def test_C9_torques(make, fake_gym):
    task = make()
    fake_gym.dof[0, :, 0], fake_gym.dof[0, :, 1] = DOF_POS, DOF_VEL
    fake_gym.dof[1, :, 0], fake_gym.dof[1, :, 1] = DEFAULT, 0.0
    task.gym.refresh_dof_state_tensor(task.sim)
    task.step(torch.stack([ACTIONS, torch.full((12,), 5.0)]))
    assert torch.allclose(fake_gym.forces[0], TORQUES, atol=1e-5)
    assert fake_gym.forces[1].tolist() == [80.0] * 12


@pytest.mark.parametrize(("quirks", "simulations"), [((), 4), (("Q10",), 5)])
def test_Q10_simulation_steps_of_an_action(make, fake_gym, quirks, simulations):
    task = make(quirks=quirks)
    fake_gym.physics = lambda gym: gym.dof.add_(1.0)
    start = fake_gym.dof.clone()
    obs = step(task)[0]["obs"]
    assert fake_gym.calls["simulate"] == fake_gym.calls["fetch_results"] == simulations
    seen = simulations - 1 if quirks else simulations  # Q10: joints as they were before the last simulation step
    assert torch.allclose(obs[:, 12:24], start[..., 0] + seen, atol=0.011)


def test_C10_heading_command(root):
    heading = legged.base_motion(root).heading()
    assert heading.item() == pytest.approx(0.7, abs=1e-5)
    commands = legged.heading_command(torch.tensor([1.2, -2.9]), heading)
    assert commands.tolist() == pytest.approx([0.25, 1.0], abs=1e-5)


def gait(root, swing):
    forces = torch.zeros(1, 4, 3)
    forces[0, 1, 2] = 3.0
    return rough_walking.Gait(
        base=legged.base_motion(root),
        base_height=root[:, 2],
        commands=torch.tensor([[0.6, -0.4, 0.25, 1.2]]),
        dof_offset=(DOF_POS - DEFAULT).unsqueeze(0),
        dof_vel=DOF_VEL.unsqueeze(0),
        last_dof_vel=(DOF_VEL - torch.linspace(-0.3, 0.8, 12)).unsqueeze(0),
        actions=ACTIONS.unsqueeze(0),
        last_actions=(ACTIONS - torch.linspace(0.2, -0.35, 12)).unsqueeze(0),
        torques=TORQUES.unsqueeze(0),
        knee_forces=forces,
        foot_forces=torch.zeros(1, 4, 3),
        swing=swing,
    )


def test_C11_reward(make, root):
    contact = torch.tensor([[50.0, 0.5, 30.0, 0.0]]) > 1.0
    air_time, swing = rough_walking.swing_times(torch.tensor([[0.3, 0.2, 0.0, 0.7]]), contact, 0.005)
    assert torch.allclose(air_time, torch.tensor([[0.0, 0.205, 0.0, 0.705]]))
    terms = rough_walking.reward_terms(gait(root, swing), make().weights)
    expected = {
        "lin_vel_xy": 0.016367126, "ang_vel_z": 0.008984838, "lin_vel_z": -0.001070498, "ang_vel_xy": -0.000038943,
        "torques": -0.000776367, "joint_acc": -0.0000218, "collision": -0.005, "action_rate": -0.000085,
        "air_time": -0.0039, "orient": 0.0, "base_height": 0.0, "stumble": 0.0, "hip": 0.0,
    }  # fmt: skip
    assert {name: term.item() for name, term in terms.items()} == pytest.approx(expected, abs=1e-7)
    assert sum(terms.values()).item() == pytest.approx(0.0144593561, abs=1e-6)


def test_C11_terms_without_weight(root):
    one = dict.fromkeys(rough_walking.reward_terms(gait(root, torch.zeros(1)), _ones()), 1.0)
    features = gait(root, torch.zeros(1))
    features.foot_forces[0] = torch.tensor([[5.1, 0, 0.9], [3, 4.1, -0.9], [5.1, 0, 1.1], [4.9, 0, 0]])
    terms = rough_walking.reward_terms(features, one)
    assert terms["stumble"].item() == 2
    assert terms["base_height"].item() == pytest.approx(0.01, abs=1e-6)
    assert terms["orient"].item() == pytest.approx(0.099833**2 + 0.049729**2, abs=1e-6)
    assert terms["hip"].item() == pytest.approx(0.11 + 0.05 + 0.01 + 0.07, abs=1e-5)


def _ones():
    from tasks.anymal_terrain import REWARD_KEYS

    return dict.fromkeys(REWARD_KEYS, 1.0)


def test_C4_a_landing_is_paid_once():
    """Contacts 0, 0, 1, 1, 0, 1 of one foot; the timer counts steps of 0.25 s."""
    timer = torch.zeros(1, 1)
    paid = []
    for contact in (0, 0, 1, 1, 0, 1):
        timer, swing = rough_walking.swing_times(timer, torch.tensor([[bool(contact)]]), 0.25)
        paid.append(swing.item())
    assert paid == [0.0, 0.0, 0.25, 0.0, 0.0, 0.0]


def test_air_time_needs_a_command(root):
    features = gait(root, torch.tensor([0.3]))
    assert rough_walking.reward_terms(features, _ones())["air_time"].item() == pytest.approx(0.3)
    standing = features._replace(commands=torch.tensor([[0.05, 0.05, 1.0, 1.0]]))
    assert rough_walking.reward_terms(standing, _ones())["air_time"].item() == 0.0


def test_C11_through_the_task(make, fake_gym, root):
    task = make(addNoise=False, pushRobots=False)
    step(task)
    fake_gym.root[0] = root[0]
    fake_gym.dof[0, :, 0], fake_gym.dof[0, :, 1] = DOF_POS, DOF_VEL
    task.gym.refresh_dof_state_tensor(task.sim)
    task.commands[0] = torch.tensor([0.6, -0.4, 0.0, 1.2])
    task.last_dof_vel[0] = DOF_VEL - torch.linspace(-0.3, 0.8, 12)
    task.last_actions[0] = ACTIONS - torch.linspace(0.2, -0.35, 12)
    task.air_time[0] = torch.tensor([0.3, 0.2, 0.0, 0.7])
    fake_gym.contact[0, FEET, 2] = torch.tensor([50.0, 0.5, 30.0, 0.0])
    fake_gym.contact[0, KNEES[1], 2] = 1.5
    obs, reward, done, _ = task.step(ACTIONS.repeat(2, 1))
    assert reward[0].item() == pytest.approx(0.0144593561, abs=1e-6)
    assert done[0].item() == 0
    assert torch.allclose(task.air_time[0], torch.tensor([0.0, 0.205, 0.0, 0.705]))
    row = obs["obs"][0]
    expected = (1.592250, -0.584136, -0.231354, -0.003041, -0.049241, 0.103397, -0.099833, -0.049729, -0.993761)
    assert torch.allclose(row[:9], torch.tensor(expected), atol=1e-5)
    assert torch.allclose(row[9:12], torch.tensor([1.2, -0.8, 0.0625]), atol=1e-5)
    assert torch.allclose(row[12:24], DOF_POS)
    assert torch.allclose(row[24:36], DOF_VEL * 0.05)
    assert torch.allclose(row[36:176], torch.tensor(0.6), atol=1e-5)  # C12: 0.62 m above flat ground
    assert torch.equal(row[176:], ACTIONS)
    assert torch.equal(task.last_actions[0], ACTIONS)
    assert torch.equal(task.last_dof_vel[0], DOF_VEL)


def test_C12_height_observation_is_clipped():
    scales = rough_walking.Scales(2.0, 0.25, 1.0, 0.05, 5.0)
    rest = torch.zeros(1, 12)
    base = legged.Base(torch.eye(3).unsqueeze(0), torch.zeros(1, 3), torch.zeros(1, 3))
    clearance = torch.full((1, 140), 0.62 + 1.5)
    obs = rough_walking.observations(base, torch.zeros(1, 4), rest, rest, clearance, rest, scales, torch.zeros(1, 188))
    assert obs[0, 36:176].eq(5.0).all()


# ---- episodes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("quirks", "time_outs"), [((), [True, True]), (("Q4",), [False, False])])
def test_C16_Q4_time_outs_are_999_steps_apart(make, quirks, time_outs):
    task = make(num_envs=1, quirks=quirks)
    done_at, reported = [], []
    for number in range(1, 2000):
        _, _, done, extras = step(task)
        if number == 1:
            assert task.progress_buf.tolist() == [1]
        if done.any():
            done_at.append(number)
            reported.append(extras["time_outs"][0].item())
        else:
            assert not extras["time_outs"].any()
    assert done_at == [999, 1998]
    assert reported == time_outs


@pytest.mark.parametrize(
    ("body", "knees_allowed", "done"), [(0, True, 1), (KNEES[3], True, 0), (KNEES[3], False, 1), (FEET[0], False, 0)]
)
def test_termination(make, fake_gym, body, knees_allowed, done):
    task = make(allowKneeContacts=knees_allowed)
    step(task)
    fake_gym.contact[1, body, 0] = 1.01
    _, _, flags, extras = step(task)
    assert flags.tolist() == [0, done]
    assert not extras["time_outs"].any()


@pytest.mark.parametrize("quirks", [(), ("Q4",)])
def test_terminal_reward_is_for_failures(make, fake_gym, quirks):
    task = make(quirks=quirks, terminalReward=-10.0)
    step(task)
    fake_gym.contact[1, 0, 0] = 2.0
    _, reward, _, _ = step(task)
    assert reward[0].item() >= 0.0
    assert reward[1].item() == pytest.approx(-10.0, abs=0.05)
    fake_gym.contact[:] = 0.0
    task.progress_buf[0] = 998
    _, reward, done, _ = step(task)
    assert done.tolist() == [1, 0]
    assert (reward[0].item() < -9) == bool(quirks)  # Q4: a time-out counts as a failure


def test_episode_statistics(make, fake_gym):
    task = make(num_envs=2, kind="trimesh")
    assert step(task)[3]["episode"] == {}
    step(task, 4)
    terms = task.episodes.rewards.sums[:-1, 0].clone()
    task.progress_buf[0] = 998
    episode = step(task)[3]["episode"]
    names = {"lin_vel_xy", "lin_vel_z", "ang_vel_z", "ang_vel_xy", "orient", "torques", "joint_acc", "base_height",
             "air_time", "collision", "stumble", "action_rate", "hip"}  # fmt: skip
    assert set(episode) == {f"rew_{name}" for name in names} | {"terrain_level", "nonfinite_resets", "tracking_error"}
    index = task.episodes.rewards.names.index("lin_vel_xy")
    assert episode["rew_lin_vel_xy"].item() == pytest.approx(terms[index].item() / 20 * 6 / 5, rel=0.2)
    assert episode["terrain_level"].item() == task.terrain_levels.float().mean().item()


def test_final_obs_is_the_end_of_the_old_episode(make, fake_gym):
    task = make(addNoise=False, pushRobots=False)
    step(task)
    fake_gym.root[1, 2] = 0.9
    fake_gym.root[1, 7:10] = torch.tensor([0.5, 0.0, 0.0])
    fake_gym.contact[1, 0, 2] = 5.0
    obs, _, done, extras = step(task)
    assert done.tolist() == [0, 1]
    assert extras["final_obs"][1, 36].item() == pytest.approx(0.4 * 5)
    assert obs["obs"][1, 36].item() == pytest.approx(0.12 * 5)
    assert torch.equal(extras["final_obs"][0], obs["obs"][0])
    assert obs["obs"][1, 0].item() == pytest.approx(1.0)  # Q19: the velocity is still that before the reset
    obs, _, _, extras = step(task)
    fake_gym.contact[:] = 0.0
    obs, _, _, extras = step(task)
    assert extras["final_obs"] is obs["obs"]


def test_reset_state_on_a_plane(make, fake_gym):
    task = make(num_envs=2000)
    assert torch.allclose(fake_gym.root[5], torch.tensor([0, 0, 0.62, 0, 0, 0, 1.0, 0, 0, 0, 0, 0, 0]))
    ratio = fake_gym.dof[..., 0] / DEFAULT
    assert (ratio.min().item(), ratio.max().item()) == (pytest.approx(0.5, abs=0.002), pytest.approx(1.5, abs=0.002))
    speed = task.commands[:, :2].norm(dim=1)
    small = speed == 0.0
    assert small.float().mean().item() == pytest.approx(math.pi * 0.25**2 / 4, abs=0.02)
    assert task.commands[small].eq(0.0).all()
    assert speed[~small].min() > 0.25
    assert task.commands[:, 3].abs().max().item() == pytest.approx(3.14, abs=0.01)


def test_C6_reset_state_on_terrain(make, fake_gym):
    task = make(num_envs=400, kind="trimesh", levels=6, types=20, curriculum=False)
    assert fake_gym.env_bounds[1].x == 0.0
    offset = fake_gym.root[:, :3] - task.env_origins
    assert offset[:, :2].abs().max().item() == pytest.approx(0.5, abs=0.02)
    assert torch.allclose(offset[:, 2], torch.tensor(0.62), atol=1e-5)
    assert set(task.terrain_levels.tolist()) == set(range(6))
    assert len(set(task.terrain_types.tolist())) == 20
    vertices, triangles, params = fake_gym.mesh
    assert len(vertices) == 3 * params.nb_vertices
    assert len(triangles) == 3 * params.nb_triangles
    assert (params.transform.p.x, params.transform.p.y, params.transform.p.z) == (-20.0, -20.0, 0.0)
    assert (params.static_friction, params.dynamic_friction, params.restitution) == (1.0, 1.0, 0.0)
    clearance = task.root_states[:, 2:3] - task._scan_heights(task.root_states)
    assert clearance.min() > 0.0


def test_curriculum_starts_at_the_lowest_level_and_moves(make, fake_gym):
    task = make(num_envs=3, kind="trimesh", pushRobots=False)
    assert task.terrain_levels.tolist() == [0, 0, 0]
    step(task)
    fake_gym.root[0, 0] += 6.0  # promoted
    fake_gym.root[1, 0] += 3.0  # neither: 3 m are more than 20 s x 0.3 m/s x 0.25
    task.commands[:] = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.3, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    task.terrain_levels[2] = 1  # demoted
    task.progress_buf[:] = 998
    step(task)
    assert task.terrain_levels.tolist() == [1, 0, 0]
    assert task.env_origins[0].tolist() == pytest.approx(
        [12.0, *task.tile_origins[1, task.terrain_types[0], 1:].tolist()]
    )


def test_Q20_mass_demotion_only_on_request(make, fake_gym):
    for quirks, level in (((), 1), (("Q20",), 0)):
        task = make(num_envs=30, kind="trimesh", quirks=quirks, pushRobots=False)
        step(task)
        task.terrain_levels[:] = 1
        fake_gym.root[:, 0] = task.env_origins[:, 0] + 3.0
        task.commands[:] = torch.tensor([0.5, 0.0, 0.0, 0.0])  # 0.5 m/s x 5 s = 2.5 m, over 30 envs 13.7 m
        task.progress_buf[:] = 998
        step(task)
        assert set(task.terrain_levels.tolist()) == {level}


def test_C13_levels_stay_without_resets(make):
    task = make(kind="trimesh")
    step(task, 50)
    assert task.terrain_levels.tolist() == [0, 0]


def test_Q27_push_is_one_write_and_replaces_the_velocity(make, fake_gym):
    task = make(num_envs=500, pushInterval_s=0.06)
    writes = []
    for _ in range(6):
        before = fake_gym.calls["root_all"]
        step(task)
        writes.append(fake_gym.calls["root_all"] - before)
    assert writes == [0, 0, 1, 0, 0, 1]
    velocity = fake_gym.root[:, 7:9]
    assert velocity.abs().max().item() == pytest.approx(1.0, abs=0.01)
    assert fake_gym.root[:, 9:].eq(0).all()
    fake_gym.contact[3, 0, 0] = 5.0
    indexed = fake_gym.calls["root_rows"]
    step(task, 3)  # the third pushes and resets env 3
    assert fake_gym.calls["root_rows"] - indexed == 2
    assert fake_gym.root[3, 7:].eq(0).all()
    assert fake_gym.root[4, 7:9].abs().sum() > 0


def test_Q26_switches_are_honoured(make, fake_gym):
    task = make(num_envs=50, pushRobots=False, pushInterval_s=0.02, randomizeFriction=False)
    step(task, 3)
    assert fake_gym.root[:, 7:9].eq(0).all()
    assert fake_gym.friction == []


def test_friction_comes_in_100_buckets(make, fake_gym):
    fake_gym.friction.clear()
    make(num_envs=250)
    friction = np.array(fake_gym.friction)
    assert friction.shape == (250, 9)
    assert (friction == friction[:, :1]).all()
    assert np.array_equal(friction[:100], friction[100:200])
    assert len(np.unique(friction)) == 100
    assert friction.min() >= 0.5
    assert friction.max() <= 1.25


def test_C5_nonfinite_robot_is_reset_at_once(make, fake_gym):
    task = make(num_envs=4, kind="trimesh")
    step(task, 2)
    fake_gym.root[2, 0] = math.nan
    fake_gym.contact[2] = math.inf
    obs, reward, done, extras = step(task)
    assert torch.isfinite(obs["obs"]).all()
    assert torch.isfinite(extras["final_obs"]).all()
    assert torch.isfinite(reward).all()
    assert reward[2].item() == 0.0
    assert done.tolist() == [0, 0, 1, 0]
    assert not extras["time_outs"].any()
    assert torch.isfinite(fake_gym.root).all()
    assert all(torch.isfinite(v) for v in extras["episode"].values())
    fake_gym.contact[2] = 0.0
    obs, _, done, _ = step(task)
    assert done.sum() == 0
    assert task.nonfinite_count.tolist() == [0, 0, 1, 0]


def test_D4_one_wait_for_the_device_in_a_step(make, count_syncs):
    task = make(num_envs=6, kind="trimesh", pushInterval_s=0.06)
    step(task, 2)
    for flags in ([], [0, 3]):
        task.progress_buf[flags] = 998
        with count_syncs() as counter:
            step(task)
        assert counter.seen == {"nonzero": 1}


def test_F1_F5_resume_is_bit_exact(make, fake_gym):
    def swing(gym):
        gym.dof[..., 1] += 0.001 * gym.forces
        gym.dof[..., 0] += 0.005 * gym.dof[..., 1]
        gym.root[:, 0] += 0.01 * gym.dof[:, 0, 1]
        gym.contact[:, FEET, 2] = 5.0 * (gym.dof[:, [2, 5, 8, 11], 0] > 0.5)

    def rollout(task):
        torch.manual_seed(9)
        rows = [torch.cat([r.flatten() for r in (o["obs"], w, d)]) for o, w, d, _ in (step(task) for _ in range(40))]
        return torch.stack(rows)

    fake_gym.physics = swing
    task = make(num_envs=5, kind="trimesh", episodeLength_s=0.3, pushInterval_s=0.1)
    step(task, 23)
    state = task.get_state()
    task.set_state(task.get_state())
    expected = rollout(task)
    resumed = make(num_envs=5, kind="trimesh", episodeLength_s=0.3, pushInterval_s=0.1)
    resumed.set_state(state)
    assert torch.equal(rollout(resumed), expected)
    assert torch.equal(resumed.terrain_levels, task.terrain_levels)
    other = make(num_envs=5, kind="trimesh", seed=4)
    with pytest.raises(ValueError, match="resume with the seed of the first run"):
        other.set_state(state)


def test_unknown_terrain_type_is_named(make):
    with pytest.raises(ValueError, match=r"terrainType is 'none'; allowed are plane, trimesh"):
        make(kind="none")
