"""The hand-written gradients against autograd's."""

from __future__ import annotations

import pytest
import torch

from ppo.agent import Agent
from ppo.config import ConfigError, TrainConfig
from ppo.distributed import World
from ppo.rollout import Batch
from ppo.update import PolicyUpdate
from tests.ppo.settings import CONFIG, make_config
from tests.ppo.test_update import CPU, SAMPLES, SIZES, make_batch

COSTS = {"entropy_coef": 0.01, "bounds_loss_coef": 0.05, "kl_reference": "behaviour"}


def moved_update(cpu_update: str, separate: bool = False, **overrides) -> tuple[PolicyUpdate, Batch]:
    """An update whose policy has left the one that collected: ratios, values and means beyond their bounds."""
    torch.manual_seed(3)
    config = make_config((16, 24, 8), separate=separate, cpu_update=cpu_update, **{**COSTS, **overrides})
    update = PolicyUpdate(Agent(SIZES, config, CPU), config, SAMPLES, CPU, World())
    batch = make_batch(update.agent)
    with torch.no_grad():
        for parameter in update.optimizer.parameters:
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return update, batch


def gradients(update: PolicyUpdate, batch: Batch) -> tuple[list[torch.Tensor], torch.Tensor]:
    statistics = update._accumulate_gradients(batch)
    return [g.clone() for g in update.optimizer.gradients()], statistics


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("clip_value", [False, True])
@pytest.mark.parametrize("micro_batch_size", [None, 40, 7])
def test_gradients_and_statistics_are_autograds(separate: bool, clip_value: bool, micro_batch_size: int | None) -> None:
    options = {"separate": separate, "clip_value": clip_value, "micro_batch_size": micro_batch_size}
    expected, expected_statistics = gradients(*moved_update("autograd", **options))
    found, statistics = gradients(*moved_update("hand_written", **options))
    assert expected_statistics[-1] > 0.2  # many ratios are clipped, or the test would prove little
    for a, b in zip(expected, found, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-5, atol=1e-5 * float(a.abs().max()))
    torch.testing.assert_close(statistics, expected_statistics, rtol=1e-5, atol=1e-6)


def test_bfloat16_is_autocasts() -> None:
    expected, _ = gradients(*moved_update("autograd", mixed_precision_cpu=True))
    found, _ = gradients(*moved_update("hand_written", mixed_precision_cpu=True))
    flat, other = (torch.cat([g.flatten() for g in part]) for part in (expected, found))
    assert float((flat - other).norm() / flat.norm()) < 0.02


def test_threads_share_the_work_and_repeat_it_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    first, _ = gradients(*moved_update("hand_written", micro_batch_size=10))
    second, _ = gradients(*moved_update("hand_written", micro_batch_size=10))
    monkeypatch.undo()
    single, _ = gradients(*moved_update("hand_written", micro_batch_size=10))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    for a, b in zip(first, single, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_whole_updates_agree() -> None:
    runs = [moved_update(kind, micro_batch_size=32) for kind in ("autograd", "hand_written")]
    for update, batch in runs:
        update.run(batch)
    expected, found = ([p.detach() for p in update.optimizer.parameters] for update, _ in runs)
    for a, b in zip(expected, found, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        ({"mlp": {"units": [8], "activation": "tanh"}}, "no hidden layers of elu units"),
        ({"mlp": {"units": [8], "activation": "elu"}, "rnn": {"name": "lstm", "units": 4, "layers": 1}}, "recurrent"),
        (
            {"mlp": {"units": [8], "activation": "elu"}, "space": {"continuous": {"fixed_sigma": False}}},
            "depends on the state",
        ),
    ],
)
def test_other_networks_are_refused(network: dict, reason: str) -> None:
    config = TrainConfig.from_params({"network": network, "config": {**CONFIG, "cpu_update": "hand_written"}})
    with pytest.raises(ConfigError, match=reason):
        PolicyUpdate(Agent(SIZES, config, CPU), config, SAMPLES, CPU, World())
