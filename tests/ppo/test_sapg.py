"""SAPG: blocks, relabelled data, entropy ladder, shuffling, the leader's metrics, resume, several processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from ppo import sapg
from ppo.checkpoint import CheckpointError
from ppo.config import ConfigError, TrainConfig
from ppo.distributed import World
from ppo.extensions import SapgConfig
from ppo.normalize import RunningNormalizer
from ppo.rollout import permutation
from ppo.sapg import BlockEpisodes, Blocks, add_relabelled, entropy_ladder, one_step_targets
from ppo.trainer import Trainer
from tests.ppo.envs import Cartpole, Pendulum
from tests.ppo.settings import CONFIG
from tests.ppo.test_distributed import run_two
from tests.ppo.test_no_sync import OnDevice, counted_reads

CPU = torch.device("cpu")
LSTM = {"rnn": {"name": "lstm", "units": 6}}
CENTRAL = {"minibatch_size": 48, "mini_epochs": 2, "learning_rate": 1e-3, "network": {"mlp": {"units": [8]}}}


def make(blocks: dict[str, Any] | None, network: dict[str, Any] | None = None, **overrides: Any) -> TrainConfig:
    """A small configuration; `blocks` is its `sapg` section."""
    tree = {"mlp": {"units": [8], "activation": "elu"}, **(network or {})}
    settings = {"horizon_length": 8, "minibatch_size": 48, "mini_epochs": 2, "max_epochs": 3, **overrides}
    extensions = {"ewma": settings.pop("ewma", None)}
    return TrainConfig.from_params({"network": tree, "config": {**CONFIG, **settings}}, sapg=blocks, **extensions)


class Recording:
    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []

    def log(self, metrics: dict[str, float], step: int) -> None:
        self.rows.append(metrics)

    def close(self) -> None:
        pass


# ---- blocks


def test_blocks_are_equal_and_contiguous_and_the_last_leads():
    blocks = Blocks(24_576, 6, relabel=True)
    assert [(envs.start, envs.stop) for envs in blocks.envs] == [(4096 * b, 4096 * (b + 1)) for b in range(6)]
    assert (blocks.leader, blocks.num_relabelled) == (5, 4096)
    assert blocks.ids.shape == (24_576, 1)
    assert blocks.ids[[0, 4095, 4096, 24_575], 0].tolist() == [0.0, 0.0, 1.0, 5.0]


def test_blocks_of_any_number_of_environments_differ_by_at_most_one():
    blocks = Blocks(4096, 6, relabel=True)
    assert [envs.stop - envs.start for envs in blocks.envs] == [683, 683, 683, 683, 682, 682]
    assert blocks.num_relabelled == 682
    assert torch.equal(blocks.ids[:, 0].long().bincount(), torch.tensor([683, 683, 683, 683, 682, 682]))
    assert Blocks(4096, 6, relabel=False).num_relabelled == Blocks(4096, 1, relabel=True).num_relabelled == 0


@pytest.mark.parametrize(
    ("settings", "num_envs", "message"),
    [
        (
            {"block_size": 100},
            4096,
            "sapg.block_size 100 does not divide num_envs 4096: take num_envs 4000 or 4100, block_size 64 or 128, "
            "or num_blocks, which need not divide num_envs",
        ),
        (
            {"block_size": 9},
            4,
            "sapg.block_size 9 does not divide num_envs 4: take num_envs 9, block_size 4, "
            "or num_blocks, which need not divide num_envs",
        ),
        ({"num_blocks": 6}, 5, "sapg.num_blocks 6 needs at least as many environments, num_envs is 5"),
    ],
)
def test_blocks_that_cannot_be_made_are_one_line(settings, num_envs, message):
    with pytest.raises(ConfigError) as error:
        SapgConfig(**settings).check(num_envs)
    assert str(error.value) == message


def test_block_size_and_number_are_two_ways_to_say_the_same():
    assert SapgConfig(block_size=16).count(96) == SapgConfig(num_blocks=6).count(96) == 6
    assert SapgConfig().count(96) == 0
    with pytest.raises(ConfigError, match="not both"):
        SapgConfig(num_blocks=6, block_size=16)


def test_too_few_environments_to_train_are_enough_to_play():
    trainer = Trainer(Pendulum(2), make({"num_blocks": 3}), "cpu", None)
    with pytest.raises(ConfigError, match="needs at least as many environments"):
        trainer.train()
    assert trainer.play(2)["episodes"] == 2


def test_hand_written_gradients_are_refused():
    with pytest.raises(ConfigError, match="cpu_update hand_written is not for sapg; use autograd"):
        make({"num_blocks": 3}, cpu_update="hand_written")


# ---- what the networks see


def test_ids_are_not_normalised():
    normalizer = RunningNormalizer(2)
    x = torch.tensor([[1.0, 10.0, 7.0], [3.0, 30.0, 6.0]])
    normalizer.update(x, World())
    expected = normalizer.normalize(x[:, :2].contiguous())
    assert normalizer.mean.shape == (2,)
    torch.testing.assert_close(normalizer.normalize(x), torch.cat((expected, x[:, 2:]), 1), rtol=0, atol=0)
    result = torch.empty_like(x)
    assert torch.equal(normalizer.normalize(x, out=result)[:, 2], torch.tensor([7.0, 6.0]))
    normalizer.normalize(x, out=x)
    assert torch.equal(x, result)


def test_networks_read_the_vector_and_the_log_std_of_the_block():
    agent = Trainer(Pendulum(6), make({"num_blocks": 3, "conditioning_size": 5}), "cpu", None).agent
    network = agent.network
    assert network.blocks.vectors.shape == (3, 5)
    assert network.log_std.shape == (3, 1)
    with torch.no_grad():
        network.log_std.copy_(torch.tensor([[0.1], [0.2], [0.3]]))
    observation = {"obs": torch.randn(6, 3)}
    ids = torch.tensor([[2.0], [0.0], [1.0], [1.0], [0.0], [2.0]])
    with torch.no_grad():
        output = agent.evaluate(observation, torch.zeros(6, 0), ids)
        inputs = torch.cat(
            (agent.obs_normalizer.normalize(observation["obs"]), network.blocks.vectors[ids[:, 0].long()]), 1
        )
        features = F.elu(F.linear(inputs, network.actor.mlp[0].weight, network.actor.mlp[0].bias))
        torch.testing.assert_close(output.mean, network.mean(features))
        torch.testing.assert_close(output.value, agent.value_normalizer.denormalize(network.value(features))[:, 0])
    assert output.log_std[:, 0].tolist() == pytest.approx([0.3, 0.1, 0.2, 0.2, 0.1, 0.3])


def test_vectors_start_as_standard_normal_numbers():
    torch.manual_seed(0)
    vectors = Trainer(Pendulum(64), make({"num_blocks": 64}), "cpu", None).agent.network.blocks.vectors
    assert vectors.shape == (64, 32)
    assert vectors.mean().item() == pytest.approx(0.0, abs=0.05)
    assert vectors.std().item() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("network", [{}, {"separate": True, "space": {"continuous": {"fixed_sigma": False}}}, LSTM])
def test_without_being_told_the_leader_acts(network):
    trainer = Trainer(Cartpole(6), make({"num_blocks": 3}, network, central_value_config=CENTRAL), "cpu", None)
    agent, observation, hidden = trainer.agent, trainer.env.reset(), trainer.agent.initial_hidden(6)
    with torch.no_grad():
        leader, follower = (agent.evaluate(observation, hidden, torch.full((6, 1), b)) for b in (2.0, 0.0))
        default = agent.evaluate(observation, hidden)
    for name in ("mean", "log_std", "value"):
        assert torch.equal(getattr(default, name), getattr(leader, name))
    assert not torch.equal(default.mean, follower.mean)
    assert not torch.equal(default.value, follower.value)


# ---- relabelled data


def test_one_step_targets_by_hand():
    rewards, dones = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[0.0, 1.0, 0.0]])
    values, last = torch.tensor([[10.0, 20.0, 30.0]]), torch.tensor([40.0])
    targets = one_step_targets(rewards, dones, values, last, 0.9)
    assert targets.tolist() == [[pytest.approx(19.0), pytest.approx(2.0), pytest.approx(39.0)]]


class RecordedRewards(Pendulum):
    """Every episode ends by the time limit after at most 5 steps."""

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs, max_steps=5)
        self.rewards: list[torch.Tensor] = []

    def step(self, actions):
        result = super().step(actions)
        self.rewards.append(result[1])
        return result


def collected(network: dict[str, Any] | None = None, **overrides: Any) -> Trainer:
    """A trainer of 13 environments in 3 blocks after two rollouts; normalisers and weights have left their start."""
    trainer = Trainer(RecordedRewards(13), make({"num_blocks": 3}, network, **overrides), "cpu", None, seed=1)
    trainer.collector.collect()
    trainer._learn()
    trainer.env.rewards.clear()
    trainer.collector.collect()
    return trainer


def leader_values(trainer: Trainer, observations: torch.Tensor) -> torch.Tensor:
    """V of raw observations (..., O) under the leader's vector, through the plain layers."""
    agent, network = trainer.agent, trainer.agent.network
    vector = network.blocks.vectors[2].expand(*observations.shape[:-1], -1)
    inputs = torch.cat((agent.obs_normalizer.normalize(observations), vector), -1)
    features = F.elu(F.linear(inputs, network.actor.mlp[0].weight, network.actor.mlp[0].bias))
    return agent.value_normalizer.denormalize(network.value(features)).squeeze(-1)


