"""The VecTask contract on a scripted task: step order, resets, time limits, clipping, guard, snapshots."""

import math
from types import SimpleNamespace

from isaacgym import gymapi, gymtorch  # isort: skip
import pytest
import torch

from tasks.ant import Ant
from tasks.base.vec_task import VecTask


class Scripted(VecTask):
    """Observes its progress and what `script` says; writes its calls down in `log`."""

    max_episode_length = 4

    def __init__(self, cfg, *args, **kwargs):
        self.log = []
        self.script = lambda task: None
        super().__init__(cfg, *args, **kwargs)
        self.root_states = gymtorch.wrap_tensor(self.gym.acquire_actor_root_state_tensor(self.sim))
        self.dof_state = gymtorch.wrap_tensor(self.gym.acquire_dof_state_tensor(self.sim))

    def create_scene(self):
        asset = self.gym.load_asset(self.sim, "", "cartpole/cartpole.urdf")
        for i in range(self.num_envs):
            env = self.gym.create_env(self.sim, gymapi.Vec3(), gymapi.Vec3(), 1)
            self.gym.create_actor(env, asset, gymapi.Transform(), "robot", i, 1, 0)

    def dof_names(self):
        return ["a", "b"]

    def pre_physics_step(self, actions):
        self.actions = actions
        self.log.append(f"actions at frame {self.gym.frames}")

    def compute_observations(self):
        self.obs_buf[:, 0] = self.progress_buf
        self.obs_buf[:, 1] = 7.0
        if self.num_states:
            self.states_buf.fill_(-9.0)
        self.log.append(f"observe at frame {self.gym.frames}")

    def compute_reward(self):
        terms = {"progress": self.progress_buf.float(), "bonus": torch.full((self.num_envs,), 0.5)}
        self.rew_buf.copy_(self.sum_terms(terms))
        self.reset_buf |= self.progress_buf >= self.max_episode_length - 1
        self.script(self)

    def reset_idx(self, env_ids):
        self.log.append(f"reset {env_ids.tolist()}")


def config(**env):
    sizes = {"numEnvs": 2, "numObservations": 2, "numActions": 3}
    sim = {"dt": 0.01, "substeps": 2, "up_axis": "z", "use_gpu_pipeline": False, "gravity": [0, 0, -9.81]}
    return {"name": "Scripted", "physics_engine": "physx", "env": {**sizes, **env}, "sim": {**sim, "physx": {}}}


@pytest.fixture
def make(fake_gym):
    def build(cfg=None, sim_device="cpu", headless=True, force_render=False, **env):
        return Scripted(cfg or config(**env), "cpu", sim_device, headless=headless, force_render=force_render)

    return build


def run(task, steps=1):
    for _ in range(steps):
        result = task.step(torch.zeros(task.num_envs, task.num_actions))
    return result


# ---- construction ----------------------------------------------------------------------------------------------


def test_buffers_before_the_first_step(make):
    task = make(numStates=3)
    assert task.obs_buf.shape == (2, 2)
    assert task.states_buf.shape == (2, 3)
    assert task.reset_buf.tolist() == [1, 1]
    for buffer in (task.rew_buf, task.timeout_buf, task.progress_buf, task.randomize_buf):
        assert buffer.tolist() == [0, 0]
    assert task.reset_buf.dtype == task.progress_buf.dtype == task.randomize_buf.dtype == torch.int64


def test_spaces_and_sizes(make):
    task = make(numStates=3)
    assert task.observation_space.shape == (2,)
    assert task.action_space.low.tolist() == [-1.0] * 3
    assert task.action_space.high.tolist() == [1.0] * 3
    assert task.state_space.shape == (3,)
    assert make().state_space is None
    assert (task.num_envs, task.num_obs, task.num_acts, task.get_number_of_agents()) == (2, 2, 3, 1)
    assert task.device == "cpu"


