"""Tasks behind Gymnasium's vector interface: spaces, episode ends, seeds, arrays."""

from importlib import metadata

from isaacgym import gymapi, gymtorch  # isort: skip
import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

import tasks
from tasks.base.vec_task import VecTask
from tasks.gymnasium_env import GymnasiumEnv


class Countdown(VecTask):
    """Observes [steps taken, a start value drawn at the reset]; fails in env 0 after 3 steps, time limit 5 steps.

    The reward is 10 + steps taken, so a step of a new episode that were counted would show.
    """

    max_episode_length = 6

    def __init__(self, cfg, *args, **kwargs):
        super().__init__(cfg, *args, **kwargs)
        self.root_states = gymtorch.wrap_tensor(self.gym.acquire_actor_root_state_tensor(self.sim))
        self.dof_state = gymtorch.wrap_tensor(self.gym.acquire_dof_state_tensor(self.sim))
        self.start = torch.zeros(self.num_envs)
        self.seen_actions = []

    def create_scene(self):
        asset = self.gym.load_asset(self.sim, "", "cartpole/cartpole.urdf")
        for i in range(self.num_envs):
            env = self.gym.create_env(self.sim, gymapi.Vec3(), gymapi.Vec3(), 1)
            self.gym.create_actor(env, asset, gymapi.Transform(), "robot", i, 1, 0)

    def pre_physics_step(self, actions):
        self.seen_actions.append(actions.clone())

    def compute_observations(self):
        self.obs_buf[:, 0] = self.progress_buf
        self.obs_buf[:, 1] = self.start
        if self.num_states:
            self.states_buf.fill_(3.0)

    def compute_reward(self):
        self.rew_buf.copy_(self.sum_terms({"steps": 10.0 + self.progress_buf}))
        self.measure(means={"twice": 2.0 * self.progress_buf})
        self.reset_buf[0] |= int(self.progress_buf[0] == 3)
        self.reset_buf |= self.progress_buf >= self.max_episode_length - 1

    def reset_idx(self, env_ids):
        self.start[env_ids] = torch.rand(len(env_ids))


@pytest.fixture
def make(fake_gym):
    def build(arrays="numpy", **env):
        sim = {"dt": 0.01, "up_axis": "z", "use_gpu_pipeline": False, "gravity": [0, 0, -9.81], "physx": {}}
        sizes = {"numEnvs": 2, "numObservations": 2, "numActions": 3, "clipObservations": 4.0, **env}
        cfg = {"name": "Countdown", "physics_engine": "physx", "env": sizes, "sim": sim}
        return GymnasiumEnv(Countdown(cfg, "cpu", "cpu"), arrays)

    return build


ZERO = np.zeros((2, 3), np.float32)


def test_it_is_a_vector_env_with_batched_spaces(make):
    env = make()
    assert isinstance(env, gymnasium.vector.VectorEnv)
    assert env.num_envs == 2
    assert (env.single_observation_space.shape, env.observation_space.shape) == ((2,), (2, 2))
    assert (env.single_action_space.shape, env.action_space.shape) == ((3,), (2, 3))
    assert env.action_space.high.tolist() == [[1.0] * 3] * 2
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert (env.single_state_space, env.render_mode, env.unwrapped) == (None, None, env)


def test_observations_lie_in_the_space_and_results_have_gymnasiums_types(make):
    env = make()
    observations, info = env.reset(seed=1)
    assert info == {}
    assert env.observation_space.contains(observations)
    env.action_space.seed(0)
    observations, rewards, terminations, truncations, _ = env.step(env.action_space.sample())
    assert env.observation_space.contains(observations)
    assert (rewards.dtype, rewards.shape) == (np.float32, (2,))
    for flags in (terminations, truncations):
        assert (flags.dtype, flags.shape) == (np.bool_, (2,))


def test_a_scripted_episode_ends_and_starts_as_next_step_autoreset_says(make):
    env = make()
    first, _ = env.reset(seed=1)
    steps = [env.step(ZERO) for _ in range(7)]
    assert first[:, 0].tolist() == [0.0, 0.0]
    # env 0 fails after 3 steps, is reset in the 4th and fails again in the 7th; env 1 meets the limit after 5 steps
    assert [s[0][0, 0] for s in steps] == [1, 2, 3, 0, 1, 2, 3]
    assert [s[0][1, 0] for s in steps] == [1, 2, 3, 4, 4, 0, 1]  # clipped to 4
    assert [s[1][0] for s in steps] == [11, 12, 13, 0, 11, 12, 13]
    assert [s[1][1] for s in steps] == [11, 12, 13, 14, 15, 0, 11]
    assert [s[2].tolist() for s in steps] == [[i in (2, 6), False] for i in range(7)]
    assert [s[3].tolist() for s in steps] == [[False, i == 4] for i in range(7)]


def test_final_observations_are_the_last_of_the_old_episode(make):
    env = make(clipObservations=9.0)
    start = env.reset(seed=1)[0][:, 1]
    for i in range(1, 6):
        observations, _, _, _, info = env.step(ZERO)
        assert info["_final_obs"].tolist() == [i == 3, i == 5]
        if i == 3:
            np.testing.assert_allclose(info["final_obs"][0], [3.0, start[0]])
            kept = info["final_obs"]
    np.testing.assert_allclose(info["final_obs"][1], [5.0, start[1]])
    np.testing.assert_allclose(kept[0], [3.0, start[0]])  # later steps leave it alone
    assert observations[0, 1] != start[0]
    assert info["measures"]["twice"].tolist() == [1.0, 5.0]  # means of 0, 2 and of 0, 2, ... 10: the first step counts