def test_relabelled_rows_are_the_followers_under_the_leaders_id():
    trainer = collected()
    own = {name: value.clone() for name, value in vars(trainer.collector.buffer).items() if torch.is_tensor(value)}
    whole = add_relabelled(trainer.collector, follower=1)
    assert whole.observations.shape == (17, 8, 4)  # blocks of 5, 4, 4
    for name, before in own.items():
        assert torch.equal(getattr(whole, name)[:13], before), name
    follower = {name: value[5:9] for name, value in own.items()}
    for name in ("actions", "log_probs", "means", "log_stds", "rewards", "dones", "starts", "hidden"):
        assert torch.equal(getattr(whole, name)[13:], follower[name]), name
    assert torch.equal(whole.observations[13:, :, :3], follower["observations"][..., :3])
    assert follower["observations"][..., 3].unique().tolist() == [1.0]
    assert whole.observations[13:, :, 3].unique().tolist() == [2.0]


def test_relabelled_values_targets_and_advantages():
    trainer = collected()
    buffer = trainer.collector.buffer
    follower_values = buffer.values[:5].clone()
    whole = add_relabelled(trainer.collector, follower=0)
    relabelled = whole.part(13, 17)
    with torch.no_grad():
        values = leader_values(trainer, buffer.observations[:4, :, :3])
        last = leader_values(trainer, trainer.collector.observation["obs"][:4])
    torch.testing.assert_close(relabelled.values, values)
    assert not torch.allclose(values, follower_values[:4], atol=1e-3)
    dones = buffer.dones[:4]
    assert 4 <= dones.sum() < 32
    raw = torch.stack(trainer.env.rewards, 1)[:4]
    for n in range(4):
        for t in range(8):
            time_out = 0.99 * follower_values[n, t] * dones[n, t]  # every episode here ends by its time limit
            after = values[n, t + 1] if t < 7 else last[n]
            target = 0.1 * raw[n, t] + time_out + 0.99 * (1.0 - dones[n, t]) * after
            found = relabelled.advantages[n, t] + relabelled.values[n, t]
            assert found.item() == pytest.approx(target.item(), abs=1e-5)
            assert relabelled.advantages[n, t].item() == pytest.approx((target - values[n, t]).item(), abs=1e-5)


