from __future__ import annotations

from typing import Any

import pytest
import torch

from ppo.config import ConfigError, NetworkConfig, RnnConfig, TrainConfig
from ppo.networks import ActorCritic, Features, Recurrent
from ppo.trainer import Trainer
from tests.ppo.envs import Cartpole
from tests.ppo.settings import CONFIG

CELLS = ["lstm", "gru"]


def make_config(rnn: dict[str, Any] | None, units=(16,), separate: bool = False, **overrides: Any) -> TrainConfig:
    network: dict[str, Any] = {"separate": separate, "mlp": {"units": units, "activation": "elu"}}
    if rnn is not None:
        network["rnn"] = {"name": "lstm", "units": 8, **rnn}
    return TrainConfig.from_params({"network": network, "config": {**CONFIG, "seq_length": 4, **overrides}})


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("layers", [1, 2])
def test_steps_one_by_one_equal_the_whole_sequence(cell, layers):
    torch.manual_seed(0)
    rnn = Recurrent(3, RnnConfig(cell, units=5, layers=layers, layer_norm=True))
    x, hidden = torch.randn(4, 6, 3), torch.randn(4, rnn.hidden_size)
    whole, final = rnn(x, hidden, None)
    outputs = []
    for t in range(6):
        output, hidden = rnn(x[:, t], hidden, None)
        outputs.append(output)
    torch.testing.assert_close(torch.stack(outputs, 1), whole)
    torch.testing.assert_close(hidden, final)


def test_hidden_state_is_torchs_own():
    torch.manual_seed(0)
    rnn = Recurrent(3, RnnConfig("lstm", units=5, layers=2))
    x, hidden = torch.randn(4, 6, 3), torch.randn(4, 20)
    state = hidden.view(4, 4, 5).transpose(0, 1).contiguous()
    expected, (h, c) = rnn.rnn(x, (state[:2], state[2:]))
    output, final = rnn(x, hidden, torch.zeros(4, 6))
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(final, torch.cat((h, c)).transpose(0, 1).reshape(4, 20))


@pytest.mark.parametrize("cell", CELLS)
def test_an_episode_start_inside_a_sequence_forgets_what_came_before(cell):
    torch.manual_seed(0)
    rnn = Recurrent(3, RnnConfig(cell, units=5))
    x, hidden = torch.randn(2, 6, 3), torch.randn(2, rnn.hidden_size)
    starts = torch.zeros(2, 6)
    starts[0, 3] = 1.0
    output, final = rnn(x, hidden, starts)
    fresh, fresh_final = rnn(x[:, 3:], torch.zeros_like(hidden), None)
    plain, plain_final = rnn(x, hidden, None)
    torch.testing.assert_close(output[0, 3:], fresh[0])
    torch.testing.assert_close(final[0], fresh_final[0])
    torch.testing.assert_close(output[0, :3], plain[0, :3])
    torch.testing.assert_close(output[1], plain[1])
    torch.testing.assert_close(final[1], plain_final[1])


def test_no_gradient_crosses_an_episode_start():
    rnn = Recurrent(3, RnnConfig("lstm", units=5))
    x = torch.randn(1, 4, 3, requires_grad=True)
    starts = torch.tensor([[0.0, 0.0, 1.0, 0.0]])
    rnn(x, torch.zeros(1, 10), starts)[0][0, 3].sum().backward()
    assert (x.grad[0, :2] == 0).all()
    assert (x.grad[0, 2:] != 0).any()


@pytest.mark.parametrize("before_mlp", [True, False])
@pytest.mark.parametrize("concat_input", [True, False])
@pytest.mark.parametrize("concat_output", [True, False])
@pytest.mark.parametrize("units", [(16, 6), ()])
def test_every_arrangement_has_the_right_widths(before_mlp, concat_input, concat_output, units):
    rnn = RnnConfig("lstm", 8, before_mlp=before_mlp, concat_input=concat_input, concat_output=concat_output)
    features = Features(3, NetworkConfig(units=units, rnn=rnn))
    output, hidden = features(torch.randn(5, 4, 3), torch.zeros(5, 16), torch.zeros(5, 4))
    width = 8 + 3 * concat_output
    assert features.size == (units[-1] if before_mlp and units else width)
    assert output.shape == (5, 4, features.size)
    assert hidden.shape == (5, 16)
    rnn_input = 3 if before_mlp else (units[-1] if units else 3) + 3 * concat_input
    assert features.rnn.rnn.input_size == rnn_input


@pytest.mark.parametrize("separate", [False, True])
def test_actor_and_critic_have_states_of_their_own_if_separate(separate):
    network = ActorCritic(3, 2, NetworkConfig(units=(6,), separate=separate, rnn=RnnConfig("lstm", 8)))
    assert network.hidden_size == 16 * (1 + separate)
    output = network(torch.randn(5, 4, 3), torch.zeros(5, network.hidden_size), torch.zeros(5, 4))
    assert (output.mean.shape, output.value.shape) == ((5, 4, 2), (5, 4))
    assert output.hidden.shape == (5, network.hidden_size)


