"""ShadowHand on the stand-in for the simulator: scene, observations, targets, pushes, resets, statistics."""

import math

import pytest
import torch

from isaacgym import gymapi

ACTUATED = [0, 1, 2, 3, 4, 6, 7, 8, 10, 11, 12, 14, 15, 16, 17, 19, 20, 21, 22, 23]
TIPS = [7, 11, 15, 20, 25]
LOWER = [-0.489, -0.698] + [-0.349, 0, 0, 0] * 3 + [0, -0.349, 0, 0, 0, -1.047, 0, -0.209, -0.524, -1.571]
UPPER = [0.140, 0.489] + [0.349, 1.571, 1.571, 1.571] * 3
UPPER += [0.785, 0.349, 1.571, 1.571, 1.571, 1.047, 1.222, 0.209, 0.524, 0]


def close(actual, expected, atol=1e-5):
    expected = torch.as_tensor(expected, dtype=torch.float32)
    assert torch.allclose(actual, expected, atol=atol), actual


@pytest.fixture
def make(make_task):
    def build(num_envs=2, **env):
        torch.manual_seed(0)
        return make_task("ShadowHand", numEnvs=num_envs, **env)

    return build


def step(task, steps=1, action=0.0):
    for _ in range(steps):
        result = task.step(torch.full((task.num_envs, 20), action))
    return result


def place_object(gym, env, place, quat=(0.0, 0.0, 0.0, 1.0)):
    gym.root[3 * env + 1, :7] = torch.tensor([*place, *quat])


@pytest.mark.parametrize(("kind", "size"), [("openai", 42), ("full_no_vel", 77), ("full", 157), ("full_state", 211)])
@pytest.mark.parametrize("asymmetric", [False, True])
def test_sizes(make, kind, size, asymmetric):
    task = make(observationType=kind, asymmetric_observations=asymmetric)
    assert (task.num_obs, task.num_states, task.num_acts) == (size, 211 if asymmetric else 0, 20)
    assert (task.state_space.shape if asymmetric else task.state_space) == ((211,) if asymmetric else None)
    obs = step(task)[0]
    assert obs["obs"].shape == (2, size)
    assert ("states" in obs) == asymmetric
    if asymmetric and kind == "full_state":
        assert torch.equal(obs["obs"], obs["states"])


@pytest.mark.parametrize(("time", "inverse", "steps"), [(0.0, 1, 600), (8.0, 3, 160), (80.0, 3, 1600), (16.0, 2, 480)])
def test_T1_episode_length(make, time, inverse, steps):
    assert make(resetTime=time, controlFrequencyInv=inverse).max_episode_length == steps


def test_scene(make, fake_gym):
    task = make(num_envs=3)
    assert [(a.name, a.start) for a in fake_gym.actors[:3]] == [
        ("hand", [0, 0, 0.5, 0, 0, 0, 1]),
        ("object", pytest.approx([0, -0.39, 0.6, 0, 0, 0, 1])),
        ("goal_object", pytest.approx([-0.2, -0.45, 0.68, 0, 0, 0, 1])),
    ]
    assert fake_gym.envs == [[(i, -1), (i, 0), (i + 3, 0)] for i in range(3)]
    assert fake_gym.aggregate == (28, 28, True)
    assert task.targeted_dofs == ACTUATED
    assert task.fingertip_bodies == TIPS
    close(task.lower_limits, LOWER)
    close(task.upper_limits, UPPER)
    tendons = {name: (t.limit_stiffness, t.damping) for name, t in fake_gym.tendons.items()}
    assert tendons == {f"robot0:T_{finger}J1c": (30.0, 0.1) for finger in ("FF", "MF", "RF", "LF")}
    assert fake_gym.sensors == [f"robot0:{finger}distal" for finger in ("ff", "mf", "rf", "lf", "th")]
    assert fake_gym.calls["enable_actor_dof_force_sensors"] == 3
    (_, hand), (_, thing), (file, goal) = fake_gym.all_options
    assert file == "objects/block.urdf"
    assert (hand.fix_base_link, hand.collapse_fixed_joints, hand.disable_gravity) == (True, True, True)
    assert (hand.use_physx_armature, hand.default_dof_drive_mode) == (True, gymapi.DOF_MODE_NONE)
    assert (hand.thickness, hand.angular_damping) == (pytest.approx(0.001), pytest.approx(0.01))
    assert (thing.disable_gravity, goal.disable_gravity) == (False, True)


