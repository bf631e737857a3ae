from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from ppo import distributions, fisher, gradient_noise, outer_loop
from ppo.config import ConfigError, TrainConfig
from ppo.extensions import DiagnosticsConfig
from ppo.geometry import StepGeometry
from ppo.networks import ActorCritic, PolicyOutput
from ppo.rollout import Batch
from ppo.trainer import Trainer
from tests.ppo.envs import Cartpole, Pendulum
from tests.ppo.settings import CONFIG
from tests.ppo.test_distributed import run_two
from tests.ppo.test_no_sync import OnDevice, counted_reads
from tests.ppo.test_trainer import Collecting, assert_same

ALL = {"noise_scale_every": 1, "fisher_every": 1, "samples": 64}
CENTRAL = {"minibatch_size": 64, "mini_epochs": 1, "learning_rate": 1e-3, "network": {"mlp": {"units": [8]}}}
NETWORKS: dict[str, dict[str, Any]] = {
    "plain": {},
    "lstm": {"rnn": {"name": "lstm", "units": 5}},
    "gru_with_norm": {"rnn": {"name": "gru", "units": 5, "layer_norm": True}},
    "state_dependent_sigma": {"space": {"continuous": {"fixed_sigma": False}}},
}
NAMES = (
    "kl kl_reverse ddr ddr_reverse effective_samples explained_variance policy_step parameter_step update_cosine "
    "path_length net_displacement straightness stagnant"
)
SCHEDULED = "gradient_signal gradient_noise noise_scale fisher_signal fisher_waste fisher_forward"


def names(words: str) -> set[str]:
    return {f"outer/{word}" for word in words.split()}


def make_config(network: dict[str, Any], diagnostics: dict[str, Any], **overrides: Any) -> TrainConfig:
    tree = {"separate": True, "mlp": {"units": [16, 8], "activation": "elu"}, **network}
    extensions = {name: overrides.pop(name) for name in ("ewma", "sapg", "capo") if name in overrides}
    config = {**CONFIG, "horizon_length": 8, "minibatch_size": 64, "mini_epochs": 2, **overrides}
    return TrainConfig.from_params({"network": tree, "config": config}, diagnostics=diagnostics, **extensions)


def train(
    diagnostics: dict[str, Any], network: dict[str, Any], **overrides: Any
) -> tuple[Trainer, list[dict[str, float]]]:
    log = Collecting()
    config = make_config(network, diagnostics, max_epochs=3, **overrides)
    trainer = Trainer(Cartpole(32, hide_velocities=True), config, "cpu", None, [log], seed=5)
    trainer.train()
    return trainer, log.rows


def state(trainer: Trainer) -> dict[str, torch.Tensor]:
    """Everything that an update changes, and the random numbers."""
    tensors = {f"model.{k}": v for k, v in trainer.agent.state_dict().items()}
    for i, moments in enumerate(trainer.update.optimizer.state_dict()["adam"]["state"].values()):
        tensors |= {f"optimizer.{i}.{k}": v for k, v in moments.items()}
    observation = trainer.collector.observation
    assert observation is not None
    rest = {"lr": trainer.update.optimizer.rate, "rng": torch.get_rng_state(), "obs": observation["obs"]}
    return {k: v.clone() for k, v in (tensors | rest).items()}


# ---- training stays as it is


@pytest.mark.parametrize(
    ("network", "overrides"),
    [
        ("plain", {}),
        ("plain", {"cpu_update": "hand_written", "shuffle": "epoch"}),
        ("plain", {"mixed_precision_cpu": True}),
        ("plain", {"central_value_config": CENTRAL}),
        ("plain", {"ewma": {"com": 20.0}}),
        ("plain", {"sapg": {"num_blocks": 4, "entropy_scale": 0.01}}),
        ("lstm", {"kl_reference": "behaviour"}),
        ("state_dependent_sigma", {}),
    ],
)
def test_training_is_bit_identical_with_and_without_diagnostics(network: str, overrides: dict[str, Any]) -> None:
    with_all, rows = train(ALL, NETWORKS[network], **overrides)
    without, plain_rows = train({"enabled": False}, NETWORKS[network], **overrides)
    assert_same(state(with_all), state(without))
    assert not [name for name in plain_rows[-1] if name.startswith("outer/")]
    finite = {name for name, value in rows[-1].items() if name.startswith("outer/") and math.isfinite(value)}
    missing = names(NAMES) | names(SCHEDULED)
    assert missing - finite <= {"outer/noise_scale"}  # NaN while the estimated signal is negative


