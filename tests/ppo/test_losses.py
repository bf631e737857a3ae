from __future__ import annotations

import math

import pytest
import torch

from ppo import losses


def test_policy_loss_is_the_clipped_surrogate():
    ratios = torch.tensor([1.0, 1.5, 0.5, 1.5, 0.5])
    advantages = torch.tensor([2.0, 1.0, 1.0, -1.0, -1.0])
    loss, ratio = losses.policy_loss(ratios.log(), advantages, clip=0.2)
    # max(-A r, -A clip(r)): only a gain is cut at 1.2 and 0.8, a loss never is.
    torch.testing.assert_close(loss, torch.tensor([-2.0, -1.2, -0.5, 1.5, 0.8]))
    torch.testing.assert_close(ratio, ratios)


def test_policy_loss_has_no_gradient_beyond_the_clip():
    log_ratio = torch.log(torch.tensor([1.5, 1.1])).requires_grad_()
    losses.policy_loss(log_ratio, torch.ones(2), clip=0.2)[0].sum().backward()
    torch.testing.assert_close(log_ratio.grad, torch.tensor([0.0, -1.1]))


def test_value_loss_takes_the_worse_of_raw_and_clipped():
    value = torch.tensor([1.0, 1.0, 0.1, -1.0])
    old = torch.tensor([0.0, 0.0, 0.0, 0.0])
    target = torch.tensor([2.0, 0.5, 1.0, 0.0])
    loss = losses.value_loss(value, old, target, clip=0.2)
    # clipped values: 0.2, 0.2, 0.1, -0.2
    torch.testing.assert_close(loss, torch.tensor([1.8**2, 0.5**2, 0.9**2, 1.0]))
    torch.testing.assert_close(losses.value_loss(value, old, target, None), (value - target).square())


def test_bounds_loss_sums_squared_excess_over_actions():
    mean = torch.tensor([[1.1, -1.1, 0.0], [1.6, -2.1, 1.0]])
    torch.testing.assert_close(losses.bounds_loss(mean), torch.tensor([0.0, 0.5**2 + 1.0**2]), atol=1e-6, rtol=0)


def test_bounds_loss_gradient_points_inward():
    mean = torch.tensor([[1.6, -1.6]], requires_grad=True)
    losses.bounds_loss(mean).sum().backward()
    torch.testing.assert_close(mean.grad, torch.tensor([[1.0, -1.0]]))


def test_large_log_ratio_stays_clipped_for_gains():
    loss, _ = losses.policy_loss(torch.tensor([80.0]), torch.tensor([1.0]), clip=0.2)
    assert loss.item() == pytest.approx(-1.2)
    assert math.isfinite(loss.item())