def test_relabelled_values_of_a_recurrent_network_are_those_of_the_update():
    trainer = collected(LSTM, seq_length=4)
    whole = add_relabelled(trainer.collector, follower=1)
    agent = trainer.agent
    batch = whole.batch(whole.values, whole.advantages, whole.values, agent.network.hidden_size)
    assert len(batch) == 17 * 2
    rows = slice(13 * 2, None)
    assert batch.starts[rows].sum() > 0
    assert batch.hidden[rows].abs().max() > 0
    with torch.no_grad():
        inputs = agent.obs_normalizer.normalize(batch.observations[rows])
        output = agent.network(inputs, batch.hidden[rows], batch.starts[rows])
    torch.testing.assert_close(agent.value_normalizer.denormalize(output.value), batch.values[rows])


def test_central_critic_values_the_relabelled_states_with_its_own_vectors():
    settings = make({"num_blocks": 3}, central_value_config=CENTRAL, seq_length=4)
    trainer = Trainer(Cartpole(12), settings, "cpu", None)
    trainer.collector.collect()
    trainer._learn()
    trainer.collector.collect()
    whole, critic = add_relabelled(trainer.collector, follower=0), trainer.agent.central
    assert critic.blocks.vectors is not trainer.agent.network.blocks.vectors
    states = whole.states[12:]
    assert states.shape == (4, 8, 5)
    assert states[..., 4].unique().tolist() == [2.0]
    with torch.no_grad():
        inputs = torch.cat(
            (critic.normalizer.normalize(states[..., :4]), critic.blocks.vectors[2].expand(4, 8, -1)), -1
        )
        values = critic.value(critic.features(inputs, torch.zeros(4, 0), None)[0]).squeeze(-1)
    torch.testing.assert_close(trainer.agent.value_normalizer.denormalize(values), whole.values[12:])