def test_forces_are_read_only_where_they_are_observed(make, fake_gym):
    make(observationType="full")
    assert (fake_gym.sensors, fake_gym.calls["enable_actor_dof_force_sensors"]) == ([], 0)


@pytest.mark.parametrize(("kind", "height"), [("block", 0.60), ("egg", 0.60), ("pen", 0.52)])
def test_objects(make, fake_gym, kind, height):
    task = make(objectType=kind)
    assert fake_gym.actors[1].start[2] == pytest.approx(height)
    close(task.goal_pose[0, :3], [0.0, -0.39, height - 0.04])
    assert fake_gym.all_options[1][0].startswith(f"objects/{kind}")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("observationType", "env.observationType is 'fullstate'; allowed are openai, full_no_vel, full, full_state"),
        ("objectType", "env.objectType is 'fullstate'; allowed are block, egg, pen"),
    ],
)
def test_unknown_types_are_named(make, key, message):
    with pytest.raises(ValueError, match=message):
        make(**{key: "fullstate"})


def test_full_state_observation(make, fake_gym):
    task = make()
    step(task)
    fake_gym.dof[0, :, 0] = torch.tensor(LOWER) * 0.7 + torch.tensor(UPPER) * 0.3
    fake_gym.dof[0, 23, 0] = -0.5
    fake_gym.dof[0, :, 1] = torch.arange(24) * 0.1
    fake_gym.dof_force[0] = torch.arange(24) * 0.001
    place_object(fake_gym, 0, (0.01, -0.38, 0.55), (0.0, 0.0, math.sin(0.25), math.cos(0.25)))
    fake_gym.root[1, 7:] = torch.tensor([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])
    fake_gym.body[0] = torch.arange(28 * 13).view(28, 13) * 0.001
    fake_gym.sensor[:5] = torch.arange(30).view(5, 6) * 0.01
    task.goal_pose[0, 3:] = torch.tensor([math.sin(0.15), 0.0, 0.0, math.cos(0.15)])
    obs = step(task, action=0.25)[0]["obs"][0]
    close(obs[0:23], [-0.4] * 23)
    assert obs[23].item() == pytest.approx(0.363463, abs=1e-5)
    close(obs[24:48], torch.arange(24) * 0.02)
    close(obs[48:72], torch.arange(24) * 0.01)
    close(obs[72:79], [0.01, -0.38, 0.55, 0.0, 0.0, math.sin(0.25), math.cos(0.25)])
    close(obs[79:85], [0.1, 0.2, 0.3, 0.2, 0.4, 0.6])
    close(obs[85:92], [0.0, -0.39, 0.56, math.sin(0.15), 0.0, 0.0, math.cos(0.15)])
    close(obs[92:96], [-0.144792, -0.036972, 0.244626, 0.958033])
    close(obs[96:161], (fake_gym.body[0, TIPS]).flatten())
    close(obs[161:191], torch.arange(30) * 0.1)
    close(obs[191:211], [0.25] * 20)
    assert torch.equal(task.features()["fingertip_pos"][0], fake_gym.body[0, TIPS, :3].flatten())


def test_observations_are_clipped_to_5(make, fake_gym):
    task = make()
    step(task)
    fake_gym.dof[:, 3, 1] = 100.0
    obs = step(task)[0]["obs"]
    assert obs[:, 24 + 3].tolist() == [5.0, 5.0]


def test_targets_of_actuated_joints_only(make, fake_gym):
    task = make(actionsMovingAverage=0.3)
    step(task)
    task.dof_targets[:] = 0.1
    step(task, action=0.5)
    assert fake_gym.targets[0, 0].item() == pytest.approx(0.064825, abs=1e-6)
    close(fake_gym.targets[0, [5, 9, 13, 18]], [0.1] * 4)
    relative = make(useRelativeControl=True)
    step(relative)
    relative.dof_targets[:] = 0.2
    step(relative, action=0.5)
    assert fake_gym.targets[0, 3].item() == pytest.approx(0.3667, abs=1e-6)