def test_scheduled_metrics_come_when_they_are_due() -> None:
    _, rows = train({"noise_scale_every": 2, "samples": 64}, {})
    assert [("outer/gradient_noise" in row, "outer/fisher_waste" in row) for row in rows] == [
        (True, False),
        (False, False),
        (True, False),
    ]
    assert math.isnan(rows[0]["outer/update_cosine"])


@pytest.mark.parametrize("network", NETWORKS)
def test_D4_nothing_is_read_on_the_host(network: str) -> None:
    trainer = Trainer(OnDevice(Cartpole(32), "cpu"), make_config(NETWORKS[network], ALL), "cpu", None)
    trainer.collector.collect()
    trainer._learn()
    with counted_reads() as found:
        trainer.collector.collect()
        trainer._learn()
    assert found == []


# ---- what is measured


def test_divergences_against_the_policy_that_collected_and_the_one_that_will_act() -> None:
    """The behaviour policy is recomputed from a copy of the agent taken before the update, on raw observations."""
    import copy

    config = make_config({}, {"samples": 10**6})
    trainer = Trainer(Pendulum(32), config, "cpu", None)
    trainer.collector.collect()
    before, observations = copy.deepcopy(trainer.agent), trainer.collector.buffer.observations.flatten(0, 1).clone()
    actions = trainer.collector.buffer.actions.flatten(0, 1).clone()
    metrics = trainer._learn()
    nothing = torch.zeros(len(observations), 0)
    with torch.no_grad():
        old, new = (agent.evaluate({"obs": observations}, nothing) for agent in (before, trainer.agent))
        ratio = torch.exp(
            distributions.log_prob(actions, new.mean, new.log_std)
            - distributions.log_prob(actions, old.mean, old.log_std)
        )
    gaussians = [torch.distributions.Normal(out.mean, out.log_std.exp().expand_as(out.mean)) for out in (old, new)]
    forward = torch.distributions.kl_divergence(*gaussians).sum(-1).mean()
    reverse = torch.distributions.kl_divergence(*reversed(gaussians)).sum(-1).mean()
    assert float(metrics["outer/kl"]) == pytest.approx(float(forward), rel=1e-3)
    assert float(metrics["outer/kl_reverse"]) == pytest.approx(float(reverse), rel=1e-3)
    assert float(metrics["outer/ddr"]) == pytest.approx(256 / float(forward), rel=1e-3)
    assert float(metrics["outer/ddr_reverse"]) == pytest.approx(256 / float(reverse), rel=1e-3)
    step = ((new.mean - old.mean) / old.log_std.exp()).square().mean().sqrt()
    assert float(metrics["outer/policy_step"]) == pytest.approx(float(step), rel=1e-3)
    effective = float(ratio.sum() ** 2 / (len(ratio) * ratio.square().sum()))
    assert float(metrics["outer/effective_samples"]) == pytest.approx(effective, rel=1e-4)
    change = [
        (p - q).flatten()
        for (name, p), q in zip(trainer.agent.network.named_parameters(), before.network.parameters(), strict=True)
        if name.split(".")[0] not in ("critic", "value")
    ]
    assert float(metrics["outer/parameter_step"]) == pytest.approx(float(torch.cat(change).norm()), rel=1e-5)


def test_effective_samples() -> None:
    assert outer_loop.effective_samples(torch.zeros(5)).item() == 1.0
    # Weights 1, 1, 2: (4)^2 / (3 * 6).
    weights = torch.tensor([0.0, 0.0, math.log(2.0)])
    assert outer_loop.effective_samples(weights).item() == pytest.approx(16 / 18)
    assert outer_loop.effective_samples(weights + 500.0).item() == pytest.approx(16 / 18)


