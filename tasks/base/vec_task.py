"""VecTask: N copies of one robot task, stepped together (IsaacGymEnvs 1.5 behaviour, documented deviations)."""

from __future__ import annotations

from typing import Any, ClassVar

from isaacgym import gymapi  # isort: skip  (the original package wants to be imported before torch)
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from tasks.base import config, snapshot
from tasks.base.description import Description
from tasks.base.episodes import Statistics
from tasks.base.errors import TaskError
from tasks.base.randomize import Randomizer
from tasks.base.viewer import Viewer, open_viewer


class VecTask:
    """Step order, buffers, deferred resets, time limits, clipping, statistics and the non-finite guard.

    A task supplies `create_scene`, `pre_physics_step`, `compute_observations`, `compute_reward` and `reset_idx`,
    sets `env.numObservations` and `env.numActions` before it calls this constructor, and acquires its state
    tensors after it.

    Resets are deferred: an env flagged in one step is reset in the next, after that step's simulation, so the
    observation that comes with `done` is the terminal one, and one action an episode is discarded.

    The only host synchronisation in a step is the look-up of the flagged envs. It follows the simulation directly,
    where the device has nothing left to do, and no per-env loop or growing allocation follows it.
    """

    sim_state: ClassVar[tuple[str, ...]] = ("root_states", "dof_state")
    """Attributes that hold simulation state; a snapshot reads them and writes them back."""
    saved_buffers: ClassVar[tuple[str, ...]] = (
        "obs_buf", "states_buf", "rew_buf", "reset_buf", "progress_buf", "randomize_buf", "nonfinite_buf",
        "nonfinite_count",
    )  # fmt: skip
    """Buffers that a snapshot copies; tasks add their own."""

    description: ClassVar[Description]
    """The task in words and numbers, for the documentation."""
    max_episode_length: int
    """T: control steps an episode may last."""
    envs: list[Any]
    """Env handles of the Gym API, one for each env."""
    root_states: Tensor
    """(actors, 13) position (m, env frame), quaternion xyzw, linear (m/s) and angular velocity (rad/s)."""
    dof_state: Tensor
    """(dofs, 2) positions (rad or m) and velocities of all DOFs."""

    def __init__(
        self,
        cfg: dict[str, Any],
        rl_device: str,
        sim_device: str,
        graphics_device_id: int = -1,
        headless: bool = True,
        virtual_screen_capture: bool = False,
        force_render: bool = False,
    ) -> None:
        """Build the simulation.

        Args:
            cfg: plain dict with the keys name, physics_engine, env, sim, task (and reference_quirks, asset_root).
            rl_device: device of actions, observations, rewards and flags.
            sim_device: device of the physics, "cpu" or "cuda:<id>".
            graphics_device_id: rendering GPU; -1 for none.
            headless: open no window.
            virtual_screen_capture: not supported.
            force_render: draw every simulated step when there is a window.

        Raises:
            TaskError: a config value is out of its range.
            RuntimeError: the simulation could not be created.
        """
        if virtual_screen_capture:
            raise NotImplementedError("virtual_screen_capture is not supported: there is no virtual display")
        self.cfg = cfg
        self.quirks = config.parse_quirks(cfg.get("reference_quirks", False))
        self.rl_device = rl_device
        self.headless = headless
        self.force_render = force_render
        devices = config.select_devices(sim_device, cfg["sim"], keep_use_gpu="Q8" in self.quirks)
        self.device_type, self.device_id, self.pipeline_device = devices
        cameras = cfg["env"].get("enableCameraSensors", False)
        self.graphics_device_id = -1 if headless and not cameras else graphics_device_id
        self._take_sizes(config.read_sizes(cfg["env"]))
        self.sim_params = config.parse_sim_params(cfg["sim"])
        self.physics_engine = config.parse_engine(cfg["physics_engine"])
        self.dt = self.sim_params.dt
        self._prepare_randomization(cfg.get("task", {}))
        self.control_steps = 0
        self.total_train_env_frames = 0
        self._frames_before = 0
        self.gym = gymapi.acquire_gym()
        self.create_sim()
        self.gym.prepare_sim(self.sim)
        self.viewer = None if headless else self._open_viewer()
        self.allocate_buffers()
        self.obs_dict: dict[str, Tensor] = {}

    def _take_sizes(self, sizes: config.Sizes) -> None:
        def unbounded(size: int) -> spaces.Box:
            return spaces.Box(-np.inf, np.inf, (size,), np.float32)

        self.num_environments, self.num_agents = sizes.num_envs, sizes.num_agents
        self.num_observations, self.num_states, self.num_actions = sizes[2:5]
        self.control_freq_inv, self.render_fps = sizes.control_freq_inv, sizes.render_fps
        self.clip_obs, self.clip_actions = sizes.clip_obs, sizes.clip_actions

        self.observation_space = unbounded(self.num_observations)
        self.state_space = unbounded(self.num_states) if self.num_states else None
        self.action_space = spaces.Box(-1.0, 1.0, (self.num_actions,), np.float32)

    def _prepare_randomization(self, task_cfg: dict[str, Any]) -> None:
        self.randomizer: Randomizer | None = None
        if task_cfg.get("randomize", False):
            if not task_cfg.get("randomization_params"):
                raise TaskError("task.randomize is True, but task.randomization_params says nothing")
            self.randomizer = Randomizer(self, task_cfg["randomization_params"])

    def create_sim(self) -> None:
        """Create `self.sim`, fill it with `create_scene` and randomise it; every task has its own simulation."""
        self.sim: Any = self.gym.create_sim(
            self.device_id, self.graphics_device_id, self.physics_engine, self.sim_params
        )
        if self.sim is None:
            raise RuntimeError("the simulation could not be created")
        self.create_scene()
        if self.randomizer is not None:
            self.randomizer.apply()

    def allocate_buffers(self) -> None:
        """Allocate what `step` reads and writes: observations, states, reward, flags and counters."""
        n, device = self.num_envs, self.pipeline_device
        self.obs_buf = torch.zeros(n, self.num_observations, device=device)
        self.states_buf = torch.zeros(n, self.num_states, device=device)
        self.rew_buf = torch.zeros(n, device=device)
        self.reset_buf = torch.ones(n, dtype=torch.int64, device=device)
        self.timeout_buf = torch.zeros(n, dtype=torch.bool, device=device)
        self.progress_buf = torch.zeros(n, dtype=torch.int64, device=device)
        self.randomize_buf = torch.zeros(n, dtype=torch.int64, device=device)
        self.nonfinite_buf = torch.zeros(n, dtype=torch.bool, device=device)
        self.nonfinite_count = torch.zeros(n, dtype=torch.int64, device=device)
        self.episodes = Statistics(n, device)
        self.extras: dict[str, Any] = {"episode": {}, "measures": {}}

    # ---- what a task supplies --------------------------------------------------------------------------------

    def create_scene(self) -> None:
        """Add ground, assets, envs and actors to `self.sim`."""
        raise NotImplementedError

    def pre_physics_step(self, actions: Tensor) -> None:
        """Turn clipped actions (N, A) into forces or targets."""
        raise NotImplementedError

    def compute_observations(self) -> None:
        """Refresh the state tensors and fill `obs_buf` (and `states_buf`)."""
        raise NotImplementedError

    def compute_reward(self) -> None:
        """Fill `rew_buf` and raise flags in `reset_buf`, from the unclipped, noise-free observation."""
        raise NotImplementedError

    def reset_idx(self, env_ids: Tensor) -> None:
        """Write new start states for envs `env_ids` (K,) int64; the caller keeps counters and flags."""

    # ---- stepping --------------------------------------------------------------------------------------------

    @torch.no_grad()
    def step(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor, Tensor, dict[str, Any]]:
        """Apply actions (N, A) for one control step.

        Returns:
            Observations, reward (N,), done (N,) and extras. Reward and done may be live buffers; extras holds
            `time_outs` (N,) bool, `episode` (see `episode_report`), `final_obs` (N, O), whose rows are the last
            observation of the old episode where done is set, and `measures` (see `measure`).
        """
        clipped = torch.clamp(self._with_noise("actions", actions), -self.clip_actions, self.clip_actions)
        self.pre_physics_step(clipped.to(self.pipeline_device))
        self._simulate()
        self.post_physics_step()
        self.control_steps += 1
        self.guard_nonfinite()
        self.timeout_buf = self.time_limit_reached()
        if self.randomizer is not None:
            self.obs_buf.copy_(self._with_noise("observations", self.obs_buf))
        return self._outputs()

    def _with_noise(self, name: str, values: Tensor) -> Tensor:
        noise = self.randomizer.noise.get(name) if self.randomizer is not None else None
        return values if noise is None else noise(values)

    def _simulate(self) -> None:
        fetch_each = "Q30" not in self.quirks
        on_cpu = self.pipeline_device == "cpu"
        for i in range(self.control_freq_inv):
            if self.force_render:
                self.render()
            self.gym.simulate(self.sim)
            if on_cpu and (fetch_each or i == self.control_freq_inv - 1):
                self.gym.fetch_results(self.sim, True)

    def post_physics_step(self) -> None:
        """Count, reset what the previous step flagged, then observe and reward."""
        self.progress_buf += 1
        self.count_randomize_steps()
        flagged = self.flagged_envs()
        if len(flagged) > 0:
            self.reset_envs(flagged)
            self.reset_buf.index_fill_(0, flagged, 0)
        self.compute_observations()
        self.compute_reward()

    def count_randomize_steps(self) -> None:
        """Count the control steps since each env's properties were last randomised."""
        if self.randomizer is not None:
            self.randomize_buf += 1

    def flagged_envs(self) -> Tensor:
        """Indices (K,) int64 of the envs whose reset flag is set; waits for the device."""
        return self.reset_buf.nonzero(as_tuple=False).squeeze(-1)

    def reset_envs(self, env_ids: Tensor) -> None:
        """Close the episodes of `env_ids` (K,), give these envs new start states and set their progress to 0."""
        self.episodes.finish(env_ids)
        self.extras["episode"] = self.episode_report()
        if self.randomizer is not None:
            self.randomizer.apply()
        self.reset_idx(env_ids)
        self.progress_buf.index_fill_(0, env_ids, 0)

    def episode_report(self) -> dict[str, Tensor]:
        """Means over the episodes that ended last, and how often an env was not finite.

        `rew_<term>` is the sum of a reward term over an episode; see `measure` for the task's own quantities.
        """
        return {**self.episodes.report(), "nonfinite_resets": self.nonfinite_count.sum().float()}

    def sum_terms(self, terms: dict[str, Tensor]) -> Tensor:
        """Sum (N,) of named reward terms (N,) each, which also go into the episode statistics."""
        values = torch.stack(list(terms.values()))
        self.episodes.rewards.add(list(terms), values)
        return values.sum(dim=0)

    def measure(self, means: dict[str, Tensor] | None = None, totals: dict[str, Tensor] | None = None) -> None:
        """Average or sum named quantities (N,) over each episode; to be called once a step, after `sum_terms`.

        The extras' `measures` hold each env's value so far (N,); where done is set it is that of the whole episode.
        """
        for table, values in ((self.episodes.means, means), (self.episodes.totals, totals)):
            if values:
                table.add(list(values), torch.stack(list(values.values())))
        running = self.episodes.running()
        self.extras["measures"] = {name: value.to(self.rl_device) for name, value in running.items()}

    def guard_nonfinite(self) -> None:
        """Zero observation and reward of envs that are not finite, flag, count and keep them out of statistics.

        An env counts once for each time that it turns non-finite, since some quantities of the old state stay
        visible until the first simulation after its reset.
        """
        total = self.obs_buf.sum(dim=1) + self.rew_buf
        if self.num_states:
            total += self.states_buf.sum(dim=1)
        bad = ~torch.isfinite(total)
        self.nonfinite_count += bad & ~self.nonfinite_buf
        self.nonfinite_buf.copy_(bad)
        self.obs_buf.masked_fill_(bad.unsqueeze(1), 0.0)
        self.states_buf.masked_fill_(bad.unsqueeze(1), 0.0)
        self.rew_buf.masked_fill_(bad, 0.0)
        self.reset_buf.masked_fill_(bad, 1)
        self.episodes.drop(bad)

    def time_limit_reached(self) -> Tensor:
        """Mask (N,) bool of the flagged envs whose episode has reached the time limit."""
        return (self.progress_buf >= self.max_episode_length - 1) & (self.reset_buf != 0) & ~self.nonfinite_buf

    def _outputs(self) -> tuple[dict[str, Tensor], Tensor, Tensor, dict[str, Any]]:
        self.extras["time_outs"] = self.timeout_buf.to(self.rl_device)
        observations = self._clipped_observations()
        self.extras["final_obs"] = observations["obs"]
        return observations, self.rew_buf.to(self.rl_device), self.reset_buf.to(self.rl_device), self.extras

    def _clipped_observations(self) -> dict[str, Tensor]:
        self.obs_dict["obs"] = torch.clamp(self.obs_buf, -self.clip_obs, self.clip_obs).to(self.rl_device)
        if self.num_states:
            self.obs_dict["states"] = torch.clamp(self.states_buf, -self.clip_obs, self.clip_obs).to(self.rl_device)
        return self.obs_dict

    def reset(self) -> dict[str, Tensor]:
        """Current observation, clipped; nothing is simulated (all zeros before the first step)."""
        return self._clipped_observations()

    def reset_done(self) -> tuple[dict[str, Tensor], Tensor]:
        """Reset all flagged envs now; returns the observations, which are not recomputed, and the ids."""
        flagged = self.flagged_envs()
        if len(flagged) > 0:
            self.reset_envs(flagged)
            self.reset_buf.index_fill_(0, flagged, 0)
        return self._clipped_observations(), flagged

    def close(self) -> None:
        """Destroy the window and the simulation; the task cannot be used afterwards."""
        if self.viewer is not None:
            self.gym.destroy_viewer(self.viewer.handle)
        self.gym.destroy_sim(self.sim)

    def zero_actions(self) -> Tensor:
        """Zero actions (N, A) on the learner's device."""
        return torch.zeros(self.num_envs, self.num_actions, device=self.rl_device)

    # ---- the environment protocol ----------------------------------------------------------------------------

    @property
    def num_envs(self) -> int:
        """N."""
        return self.num_environments

    @property
    def num_acts(self) -> int:
        """Number of actions."""
        return self.num_actions

    @property
    def num_obs(self) -> int:
        """Number of observations."""
        return self.num_observations

    @property
    def device(self) -> str:
        """Device of actions, observations, rewards and flags (the state lives on `pipeline_device`)."""
        return self.rl_device

    @property
    def frame_count(self) -> int:
        """Simulated frames since the start of training, over all resumes."""
        return int(self.gym.get_frame_count(self.sim)) + self._frames_before

    @frame_count.setter
    def frame_count(self, frames: int) -> None:
        self._frames_before = frames - int(self.gym.get_frame_count(self.sim))

    def dof_names(self) -> list[str]:
        """Names of one env's DOFs, in the order of the state tensors."""
        raise NotImplementedError

    def signature(self) -> dict[str, Any]:
        """What must agree for a policy to be used: task, sizes and DOF names."""
        return {
            "task": self.cfg.get("name", type(self).__name__),
            "num_observations": self.num_observations,
            "num_states": self.num_states,
            "num_actions": self.num_actions,
            "dof_names": self.dof_names(),
        }

    def get_state(self) -> dict[str, Any]:
        """Everything that a bit-exact resume needs, but for torch's global generators."""
        return snapshot.take(self)

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned, into the running simulation too."""
        snapshot.restore(self, state)

    # ---- names that rl_games' adapter of IsaacGymEnvs calls --------------------------------------------------

    def get_number_of_agents(self) -> int:
        """Agents in one env."""
        return self.num_agents

    def set_train_info(self, env_frames: int, *_: Any) -> None:
        """Store how many env steps the learner has taken."""
        self.total_train_env_frames = env_frames

    def get_env_state(self) -> dict[str, Any]:
        """Same as `get_state`."""
        return self.get_state()

    def set_env_state(self, state: dict[str, Any] | None) -> None:
        """Same as `set_state`; None changes nothing."""
        if state is not None:
            self.set_state(state)

    def render(self) -> None:
        """Draw a frame if there is a window."""
        if self.viewer is not None:
            self.viewer.draw(self.control_steps)

    def _open_viewer(self) -> Viewer | None:
        period = self.dt * self.control_freq_inv if self.render_fps < 0 else 1.0 / self.render_fps
        up_axis, fetch = self.cfg["sim"]["up_axis"], self.pipeline_device != "cpu"
        return open_viewer(self.gym, self.sim, up_axis, period, fetch)