def test_simulation_parameters_reach_the_simulator(make, fake_gym):
    cfg = config()
    cfg["sim"]["physx"] = {"num_position_iterations": 7, "contact_collection": 2, "rest_offset": 0.003}
    make(cfg)
    params = fake_gym.params
    assert (params.dt, params.substeps, params.num_client_threads) == (pytest.approx(0.01), 2, 0)
    assert params.up_axis == gymapi.UP_AXIS_Z
    assert params.gravity.z == pytest.approx(-9.81)
    assert params.physx.num_position_iterations == 7
    assert params.physx.contact_collection == gymapi.CC_ALL_SUBSTEPS
    assert params.physx.rest_offset == pytest.approx(0.003)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["env"].update(numEnvs=0), r"env\.numEnvs is 0"),
        (lambda c: c["env"].update(controlFrequencyInv=0), r"env\.controlFrequencyInv is 0"),
        (lambda c: c["sim"].update(up_axis="x"), r"sim\.up_axis is 'x'"),
        (lambda c: c["sim"]["physx"].update(num_pos_iterations=4), r"sim\.physx\.num_pos_iterations"),
        (lambda c: c.update(physics_engine="bullet"), "physics_engine is 'bullet'"),
        (lambda c: c.update(reference_quirks=["Q31"]), r"'Q31' cannot be chosen; did you mean Q30\?"),
        (lambda c: c.update(reference_quirks="nonsense"), "'nonsense' cannot be chosen"),
    ],
)
def test_bad_values_are_named(make, change, message):
    cfg = config()
    change(cfg)
    with pytest.raises(ValueError, match=message):
        make(cfg)


def test_a_misspelt_device_is_named(make):
    with pytest.raises(ValueError, match="device 'cuda:x' is not of the form"):
        make(sim_device="cuda:x")


def test_a_simulation_that_cannot_be_created_raises(make, fake_gym, monkeypatch):
    monkeypatch.setattr(type(fake_gym), "create_sim", lambda *args: None)
    with pytest.raises(RuntimeError, match="could not be created"):
        make()


def test_virtual_screen_capture_is_refused(fake_gym):
    with pytest.raises(NotImplementedError, match="virtual_screen_capture"):
        Scripted(config(), "cpu", "cpu", -1, True, True)


def test_gpu_pipeline_needs_a_gpu_device(make, fake_gym, capsys):
    cfg = config()
    cfg["sim"].update(use_gpu_pipeline=True, physx={"use_gpu": True})
    task = make(cfg)
    assert "CPU pipeline" in capsys.readouterr().out
    assert cfg["sim"]["use_gpu_pipeline"] is False
    assert task.pipeline_device == "cpu"
    assert fake_gym.params.use_gpu_pipeline is False


@pytest.mark.parametrize(("quirks", "use_gpu"), [(False, False), ([], False), (["Q8"], True), (True, True)])
def test_Q8_gpu_physics_follows_the_device(make, fake_gym, quirks, use_gpu):
    cfg = config()
    cfg["sim"]["physx"] = {"use_gpu": True}
    cfg["reference_quirks"] = quirks
    make(cfg)
    assert fake_gym.params.physx.use_gpu is use_gpu


def test_gpu_physics_on_a_cuda_device_with_cpu_pipeline(make, fake_gym):
    task = make(sim_device="cuda:1")
    assert fake_gym.params.physx.use_gpu is True
    assert fake_gym.compute_device == 1
    assert task.pipeline_device == "cpu"


def test_graphics_device_is_dropped_when_nothing_is_rendered(fake_gym):
    assert Scripted(config(), "cpu", "cpu", 2).graphics_device_id == -1
    assert Scripted(config(enableCameraSensors=True), "cpu", "cpu", 2).graphics_device_id == 2


def test_Q6_every_task_has_its_own_simulation(make, fake_gym):
    made = []
    fake_gym.create_sim = lambda *args: made.append(args) or f"sim {len(made)}"
    assert (make().sim, make().sim) == ("sim 1", "sim 2")


# ---- stepping --------------------------------------------------------------------------------------------------


def test_order_of_a_step(make):
    task = make()
    run(task, 2)
    assert task.log == [
        "actions at frame 0", "reset [0, 1]", "observe at frame 1",
        "actions at frame 1", "observe at frame 2",
    ]  # fmt: skip
    assert task.control_steps == 2


def test_C1_three_step_episode(make):
    """Progress, reward, done and time-out of each step; the terminal observation comes with done."""
    task = make()
    table = []
    for _ in range(9):
        obs, reward, done, extras = run(task)
        table.append((obs["obs"][0, 0].item(), reward[0].item(), done[0].item(), extras["time_outs"][0].item()))
        assert extras["final_obs"] is obs["obs"]
    episode = [(0.0, 0.5, 0, False), (1.0, 1.5, 0, False), (2.0, 2.5, 0, False), (3.0, 3.5, 1, True)]
    assert table == episode + episode + episode[:1]


