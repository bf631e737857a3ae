"""Domain randomisation: schedules, buckets, noise (C15), what each key changes, and the corrected behaviours."""

import copy

import numpy as np
import pytest
import torch

from tasks.base.sampling import Noise, parse

UNIFORM = {"range": [0.5, 1.5], "operation": "scaling", "distribution": "uniform"}
SHIFT = {"range": [0.0, 0.01], "operation": "additive", "distribution": "gaussian"}


def params(**changes):
    return {"frequency": 3, "actor_params": {"ant": {}}, **changes}


@pytest.fixture
def make(make_task, load_cfg):
    """An Ant with the given randomization_params; env settings and quirks are keywords."""

    def build(dr, quirks=(), num_envs=4, seed=0, **env):
        np.random.seed(seed)
        cfg = load_cfg("task", "Ant")
        cfg["task"] = {"randomize": True, "randomization_params": copy.deepcopy(dr)}
        cfg["reference_quirks"] = list(quirks)
        return make_task("Ant", cfg=cfg, numEnvs=num_envs, **env)

    return build


def step(task, times=1, action=0.0):
    for _ in range(times):
        result = task.step(torch.full((task.num_envs, 8), action))
    return result


# ---- sampling --------------------------------------------------------------------------------------------------


def test_C15_linear_schedule():
    scaling = parse("x", {**UNIFORM, "schedule": "linear", "schedule_steps": 3000})
    assert scaling.effective(scaling.bounds, 750) == (0.875, 1.125)
    assert scaling.effective(scaling.bounds, 0) == (1.0, 1.0)
    assert scaling.effective(scaling.bounds, 9000) == (0.5, 1.5)
    gaussian = parse("x", {"range": [0, 0.4], "operation": "additive", "distribution": "gaussian",
                           "schedule": "linear", "schedule_steps": 3000})  # fmt: skip
    assert gaussian.effective(gaussian.bounds, 750) == pytest.approx((0.0, 0.1))
    factor = parse("x", {"range": [1.2, 0.4], "operation": "scaling", "distribution": "gaussian",
                         "schedule": "linear", "schedule_steps": 4})  # fmt: skip
    assert factor.effective(factor.bounds, 1) == pytest.approx((1.05, 0.1))


def test_C15_constant_schedule():
    constant = parse("x", {**UNIFORM, "schedule": "constant", "schedule_steps": 5000})
    assert (constant.progress(4999), constant.progress(5000)) == (0.0, 1.0)


def test_C15_buckets():
    buckets = parse("x", {"range": [0.7, 1.3], "operation": "scaling", "distribution": "uniform", "num_buckets": 500})
    values = buckets.bucketed(np.array([0.9337, 1.31, 0.69]))
    assert values == pytest.approx([0.9328, 1.2988, 1.2988], abs=1e-9)
    gaussian = parse("x", {"range": [1.0, 0.04], "operation": "scaling", "distribution": "gaussian", "num_buckets": 4})
    assert gaussian.bucketed(np.array([0.61, 1.05])) == pytest.approx([0.6, 1.0])


@pytest.mark.parametrize(
    ("distribution", "bounds", "mean", "spread"),
    [("uniform", [0.5, 1.5], 1.0, 1 / 12**0.5), ("gaussian", [2.0, 0.3], 2.0, 0.3), ("loguniform", [1.0, 1.0], 1.0, 0)],
)
def test_Q14_distributions(distribution, bounds, mean, spread):
    """The second number of a gaussian is its standard deviation."""
    drawn = parse("x", {"range": bounds, "operation": "scaling", "distribution": distribution})
    sample = drawn.sample((100_000,), 0, np.random.default_rng(0))
    assert sample.mean() == pytest.approx(mean, abs=0.005)
    assert sample.std() == pytest.approx(spread, abs=0.005)


def test_loguniform_is_uniform_in_the_logarithm():
    drawn = parse("x", {"range": [0.1, 10.0], "operation": "scaling", "distribution": "loguniform"})
    sample = np.log10(drawn.sample((50_000,), 0, np.random.default_rng(0)))
    assert (sample.min(), sample.max()) == (pytest.approx(-1, abs=0.01), pytest.approx(1, abs=0.01))
    assert sample.mean() == pytest.approx(0.0, abs=0.02)


def gaussian_noise(**changes):
    return {"range": [0.5, 0.1], "operation": "additive", "distribution": "gaussian", **changes}


