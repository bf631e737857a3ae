"""skrl (https://github.com/Toni-SM/skrl)."""

from __future__ import annotations

from typing import Any

import torch
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from skrl.resources.preprocessors.torch import RunningStandardScaler
from skrl.resources.schedulers.torch import KLAdaptiveLR
from torch import nn

from gymscale.scripts.learners import Job, Turn

ACTIVATIONS = {"elu": nn.ELU, "relu": nn.ReLU, "tanh": nn.Tanh, "selu": nn.SELU, "gelu": nn.GELU, "silu": nn.SiLU}


def run(job: Job, turn: Turn) -> None:
    """Train; see `gymscale.scripts.learners`."""
    torch.manual_seed(job.seed)
    env, horizon = job.env, job.config.horizon_length
    agent = _build(job)
    agent.init()
    agent.enable_training_mode(True)
    observations, step = env.reset()["obs"], 0
    while turn():
        for _ in range(horizon):
            with torch.no_grad():
                clock = {"timestep": step, "timesteps": 2**31}
                agent.pre_interaction(**clock)
                actions, _ = agent.act(observations, None, **clock)
                observation, rewards, dones, info = env.step(actions.clamp(-1.0, 1.0))
                time_outs = info["time_outs"].bool()
                agent.record_transition(
                    observations=observations,
                    states=None,
                    actions=actions,
                    rewards=job.config.reward_shaper.apply(rewards).unsqueeze(1),
                    next_observations=observation["obs"],
                    next_states=None,
                    terminated=(dones.bool() & ~time_outs).unsqueeze(1),
                    truncated=time_outs.unsqueeze(1),
                    infos=info,
                    **clock,
                )
            observations, step = observation["obs"], step + 1
            agent.post_interaction(**clock)


class ActorCritic(GaussianMixin, DeterministicMixin, Model):
    """Policy and value on one MLP, or the two of them on one each when it is used twice."""

    def __init__(self, job: Job) -> None:
        """Build the layers; the standard deviation does not depend on the observation."""
        env, network = job.env, job.config.network
        Model.__init__(self, observation_space=env.observation_space, action_space=env.action_space, device=job.device)
        GaussianMixin.__init__(self, role="policy")
        DeterministicMixin.__init__(self, role="value")
        layers: list[nn.Module] = []
        width = env.observation_space.shape[0]
        for units in network.units:
            layers += [nn.Linear(width, units), ACTIVATIONS[network.activation]()]
            width = units
        self.trunk = nn.Sequential(*layers)
        self.mean = nn.Linear(width, env.action_space.shape[0])
        self.value = nn.Linear(width, 1)
        self.log_std = nn.Parameter(torch.zeros(env.action_space.shape[0]))
        self._shared = not network.separate
        self._features: torch.Tensor | None = None

    def act(self, inputs: dict[str, Any], *, role: str = "") -> Any:
        """Return what the mixin of the role returns."""
        return (GaussianMixin if role == "policy" else DeterministicMixin).act(self, inputs, role=role)

    def compute(self, inputs: dict[str, Any], role: str = "") -> Any:
        """Evaluate a head; the value uses the features that the policy left, as skrl's own shared models do."""
        if role == "policy":
            features = self.trunk(inputs["observations"])
            self._features = features if self._shared else None
            return self.mean(features), {"log_std": self.log_std}
        features, self._features = self._features, None
        return self.value(self.trunk(inputs["observations"]) if features is None else features), {}


def _build(job: Job) -> PPO:
    """Make models, memory and agent with the settings of the job."""
    config, env = job.config, job.env
    policy = ActorCritic(job)
    adaptive = config.lr_schedule == "adaptive"
    cfg = PPO_CFG(
        rollouts=config.horizon_length,
        learning_epochs=config.mini_epochs,
        mini_batches=job.minibatches,
        discount_factor=config.gamma,
        gae_lambda=config.tau,
        learning_rate=config.learning_rate,
        learning_rate_scheduler=KLAdaptiveLR if adaptive else None,
        learning_rate_scheduler_kwargs={"kl_threshold": config.kl_threshold} if adaptive else {},
        observation_preprocessor=RunningStandardScaler if config.normalize_input else None,
        observation_preprocessor_kwargs={"size": env.observation_space, "device": job.device},
        value_preprocessor=RunningStandardScaler if config.normalize_value else None,
        value_preprocessor_kwargs={"size": 1, "device": job.device},
        grad_norm_clip=config.grad_norm if config.truncate_grads else 0.0,
        ratio_clip=config.e_clip,
        value_clip=config.e_clip if config.clip_value else 0.0,
        entropy_loss_scale=config.entropy_coef,
        value_loss_scale=0.5 * config.critic_coef,
        time_limit_bootstrap=config.value_bootstrap,
        experiment={"write_interval": 0, "checkpoint_interval": 0},
    )
    return PPO(
        models={"policy": policy, "value": ActorCritic(job) if config.network.separate else policy},
        memory=RandomMemory(memory_size=config.horizon_length, num_envs=env.num_envs, device=job.device),
        observation_space=env.observation_space,
        action_space=env.action_space,
        device=job.device,
        cfg=cfg,
    )