def test_explained_variance() -> None:
    returns = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert outer_loop.explained_variance(returns, torch.zeros(4)).item() == 1.0
    assert outer_loop.explained_variance(torch.full((4,), 2.5), returns - 2.5).item() == 0.0
    # Predicting half of each return leaves a quarter of the variance.
    assert outer_loop.explained_variance(returns / 2, returns / 2).item() == pytest.approx(0.75)


def test_same_rows_every_time_at_all_times_of_the_horizon() -> None:
    config = make_config({}, {"samples": 64})
    trainer = Trainer(Pendulum(64), config, "cpu", None)
    loop = trainer.outer_loop
    assert loop is not None
    trainer.collector.collect()
    buffer = trainer.collector.buffer
    batch = buffer.batch(buffer.values, buffer.advantages, buffer.values, 0)
    seed = torch.get_rng_state()
    rows = loop._rows(batch)
    assert torch.equal(torch.get_rng_state(), seed)
    assert loop._rows(batch) is rows
    assert len(rows) == len(set(rows.tolist())) == 64
    assert set((rows % 8).tolist()) == set(range(8))


def _train_two(world, path) -> None:
    log = Collecting()
    config = make_config({}, {**ALL, "samples": 10**6}, max_epochs=2, normalize_input=False)
    trainer = Trainer(Pendulum(16, seed=world.rank), config, "cpu", None, [log], seed=world.rank, world=world)
    metrics = []
    for _ in range(2):
        trainer.collector.collect()
        metrics.append({k: float(v) for k, v in trainer._learn().items() if k.startswith("outer/")})
    torch.save(metrics, path / f"{world.rank}.pt")


def test_several_processes_agree_on_one_mean(tmp_path) -> None:
    run_two(_train_two, tmp_path)
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert first[1] == second[1]
    assert first[1]["outer/ddr"] == pytest.approx(2 * 16 * 8 / first[1]["outer/kl"], rel=1e-5)


# ---- geometry


def test_geometry_of_a_known_path() -> None:
    geometry = StepGeometry(4)
    points = [torch.tensor(p) for p in ([0.0, 0.0], [3.0, 0.0], [3.0, 4.0], [0.0, 4.0])]
    steps = [geometry.step(a, b) for a, b in zip(points[:-1], points[1:], strict=True)]
    assert [float(s["parameter_step"]) for s in steps] == [3.0, 4.0, 3.0]
    assert math.isnan(steps[0]["update_cosine"])
    assert [float(s["update_cosine"]) for s in steps[1:]] == [0.0, 0.0]
    assert [float(s["path_length"]) for s in steps] == [3.0, 7.0, 10.0]
    assert [float(s["net_displacement"]) for s in steps] == [3.0, 5.0, 4.0]
    assert [round(float(s["straightness"]), 6) for s in steps] == [1.0, round(5 / 7, 6), 0.4]
    back = geometry.step(points[3], torch.tensor([0.0, 2.0]))
    geometry.step(torch.tensor([0.0, 2.0]), points[3])
    assert (float(back["update_cosine"]), float(back["path_length"])) == (0.0, 12.0)
    # Steps 2 to 5 of the window, from (3, 0): 4 + 3 + 2 + 2.
    last = geometry.step(points[3], torch.tensor([0.0, 5.0]))
    assert float(last["path_length"]) == 8.0


@pytest.mark.parametrize("window", [4, 50, 500])
def test_the_window_is_exact_to_an_eighth_and_memory_is_bounded(window: int) -> None:
    geometry = StepGeometry(window)
    for i in range(3 * window):
        result = geometry.step(torch.tensor([float(i)]), torch.tensor([i + 1.0]))
    assert 7 / 8 * window - 1 <= float(result["path_length"]) <= window
    assert float(result["straightness"]) == 1.0
    assert len(geometry._snapshots) <= 12