def test_ids_are_right_in_every_rollout_though_the_update_reorders_the_memory():
    trainer = Trainer(Pendulum(12), make({"num_blocks": 3}, shuffle="epoch", mini_epochs=3), "cpu", None)
    for _ in range(3):
        trainer.collector.collect()
        assert torch.equal(trainer.collector.buffer.observations[..., -1], trainer.collector.blocks.ids.expand(12, 8))
        trainer._learn()


def test_batch_is_all_data_and_the_relabelled():
    trainer = Trainer(Pendulum(12), make({"num_blocks": 3}), "cpu", None)
    used = trainer.describe()
    assert (used["batch"], used["relabelled"], used["blocks"]) == (96, 32, 3)
    assert (used["minibatches"], used["minibatch_size"]) == (3, 43)
    seen: list[torch.Tensor] = []
    run = trainer.update.run
    trainer.update.run = lambda batch: (seen.append(batch.log_probs.clone()), run(batch))[1]
    trainer.collector.collect()
    log_probs = trainer.collector.buffer.log_probs.flatten().clone()
    follower = int(trainer._learn()["sapg/follower"])
    assert follower in (0, 1)
    assert torch.equal(
        seen[0], torch.cat((log_probs, log_probs.view(12, 8)[4 * follower : 4 * follower + 4].flatten()))
    )


def test_every_follower_is_drawn_and_never_the_leader():
    torch.manual_seed(0)
    blocks = Blocks(6, 6, relabel=True)
    drawn = torch.tensor([sapg.draw_follower(blocks, World()) for _ in range(500)]).bincount(minlength=6)
    assert drawn[5] == 0
    assert drawn[:5].min() > 60  # 100 expected, standard deviation 9


# ---- entropy


def test_entropy_ladder():
    assert entropy_ladder(6, 0.005).tolist() == pytest.approx([0.0025, 0.002, 0.0015, 0.001, 0.0005, 0.0])
    assert entropy_ladder(2, 0.002).tolist() == pytest.approx([0.001, 0.0])
    assert entropy_ladder(1, 1.0).tolist() == [0.0]


def test_each_block_is_rewarded_for_its_own_entropy():
    """Entropy grows like log-std, so its gradient is minus the block's coefficient times the block's share of rows."""
    trainer = Trainer(Pendulum(12), make({"num_blocks": 3, "entropy_scale": 0.1}, critic_coef=0.0), "cpu", None)
    trainer.collector.collect()
    buffer = add_relabelled(trainer.collector, follower=0)
    none = torch.zeros_like(buffer.advantages)
    batch = buffer.batch(buffer.values, none, buffer.values, 0)
    trainer.update._accumulate_gradients(batch)
    found = trainer.agent.network.log_std.grad[:, 0]
    expected = [-0.05 * 32 / 128, -0.025 * 32 / 128, 0.0]  # the leader has 64 rows of 128
    assert found.tolist() == pytest.approx(expected)


# ---- the limit of PPO