def test_Q3_time_outs_are_T_steps_apart(make):
    task = make()
    assert [s for s in range(1, 13) if run(task)[2].any()] == [4, 8, 12]


def test_failure_is_no_time_out_but_at_the_limit_it_is(make):
    task = make()

    def fail_env_1_at(progress):
        def script(t):
            t.reset_buf[1] |= (t.progress_buf[1] == progress).long()

        return script

    task.script = fail_env_1_at(2)
    run(task, 2)
    _, _, done, extras = run(task)
    assert (done.tolist(), extras["time_outs"].tolist()) == ([0, 1], [False, False])
    task.script = fail_env_1_at(3)
    run(task, 2)
    assert task.progress_buf.tolist() == [0, 1]
    run(task, 1)
    _, _, done, extras = run(task)
    assert (done.tolist(), extras["time_outs"].tolist()) == ([0, 1], [False, True])


def test_only_flagged_envs_are_reset(make):
    task = make(numEnvs=5)
    run(task)
    task.reset_buf[[1, 4]] = 1
    run(task)
    assert task.log[-2] == "reset [1, 4]"
    assert task.progress_buf.tolist() == [1, 0, 1, 1, 0]
    assert task.reset_buf.tolist() == [0] * 5


def test_actions_are_clipped_before_the_task_sees_them(make):
    task = make(clipActions=1.0)
    task.step(torch.tensor([[0.5, -3.0, 9.0]] * 2))
    assert task.actions[0].tolist() == [0.5, -1.0, 1.0]
    free = make()
    assert free.clip_actions == math.inf  # Q5: no clipping unless the config says so
    free.step(torch.tensor([[0.5, -3.0, 9.0]] * 2))
    assert free.actions[0].tolist() == [0.5, -3.0, 9.0]


def test_observations_are_clipped_on_the_way_out_only(make):
    task = make(clipObservations=5.0, numStates=1)
    obs, _, _, _ = run(task)
    assert obs["obs"].tolist() == [[0.0, 5.0]] * 2
    assert obs["states"].tolist() == [[-5.0]] * 2
    assert task.obs_buf.tolist() == [[0.0, 7.0]] * 2
    assert "states" not in run(make())[0]


@pytest.mark.parametrize(("quirks", "fetches"), [(False, 3), (["Q30"], 1)])
def test_Q30_control_frequency_and_fetches(make, fake_gym, quirks, fetches):
    cfg = config(controlFrequencyInv=3)
    cfg["reference_quirks"] = quirks
    run(make(cfg))
    assert fake_gym.calls["simulate"] == 3
    assert fake_gym.calls["fetch_results"] == fetches


def test_Q1_reset_returns_the_current_observation_and_simulates_nothing(make, fake_gym):
    task = make()
    assert task.reset()["obs"].tolist() == [[0.0, 0.0]] * 2
    assert fake_gym.frames == 0
    run(task, 2)
    assert task.reset()["obs"].tolist() == [[1.0, 7.0]] * 2
    assert fake_gym.frames == 2


def test_reset_done_resets_flagged_envs_at_once(make):
    task = make()
    run(task, 4)
    obs, ids = task.reset_done()
    assert ids.tolist() == [0, 1]
    assert task.log[-1] == "reset [0, 1]"
    assert task.progress_buf.tolist() == task.reset_buf.tolist() == [0, 0]
    assert obs["obs"][:, 0].tolist() == [3.0, 3.0]
    assert task.reset_done()[1].tolist() == []


def test_zero_actions_and_train_info(make):
    task = make()
    assert task.zero_actions().tolist() == [[0.0] * 3] * 2
    task.set_train_info(1234)
    assert task.total_train_env_frames == 1234


def test_actions_that_need_gradients_are_accepted(make_task):
    task = make_task("Ant", numEnvs=2)
    obs, reward, _, _ = task.step(torch.zeros(2, 8, requires_grad=True))
    assert not obs["obs"].requires_grad
    assert not reward.requires_grad


# ---- statistics and guard --------------------------------------------------------------------------------------


def test_episode_means_of_reward_terms(make):
    task = make()
    assert run(task)[3]["episode"] == {"nonfinite_resets": 0.0}
    run(task, 3)
    extras = run(task)[3]  # the step that resets
    assert extras["episode"]["rew_progress"].item() == pytest.approx(0 + 1 + 2 + 3)
    assert extras["episode"]["rew_bonus"].item() == pytest.approx(4 * 0.5)
    assert run(task)[3]["episode"]["rew_progress"].item() == pytest.approx(6)  # stays until the next end