@pytest.mark.parametrize("step_times_curvature", [0.1, 0.5, 1.0])
def test_cosine_of_gradient_descent_at_rest_in_a_bowl(step_times_curvature: float) -> None:
    """A walk x' = (1 - s) x + s z has updates with correlation -s / 2: see the class's docstring."""
    generator = torch.Generator().manual_seed(1)
    s, x = step_times_curvature, torch.zeros(20_000, dtype=torch.float64)
    geometry, cosines = StepGeometry(8), []
    for _ in range(int(20 / s)):
        after = (1.0 - s) * x + s * torch.randn(len(x), generator=generator, dtype=x.dtype)
        cosines.append(float(geometry.step(x, after)["update_cosine"]))
        x = after
    assert sum(cosines[-5:]) / 5 == pytest.approx(-s / 2, abs=0.015)


# ---- gradient noise


def test_signal_and_noise_of_gradients_with_known_moments() -> None:
    generator = torch.Generator().manual_seed(0)
    true = torch.tensor([1.0, -2.0, 0.5])
    spread = torch.tensor([1.0, 2.0, 3.0])
    signals, noises = [], []
    for _ in range(400):
        samples = true + spread * torch.randn(64, 3, generator=generator)
        small, big = gradient_noise.squares([part.mean(0) for part in samples.split(4)], [1 / 16] * 16)
        signal, noise = gradient_noise.signal_and_noise(small, big, 4.0, 64.0)
        signals.append(signal)
        noises.append(noise)
    assert torch.stack(signals).mean().item() == pytest.approx(5.25, rel=0.05)  # |true|^2
    assert torch.stack(noises).mean().item() == pytest.approx(14.0, rel=0.05)  # sum of variances


def test_noise_scale_is_a_ratio_of_averages() -> None:
    scale = gradient_noise.NoiseScale()
    assert scale.update(torch.tensor(2.0), torch.tensor(10.0)).item() == 5.0
    assert scale.update(torch.tensor(4.0), torch.tensor(20.0)).item() == pytest.approx(11.0 / 2.2)
    assert math.isnan(gradient_noise.NoiseScale().update(torch.tensor(-1.0), torch.tensor(1.0)))
    alone = gradient_noise.signal_and_noise(torch.tensor(1.0), torch.tensor(1.0), 8.0, 8.0)
    assert all(math.isnan(value) for value in alone)


def test_gradient_is_that_of_the_surrogate_of_the_whole_batch() -> None:
    trainer = Trainer(Pendulum(32), make_config({}, ALL), "cpu", None)
    loop = trainer.outer_loop
    assert loop is not None
    trainer.collector.collect()
    buffer = trainer.collector.buffer
    batch = buffer.batch(buffer.values, buffer.advantages, buffer.values, 0)
    gradient, _, _ = loop._surrogate_gradient(batch)
    network = trainer.agent.network
    observations = trainer.agent.obs_normalizer.normalize(batch.observations)
    output = network(observations, batch.hidden, batch.starts)
    ratio = torch.exp(distributions.log_prob(batch.actions, output.mean, output.log_std) - batch.log_probs)
    parameters = list(outer_loop.policy_parameters(network).values())
    expected = torch.autograd.grad((ratio * batch.advantages).mean(), parameters)
    torch.testing.assert_close(gradient, torch.cat([g.flatten() for g in expected]), rtol=1e-3, atol=1e-5)
    assert all(p.grad is None for p in network.parameters())


# ---- Fisher


def small_network(kind: str) -> tuple[ActorCritic, Batch]:
    torch.manual_seed(3)
    network = ActorCritic(3, 2, make_config(NETWORKS[kind], {}).network)
    with torch.no_grad():
        for p in network.parameters():
            p.add_(0.2 * torch.randn_like(p))
    shape = (7, 4) if network.hidden_size else (28,)
    empty = torch.zeros(*shape)
    batch = Batch(
        torch.randn(*shape, 3), torch.randn(*shape, 2), empty, empty, empty, empty, empty, empty,
        torch.randn(shape[0], network.hidden_size), (torch.rand(*shape) < 0.3).float(),
    )  # fmt: skip
    return network, batch


def forward(network: ActorCritic, batch: Batch) -> PolicyOutput:
    return network(batch.observations, batch.hidden, batch.starts)