def test_C15_noise_is_new_each_call_and_its_correlated_part_is_held():
    noise = Noise(
        parse("x", gaussian_noise(range=[0.0, 0.0], range_correlated=[1.0, 0.5]), noise=True), "additive", False
    )
    noise.refresh(0)
    zeros = torch.zeros(20_000)
    first, second = noise(zeros), noise(zeros)
    assert torch.equal(first, second)
    assert first.mean().item() == pytest.approx(1.0, abs=0.02)
    assert first.std().item() == pytest.approx(0.5, abs=0.02)
    noise.refresh(0)
    assert not torch.equal(noise(zeros), first)
    white = Noise(parse("x", gaussian_noise(), noise=True), "additive", False)
    assert not torch.equal(white(zeros), white(zeros))
    assert white(zeros).mean().item() == pytest.approx(0.5, abs=0.01)
    assert white(zeros).std().item() == pytest.approx(0.1, abs=0.01)


def test_uniform_noise_with_a_normal_correlated_part():
    description = {"range": [-1.0, 3.0], "operation": "scaling", "distribution": "uniform"}
    noise = Noise(parse("x", description, noise=True), "scaling", False)
    values = noise(torch.full((50_000,), 2.0))
    assert values.min().item() == pytest.approx(-2.0, abs=0.01)
    assert values.max().item() == pytest.approx(6.0, abs=0.01)


@pytest.mark.parametrize(("legacy", "factor"), [(False, 1.0), (True, 2.0)])
def test_Q21_scaling_noise_at_the_start_of_its_schedule(legacy, factor):
    description = gaussian_noise(range=[1.0, 0.1], operation="scaling", schedule="linear", schedule_steps=100)
    noise = Noise(parse("x", description, noise=True), "scaling", legacy)
    noise.refresh(0)
    assert torch.allclose(noise(torch.ones(5)), torch.full((5,), factor))


# ---- noise and gravity in the task -----------------------------------------------------------------------------


def test_action_noise_comes_before_clipping_and_observation_noise_after_the_reward(make):
    dr = params(
        actions={"range": [0.7, 0.0], "operation": "additive", "distribution": "gaussian"},
        observations={"range": [2.0, 0.0], "operation": "scaling", "distribution": "gaussian"},
    )
    task = make(dr)
    obs, reward, _, _ = step(task, 2, action=0.1)
    assert torch.allclose(task.actions, torch.full((4, 8), 0.8))
    assert torch.allclose(obs["obs"][:, 0], torch.full((4,), 0.88))  # torso height x 2
    assert reward.min() > -2.0  # 0.44 m is no fall, whatever the noise says
    step(task, action=0.9)
    assert torch.allclose(task.actions, torch.ones(4, 8))


@pytest.mark.parametrize(("quirks", "expected"), [((), 0.88), (("Q22",), 2.44)])
def test_Q22_each_noise_has_its_own_operation(make, quirks, expected):
    dr = params(
        actions={"range": [0.0, 0.0], "operation": "additive", "distribution": "gaussian"},
        observations={"range": [2.0, 0.0], "operation": "scaling", "distribution": "gaussian"},
    )
    obs, _, _, _ = step(make(dr, quirks))
    assert torch.allclose(obs["obs"][:, 0], torch.full((4,), expected))


def test_noise_parameters_follow_the_schedule_every_frequency_frames(make, fake_gym):
    dr = params(
        actions={"range": [0.4, 0.0], "operation": "additive", "distribution": "gaussian",
                 "schedule": "constant", "schedule_steps": 4},
    )  # fmt: skip
    task = make(dr, episodeLength=3)  # every env is reset in steps 1, 4, 7, ...
    seen = []
    for _ in range(8):
        step(task)
        seen.append(round(task.actions[0, 0].item(), 3))
    assert seen == [0.0] * 4 + [0.4] * 4  # refreshed in the reset of step 4, at frame 4


def test_gravity_is_drawn_around_the_original_and_does_not_drift(make, fake_gym):
    gravity = {"range": [0, 0.4], "operation": "additive", "distribution": "gaussian"}
    task = make(params(sim_params={"gravity": gravity}), episodeLength=3)
    drawn = []
    for _ in range(600):
        drawn.append([fake_gym.params.gravity.x, fake_gym.params.gravity.y, fake_gym.params.gravity.z])
        step(task)
    drawn = np.unique(np.array(drawn), axis=0)
    assert len(drawn) == pytest.approx(200, abs=2)  # every third frame, at a reset
    assert drawn.mean(0) == pytest.approx([0, 0, -9.81], abs=0.12)
    assert drawn.std(0) == pytest.approx([0.4] * 3, abs=0.08)


