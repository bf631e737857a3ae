"""rsl_rl (https://github.com/leggedrobotics/rsl_rl). Its actor and critic are always separate networks."""

from __future__ import annotations

import torch
from rsl_rl.algorithms import PPO
from rsl_rl.models import MLPModel
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict

from gymscale.scripts.learners import Job, Turn


def run(job: Job, turn: Turn) -> None:
    """Train; see `gymscale.scripts.learners`."""
    torch.manual_seed(job.seed)
    env, config = job.env, job.config
    observations = _pack(job, env.reset())
    algorithm = _build(job, observations)
    algorithm.train_mode()
    while turn():
        with torch.inference_mode():
            for _ in range(config.horizon_length):
                actions = algorithm.act(observations)
                observation, rewards, dones, info = env.step(actions.clamp(-1.0, 1.0))
                observations = _pack(job, observation)
                extras = {"time_outs": info["time_outs"]} if config.value_bootstrap else {}
                algorithm.process_env_step(observations, config.reward_shaper.apply(rewards), dones, extras)
            algorithm.compute_returns(observations)
        algorithm.update()


def _pack(job: Job, observation: dict[str, torch.Tensor]) -> TensorDict:
    """Put the observations (N, O) into the container of this library."""
    return TensorDict({"policy": observation["obs"]}, batch_size=[job.env.num_envs], device=job.device)


def _build(job: Job, observations: TensorDict) -> PPO:
    """Make networks, storage and algorithm with the settings of the job."""
    config, network = job.config, job.config.network
    groups = {"actor": ["policy"], "critic": ["policy"]}
    shape = {
        "hidden_dims": list(network.units),
        "activation": network.activation,
        "obs_normalization": config.normalize_input,
    }
    gaussian = {"class_name": "GaussianDistribution", "init_std": 1.0, "std_type": "log"}
    num_actions = job.env.action_space.shape[0]
    actor = MLPModel(observations, groups, "actor", num_actions, **shape, distribution_cfg=gaussian)
    critic = MLPModel(observations, groups, "critic", 1, **shape)
    storage = RolloutStorage(
        "rl", job.env.num_envs, config.horizon_length, observations, [num_actions], device=job.device
    )
    return PPO(
        actor,
        critic,
        storage,
        num_learning_epochs=config.mini_epochs,
        num_mini_batches=job.minibatches,
        clip_param=config.e_clip,
        gamma=config.gamma,
        lam=config.tau,
        value_loss_coef=0.5 * config.critic_coef,
        entropy_coef=config.entropy_coef,
        learning_rate=config.learning_rate,
        max_grad_norm=config.grad_norm,
        use_clipped_value_loss=config.clip_value,
        schedule="adaptive" if config.lr_schedule == "adaptive" else "fixed",
        desired_kl=config.kl_threshold,
        device=job.device,
    )