@pytest.mark.parametrize(
    "settings", [{}, {"shuffle": "epoch"}, {"shuffle": "iteration", "central": True}, {"rnn": True}]
)
def test_one_block_without_conditioning_is_ppo_bit_for_bit(settings):
    settings = dict(settings)
    network = LSTM if settings.pop("rnn", False) else {}
    if settings.pop("central", False):
        settings["central_value_config"] = CENTRAL

    def train(blocks: dict[str, Any] | None) -> Trainer:
        config = make(blocks, network, max_epochs=4, entropy_coef=0.01, **settings)
        trainer = Trainer(Cartpole(16), config, "cpu", None, seed=5)
        trainer.train()
        return trainer

    ppo = train(None)
    one = train({"num_blocks": 1, "conditioning": False, "entropy_scale": 0.3})
    expected, found = ppo.agent.state_dict(), one.agent.state_dict()
    assert expected.keys() == found.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert torch.equal(ppo.update.optimizer.rate, one.update.optimizer.rate)
    assert ppo.reward_mean == one.reward_mean
    conditioned = train({"num_blocks": 1})
    assert conditioned.agent.network.blocks.vectors.shape == (1, 32)


def test_ewma_with_com_0_an_iteration_is_sapg_bit_for_bit():
    states = []
    for ewma in (None, {"com": 0.0, "update": "iteration"}, {"com": 5.0}):
        trainer = Trainer(Pendulum(12), make({"num_blocks": 3, "entropy_scale": 0.01}, ewma=ewma), "cpu", None, seed=2)
        trainer.train()
        states.append(trainer.agent.state_dict())
    plain, zero, averaged = states
    assert all(torch.equal(plain[name], zero[name]) for name in plain)
    assert not torch.equal(plain["network.blocks.vectors"], averaged["network.blocks.vectors"])


# ---- shuffling


def test_a_permutation_of_chunks_keeps_neighbours_together():
    torch.manual_seed(0)
    order = permutation(24, 4, CPU)
    assert sorted(order.tolist()) == list(range(24))
    chunks = order.view(6, 4)
    assert torch.equal(chunks - chunks[:, :1], torch.arange(4).expand(6, 4))
    assert (chunks[:, 0] % 4 == 0).all()
    assert chunks[:, 0].tolist() != list(range(0, 24, 4))
    torch.manual_seed(1)
    rows = permutation(24, 1, CPU)
    torch.manual_seed(1)
    assert torch.equal(rows, torch.randperm(24))


@pytest.mark.parametrize(
    ("blocks", "network", "horizon", "count", "rows"),
    [
        ({"num_blocks": 3}, {}, 16, 3, 4),
        ({"num_blocks": 3}, {}, 10, 3, 2),  # sequences of 4 do not divide 10 steps
        ({"num_blocks": 3}, LSTM, 16, 3, 1),  # rows are sequences
        ({"num_blocks": 3, "shuffle": False}, {}, 16, 3, 0),
        ({"num_blocks": 1}, {}, 16, 1, 0),
        (None, {}, 16, 0, 0),
    ],
)
def test_rows_that_stay_together(blocks, network, horizon, count, rows):
    config = make(blocks, network, horizon_length=horizon)
    assert sapg.shuffled_rows(config, count, 12 if network else 0) == rows


def orders(trainer: Trainer) -> list[list[int]]:
    """The order of rows in every mini-epoch of one update."""
    trainer.collector.collect()
    actions = trainer.collector.storage.actions
    actions.copy_(torch.arange(actions.numel(), dtype=torch.float32).view(actions.shape))
    seen: list[list[int]] = []
    accumulate = trainer.update._accumulate_gradients

    def record(minibatch):
        seen.append(minibatch.actions.flatten().long().tolist())
        return accumulate(minibatch)

    trainer.update._accumulate_gradients = record
    buffer = trainer.collector.storage
    trainer.update.run(buffer.batch(buffer.values, buffer.advantages, buffer.values, trainer.agent.network.hidden_size))
    trainer.update._accumulate_gradients = accumulate
    epochs = trainer.config.mini_epochs
    size = len(seen) // epochs
    return [[row for part in seen[e * size : (e + 1) * size] for row in part] for e in range(epochs)]