def test_Q24_scaled_gravity_keeps_its_original(make, fake_gym):
    gravity = {"range": [0.5, 0.5], "operation": "scaling", "distribution": "uniform"}
    step(make(params(sim_params={"gravity": gravity}), episodeLength=3), 20)
    assert fake_gym.params.gravity.z == pytest.approx(-4.905)


def test_rest_offset_is_replaced(make, fake_gym):
    offset = {"range": [0.003, 0.003], "operation": "scaling", "distribution": "uniform"}
    make(params(sim_params={"rest_offset": offset}))
    assert fake_gym.params.physx.rest_offset == pytest.approx(0.003)


# ---- properties of actors --------------------------------------------------------------------------------------


def actor(**groups):
    return params(actor_params={"ant": groups})


def values(fake_gym, group, field):
    """(N, elements) present values of a property."""
    rows = []
    for env in range(len(fake_gym.envs)):
        if group == "dofs":
            rows.append(fake_gym.get_actor_dof_properties(env, 0)[field])
        else:
            rows.append([getattr(p, field) for p in fake_gym.objects[group, env]])
    return np.array(rows)


@pytest.mark.parametrize(
    ("group", "key", "field", "original"),
    [
        ("dof_properties", "dofs", "stiffness", 7.0),
        ("dof_properties", "dofs", "damping", 7.0),
        ("rigid_body_properties", "bodies", "mass", 2.0),
        ("rigid_shape_properties", "shapes", "friction", 1.0),
        ("rigid_shape_properties", "shapes", "restitution", 0.5),
        ("rigid_shape_properties", "shapes", "thickness", 0.1),
        ("tendon_properties", "tendons", "stiffness", 3.0),
        ("tendon_properties", "tendons", "damping", 0.2),
    ],
)
def test_each_property_is_scaled_independently(make, fake_gym, group, key, field, original):
    make(actor(**{group: {field: UNIFORM}}), num_envs=300)
    factors = values(fake_gym, key, field) / original
    assert (factors.min(), factors.max()) == (pytest.approx(0.5, abs=0.01), pytest.approx(1.5, abs=0.01))
    assert len(np.unique(factors)) == factors.size
    assert np.corrcoef(factors[:, 0], factors[:, 1])[0, 1] == pytest.approx(0.0, abs=0.2)


@pytest.mark.parametrize("field", ["lower", "upper"])
def test_joint_limits_are_shifted_but_observations_keep_the_asset_limits(make, fake_gym, field):
    task = make(actor(dof_properties={field: SHIFT}), num_envs=300)
    shift = values(fake_gym, "dofs", field) - getattr(task, f"{field}_limits").numpy()
    assert shift.std() == pytest.approx(0.01, abs=0.001)
    assert shift.mean() == pytest.approx(0.0, abs=0.001)


@pytest.mark.parametrize(("operation", "low", "high"), [("scaling", 0.5, 1.5), ("additive", 1.5, 2.5)])
def test_scale(make, fake_gym, operation, low, high):
    make(actor(scale={**UNIFORM, "operation": operation, "setup_only": True}), num_envs=300)
    scales = np.array(list(fake_gym.scales.values()))
    assert (scales.min(), scales.max()) == (pytest.approx(low, abs=0.02), pytest.approx(high, abs=0.02))


def test_colours_are_drawn_only_when_something_is_rendered(make_task, fake_gym, load_cfg):
    from tasks.ant import Ant

    for graphics, painted in ((-1, 0), (0, 2 * 2 * 9)):
        cfg = load_cfg("task", "Ant")
        cfg["env"].update(numEnvs=2, enableCameraSensors=True)
        cfg["task"] = {"randomize": True, "randomization_params": actor(color=True)}
        Ant(cfg, "cpu", "cpu", graphics_device_id=graphics)
        assert fake_gym.calls["colour"] == painted


def test_buckets_limit_the_number_of_materials(make, fake_gym):
    friction = {"range": [0.7, 1.3], "operation": "scaling", "distribution": "uniform", "num_buckets": 5}
    make(actor(rigid_shape_properties={"friction": friction}), num_envs=50)
    assert np.unique(values(fake_gym, "shapes", "friction").round(6)).tolist() == [0.7, 0.82, 0.94, 1.06, 1.18]