def test_a_success_brings_a_new_goal_in_the_next_step_and_nothing_else(make, fake_gym):
    task = make()
    step(task)
    place_object(fake_gym, 0, (0.0, -0.39, 0.56), task.goal_pose[0, 3:].tolist())
    place_object(fake_gym, 1, (0.0, -0.39, 0.56), [1.0, 0.0, 0.0, 0.0])
    task.goal_pose[1, 3:] = torch.tensor([0.0, 0.0, 0.0, 1.0])
    before = task.goal_pose.clone()
    _, reward, done, extras = step(task)
    assert reward[0].item() == pytest.approx(250 + 10, abs=1e-3)
    assert reward[1].item() == pytest.approx(1 / (math.pi + 0.1), abs=1e-3)
    assert done.tolist() == [0, 0]
    assert extras["measures"]["successes"].tolist() == [1.0, 0.0]
    assert torch.equal(task.goal_pose, before)
    joints = fake_gym.dof.clone()
    fake_gym.calls.clear()
    step(task)
    assert not torch.equal(task.goal_pose[0, 3:], before[0, 3:])
    assert torch.equal(task.goal_pose[1], before[1])
    close(fake_gym.root[2, :3], [-0.2, -0.45, 0.68])
    assert torch.equal(fake_gym.root[2, 3:7], task.goal_pose[0, 3:])
    assert (fake_gym.calls["root_rows"], fake_gym.calls["dof_rows"]) == (1, 0)
    assert torch.equal(fake_gym.dof, joints)
    assert task.successes.tolist() == [1.0, 0.0]


def test_a_fall_resets_in_the_next_step_with_one_write(make, fake_gym):
    task = make(num_envs=3)
    step(task)
    place_object(fake_gym, 1, (0.0, -0.39, 0.3))
    place_object(fake_gym, 2, (0.0, -0.39, 0.56), task.goal_pose[2, 3:].tolist())
    _, _, done, extras = step(task)
    assert done.tolist() == [0, 1, 0]
    assert not extras["time_outs"].any()
    assert extras["measures"]["drops"].tolist() == [0.0, 1.0, 0.0]
    fake_gym.calls.clear()
    obs = step(task)[0]["obs"]
    assert (fake_gym.calls["root_rows"], fake_gym.calls["dof_rows"], fake_gym.calls["target_rows"]) == (3, 1, 1)
    assert task.progress_buf.tolist() == [3, 1, 3]
    assert (obs[1, 72:75] - torch.tensor([0.0, -0.39, 0.6])).abs().max() <= 0.01
    assert extras["episode"]["drops"].item() == 1.0
    assert extras["episode"]["successes"].item() == 0.0


def test_reset_ranges(make, fake_gym):
    n = 4000
    task = make(num_envs=n)
    step(task)
    fake_gym.root[1::3, 2] = 0.0
    step(task, steps=2)
    things = fake_gym.root.view(n, 3, 13)[:, 1]
    offset = things[:, :3] - torch.tensor([0.0, -0.39, 0.6])
    assert offset.abs().amax(dim=0).tolist() == pytest.approx([0.01] * 3, abs=1e-4)
    assert offset.mean(dim=0).abs().max() < 5e-4
    assert things[:, 7:].abs().max() == 0
    lower, upper = torch.tensor(LOWER), torch.tensor(UPPER)
    assert torch.allclose(fake_gym.dof[..., 0].amin(dim=0), 0.2 * lower, atol=1e-3)
    assert torch.allclose(fake_gym.dof[..., 0].amax(dim=0), 0.2 * upper, atol=1e-3)
    assert fake_gym.dof[..., 1].abs().max() == 0
    assert torch.equal(task.dof_targets[:, [5, 9, 13, 18]], fake_gym.dof[:, [5, 9, 13, 18], 0])
    angle = torch.acos((2 * (things[:, 6] ** 2 + things[:, 3] ** 2) - 1).clamp(-1, 1))  # of the turn about y
    assert angle.max().item() == pytest.approx(math.pi, abs=0.02)
    assert angle.mean().item() == pytest.approx(math.pi / 2, abs=0.05)
    first, last = task.push_probability.min().item(), task.push_probability.max().item()
    assert (first, last) == (pytest.approx(0.001, rel=0.01), pytest.approx(0.1, rel=0.01))
    assert torch.log10(task.push_probability).mean().item() == pytest.approx(-2.0, abs=0.03)