@pytest.mark.parametrize("network", [{}, LSTM])
def test_one_order_an_iteration_in_sequences(network):
    trainer = Trainer(Pendulum(12), make({"num_blocks": 3}, network, seq_length=4), "cpu", None)
    first, second = orders(trainer)
    assert first == second
    assert sorted(first) == list(range(128))
    sequences = torch.tensor(first).view(32, 4)
    assert torch.equal(sequences - sequences[:, :1], torch.arange(4).expand(32, 4))
    assert (sequences[:, 0] % 4 == 0).all()
    assert first != orders(trainer)[0]


def test_an_order_for_each_epoch_if_asked_for():
    first, second = orders(Trainer(Pendulum(12), make({"num_blocks": 3}, shuffle="epoch"), "cpu", None))
    assert first != second
    assert sorted(first) == sorted(second) == list(range(128))
    plain = orders(Trainer(Pendulum(12), make({"num_blocks": 3, "shuffle": False}), "cpu", None))
    assert plain == [list(range(128))] * 2


def test_the_central_critic_sees_the_blocks_mixed():
    trainer = Trainer(Cartpole(12), make({"num_blocks": 3}, central_value_config=CENTRAL), "cpu", None)
    ids: list[torch.Tensor] = []
    loss = trainer.central_update._loss
    trainer.central_update._loss = lambda batch: (ids.append(batch.states[:, -1].clone()), loss(batch))[1]
    trainer.collector.collect()
    trainer._learn()
    assert len(ids) == 2 * 3
    assert torch.equal(torch.cat(ids[:3]), torch.cat(ids[3:]))
    assert torch.cat(ids[:3]).long().bincount().tolist() == [32, 32, 64]
    assert all(len(minibatch.unique()) > 1 for minibatch in ids)


# ---- metrics


def test_episodes_of_the_leader_and_mean_returns_of_the_followers():
    episodes = BlockEpisodes(Blocks(5, 2, relabel=True), horizon=2, window=2, device=CPU)  # blocks of 3 and 2
    episodes.step(0, torch.tensor([1.0, 2.0, 3.0, 10.0, 20.0]), torch.tensor([True, False, False, False, True]))
    episodes.step(1, torch.tensor([1.0, 2.0, 3.0, 10.0, 20.0]), torch.tensor([False, True, False, True, True]))
    summary = episodes.summary(World())
    # The leader's returns are 20 (length 1), then 20 (2) and 20 (1): the window keeps the last two.
    assert summary == {
        "reward_mean": 20.0,
        "episode_length_mean": 1.5,
        "episodes": 3.0,
        "sapg/reward_mean_0": pytest.approx(2.5),
    }
    resumed = BlockEpisodes(Blocks(5, 2, relabel=True), horizon=2, window=2, device=CPU)
    resumed.load_state_dict(episodes.state_dict())
    for tracker in (episodes, resumed):
        tracker.step(0, torch.ones(5), torch.tensor([False, False, True, False, False]))
        tracker.step(1, torch.ones(5), torch.zeros(5, dtype=torch.bool))
    expected, found = episodes.summary(World()), resumed.summary(World())
    assert expected == found
    assert found["sapg/reward_mean_0"] == pytest.approx((4.0 + 7.0) / 2)