def test_too_many_materials_are_refused(make):
    many = {"range": [0.7, 1.3], "operation": "scaling", "distribution": "uniform", "num_buckets": 300}
    with pytest.raises(ValueError, match="need 90000 materials, PhysX has 64000"):
        make(actor(rigid_shape_properties={"friction": many, "restitution": many}))
    with pytest.raises(ValueError, match="need 64800 materials"):
        make(actor(rigid_shape_properties={"friction": UNIFORM}), num_envs=7200)


def test_only_due_and_resetting_envs_change(make, fake_gym):
    task = make(actor(dof_properties={"damping": UNIFORM}))
    step(task)
    before = values(fake_gym, "dofs", "damping")
    step(task, 4)
    task.randomize_buf[:] = torch.tensor([3, 1, 3, 0])
    task.reset_buf[:] = torch.tensor([1, 1, 0, 0])
    step(task)
    changed = (values(fake_gym, "dofs", "damping") != before).any(axis=1)
    assert changed.tolist() == [True, False, False, False]
    assert task.randomize_buf.tolist() == [0, 2, 4, 1]


def test_Q23_values_stay_around_each_envs_own_original(make, fake_gym, monkeypatch):
    own = [1.0, 2.0, 4.0, 8.0]
    build = type(fake_gym)._build_dof_properties

    def different(self, env, actor):
        if env not in self.dof_props:
            properties = build(self)
            properties["damping"] = own[env]
            self.dof_props[env] = properties
        return self.dof_props[env].copy()

    monkeypatch.setattr(type(fake_gym), "get_actor_dof_properties", different)
    task = make(actor(dof_properties={"damping": UNIFORM}), episodeLength=3)
    seen = []
    for _ in range(300):
        step(task)
        seen.append(values(fake_gym, "dofs", "damping"))
    ratio = np.array(seen) / np.array(own)[:, None]
    assert ratio.min() >= 0.5 - 1e-6
    assert ratio.max() <= 1.5 + 1e-6
    assert ratio.mean() == pytest.approx(1.0, abs=0.02)


def test_setup_only_values_are_drawn_once(make, fake_gym):
    task = make(actor(rigid_body_properties={"mass": {**UNIFORM, "setup_only": True}}), episodeLength=3)
    first = values(fake_gym, "bodies", "mass")
    assert len(np.unique(first)) == first.size
    step(task, 10)
    assert np.array_equal(values(fake_gym, "bodies", "mass"), first)
    assert fake_gym.calls["bodies"] == 4


def test_Q17_a_schedule_on_a_setup_only_value_leaves_the_original(make, fake_gym):
    mass = {**UNIFORM, "setup_only": True, "schedule": "linear", "schedule_steps": 3000}
    make(actor(rigid_body_properties={"mass": mass}))
    assert (values(fake_gym, "bodies", "mass") == 2.0).all()


@pytest.mark.parametrize(("quirks", "changes"), [((), True), (("Q15",), False)])
def test_Q15_setup_only_does_not_stop_its_group(make, fake_gym, quirks, changes):
    group = {"friction": {**UNIFORM, "setup_only": True}, "restitution": UNIFORM}
    task = make(actor(rigid_shape_properties=group), quirks, episodeLength=3)
    friction, restitution = (values(fake_gym, "shapes", f) for f in ("friction", "restitution"))
    step(task, 10)
    assert np.array_equal(values(fake_gym, "shapes", "friction"), friction)
    assert np.array_equal(values(fake_gym, "shapes", "restitution"), restitution) is not changes


def test_the_same_seed_gives_the_same_values(make, fake_gym):
    dr = actor(dof_properties={"damping": UNIFORM})

    def run(seed):
        task = make(dr, seed=seed, episodeLength=3)
        step(task, 10)
        return values(fake_gym, "dofs", "damping")

    assert np.array_equal(run(1), run(1))
    assert not np.array_equal(run(1), run(2))


