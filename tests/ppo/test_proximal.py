"""PPO-EWMA: the decoupled objective, the average, and the settings in which it is PPO or importance sampling."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
import torch

from ppo import losses
from ppo.agent import Agent
from ppo.config import TrainConfig
from ppo.distributed import World
from ppo.extensions import CapoConfig, EwmaConfig
from ppo.proximal import BatchSettings, ProximalPolicy, decay, divide_batch
from ppo.trainer import Trainer
from ppo.update import PolicyUpdate
from tests.ppo.envs import Cartpole, Pendulum
from tests.ppo.settings import CONFIG, make_config
from tests.ppo.test_distributed import run_two
from tests.ppo.test_update import CPU, SAMPLES, SIZES, make_batch, parameters

SMALL = {"horizon_length": 8, "minibatch_size": 64, "mini_epochs": 2, "learning_rate": 3e-3}


def with_ewma(config: TrainConfig, **ewma: Any) -> TrainConfig:
    return dataclasses.replace(config, ewma=EwmaConfig(**ewma))


def make_update(ewma: dict[str, Any] | None = None, rows: int = 32, **overrides: Any) -> PolicyUpdate:
    torch.manual_seed(3)
    config = make_config((16, 8), **{"lr_schedule": "constant", **overrides})
    config = config if ewma is None else with_ewma(config, **ewma)
    return PolicyUpdate(Agent(SIZES, config, CPU), config, rows, CPU, World(), frames=SAMPLES)


def flat(tensors: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.detach().flatten() for tensor in tensors])


# ---- the objective


def log_probs(scale: float = 0.5) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [(scale * torch.randn(200) - 1.0).double() for _ in range(3)]


def test_decoupled_loss_is_the_equation():
    log_prob, behaviour, proximal = log_probs()
    advantage = torch.randn(200, dtype=torch.float64)
    loss, ratio = losses.decoupled_policy_loss(log_prob, behaviour, proximal, advantage, 0.2, 100.0)
    u, weight = (log_prob - proximal).exp(), (proximal - behaviour).exp()
    samples = zip(u, weight, advantage, strict=True)
    expected = torch.stack([-w * min(x * a, min(max(x, 0.8), 1.2) * a) for x, w, a in samples])
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(ratio, u)


def test_penalised_loss_is_the_equation():
    log_prob, behaviour, proximal = log_probs()
    advantage = torch.randn(200, dtype=torch.float64)
    loss, ratio = losses.penalised_policy_loss(log_prob, behaviour, proximal, advantage, 3.0, 100.0)
    expected = -(log_prob - behaviour).exp() * advantage + 1.5 * (log_prob - proximal) ** 2
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(ratio, (log_prob - proximal).exp())


def test_with_the_behaviour_policy_as_proximal_policy_it_is_ppos_loss_bit_for_bit():
    log_prob, behaviour, _ = (x.float() for x in log_probs())
    advantage = torch.randn(200)
    first, second = log_prob.clone().requires_grad_(), log_prob.clone().requires_grad_()
    expected, _ = losses.policy_loss(first - behaviour, advantage, 0.2)
    loss, _ = losses.decoupled_policy_loss(second, behaviour, behaviour, advantage, 0.2, 100.0)
    assert torch.equal(loss, expected)
    expected.mean().backward()
    loss.mean().backward()
    assert torch.equal(first.grad, second.grad)


@pytest.mark.parametrize("objective", ["clip", "penalty"])
def test_the_behaviour_ratio_is_capped_and_keeps_a_gradient(objective):
    log_prob = torch.tensor([math.log(400.0), math.log(50.0)], requires_grad=True)
    behaviour, proximal, advantage = torch.zeros(2), log_prob.detach().clone(), torch.tensor([1.0, -2.0])
    if objective == "clip":
        loss, _ = losses.decoupled_policy_loss(log_prob, behaviour, proximal, advantage, 0.2, 100.0)
    else:
        loss, _ = losses.penalised_policy_loss(log_prob, behaviour, proximal, advantage, 0.0, 100.0)
    torch.testing.assert_close(loss, torch.tensor([-100.0, 100.0]))
    loss.sum().backward()
    torch.testing.assert_close(log_prob.grad, torch.tensor([-100.0, 100.0]))


@pytest.mark.parametrize("advantage", [1.0, -1.0])
@pytest.mark.parametrize(("theta", "proximal"), [(0.0, -300.0), (0.0, 300.0), (300.0, 0.0), (-300.0, 0.0)])
def test_policies_far_apart_give_finite_losses_and_gradients(advantage, theta, proximal):
    log_prob = torch.tensor([theta], requires_grad=True)
    behaviour, advantages = torch.zeros(1), torch.tensor([advantage])
    loss, ratio = losses.decoupled_policy_loss(log_prob, behaviour, torch.tensor([proximal]), advantages, 0.2, 100.0)
    loss.sum().backward()
    for tensor in (loss, ratio, log_prob.grad):
        assert torch.isfinite(tensor).all()


# ---- the average


@pytest.mark.parametrize(
    ("settings", "com"),
    [
        ({"com": 6.0}, 6.0),
        ({"com": 6.0, "unit": "iteration"}, 6.0 * 12),
        ({"com": 6000.0, "unit": "env_step"}, 6000.0 / 2000 * 12),
        ({"com": 6.0, "update": "iteration"}, 6.0 / 12),
        ({"com": 6.0, "unit": "iteration", "update": "iteration"}, 6.0),
        ({"com": 0.0}, 0.0),
    ],
)
def test_decay_has_the_asked_centre_of_mass(settings, com):
    beta = decay(EwmaConfig(**settings), steps=12, frames=2000)
    assert beta / (1.0 - beta) == pytest.approx(com)


def test_the_average_is_the_closed_form():
    update = make_update({"com": 3.0})  # beta = 0.75
    proximal, network = update.proximal, update.agent.network
    proximal.begin_iteration(12)
    for value in (None, 1.0, 2.0, 4.0):
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.fill_(8.0 if value is None else value)
        proximal.reset() if value is None else proximal.after_step(torch.tensor(1.0))
    # 8, 1, 2, 4 with the weights 27/64, 36/64, 48/64, 64/64
    expected = (8 * 27 + 1 * 36 + 2 * 48 + 4 * 64) / (27 + 36 + 48 + 64)
    assert proximal.weight.item() == pytest.approx(175 / 64)
    for parameter in proximal.network.parameters():
        torch.testing.assert_close(parameter, torch.full_like(parameter, expected))


def test_the_average_moves_after_every_step_or_once_an_iteration():
    per_step, per_iteration = make_update({"com": 4.0}), make_update({"com": 4.0, "update": "iteration"})
    for update in (per_step, per_iteration):
        start = parameters(update)
        update.run(make_batch(update.agent))
        moved = (flat(update.proximal.tensors()[:-1]) - start).abs().max().item()
        assert (moved > 1e-4) == (update is per_step)
    # 12 steps with beta = 0.8; once with COM 4 / 12
    assert per_step.proximal.weight.item() == pytest.approx(sum(0.8**i for i in range(13)))
    assert per_iteration.proximal.weight.item() == pytest.approx(1.0 + 0.25)


def test_D1_a_skipped_step_leaves_the_average_alone():
    update = make_update({"com": 4.0})
    update.run(make_batch(update.agent))
    before = [tensor.clone() for tensor in update.proximal.tensors()]
    batch = make_batch(update.agent)
    batch.returns[:] = math.nan
    assert update.run(batch)["skipped_updates"].item() == 12
    assert all(torch.equal(a, b) for a, b in zip(before, update.proximal.tensors(), strict=True))


def test_dividing_the_batch():
    settings = divide_batch(BatchSettings(65536, 3e-4, 10.0, 1.0), 4.0)
    assert settings == BatchSettings(16384, pytest.approx(1.5e-4), 40.0, 4.0)


# ---- limits


def networks() -> dict[str, tuple[TrainConfig, type]]:
    lstm = {"mlp": {"units": [8]}, "rnn": {"name": "lstm", "units": 4}}
    central = {"minibatch_size": 64, "mini_epochs": 1, "learning_rate": 1e-3, "network": {"mlp": {"units": [8]}}}
    config = {**CONFIG, **SMALL, "mini_epochs": 3, "central_value_config": central}
    return {
        "plain": make_config((8,), **SMALL),
        "shuffled": make_config((8,), **SMALL, shuffle="epoch", micro_batch_size=20, schedule_type="standard"),
        "hand_written": make_config((8,), **SMALL, cpu_update="hand_written", separate=True),
        "autocast": make_config((8,), **SMALL, mixed_precision_cpu=True),
        "recurrent": TrainConfig.from_params({"network": lstm, "config": config}),
    }


def train(config: TrainConfig, iterations: int = 4) -> dict[str, torch.Tensor]:
    trainer = Trainer(Cartpole(32, hide_velocities=True), config, "cpu", None, seed=5)
    for _ in range(iterations):
        trainer.collector.collect()
        trainer._learn()
    moments = trainer.update.optimizer.state_dict()["adam"]["state"]
    tensors = {f"{i}.{name}": tensor for i, state in moments.items() for name, tensor in state.items()}
    return {**trainer.agent.state_dict(), **tensors, "rate": trainer.update.optimizer.rate}


@pytest.mark.parametrize("network", ["plain", "shuffled", "hand_written", "autocast", "recurrent"])
def test_com_0_averaged_once_an_iteration_is_ppo_bit_for_bit(network):
    config = networks()[network]
    expected, found = train(config), train(with_ewma(config, com=0.0, update="iteration"))
    assert expected.keys() == found.keys()
    assert [name for name in expected if not torch.equal(expected[name], found[name])] == []
    another = train(with_ewma(config, com=20.0))
    assert not torch.equal(expected["network.mean.weight"], another["network.mean.weight"])


@pytest.mark.parametrize("network", ["plain", "recurrent"])
def test_a_frozen_average_that_is_reset_every_iteration_is_ppo(network, monkeypatch):
    """Unlike above the proximal policy is run; without statistics that move it is the behaviour policy to rounding."""
    config = dataclasses.replace(networks()[network], normalize_input=False, lr_schedule="constant")
    expected = train(config)
    monkeypatch.setattr(ProximalPolicy, "begin_iteration", lambda self, steps: self.reset())
    monkeypatch.setattr(ProximalPolicy, "after_step", lambda self, norm: None)
    found = train(with_ewma(config, com=5.0))
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.parametrize("cpu_update", ["autograd", "hand_written"])
@pytest.mark.parametrize("ewma", [{"com": 0.0}, {"com": 7.0, "e_clip": math.inf}])
def test_com_0_per_step_and_infinite_clip_are_unclipped_importance_sampling(ewma, cpu_update):
    settings = {"learning_rate": 1e-2, "cpu_update": cpu_update, "clip_value": False}
    ewma = dict(ewma)
    e_clip = ewma.pop("e_clip", 0.2)
    sampling = make_update(**settings, e_clip=math.inf)
    found, clipped = make_update(ewma, **settings, e_clip=e_clip), make_update(**settings)
    results = [update.run(make_batch(update.agent)) for update in (sampling, found, clipped)]
    torch.testing.assert_close(parameters(found), parameters(sampling), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(results[1]["policy_loss"], results[0]["policy_loss"], rtol=1e-4, atol=1e-6)
    assert (parameters(clipped) - parameters(sampling)).abs().max() > 1e-2


# ---- in the learner


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("ewma", [{"com": 5.0}, {"com": 5.0, "objective": "kl_penalty", "kl_penalty_coef": 2.0}])
def test_hand_written_gradients_are_autograds(ewma, separate):
    results = []
    for cpu_update in ("autograd", "hand_written"):
        update = make_update({**ewma, "max_behaviour_ratio": 1.5}, SAMPLES, cpu_update=cpu_update, separate=separate)
        batch = make_batch(update.agent)
        with torch.no_grad():
            for tensor in (*update.optimizer.parameters, *update.proximal.network.parameters()):
                tensor.add_(torch.randn_like(tensor), alpha=0.2)
        statistics = update._accumulate_gradients(batch)
        results.append(([g.clone() for g in update.optimizer.gradients()], statistics))
    (expected, statistics), (found, other) = results
    assert 0.05 < statistics[-2] < 0.95  # ratios on both sides of the bounds, of
    assert 0.05 < statistics[-1] < 0.95  # the interval and of the cap
    for a, b in zip(expected, found, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-5, atol=1e-5 * float(a.abs().max()))
    torch.testing.assert_close(other, statistics, rtol=1e-5, atol=1e-6)


def test_the_share_of_capped_samples_is_a_metric():
    update = make_update({"com": 5.0}, SAMPLES, mini_epochs=1, normalize_input=False)
    batch = make_batch(update.agent)
    batch.log_probs[: SAMPLES // 4] -= math.log(200.0)
    batch.log_probs[SAMPLES // 4 : SAMPLES // 2] -= math.log(10.0)
    assert update.run(batch)["behaviour_ratio_capped"].item() == pytest.approx(0.25)
    assert "behaviour_ratio_capped" not in make_update().run(make_batch(update.agent))


@pytest.mark.parametrize("micro_batch_size", [7, 32])
def test_micro_batches_give_the_same_step(micro_batch_size):
    whole, parts = make_update({"com": 5.0}), make_update({"com": 5.0}, micro_batch_size=micro_batch_size)
    for update in (whole, parts):
        update.run(make_batch(update.agent))
    torch.testing.assert_close(parameters(whole), parameters(parts), rtol=1e-4, atol=1e-5)


def test_a_recurrent_proximal_policy_runs_from_the_stored_states():
    network = {"separate": True, "mlp": {"units": [8]}, "rnn": {"name": "lstm", "units": 4, "layers": 2}}
    config = {**CONFIG, **SMALL, "seq_length": 4, "normalize_input": False}
    config = with_ewma(TrainConfig.from_params({"network": network, "config": config}), com=3.0)
    trainer = Trainer(Cartpole(16), config, "cpu", None)
    for _ in range(2):
        buffer = trainer.collector.collect()
        batch = buffer.batch(buffer.values, buffer.advantages, buffer.values, trainer.agent.network.hidden_size)
    assert batch.starts.sum() > 0
    assert batch.hidden.abs().max() > 0
    torch.testing.assert_close(trainer.update.proximal.log_prob(batch), batch.log_probs, rtol=1e-5, atol=1e-5)


# ---- checkpoints


def average(trainer: Trainer) -> torch.Tensor:
    return flat([tensor.double() for tensor in trainer.update.proximal.tensors()])


def test_F1_resume_goes_on_with_the_average_bit_for_bit(tmp_path):
    config = with_ewma(make_config((8,), **SMALL, max_epochs=6, save_frequency=3), com=20.0)
    whole = Trainer(Pendulum(16), config, "cpu", tmp_path, seed=7)
    whole.train()
    second = Trainer(Pendulum(16, seed=9), config, "cpu", None, seed=9)
    second.restore(tmp_path / "nn" / "ep_3.pth")
    assert second.update.proximal.weight.item() > 1.0
    second.train()
    assert torch.equal(parameters(whole.update), parameters(second.update))
    assert torch.equal(average(whole), average(second))


def test_a_checkpoint_without_an_average_or_with_another_com_is_taken_on(tmp_path, caplog):
    plain = make_config((8,), **SMALL, max_epochs=2)
    Trainer(Pendulum(16), plain, "cpu", tmp_path / "plain").train()
    first = Trainer(Pendulum(16), with_ewma(dataclasses.replace(plain, max_epochs=4), com=20.0), "cpu", tmp_path)
    first.restore(tmp_path / "plain" / "nn" / "last.pth")
    assert "holds no averaged policy" in caplog.text
    assert torch.equal(average(first)[:-1].float(), flat(list(first.agent.network.parameters())))
    first.train()

    second = Trainer(Pendulum(16), with_ewma(dataclasses.replace(plain, max_epochs=6), com=80.0), "cpu", None)
    second.restore(tmp_path / "nn" / "last.pth")
    assert "with com 20, goes on with com 80" in caplog.text
    assert torch.equal(average(second), average(first))
    second.train()
    assert second.update.proximal.beta == pytest.approx(80 / 81)


def test_taking_only_the_model_begins_a_new_average(tmp_path):
    config = with_ewma(make_config((8,), **SMALL, max_epochs=2), com=20.0)
    Trainer(Pendulum(16), config, "cpu", tmp_path).train()
    other = Trainer(Pendulum(16), config, "cpu", None, seed=3)
    other.restore(tmp_path / "nn" / "last.pth", load_optimizer=False)
    assert other.update.proximal.weight.item() == 1.0
    assert torch.equal(average(other)[:-1].float(), flat(list(other.agent.network.parameters())))


# ---- several processes


def _train_two(world: World, path: Any) -> None:
    config = with_ewma(make_config((8,), **SMALL, max_epochs=3), com=3.0, unit="env_step")
    config = dataclasses.replace(config, capo=CapoConfig(replicas=2))
    trainer = Trainer(Pendulum(16, seed=world.rank), config, "cpu", None, seed=world.rank, world=world)
    trainer.train()
    results = [average(trainer), parameters(trainer.update), trainer.update.proximal.beta]
    torch.save(results, path / f"{world.rank}.pt")


def test_processes_keep_the_same_policy_and_average_with_capo_too(tmp_path):
    run_two(_train_two, tmp_path)
    (*first, beta), (*second, _) = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert not torch.equal(first[0][:-1].float(), first[1])
    assert beta / (1.0 - beta) == pytest.approx(3.0 / (2 * 16 * 8) * (2 * 2))  # frames of both, two minibatches