@pytest.mark.parametrize("rnn", [{"before_mlp": True}, {"name": "gru", "concat_input": True, "layer_norm": True}])
@pytest.mark.parametrize("separate", [False, True])
def test_training_sees_exactly_the_rollouts_policy(rnn, separate):
    """Replaying the stored sequences from the stored states, across dones, gives the log-probs of the rollout."""
    config = make_config(rnn, separate=separate, horizon_length=16, normalize_input=False, normalize_value=False)
    trainer = Trainer(Cartpole(8, hide_velocities=True), config, "cpu", None)
    for _ in range(3):
        buffer = trainer.collector.collect()
    assert buffer.dones.sum() > 0
    assert buffer.starts[:, 1:].sum() > 0
    batch = buffer.batch(buffer.values, buffer.advantages, buffer.advantages, trainer.agent.network.hidden_size)
    assert batch.observations.shape == (8 * 4, 4, 2)
    output = trainer.agent.network(batch.observations, batch.hidden, batch.starts)
    torch.testing.assert_close(output.mean, batch.means, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(output.value, batch.values, atol=1e-5, rtol=1e-4)


def test_state_is_carried_over_rollouts_and_reset_on_done():
    trainer = Trainer(Cartpole(8), make_config({}, horizon_length=8), "cpu", None)
    buffer = trainer.collector.collect()
    assert (buffer.hidden[:, 0] == 0).all()
    last_done = buffer.dones[:, -1].bool()
    hidden = trainer.collector.hidden.clone()
    assert (hidden[last_done] == 0).all()
    assert (hidden[~last_done].abs().sum(1) > 0).all()
    trainer.collector.collect()
    torch.testing.assert_close(buffer.hidden[:, 0], hidden)


def test_minibatches_are_of_whole_sequences():
    config = make_config({}, horizon_length=8, minibatch_size=50)
    trainer = Trainer(Cartpole(8), config, "cpu", None)
    described = trainer.describe()
    assert (described["minibatches"], described["minibatch_size"]) == (2, 32)  # 16 sequences, at most 12 each
    assert trainer.update.minibatch_size == 12


def test_sequence_length_must_divide_the_horizon():
    with pytest.raises(ConfigError, match="seq_length 4 does not divide horizon_length 18"):
        make_config({}, horizon_length=18)
    assert make_config(None, horizon_length=18).seq_length == 4  # no recurrent layer, no matter


@pytest.mark.parametrize(
    ("rnn", "message"),
    [
        ({"name": "rnn"}, "rnn.name: expected one of lstm, gru"),
        ({"units": 0}, "units and layers must be at least 1"),
        ({"unit": 8}, "unknown key 'unit' (did you mean 'units'?)"),
        ({"layer_norm": "yes"}, "rnn.layer_norm: expected bool"),
    ],
)
def test_unusable_recurrent_layers(rnn, message):
    with pytest.raises(ConfigError) as error:
        make_config(rnn)
    assert message in str(error.value)


def test_resume_restores_the_recurrent_state(tmp_path):
    config = make_config({}, horizon_length=8, max_epochs=2, minibatch_size=64, mini_epochs=2)
    trainer = Trainer(Cartpole(8), config, "cpu", tmp_path)
    trainer.train()
    assert trainer.collector.hidden.abs().sum() > 0
    other = Trainer(Cartpole(8, seed=5), config, "cpu", None, seed=5)
    other.restore(tmp_path / "nn" / "last.pth")
    assert torch.equal(other.collector.hidden, trainer.collector.hidden)
    for each in (trainer, other):
        torch.manual_seed(3)
        each.collector.collect()
    assert torch.equal(trainer.collector.buffer.actions, other.collector.buffer.actions)


@pytest.mark.parametrize("rnn", [{"before_mlp": True}, {"name": "gru", "layer_norm": True}])
def test_F1_resume_of_a_recurrent_policy_equals_the_uninterrupted_run_bit_for_bit(tmp_path, rnn):
    config = make_config(rnn, horizon_length=8, max_epochs=20, minibatch_size=64, mini_epochs=2, save_frequency=10)
    whole = Trainer(Cartpole(16), config, "cpu", tmp_path, seed=3)
    whole.train()
    assert whole.collector.episodes.finished.shape[0] > 0  # state was reset on the way
    second = Trainer(Cartpole(16, seed=9), config, "cpu", None, seed=9)
    second.restore(tmp_path / "nn" / "ep_10.pth")
    second.train()
    assert second.epoch == whole.epoch == 20
    for trainer in (whole, second):
        assert trainer.collector.hidden.abs().sum() > 0
    assert torch.equal(whole.collector.hidden, second.collector.hidden)
    for a, b in zip(whole.agent.state_dict().values(), second.agent.state_dict().values(), strict=True):
        assert torch.equal(a, b)


def test_play_uses_the_recurrent_state():
    trainer = Trainer(Cartpole(8), make_config({}), "cpu", None)
    seen: list[torch.Tensor] = []
    act = trainer.agent.act
    trainer.agent.act = lambda observation, hidden: seen.append(hidden) or act(observation, hidden)
    trainer.play(16)
    assert (seen[0] == 0).all()
    assert all((hidden != 0).any() for hidden in seen[1:])
    assert any((hidden == 0).all(1).any() for hidden in seen[2:])  # after a done


def solves(rnn: dict[str, Any] | None, epochs: int) -> float:
    config = make_config(
        rnn,
        units=(32,),
        learning_rate=1e-3,
        horizon_length=32,
        seq_length=16,
        minibatch_size=512,
        score_to_win=190.0,
        max_epochs=epochs,
    )
    return Trainer(Cartpole(64, hide_velocities=True), config, "cpu", None, seed=1).train().reward_mean


def test_partially_observed_cartpole_needs_memory():
    assert solves({"units": 32, "before_mlp": True}, 80) > 190.0
    assert solves(None, 80) < 120.0