class PaidByBlock(Pendulum):
    """Reward is the number of the environment's third; episodes have 10 steps."""

    def step(self, actions):
        observation, reward, done, info = super().step(actions)
        return (
            observation,
            torch.arange(self.num_envs).div(self.num_envs // 3, rounding_mode="floor").float(),
            done,
            info,
        )


def test_reported_reward_is_the_leaders():
    log = Recording()
    trainer = Trainer(PaidByBlock(12, max_steps=10), make({"num_blocks": 3}, max_epochs=4), "cpu", None, [log])
    result = trainer.train()
    last = log.rows[-1]
    assert result.reward_mean == last["reward_mean"] == pytest.approx(2 * last["episode_length_mean"])
    assert (last["sapg/reward_mean_0"], last["frame"]) == (0.0, 4 * 96)
    assert 0.0 < last["sapg/reward_mean_1"] <= 10.0
    assert {row["sapg/follower"] for row in log.rows} <= {0.0, 1.0}


def test_D4_nothing_waits_for_the_device(monkeypatch):
    monkeypatch.setattr(sapg, "draw_follower", lambda blocks, world: 1)
    settings = {"entropy_scale": 0.1, "num_blocks": 3}
    config = make(settings, LSTM, central_value_config=CENTRAL, shuffle="epoch", seq_length=4)
    trainer = Trainer(OnDevice(Cartpole(12), "cpu"), config, "cpu", None)
    trainer.collector.collect()
    trainer._learn()
    with counted_reads() as found:
        trainer.collector.collect()
        trainer._learn()
    assert found == []


# ---- checkpoints


@pytest.mark.parametrize("network", [{}, LSTM])
def test_a_resumed_run_is_the_same_bit_for_bit(tmp_path, network):
    config = make({"num_blocks": 3, "entropy_scale": 0.01}, network, max_epochs=6, save_frequency=3)
    logs = Recording(), Recording()
    whole = Trainer(Cartpole(12), config, "cpu", tmp_path, [logs[0]], seed=1)
    whole.train()
    resumed = Trainer(Cartpole(12, seed=9), config, "cpu", None, [logs[1]], seed=2)
    resumed.restore(tmp_path / "nn" / "ep_3.pth")
    resumed.train()
    expected, found = whole.agent.state_dict(), resumed.agent.state_dict()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    names = ("reward_mean", "sapg/follower", "sapg/reward_mean_0", "sapg/reward_mean_1", "kl")
    rows = [[[row[name] for name in names] for row in log.rows] for log in logs]
    assert str(rows[0][3:]) == str(rows[1])  # str, since a mean without episodes is NaN


@pytest.mark.parametrize(
    ("saved", "used", "message"),
    [
        (None, {"num_blocks": 3}, "no SAPG block vectors, these settings 3 SAPG blocks with vectors of 32: "),
        ({"num_blocks": 3}, None, "these settings no SAPG block vectors: set train.sapg.num_blocks=3 train.sapg.cond"),
        ({"num_blocks": 3}, {"num_blocks": 4}, "3 SAPG blocks with vectors of 32, these settings 4 SAPG blocks"),
        ({"num_blocks": 3, "conditioning_size": 8}, {"num_blocks": 3}, "train.sapg.conditioning_size=8"),
    ],
)
def test_a_checkpoint_of_other_blocks_is_one_clear_line(tmp_path, saved, used, message):
    Trainer(Pendulum(12), make(saved, max_epochs=1), "cpu", tmp_path).train()
    with pytest.raises(CheckpointError) as error:
        Trainer(Pendulum(12), make(used), "cpu", None).restore(tmp_path / "nn" / "last.pth")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_without_conditioning_a_ppo_checkpoint_goes_on_in_blocks(tmp_path):
    Trainer(Pendulum(12), make(None, max_epochs=1), "cpu", tmp_path).train()
    trainer = Trainer(Pendulum(12), make({"num_blocks": 3, "conditioning": False}, max_epochs=3), "cpu", None)
    trainer.restore(tmp_path / "nn" / "last.pth")
    assert trainer.train().epochs == 3


# ---- several processes


def _train(world: World, path: Path) -> None:
    log = Recording()
    config = make({"num_blocks": 3, "entropy_scale": 0.01}, central_value_config=CENTRAL, max_epochs=6)
    env = Cartpole(12, seed=world.rank)
    trainer = Trainer(env, config, "cpu", None, [log], seed=world.rank, world=world)
    followers: list[int] = []
    draw = sapg.draw_follower

    def record(blocks: Blocks, world: World) -> int:
        followers.append(draw(blocks, world))
        return followers[-1]

    sapg.draw_follower = record
    trainer.train()
    torch.save([trainer.agent.state_dict(), followers, log.rows], path / f"{world.rank}.pt")


def test_two_processes_choose_one_follower_and_stay_one_policy(tmp_path):
    run_two(_train, tmp_path)
    (model, followers, rows), (other, also, nothing) = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert all(torch.equal(model[name], other[name]) for name in model)
    assert followers == also == [row["sapg/follower"] for row in rows]
    assert set(followers) == {0, 1}
    assert nothing == []
    assert rows[-1]["frame"] == 6 * 2 * 96
