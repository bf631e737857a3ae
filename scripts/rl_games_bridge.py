"""Runs our tasks and configs through rl-games: what its names, its environment interface and its checkpoints need."""

from __future__ import annotations

import copy
import dataclasses
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

import torch

from gymscale.scripts.config import UsageError
from ppo.config import TrainConfig, minibatch_samples
from ppo.diagnostics import EpisodeTracker, MeanTracker, Stopwatch
from ppo.distributed import World

INSTALL = "pip install 'gymscale[rl-games]'"

OURS_ONLY = (
    "kl_reference",
    "kl_estimator",
    "min_lr",
    "max_lr",
    "shuffle",
    "micro_batch_size",
    "mixed_precision_cpu",
    "cpu_update",
    "torch_compile",
    "keep_last",
)
"""Settings of our learner that rl-games has no counterpart of; they must keep their default."""

COPIED = (
    ("learning_rate", "horizon_length", "mini_epochs", "gamma", "tau", "value_bootstrap", "normalize_input")
    + ("normalize_value", "normalize_advantage", "clip_actions", "e_clip", "clip_value", "critic_coef", "entropy_coef")
    + ("schedule_entropy", "bounds_loss_coef", "schedule_type", "kl_threshold", "truncate_grads", "grad_norm")
    + ("weight_decay", "seq_length", "max_epochs", "max_frames", "score_to_win", "games_to_track", "save_best_after")
    + ("save_frequency",)
)
"""Settings with the same name and meaning on both sides."""


def require_installed() -> None:
    """Check that rl-games can be imported.

    Raises:
        UsageError: It is not installed.
    """
    if importlib.util.find_spec("rl_games") is None:
        raise UsageError(f"train.algo=rl_games needs the package rl-games: {INSTALL}")


def translate(params: Mapping[str, Any], num_envs: int, device: str) -> dict[str, Any]:
    """Return rl-games' `params` for our `train.params`, which has its key names already.

    What differs: defaults are written out, minibatches are made to divide the batch as ours do, the model is not
    compiled, and mixed precision is for CUDA only.

    Args:
        params: The plain `train.params` tree.
        num_envs: Number of environments.
        device: Torch device of the learner.

    Raises:
        UsageError: A setting that rl-games cannot follow.
    """
    settings = TrainConfig.from_params(params)
    _refuse_ours_only(settings)
    result = copy.deepcopy(dict(params))
    for key in ("load_checkpoint", "load_path"):
        result.pop(key, None)
    result["torch_threads"] = 0  # leave torch's own number of threads
    result["network"] = _network(result["network"])
    given = result["config"]
    result["config"] = {
        "name": given.get("name", "run"),
        "env_name": "gymscale",
        **{name: getattr(settings, name) for name in COPIED},
        "ppo": True,
        "num_actors": num_envs,
        "device": device,
        "device_name": device,
        "multi_gpu": False,
        "torch_compile": False,
        "mixed_precision": settings.mixed_precision and device != "cpu",
        "lr_schedule": None if settings.lr_schedule == "constant" else settings.lr_schedule,
        "reward_shaper": dataclasses.asdict(settings.reward_shaper),
        "minibatch_size": _minibatch_size(settings, num_envs),
    }
    if settings.central_value_config is not None:
        central = given["central_value_config"]
        central.pop("minibatch_size_per_env", None)
        central["network"] = _network(central["network"])
        central["minibatch_size"] = _minibatch_size(settings, num_envs, settings.central_value_config)
        result["config"]["central_value_config"] = central
    return result


def refuse_extensions(settings: TrainConfig) -> None:
    """Refuse the algorithms that only our learner has.

    Raises:
        UsageError: One of them is on.
    """
    for name, title, key in (("ewma", "PPO-EWMA", "com"), ("sapg", "SAPG", "num_blocks"), ("capo", "CAPO", "replicas")):
        if getattr(settings, name).enabled:
            raise UsageError(f"rl-games has no {title}: leave train.{name}.{key} empty, or train with train.algo=ppo")


def _refuse_ours_only(settings: TrainConfig) -> None:
    """Refuse settings without a counterpart, rather than train something else than was asked for."""
    defaults = {field.name: field.default for field in dataclasses.fields(TrainConfig)}
    for name in OURS_ONLY:
        if getattr(settings, name) != defaults[name]:
            raise UsageError(
                f"train.params.config.{name}={getattr(settings, name)} has no counterpart in rl-games: "
                f"leave it at {defaults[name]}, or train with train.algo=ppo"
            )