def test_reward_terms_add_up_to_the_episode_reward(make_task, fake_gym):
    task = make_task("Ant", numEnvs=3)
    fake_gym.physics = lambda gym: gym.root[:, 0].add_(torch.tensor([0.01, 0.02, 0.03]))
    torch.manual_seed(1)
    total = torch.zeros(3)
    for step in range(12):
        if step == 11:
            fake_gym.root[:, 2] = 0.2
        total += task.step(torch.rand(3, 8))[1]
    extras = task.step(torch.rand(3, 8))[3]
    assert sum(v.item() for v in extras["episode"].values()) == pytest.approx(total.mean().item(), abs=0.01)


def test_C5_nonfinite_env_is_zeroed_counted_and_reset(make_task, fake_gym):
    task = make_task("Ant", numEnvs=9)
    run(task, 3)
    fake_gym.root[7, 2] = math.nan
    obs, reward, done, extras = run(task)
    assert torch.isfinite(obs["obs"]).all()
    assert torch.isfinite(reward).all()
    assert obs["obs"][7].eq(0).all()
    assert reward[7].item() == 0.0
    assert done.tolist() == [0] * 7 + [1, 0]
    assert not extras["time_outs"].any()
    assert task.nonfinite_count.tolist() == [0] * 7 + [1, 0]
    obs, reward, done, extras = run(task)
    assert fake_gym.root[7, :3].tolist() == pytest.approx([0.0, 0.0, 0.44])
    assert obs["obs"][7, 0].item() == pytest.approx(0.44)
    assert done.sum() == 0
    assert all(torch.isfinite(v) for v in extras["episode"].values())
    run(task, 5)
    assert task.nonfinite_count.sum() == 1
    assert extras["episode"]["nonfinite_resets"].item() == 1


def test_C5_an_env_that_stays_nonfinite_counts_once(make_task, fake_gym):
    task = make_task("Ant", numEnvs=2)
    run(task)
    fake_gym.sensor[:4] = math.inf
    run(task, 3)
    assert task.nonfinite_count.tolist() == [1, 0]
    fake_gym.sensor[:4] = 0.0
    run(task)
    fake_gym.sensor[:4] = math.nan
    run(task)
    assert task.nonfinite_count.tolist() == [2, 0]


def test_C5_nonfinite_states_count_too(make):
    task = make(numStates=2)
    task.script = lambda t: t.states_buf[1].fill_(math.nan)
    obs, _, done, _ = run(task)
    assert obs["states"].tolist() == [[-9.0, -9.0], [0.0, 0.0]]
    assert done.tolist() == [0, 1]


def test_C5_broken_episodes_are_left_out_of_the_means(make):
    task = make()
    task.script = lambda t: t.rew_buf[0].fill_(math.nan) if t.control_steps == 2 else None
    run(task, 3)
    first = {name: value.item() for name, value in run(task)[3]["episode"].items()}
    assert first == {"rew_progress": 0.0, "rew_bonus": 0.0, "nonfinite_resets": 1.0}  # nothing countable ended
    extras = run(task)[3]
    assert extras["episode"]["rew_progress"].item() == pytest.approx(6)


@pytest.mark.parametrize("name", ["Ant", "Cartpole"])
def test_D4_one_wait_for_the_device_in_a_step(make_task, count_syncs, name):
    task = make_task(name, numEnvs=6)
    action = torch.zeros(6, task.num_actions)
    task.step(action)
    for flags in ([], [0, 3], list(range(6))):
        task.reset_buf[flags] = 1
        with count_syncs() as counter:
            task.step(action)
        assert counter.seen == {"nonzero": 1}


# ---- snapshots -------------------------------------------------------------------------------------------------


def swing(gym):
    """A deterministic stand-in for physics."""
    gym.dof[..., 1] += 0.01 * gym.forces - 0.1 * gym.dof[..., 0]
    gym.dof[..., 0] += 0.0166 * gym.dof[..., 1]
    gym.root[:, 0] += 0.001 * gym.dof[:, 0, 1]
    gym.root[:, 2] -= 0.0005


def rollout(task, steps):
    rows = []
    for _ in range(steps):
        obs, reward, done, extras = task.step(torch.rand(task.num_envs, task.num_actions) * 2 - 1)
        rows.append(torch.cat([obs["obs"].flatten(), reward, done.float(), extras["time_outs"].float()]))
    return torch.stack(rows)


