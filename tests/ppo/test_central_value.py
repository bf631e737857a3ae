from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from ppo.central_value import CentralCritic, CentralValueUpdate
from ppo.config import CentralValueConfig, ConfigError, NetworkConfig, TrainConfig
from ppo.distributed import World
from ppo.normalize import RunningNormalizer
from ppo.rollout import CriticBatch
from ppo.trainer import Trainer
from tests.ppo.envs import Cartpole, Pendulum
from tests.ppo.settings import CONFIG

CENTRAL: dict[str, Any] = {
    "minibatch_size": 64,
    "mini_epochs": 3,
    "learning_rate": 1e-3,
    "lr_schedule": "adaptive",
    "schedule_type": "standard",
    "kl_threshold": 0.016,
    "clip_value": True,
    "normalize_input": True,
    "truncate_grads": True,
    "network": {"name": "actor_critic", "central_value": True, "mlp": {"units": [16], "activation": "elu"}},
}


def make_config(central: dict[str, Any] | None = None, **overrides: Any) -> TrainConfig:
    network = {"mlp": {"units": [16], "activation": "elu"}}
    settings = {**CONFIG, "horizon_length": 8, "central_value_config": {**CENTRAL, **(central or {})}, **overrides}
    return TrainConfig.from_params({"network": network, "config": settings})


def test_reads_the_isaacgymenvs_section():
    config = make_config().central_value_config
    assert config.network.units == (16,)
    assert (config.minibatch_size, config.mini_epochs, config.e_clip, config.grad_norm) == (64, 3, 0.2, 1.0)


@pytest.mark.parametrize(
    ("central", "message"),
    [
        ({"learning_rat": 1}, "central_value_config: unknown key 'learning_rat' (did you mean 'learning_rate'?)"),
        ({"mini_epochs": 0}, "mini_epochs must be at least 1"),
        ({"lr_schedule": "linear"}, "central_value_config.lr_schedule linear needs max_epochs or max_frames"),
        ({"network": {"mlp": {}}}, "central_value_config.network.mlp.units is missing"),
    ],
)
def test_unusable_settings(central, message):
    with pytest.raises(ConfigError) as error:
        make_config(central)
    assert message in str(error.value)


def test_a_task_without_states_is_rejected():
    with pytest.raises(ConfigError, match="needs privileged states"):
        Trainer(Pendulum(4), make_config(), "cpu", None)


def test_values_of_the_rollout_are_the_central_critics():
    trainer = Trainer(Cartpole(8, hide_velocities=True), make_config(), "cpu", None)
    agent, observation = trainer.agent, trainer.env.reset()
    agent.value_normalizer.mean.fill_(3.0)
    agent.central.normalizer.mean.fill_(0.5)
    value = agent.evaluate(observation, agent.initial_hidden(8)).value
    states = agent.central.normalizer.normalize(observation["states"])
    expected, _ = agent.central(states, torch.zeros(8, 0))
    torch.testing.assert_close(value, agent.value_normalizer.denormalize(expected))
    buffer = trainer.collector.collect()
    torch.testing.assert_close(buffer.states[:, 0], observation["states"])


def test_one_step_equals_adam_on_the_clipped_loss():
    torch.manual_seed(0)
    config = CentralValueConfig(1e-3, 1, 32, network=NetworkConfig(units=(8,)), truncate_grads=True, grad_norm=0.01)
    critic, other = CentralCritic(3, config), CentralCritic(3, config)
    other.load_state_dict(critic.state_dict())
    states, values, returns = torch.randn(32, 3) + 2.0, torch.randn(32), torch.randn(32)
    batch = CriticBatch(states, values, returns, torch.zeros(32, 0), torch.zeros(32))
    statistics = CentralValueUpdate(critic, config, 32, World()).run(batch)

    normalizer = RunningNormalizer(3)
    normalizer.update(states, World())
    predicted, _ = other(normalizer.normalize(states), torch.zeros(32, 0))
    clipped = values + (predicted - values).clamp(-0.2, 0.2)
    loss = torch.max((predicted - returns) ** 2, (clipped - returns) ** 2).mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(other.parameters(), 0.01)
    torch.optim.Adam(other.parameters(), lr=1e-3).step()
    torch.testing.assert_close(statistics["central_value_loss"], loss.detach())
    for ours, theirs in zip(critic.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)
    assert critic.normalizer.count.item() == 33.0