def test_pushes_fade_and_are_replaced(make, fake_gym):
    task = make(num_envs=2000, forceScale=1.0)
    step(task)
    assert task.object_mass == 2.0
    task.push_probability[:] = torch.tensor([0.0, 1.0]).repeat(1000)
    task.object_forces[:] = 3.0
    step(task)
    forces, space = fake_gym.pushes
    assert space == gymapi.LOCAL_SPACE
    assert forces[:, :26].abs().max() == forces[:, 27:].abs().max() == 0
    close(forces[::2, 26], torch.full((1000, 3), 3.0 * 0.997908), atol=1e-4)
    assert forces[1::2, 26].std().item() == pytest.approx(2.0, rel=0.05)
    assert forces[1::2, 26].mean().item() == pytest.approx(0.0, abs=0.1)
    place_object(fake_gym, 0, (9.0, 0.0, 0.0))
    step(task)
    task.push_probability[:] = 0.0
    task.force_scale = 1.0
    step(task)
    assert task.object_forces[0].abs().max() == 0


def test_without_force_scale_nothing_is_pushed(make, fake_gym):
    step(make(), steps=3)
    assert fake_gym.calls["push"] == 0


def test_time_outs_are_one_step_less_than_the_length_apart(make, fake_gym):
    task = make(num_envs=1, episodeLength=6)
    done = [tuple(bool(v) for v in (step(task)[2], task.timeout_buf)) for _ in range(16)]
    assert [i + 1 for i, flags in enumerate(done) if flags == (True, True)] == [5, 10, 15]
    assert not any(flag or late for i, (flag, late) in enumerate(done) if (i + 1) % 5)


def test_successes_put_off_the_time_limit_and_the_last_one_ends_the_episode(make, fake_gym):
    task = make(num_envs=1, episodeLength=6, maxConsecutiveSuccesses=2, fallPenalty=-50.0)
    step(task, steps=4)
    place_object(fake_gym, 0, (0.0, -0.39, 0.56), task.goal_pose[0, 3:].tolist())
    _, _, done, extras = step(task)
    assert (done.item(), task.progress_buf.item(), task.successes.item()) == (0, 0, 1.0)

    def on_goal(gym):
        place_object(gym, 0, (0.0, -0.39, 0.56), task.goal_pose[0, 3:].tolist())

    fake_gym.physics = on_goal
    _, reward, done, extras = step(task)
    assert (done.item(), extras["time_outs"].item(), task.successes.item()) == (1, False, 2.0)
    assert reward.item() == pytest.approx(260.0, abs=1e-3)
    assert extras["consecutive_successes"].item() == pytest.approx(0.2)
    fake_gym.physics = lambda gym: None
    extras = step(task)[3]
    assert (task.successes.item(), extras["episode"]["successes"].item()) == (0.0, 2.0)
    assert extras["episode"]["success_rate"].item() == 1.0
    assert extras["episode"]["consecutive_successes"].item() == pytest.approx(0.2)


def test_C5_a_nonfinite_env_is_reset_and_the_others_go_on(make, fake_gym):
    task = make(num_envs=3)
    step(task, steps=2)
    fake_gym.root[4, 3] = math.nan
    obs, reward, done, extras = step(task)
    assert torch.isfinite(obs["obs"]).all()
    assert torch.isfinite(reward).all()
    assert done.tolist() == [0, 1, 0]
    obs = step(task)[0]["obs"]
    assert (obs[1, 72:75] - torch.tensor([0.0, -0.39, 0.6])).abs().max() <= 0.01
    assert task.nonfinite_count.tolist() == [0, 1, 0]
    assert torch.isfinite(task.consecutive_successes)


