from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

from ppo.config import NetworkConfig
from ppo.networks import ActorCritic
from ppo.optimizer import GuardedAdam


def make(max_norm: float | None = None, **options) -> tuple[nn.Parameter, GuardedAdam]:
    parameter = nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))
    return parameter, GuardedAdam([parameter], 0.1, max_norm, **options)


def step(parameter: nn.Parameter, optimizer: GuardedAdam, factor: float = 1.0) -> float:
    loss = factor * parameter.square().sum() / 2.0
    optimizer.zero_grad()
    optimizer.backward(loss)
    return optimizer.step(loss.detach()).item()


@pytest.mark.parametrize("scale_loss", [False, True])
def test_equals_torchs_adam_with_clipping(scale_loss):
    parameter, optimizer = make(max_norm=0.5, scale_loss=scale_loss)
    reference = nn.Parameter(parameter.detach().clone())
    adam = torch.optim.Adam([reference], lr=0.1)
    for _ in range(5):
        norm = step(parameter, optimizer)
        adam.zero_grad()
        (reference.square().sum() / 2.0).backward()
        assert norm == pytest.approx(torch.nn.utils.clip_grad_norm_([reference], 0.5).item(), rel=1e-5)
        adam.step()
    torch.testing.assert_close(parameter, reference)


@pytest.mark.parametrize("factor", [math.nan, math.inf, 1e30])
def test_D1_a_step_that_is_not_finite_is_not_taken(factor):
    parameter, optimizer = make(max_norm=1.0)
    step(parameter, optimizer)
    before = parameter.detach().clone(), {k: v.clone() for k, v in optimizer._adam.state[parameter].items()}
    assert math.isnan(step(parameter, optimizer, factor))
    assert torch.equal(parameter, before[0])
    assert all(torch.equal(v, before[1][k]) for k, v in optimizer._adam.state[parameter].items())


def test_loss_scale_halves_on_overflow_and_doubles_after_2000_good_steps():
    parameter, optimizer = make(scale_loss=True)
    assert math.isnan(step(parameter, optimizer, 1e36))
    assert optimizer._scale.item() == 2.0**15
    optimizer._good_steps.fill_(1999.0)
    step(parameter, optimizer)
    assert optimizer._scale.item() == 2.0**16
    assert optimizer._good_steps.item() == 0.0


def test_state_dict_restores_moments_rate_and_scale():
    parameter, optimizer = make(scale_loss=True)
    step(parameter, optimizer)
    optimizer.set_rate(0.03)
    optimizer._scale.fill_(4.0)
    twin = nn.Parameter(parameter.detach().clone())
    other = GuardedAdam([twin], 0.9, None, scale_loss=True)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert other.rate.item() == pytest.approx(0.03)
    assert other._adam.param_groups[0]["lr"] is other.rate
    step(parameter, optimizer)
    step(twin, other)
    assert torch.equal(parameter, twin)
    assert other._scale.item() == optimizer._scale.item()


def test_float16_layers_learn_with_a_scaled_loss():
    torch.manual_seed(0)
    network = ActorCritic(4, 1, NetworkConfig(units=(16,)), autocast=torch.float16)
    optimizer = GuardedAdam(network.parameters(), 1e-2, 1.0, scale_loss=True)
    x = torch.randn(64, 4)
    losses = []
    for _ in range(40):
        loss = (network(x, torch.zeros(64, 0)).mean[:, 0] - x.sum(1)).square().mean()
        optimizer.zero_grad()
        optimizer.backward(loss)
        optimizer.step(loss.detach())
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