def test_a_non_finite_return_is_skipped():
    config = CentralValueConfig(1e-3, 1, 32, network=NetworkConfig(units=(8,)))
    critic = CentralCritic(3, config)
    before = [p.clone() for p in critic.parameters()]
    batch = CriticBatch(
        torch.randn(32, 3), torch.zeros(32), torch.full((32,), math.nan), torch.zeros(32, 0), torch.zeros(32)
    )
    assert CentralValueUpdate(critic, config, 32, World()).run(batch)["central_skipped_updates"] == 1
    assert all(torch.equal(a, b) for a, b in zip(before, critic.parameters(), strict=True))


def test_the_critic_learns_first_and_the_actor_keeps_its_value_head():
    config = make_config(max_epochs=2, minibatch_size=64)
    trainer = Trainer(Cartpole(8, hide_velocities=True), config, "cpu", None)
    order: list[str] = []
    for name, update in (("central", trainer.central_update), ("policy", trainer.update)):
        run = update.run
        update.run = lambda batch, name=name, run=run: order.append(name) or run(batch)
    before = trainer.agent.network.value.weight.clone()
    trainer.train()
    assert order == ["central", "policy"] * 2
    assert not torch.equal(trainer.agent.network.value.weight, before)


def test_linear_rate_of_the_critic():
    config = make_config({"lr_schedule": "linear"}, max_epochs=4)
    trainer = Trainer(Cartpole(8), config, "cpu", None)
    trainer.train()
    assert trainer.central_update.optimizer.rate.item() == pytest.approx(1e-6 + (1e-3 - 1e-6) * 0.25)


@pytest.mark.parametrize("rnn", [{}, {"rnn": {"name": "lstm", "units": 8}}])
def test_resume_with_a_central_critic_is_exact(tmp_path, rnn):
    config = make_config({"network": {**CENTRAL["network"], **rnn}}, max_epochs=4, save_frequency=2, minibatch_size=64)
    whole = Trainer(Cartpole(8), config, "cpu", tmp_path, seed=3)
    whole.train()
    second = Trainer(Cartpole(8, seed=9), config, "cpu", None, seed=9)
    second.restore(tmp_path / "nn" / "ep_2.pth")
    second.train()
    for a, b in zip(whole.agent.state_dict().values(), second.agent.state_dict().values(), strict=True):
        assert torch.equal(a, b)


def test_recurrent_critic_replays_the_rollouts_values():
    recurrent = {"network": {**CENTRAL["network"], "rnn": {"name": "gru", "units": 8, "before_mlp": True}}}
    config = make_config({**recurrent, "normalize_input": False}, normalize_value=False)
    trainer = Trainer(Cartpole(8), config, "cpu", None)
    for _ in range(4):
        buffer = trainer.collector.collect()
    assert buffer.starts.sum() > 0
    hidden_size = trainer.agent.central.hidden_size
    batch = buffer.critic_batch(buffer.values, buffer.values, hidden_size)
    values, _ = trainer.agent.central(batch.states, batch.hidden, batch.starts)
    torch.testing.assert_close(values, batch.values, atol=1e-5, rtol=1e-4)
    policy = buffer.batch(buffer.values, buffer.values, buffer.values, trainer.agent.network.hidden_size)
    assert policy.hidden.shape == (64, 0)


def test_asymmetric_lstm_solves_the_partially_observed_cartpole():
    network = {"mlp": {"units": [32], "activation": "elu"}, "rnn": {"name": "lstm", "units": 32, "before_mlp": True}}
    settings = {**CONFIG, "horizon_length": 32, "seq_length": 16, "minibatch_size": 512, "learning_rate": 1e-3}
    central = {**CENTRAL, "minibatch_size": 512, "network": {"mlp": {"units": [32, 32], "activation": "elu"}}}
    config = {**settings, "max_epochs": 80, "score_to_win": 190.0, "central_value_config": central}
    trainer = Trainer(
        Cartpole(64, hide_velocities=True),
        TrainConfig.from_params({"network": network, "config": config}),
        "cpu",
        None,
        seed=1,
    )
    assert trainer.train().stop_reason == "score_to_win"