@pytest.mark.parametrize("name", ["Ant", "Cartpole"])
def test_F1_resume_is_bit_exact(make_task, fake_gym, name):
    torch.manual_seed(3)
    fake_gym.physics = swing
    task = make_task(name, numEnvs=4, episodeLength=13)
    rollout(task, 30)
    state, generator = task.get_state(), torch.get_rng_state()
    task.set_state(task.get_state())
    expected = rollout(task, 30)
    assert (expected[:, -8:-4] != 0).any()  # some episodes end

    fake_gym.__init__()
    fake_gym.physics = swing
    resumed = make_task(name, numEnvs=4, episodeLength=13)
    resumed.set_state(state)
    torch.set_rng_state(generator)
    assert torch.equal(resumed.reset()["obs"], state["buffers"]["obs_buf"].clamp(-resumed.clip_obs, resumed.clip_obs))
    assert torch.equal(rollout(resumed, 30), expected)
    assert resumed.frame_count == 60
    assert resumed.control_steps == 60


def test_F5_state_is_plain_and_independent(make_task):
    task = make_task("Ant", numEnvs=2)
    run(task, 2)
    state = task.get_env_state()
    assert state["sim"].keys() == {"root_states", "dof_state"}
    kept = state["buffers"]["progress_buf"].clone()
    run(task, 2)
    assert torch.equal(state["buffers"]["progress_buf"], kept)
    task.set_env_state(None)
    task.set_env_state(state)
    assert torch.equal(task.progress_buf, kept)


def test_F5_a_state_that_does_not_fit_is_refused(make_task):
    state = make_task("Ant", numEnvs=2).get_state()
    with pytest.raises(ValueError, match=r"does not fit: root_states is \(2, 13\), here \(5, 13\)"):
        make_task("Ant", numEnvs=5).set_state(state)
    with pytest.raises(ValueError, match="has no root_states"):
        make_task("Ant", numEnvs=2).set_state(make_task("Cartpole", numEnvs=2).get_state())


# ---- assets ----------------------------------------------------------------------------------------------------


def test_asset_root_comes_from_the_config_or_lies_beside_the_package(fake_gym, load_cfg):
    cfg = load_cfg("task", "Ant")
    cfg["env"]["numEnvs"] = 1
    Ant(cfg, "cpu", "cpu")
    assert fake_gym.asset_root.endswith("assets")
    cfg["asset_root"] = "/somewhere"
    Ant(cfg, "cpu", "cpu")
    assert fake_gym.asset_root == "/somewhere"
    cfg["env"]["asset"]["assetRoot"] = "/elsewhere"
    Ant(cfg, "cpu", "cpu")
    assert fake_gym.asset_root == "/elsewhere"


# ---- viewer ----------------------------------------------------------------------------------------------------


def test_without_a_viewer_the_task_goes_on(make, capsys, fake_gym):
    task = make(headless=False, force_render=True)
    assert task.viewer is None
    assert "without a window" in capsys.readouterr().out
    run(task)
    assert fake_gym.calls["draw"] == 0


def test_viewer_draws_toggles_records_and_quits(make, fake_gym, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    fake_gym.viewer = "window"
    task = make(headless=False, force_render=True, renderFPS=1e6)
    eye, target = fake_gym.camera
    assert (eye.x, eye.y, eye.z, target.x, target.y, target.z) == (20, 25, 3, 10, 15, 0)
    run(task)
    assert (fake_gym.calls["draw"], fake_gym.calls["sync"]) == (1, 1)
    fake_gym.events = [SimpleNamespace(action="record_frames", value=1.0)]
    run(task)
    assert fake_gym.calls["image"] == 1
    assert len(list((tmp_path / "recorded_frames").iterdir())) == 1
    pressed = [("toggle_viewer_sync", 1.0), ("QUIT", 0.0)]
    fake_gym.events = [SimpleNamespace(action=action, value=value) for action, value in pressed]
    run(task)
    assert (fake_gym.calls["draw"], fake_gym.calls["poll"]) == (2, 1)
    fake_gym.events = [SimpleNamespace(action="QUIT", value=1.0)]
    with pytest.raises(SystemExit):
        run(task)
    task.close()
    assert (fake_gym.calls["destroy_viewer"], fake_gym.calls["destroy_sim"]) == (1, 1)
    fake_gym.query_viewer_has_closed = lambda viewer: True
    with pytest.raises(SystemExit):
        run(task)