@pytest.mark.parametrize("kind", NETWORKS)
def test_fisher_products_equal_the_matrix_of_the_jacobian(kind: str) -> None:
    network, batch = small_network(kind)
    parameters = list(outer_loop.policy_parameters(network).values())
    with fisher.differentiable_twice(network):
        product = fisher.GaussianFisher(forward(network, batch), parameters)
        matrix = torch.stack([product(row) for row in torch.eye(sum(p.numel() for p in parameters))])
    output = forward(network, batch)
    log_std = output.log_std.expand_as(output.mean)
    parts = ((output.mean * (-log_std.detach()).exp()).flatten(), 2**0.5 * log_std.flatten())
    rows = []
    for value in torch.cat(parts):
        row = torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True)
        pairs = zip(row, parameters, strict=True)
        rows.append(torch.cat([torch.zeros(p.numel()) if g is None else g.flatten() for g, p in pairs]))
    jacobian = torch.stack(rows)
    torch.testing.assert_close(matrix, jacobian.T @ jacobian / 28, rtol=1e-4, atol=1e-5)


def test_half_the_fisher_norm_of_a_small_update_is_its_divergence() -> None:
    network, batch = small_network("state_dependent_sigma")
    parameters = outer_loop.policy_parameters(network)
    old = forward(network, batch)
    with fisher.differentiable_twice(network):
        product = fisher.GaussianFisher(forward(network, batch), list(parameters.values()))
        update = 3e-3 * torch.randn(sum(p.numel() for p in parameters.values()))
        half = 0.5 * torch.dot(update, product(update))
    with torch.no_grad():
        for p, piece in zip(parameters.values(), update.split([p.numel() for p in parameters.values()]), strict=True):
            p.add_(piece.view_as(p))
    new = forward(network, batch)
    kl = distributions.kl_divergence(old.mean, old.log_std, new.mean, new.log_std).mean()
    assert half.item() == pytest.approx(kl.item(), rel=0.03)


def spd(size: int) -> torch.Tensor:
    torch.manual_seed(0)
    root = torch.randn(size, size, dtype=torch.float64)
    return root @ root.T / size + torch.eye(size, dtype=torch.float64)


def test_split_by_a_known_matrix() -> None:
    matrix, gradient = spd(8), torch.randn(8, dtype=torch.float64)
    natural = torch.linalg.solve(matrix, gradient)
    noise = torch.randn(8, dtype=torch.float64)
    orthogonal = noise - natural * (noise @ matrix @ natural) / (natural @ matrix @ natural)
    parts = fisher.split(matrix.__matmul__, 0.3 * natural + orthogonal, gradient)
    assert parts.signal.item() == pytest.approx(0.5 * 0.09 * (natural @ matrix @ natural).item(), rel=0.05)
    assert parts.waste.item() == pytest.approx(0.5 * (orthogonal @ matrix @ orthogonal).item(), rel=0.05)
    assert fisher.split(matrix.__matmul__, natural, gradient).forward.item() == pytest.approx(1.0, abs=1e-3)
    assert fisher.split(matrix.__matmul__, -natural, gradient).forward.item() == pytest.approx(-1.0, abs=1e-3)


def test_conjugate_gradients_solve() -> None:
    matrix, target = spd(6), torch.ones(6, dtype=torch.float64)
    solution = fisher.conjugate_gradients(matrix.__matmul__, target, 6)
    torch.testing.assert_close(matrix @ solution, target)


def test_signal_and_waste_add_up_to_the_divergence_of_a_real_update() -> None:
    _, rows = train({**ALL, "samples": 10**6}, {}, normalize_input=False)
    for row in rows:
        both = row["outer/fisher_signal"] + row["outer/fisher_waste"]
        assert both == pytest.approx(row["outer/kl"], rel=0.15)


# ---- settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"samples": 0}, "samples must be at least 1, got 0"),
        ({"window": 3}, "window must be at least 4"),
        ({"fisher_every": -1}, "fisher_every must be at least 0"),
    ],
)
def test_unusable_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DiagnosticsConfig(**settings)
