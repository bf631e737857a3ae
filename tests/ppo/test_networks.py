from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from ppo import layers
from ppo.config import ACTIVATIONS, Initializer, NetworkConfig
from ppo.layers import Dense
from ppo.networks import ActorCritic


@pytest.mark.parametrize("separate", [False, True])
def test_actor_and_critic_share_a_trunk_or_not(separate):
    network = ActorCritic(5, 3, NetworkConfig(units=(16, 8), separate=separate))
    mean, log_std, value, _ = network(torch.randn(7, 5), torch.zeros(7, 0))
    assert (mean.shape, log_std.shape, value.shape) == ((7, 3), (3,), (7,))
    value.sum().backward()
    assert (network.actor.mlp[0].weight.grad is None) == separate
    trunk = 5 * 16 + 16 + 16 * 8 + 8
    assert sum(p.numel() for p in network.parameters()) == trunk * (1 + separate) + 8 * 3 + 3 + 8 + 1 + 3


def test_biases_start_at_zero_and_sigma_at_its_constant():
    network = ActorCritic(5, 3, NetworkConfig(units=(16,), sigma_init=Initializer("const_initializer", val=-0.5)))
    assert all((p == 0).all() for name, p in network.named_parameters() if name.endswith("bias"))
    assert network.log_std.tolist() == [-0.5] * 3


def test_initialisers():
    orthogonal = Initializer("orthogonal_initializer", gain=0.01)
    network = ActorCritic(
        5, 3, NetworkConfig(units=(16,), initializer=Initializer("orthogonal_initializer"), mu_init=orthogonal)
    )
    weight = network.actor.mlp[0].weight
    torch.testing.assert_close(weight.T @ weight, torch.eye(5))
    torch.testing.assert_close(network.mean.weight @ network.mean.weight.T, 1e-4 * torch.eye(3))
    assert network.value.weight.norm().item() == pytest.approx(1.0)


def test_network_without_hidden_layers():
    mean, _, value, _ = ActorCritic(4, 2, NetworkConfig(units=()))(torch.randn(3, 4), torch.zeros(3, 0))
    assert (mean.shape, value.shape) == ((3, 2), (3,))


REFERENCE = {"swish": F.silu}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_dense_equals_linear_and_activation(activation):
    torch.manual_seed(0)
    dense = Dense(6, 4, activation)
    x = 3.0 * torch.randn(32, 6, requires_grad=True)
    x.retain_grad()
    result = dense(x)
    reference_x = x.detach().requires_grad_()
    weight, bias = (p.detach().clone().requires_grad_() for p in (dense.weight, dense.bias))
    function = REFERENCE.get(activation) or getattr(F, activation)
    reference = function(F.linear(reference_x, weight, bias))
    torch.testing.assert_close(result, reference, atol=1e-6, rtol=1e-5)
    grad = torch.randn(32, 4)
    result.backward(grad)
    reference.backward(grad)
    for ours, theirs in ((x.grad, reference_x.grad), (dense.weight.grad, weight.grad), (dense.bias.grad, bias.grad)):
        torch.testing.assert_close(ours, theirs, atol=2e-6, rtol=1e-5)


def test_dense_elu_is_elu_at_the_extremes():
    z = torch.tensor([[-1e4, -100.0, -20.0, -1.0, -1e-4, -0.0, 0.0, 1e-4, 1.0, 100.0, 1e4]])
    torch.testing.assert_close(layers._elu_(z.clone()), F.elu(z), atol=1e-6, rtol=0)
    assert torch.isnan(layers._elu_(torch.tensor([float("nan")]))).all()


def test_dense_takes_sequences_and_works_without_onednn(monkeypatch):
    dense = Dense(6, 4, "elu")
    x = torch.randn(5, 3, 6, requires_grad=True)
    dense(x).sum().backward()
    with_operator = (dense.weight.grad.clone(), x.grad.clone())
    monkeypatch.setattr(layers, "_ONEDNN_LINEAR", None)
    dense.weight.grad = x.grad = None
    dense(x).sum().backward()
    torch.testing.assert_close((dense.weight.grad, x.grad), with_operator)


def test_a_missing_operator_is_no_error(monkeypatch):
    monkeypatch.setattr(torch.ops, "mkldnn", object())
    assert layers._find_onednn_linear() is None


def test_autocast_keeps_the_heads_in_float32():
    torch.manual_seed(0)
    network = ActorCritic(5, 3, NetworkConfig(units=(32, 32)), autocast=torch.bfloat16)
    x = torch.randn(64, 5)
    mean, log_std, value, _ = network(x, torch.zeros(64, 0))
    assert {mean.dtype, log_std.dtype, value.dtype} == {torch.float32}
    network.autocast = None
    exact = network(x, torch.zeros(64, 0))
    assert not torch.equal(mean, exact.mean)
    torch.testing.assert_close(mean, exact.mean, atol=2e-2, rtol=0)