def test_F5_snapshot_brings_back_properties_noise_and_generator(make, fake_gym, load_cfg):
    dr = load_cfg("task", "Ant")["task"]["randomization_params"]
    dr["frequency"] = 3
    dr["actions"]["range_correlated"] = [0.0, 0.1]
    dr["sim_params"] = {"gravity": SHIFT}

    def trace(task):
        torch.manual_seed(5)
        rows = []
        for _ in range(10):
            obs, reward, _, _ = step(task)
            rows.append(torch.cat([obs["obs"].flatten(), reward]))
        damping, mass = values(fake_gym, "dofs", "damping"), values(fake_gym, "bodies", "mass")
        return torch.stack(rows), damping, mass, fake_gym.params.gravity.x

    task = make(dr, seed=1, episodeLength=3)
    step(task, 20)
    state = task.get_state()
    writes = fake_gym.calls["dofs"], fake_gym.calls["bodies"]
    task.set_state(state)
    assert (fake_gym.calls["dofs"], fake_gym.calls["bodies"]) == writes  # nothing differs, nothing is written
    state = task.get_state()
    expected = trace(task)
    other = make(dr, seed=2, episodeLength=3)
    other.set_state(state)
    actual = trace(other)
    assert torch.equal(actual[0], expected[0])
    for a, b in zip(actual[1:], expected[1:], strict=True):
        assert np.array_equal(a, b)


def test_F5_snapshots_with_and_without_randomisation_do_not_mix(make, make_task):
    plain = make_task("Ant", numEnvs=4).get_state()
    with pytest.raises(ValueError, match="has no domain randomization"):
        make(params()).set_state(plain)


def test_F5_other_scales_cannot_be_restored(make):
    dr = actor(scale={**UNIFORM, "setup_only": True})
    state = make(dr, seed=1).get_state()
    make(dr, seed=1).set_state(state)
    with pytest.raises(ValueError, match="actor scales differ"):
        make(dr, seed=2).set_state(state)


@pytest.mark.parametrize(
    ("dr", "message"),
    [
        ({"frequency": 1}, r"actor_params is missing"),
        (params(colour=1), r"randomization_params\.colour is unknown"),
        (params(sim_params={"dt": UNIFORM}), r"sim_params\.dt cannot be randomised"),
        (params(actor_params={"dog": {"scale": UNIFORM}}), r"actor_params\.dog: there is no actor"),
        (actor(masses={}), r"actor_params\.ant\.masses is unknown"),
        (actor(dof_properties={"stifness": UNIFORM}), r"dof_properties\.stifness is unknown"),
        (actor(scale={**UNIFORM, "operation": "times"}), r"scale\.operation is 'times'"),
        (actor(scale={**UNIFORM, "distribution": "normal"}), r"scale\.distribution is 'normal'"),
        (actor(scale={**UNIFORM, "range": 3}), r"scale\.range is 3; two numbers"),
        (actor(scale={**UNIFORM, "schedule": "linear"}), r"schedule_steps must be at least 1"),
        (actor(scale={**UNIFORM, "schedule": "square"}), r"schedule is 'square'"),
        (actor(scale={**UNIFORM, "distribution": "loguniform", "range": [0, 1]}), "must be positive"),
        (actor(scale={**UNIFORM, "distribution": "gaussian", "range": [1, -1]}), "is negative"),
        (actor(scale={**UNIFORM, "steps": 3}), r"scale\.steps is unknown"),
        (actor(scale=1.5), r"scale must have the keys"),
        (params(actions={**UNIFORM, "distribution": "loguniform"}), r"actions\.distribution is 'loguniform'"),
        (params(observations={**UNIFORM, "num_buckets": 3}), r"observations\.num_buckets is unknown"),
    ],
)
def test_mistakes_are_named(make, dr, message):
    with pytest.raises(ValueError, match=message):
        make(dr)


def test_randomize_without_params_is_an_error(make_task, load_cfg):
    cfg = load_cfg("task", "Cartpole")
    cfg["task"]["randomize"] = True
    with pytest.raises(ValueError, match="randomization_params says nothing"):
        make_task("Cartpole", cfg=cfg)


def test_1000_steps_without_drift(make, fake_gym, load_cfg):
    dr = load_cfg("task", "Ant")["task"]["randomization_params"]
    dr["frequency"] = 10
    task = make(dr, episodeLength=10)
    damping = []
    for _ in range(1000):
        step(task)
        damping.append(values(fake_gym, "dofs", "damping").mean())
    assert np.mean(damping) == pytest.approx(7.0, abs=0.15)
    assert np.mean(damping[-200:]) == pytest.approx(7.0, abs=0.4)
    assert (values(fake_gym, "dofs", "damping") >= 3.5).all()
    assert (values(fake_gym, "dofs", "damping") <= 10.5).all()