def test_results_of_earlier_steps_stay_as_they_were(make):
    for arrays in ("numpy", "torch"):
        env = make(arrays)
        env.reset(seed=1)
        early = env.step(ZERO)
        copies = [value.tolist() for value in early[:4]]
        for _ in range(4):
            env.step(ZERO)
        assert [value.tolist() for value in early[:4]] == copies


def test_gymnasiums_own_statistics_agree_with_the_script(make):
    env = RecordEpisodeStatistics(make())
    env.reset(seed=1)
    ended = []
    for i in range(8):
        *_, info = env.step(ZERO)
        if "episode" in info:
            ended.append((i, info["episode"]["r"].tolist(), info["episode"]["l"].tolist()))
    assert ended == [(2, [36.0, 0.0], [3, 0]), (4, [0.0, 65.0], [0, 5]), (6, [36.0, 0.0], [3, 0])]


def test_info_can_be_split_by_gymnasium(make):
    env = DictInfoToList(make())
    env.reset(seed=1)
    for _ in range(3):
        *_, infos = env.step(ZERO)
    assert infos[0]["final_obs"][0] == 3.0
    assert "final_obs" not in infos[1]


def test_reset_starts_all_episodes_anew_and_forgets_running_ones(make):
    env = make()
    env.reset(seed=1)
    env.step(ZERO)
    env.step(ZERO)
    observations, _ = env.reset()
    assert observations[:, 0].tolist() == [0.0, 0.0]
    assert "rew_steps" in env.task.extras["episode"]
    assert env.task.extras["episode"]["rew_steps"] == 0.0
    assert [env.step(ZERO)[2][0] for _ in range(3)] == [False, False, True]


def test_a_seed_repeats_start_states_whatever_others_draw(make):
    starts = []
    for noise in (1, 2):
        torch.manual_seed(noise)
        env = make()
        rows = [env.reset(seed=7)[0][:, 1]]
        for _ in range(6):
            torch.rand(noise)
            rows.append(env.step(ZERO)[0][:, 1])
        starts.append(np.stack(rows))
    np.testing.assert_array_equal(starts[0], starts[1])
    assert len(np.unique(starts[0])) == 4  # two starts of each env
    assert env.np_random_seed == 7
    assert not np.array_equal(env.reset(seed=8)[0], starts[0][0])
    before = torch.get_rng_state()
    env.reset(seed=9)
    assert torch.equal(torch.get_rng_state(), before)


def test_without_a_seed_torchs_own_generator_decides(make):
    starts = []
    for _ in range(2):
        torch.manual_seed(3)
        starts.append(make().reset()[0])
    np.testing.assert_array_equal(*starts)


def test_torch_arrays_are_tensors_on_the_tasks_device(make):
    env = make("torch", numStates=1)
    observations, info = env.reset(seed=1)
    assert isinstance(observations, torch.Tensor)
    assert info["states"].tolist() == [[3.0], [3.0]]
    assert env.single_state_space.shape == (1,)
    results = env.step(torch.full((2, 3), 0.25))
    assert all(isinstance(value, torch.Tensor) for value in (*results[:4], *results[4]["measures"].values()))
    assert env.task.seen_actions[-1].tolist() == [[0.25] * 3] * 2


def test_wrong_use_is_named(make):
    with pytest.raises(ValueError, match="arrays is 'jax'; allowed are numpy, torch"):
        make("jax")
    env = make()
    with pytest.raises(RuntimeError, match="call reset\\(\\) first"):
        env.step(ZERO)
    with pytest.raises(NotImplementedError, match="options are not supported, got \\['reset_mask'\\]"):
        env.reset(options={"reset_mask": np.ones(2, bool)})
    env.reset()
    with pytest.raises(ValueError, match=r"actions have shape \(3,\), expected \(2, 3\)"):
        env.step(ZERO[0])


def test_make_builds_a_task_with_its_config_on_the_simulator():
    env = tasks.make("Cartpole", num_envs=3, sim_device="cpu", overrides=["task.env.episodeLength=4"])
    try:
        observations, _ = env.reset(seed=5)
        assert env.observation_space.contains(observations)
        assert np.abs(observations[:, [0, 2]]).max() <= 0.1  # m, rad
        assert np.abs(observations[:, [1, 3]]).max() <= 0.25  # m/s, rad/s
        push = np.array([[1.0], [0.0], [-1.0]], np.float32)
        moved, rewards, terminations, truncations, _ = env.step(push)
        assert moved[0, 1] - observations[0, 1] > 0.1 > moved[2, 1] - observations[2, 1]
        assert (rewards > 0.8).all()
        ends = [env.step(push * 0)[3].tolist() for _ in range(3)]
        assert ends == [[False] * 3, [True] * 3, [False] * 3]
        np.testing.assert_array_equal(env.reset(seed=5)[0], observations)
    finally:
        env.close()
    assert env.closed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "Antt"}, "unknown task 'Antt'; did you mean 'Ant'"),
        ({"name": "Ant", "num_envs": 0}, "num_envs must be a whole number of at least 1"),
        ({"name": "Ant", "overrides": ["task.env.episodeLenght=4"]}, "did you mean 'task.env.episodeLength'"),
        ({"name": "Ant", "sim_device": "gpu"}, "sim_device"),
    ],
)
def test_make_refuses_what_does_not_exist(arguments, message):
    with pytest.raises(ValueError, match=message):
        tasks.make(**arguments)


def test_make_says_what_to_do_without_the_config_files(monkeypatch):
    monkeypatch.setattr(metadata, "entry_points", lambda: metadata.EntryPoints())
    with pytest.raises(ValueError, match="install gymscale"):
        tasks.make("Ant")