def test_F1_resume_is_bit_exact(make, fake_gym):
    def physics(gym):
        gym.dof[..., 0] += 0.1 * (gym.targets - gym.dof[..., 0])
        gym.root[1::3, :3] += 0.02 * gym.dof[:, :3, 0]
        gym.root[1::3, 2] -= 0.01

    def rollout(task, steps):
        rows = []
        for _ in range(steps):
            obs, reward, done, _ = task.step(torch.rand(4, 20) * 2 - 1)
            rows.append(torch.cat([obs["obs"].flatten(), reward, done.float()]))
        return torch.stack(rows)

    fake_gym.physics = physics
    task = make(num_envs=4, forceScale=1.0)
    rollout(task, 30)
    state, generator = task.get_state(), torch.get_rng_state()
    expected = rollout(task, 40)
    assert expected[:, -4:].sum() > 0
    resumed = make(num_envs=4, forceScale=1.0)
    resumed.set_state(state)
    torch.set_rng_state(generator)
    assert torch.equal(rollout(resumed, 40), expected)


def test_reset_done_resets_at_once(make, fake_gym):
    task = make(num_envs=2)
    step(task, steps=3)
    task.reset_buf[1] = 1
    _, ids = task.reset_done()
    assert ids.tolist() == [1]
    assert task.progress_buf.tolist() == [3, 0]
    assert task.reset_buf.tolist() == [0, 0]


# ---- the variants after OpenAI's work --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ShadowHandOpenAI_FF", "ShadowHandOpenAI_LSTM"])
def test_openai_variants(make_task, fake_gym, name):
    torch.manual_seed(0)
    task = make_task(name, numEnvs=3)
    assert (task.num_obs, task.num_states, task.max_episode_length, task.control_freq_inv) == (42, 211, 160, 3)
    assert task.goal.max_successes == 50
    obs = step(task)[0]
    assert fake_gym.calls["simulate"] == 3
    assert fake_gym.calls["push"] == 1  # once an action: the engine uses a force up in its first step
    clean = torch.cat([task.features()[n] for n in task.layouts["openai"]], dim=1)
    assert 1e-4 < (obs["obs"][:, :22] - clean[:, :22]).std() < 0.01
    full = torch.cat([task.features()[n] for n in task.layouts["full_state"]], dim=1)
    assert torch.equal(obs["states"], full.clamp(-5, 5))  # the critic's view has no noise
    noisy = obs["obs"][:, 22:]
    assert noisy.std().item() == pytest.approx(0.05, rel=0.5)


def test_D10_originals_of_hand_and_object_are_kept_apart(make_task, fake_gym):
    torch.manual_seed(0)
    task = make_task("ShadowHandOpenAI_FF", numEnvs=4)
    groups = {(g.actor, g.group): g for g in task.randomizer.groups}
    assert groups["hand", "rigid_body_properties"].original["mass"].shape == (4, 26)
    assert groups["object", "rigid_body_properties"].original["mass"].shape == (4, 1)
    assert groups["object", "rigid_shape_properties"].original["friction"].tolist() == [[1.0]] * 4
    assert task.object_mass == 2.0  # nominal, whatever was drawn
    assert len(set(fake_gym.scales.values())) == 4
    assert all(0.95 <= scale <= 1.05 for scale in fake_gym.scales.values())


@pytest.mark.parametrize(("value", "bucket"), [(1.0, 1.0), (0.9137, 0.9136), (0.65, 1.2976), (1.5, 1.2976)])
def test_D1_friction_buckets(make_task, value, bucket):
    task = make_task("ShadowHandOpenAI_FF", numEnvs=1)
    (friction,) = (
        g.fields["friction"] for g in task.randomizer.groups if (g.actor, "friction" in g.fields) == ("object", True)
    )
    assert friction.bucketed([value])[0] == pytest.approx(bucket, abs=1e-9)