def _network(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Write out what our network section may leave to its default and rl-games asks for."""
    none = {"name": "None"}
    space = (tree.get("space") or {}).get("continuous") or {}
    head = {"mu_activation": "None", "sigma_activation": "None", "mu_init": {"name": "default"}, "fixed_sigma": True}
    head["sigma_init"] = {"name": "const_initializer", "val": 0}
    mlp = {"d2rl": False, "initializer": {"name": "default"}, "regularizer": none, "activation": "elu"}
    result = {"name": "actor_critic", "separate": False, **tree, "mlp": {**mlp, **tree["mlp"]}}
    if not tree.get("central_value"):
        result["space"] = {"continuous": {**head, **space}}
    return result


def _minibatch_size(settings: TrainConfig, num_envs: int, own: Any = None) -> int:
    """Return the largest minibatch of at most the wanted size that splits the batch into equal parts."""
    batch = num_envs * settings.horizon_length
    count = -(-batch // minibatch_samples(own or settings, num_envs))
    if batch % count:
        raise UsageError(
            f"rl-games needs minibatches of equal size: {num_envs} envs x {settings.horizon_length} steps = {batch} "
            f"samples do not split into {count}; choose another num_envs or minibatch_size"
        )
    return batch // count


def build_agent(params: dict[str, Any], env: Any, horizon: int, observer: Any = None) -> Any:
    """Return rl-games' agent, not yet started, for translated `params` and one of our environments."""
    from rl_games.torch_runner import Runner

    precision = torch.get_float32_matmul_precision()
    runner = Runner(observer) if observer is not None else Runner()
    torch.set_float32_matmul_precision(precision)  # which it lowers
    params["config"]["vec_env"] = RlGamesVecEnv(env, horizon, params["config"]["games_to_track"])
    params["config"]["env_info"] = params["config"]["vec_env"].get_env_info()
    runner.load_config(params)
    return runner.algo_factory.create(runner.algo_name, base_name="run", params=runner.params)


class RlGamesVecEnv:
    """One of our environments behind rl-games' interface; counts episodes and time as our learner does."""

    def __init__(self, env: Any, horizon: int, window: int) -> None:
        """Wrap `env`, which is stepped `horizon` times an iteration; statistics are over `window` episodes."""
        self.env = env
        device = torch.device(env.device)
        self.step_watch = Stopwatch(device)
        self.infos = MeanTracker()
        self._horizon, self._steps = horizon, 0
        self.episodes = EpisodeTracker(env.num_envs, horizon, window, device)
        self.on_iteration: Callable[[], None] = lambda: None
        """called when an iteration begins"""

    def get_env_info(self) -> dict[str, Any]:
        """Return the spaces."""
        return {
            "observation_space": self.env.observation_space,
            "action_space": self.env.action_space,
            "state_space": self.env.state_space,
            "agents": 1,
            "value_size": 1,
        }

    def reset(self) -> dict[str, torch.Tensor]:
        """Return the first observation."""
        return dict(self.env.reset())

    def step(self, actions: torch.Tensor) -> tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Apply actions (N, A), already scaled to the action space."""
        with self.step_watch.measure():
            observation, rewards, dones, info = self.env.step(actions)
        self.episodes.step(self._steps % self._horizon, rewards, dones)
        self._steps += 1
        self.infos.add(info.get("episode", {}))
        passed = {"time_outs": info["time_outs"]} if "time_outs" in info else {}
        return dict(observation), rewards, dones, passed

    def episode_summary(self) -> dict[str, float]:
        """Return our metrics of the finished episodes; call it after each iteration."""
        return self.episodes.summary(World()) | self.infos.pop("episode")

    def set_train_info(self, frames: int, *_: Any) -> None:
        """Begin an iteration; our tasks count their progress themselves."""
        self.on_iteration()

    def get_env_state(self) -> None:
        """Keep nothing of the environment in rl-games' checkpoints."""

    def set_env_state(self, state: Any) -> None:
        """Have nothing to restore."""

    def has_action_masks(self) -> bool:
        """Return False: actions are continuous."""
        return False

    def get_number_of_agents(self) -> int:
        """Return 1 agent an environment."""
        return 1
