"""The PPO loss of an MLP actor-critic with its gradients written out by hand: the fast path of the CPU.

Same mathematics as autograd on `PolicyUpdate._terms`, in fewer passes over memory and without OpenMP's barriers: the
micro-batches of a minibatch are shared out among as many Python threads as torch would use, each computing on one
core with buffers of its own. Which thread takes which micro-batch is fixed, so results repeat bit for bit. In bfloat16
only the hidden layers are computed in it; heads, losses and accumulated gradients stay in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch

from ppo import distributions, losses
from ppo.config import ConfigError, TrainConfig
from ppo.layers import Dense, linear
from ppo.networks import ActorCritic
from ppo.proximal import ProximalPolicy
from ppo.rollout import Batch

Statistics = Callable[..., torch.Tensor]
"""Of a batch, its four terms, action means, log-std and ratios (clipped one first): one tensor of means."""


def why_not(network: ActorCritic) -> str | None:
    """What about this network the fast path cannot do, None if it can."""
    layers = list(network.actor.mlp)
    if network.mean.weight.device.type != "cpu":
        return "it is for the CPU"
    if network.hidden_size:
        return "the network is recurrent"
    if not isinstance(network.log_std, torch.nn.Parameter):
        return "the standard deviation depends on the state"
    if not layers or not all(isinstance(layer, Dense) and layer.is_elu for layer in layers):
        return "the network has no hidden layers of elu units"
    return None


class HandWrittenLoss:
    """Adds up the gradients of the loss over the micro-batches of a minibatch."""

    def __init__(
        self, network: ActorCritic, config: TrainConfig, rows: int, proximal: ProximalPolicy | None = None
    ) -> None:
        """Allocate room for micro-batches of `rows` samples in every thread; `proximal` is that of PPO-EWMA.

        Raises:
            ConfigError: if the network is of a kind that is not written out here.
        """
        reason = why_not(network)
        if reason is not None:
            raise ConfigError(f"params.config.cpu_update hand_written is impossible: {reason}; use autograd")
        self._weights = _Weights(network)
        self._parameters = list(network.parameters())
        count = torch.get_num_threads()
        self._workers = [_Worker(network, self._weights, config, rows, proximal) for _ in range(count)]
        self._pool = ThreadPoolExecutor(
            count, thread_name_prefix="ppo", initializer=torch.set_num_threads, initargs=(1,)
        )

    def backward(self, micros: Sequence[Batch], weights: torch.Tensor, statistics: Statistics) -> torch.Tensor:
        """Set the gradients of the mean loss over all samples of the micro-batches.

        Args:
            micros: the micro-batches of one minibatch.
            weights: (4,) of the policy, value, entropy and bounds terms.
            statistics: called once for every micro-batch, in any thread.

        Returns:
            The mean over all samples of what `statistics` returned.
        """
        self._weights.refresh()
        total, threads = sum(len(micro) for micro in micros), len(self._workers)
        jobs = [
            self._pool.submit(worker.run, micros[i::threads], total, weights, statistics)
            for i, worker in enumerate(self._workers)
        ]
        parts = [part for job in jobs if (part := job.result()) is not None]
        gradients = self._workers[0].gradients
        for worker in self._workers[1 : len(parts)]:
            torch._foreach_add_(gradients, worker.gradients)
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient
        return torch.stack(parts).sum(0)


class _Weights:
    """The weights of the hidden layers in the precision of the hidden layers, and transposed, one list a tower."""

    def __init__(self, network: ActorCritic) -> None:
        self.dtype = network.autocast or torch.float32
        features = [network.actor] if network.critic is None else [network.actor, network.critic]
        self.towers = [[layer for layer in part.mlp if isinstance(layer, Dense)] for part in features]
        self.refresh()

    def refresh(self) -> None:
        """Take the weights as they are now."""
        with torch.no_grad():
            self.weights = [[layer.weight.to(self.dtype) for layer in tower] for tower in self.towers]
            self.biases = [[layer.bias.to(self.dtype) for layer in tower] for tower in self.towers]
            self.transposed = [[weight.t().contiguous() for weight in tower] for tower in self.weights]


class _Tower:
    """The hidden layers of actor or critic in one thread, with room for the activations of `rows` samples."""

    def __init__(self, number: int, weights: _Weights, rows: int, grads: dict[torch.Tensor, torch.Tensor]) -> None:
        self._number, self._weights = number, weights
        layers = weights.towers[number]
        self._grads = [(grads[layer.weight], grads[layer.bias]) for layer in layers]
        widths = [layer.out_features for layer in layers]
        self._activations = [torch.empty(rows, width, dtype=weights.dtype) for width in widths]
        self._room = torch.empty(rows * max(widths), dtype=weights.dtype)
        self._inputs: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Features (B, F) in float32 of observations (B, O)."""
        weights, biases = self._weights.weights[self._number], self._weights.biases[self._number]
        self._inputs = [x.to(self._weights.dtype)]
        for weight, bias, room in zip(weights, biases, self._activations, strict=True):
            z, out = linear(self._inputs[-1], weight, bias), room[: len(x)]
            # elu(z) = max(z, exp(min(z, 0)) - 1): several passes, but of instructions that are fast.
            torch.clamp(z, max=0.0, out=out)
            self._inputs.append(torch.maximum(z, out.exp_().sub_(1.0), out=out))
        return self._inputs[-1].float()

    def backward(self, grad: torch.Tensor) -> None:
        """Add the gradients of all layers, given that of the features (B, F) in float32."""
        grad = grad.to(self._weights.dtype)
        for i in reversed(range(len(self._grads))):
            before = self._room[: grad.numel()].view_as(grad)
            torch.ops.aten.elu_backward.grad_input(grad, 1.0, 1.0, 1.0, True, self._inputs[i + 1], grad_input=before)
            weight_grad, bias_grad = self._grads[i]
            _add_product(weight_grad, before, self._inputs[i])
            bias_grad.add_(before.sum(0, dtype=torch.float32))
            if i > 0:
                grad = linear(before, self._weights.transposed[self._number][i], None)


def _add_product(total: torch.Tensor, grad: torch.Tensor, x: torch.Tensor) -> None:
    """Add grad^T x, the gradient of a weight."""
    if grad.dtype == total.dtype:
        total.addmm_(grad.t(), x)
    else:
        total.add_(torch.mm(grad.t(), x))


class _Worker:
    """One thread's share: its gradients and its buffers."""

    def __init__(
        self,
        network: ActorCritic,
        weights: _Weights,
        config: TrainConfig,
        rows: int,
        proximal: ProximalPolicy | None,
    ) -> None:
        assert isinstance(network.log_std, torch.nn.Parameter)
        self._config = config
        self._proximal = proximal
        self._log_std, self._mean, self._value = network.log_std, network.mean, network.value
        grads: dict[torch.Tensor, torch.Tensor] = {p: torch.zeros_like(p) for p in network.parameters()}
        self.gradients = list(grads.values())
        self._head_grads = [
            grads[p] for p in (self._mean.weight, self._mean.bias, self._value.weight, self._value.bias)
        ]
        self._log_std_grad = grads[self._log_std]
        towers = [_Tower(i, weights, rows, grads) for i in range(len(weights.towers))]
        self._actor, self._critic = towers[0], towers[-1]

    @torch.no_grad()
    def run(
        self, micros: Sequence[Batch], total: int, weights: torch.Tensor, statistics: Statistics
    ) -> torch.Tensor | None:
        """Gradients of some of the micro-batches; returns their part of the mean statistics, None without any."""
        torch._foreach_zero_(self.gradients)
        mean_statistics: torch.Tensor | None = None
        for micro in micros:
            share = len(micro) / total
            values = statistics(micro, *self._accumulate(micro, share, weights)) * share
            mean_statistics = values if mean_statistics is None else mean_statistics.add_(values)
        return mean_statistics

    def _accumulate(self, batch: Batch, share: float, weights: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Add `share` times the gradient of a micro-batch's mean loss; returns what `Statistics` takes."""
        features = self._actor.forward(batch.observations)
        critic_features = features if self._critic is self._actor else self._critic.forward(batch.observations)
        mean = self._mean(features)
        value = self._value(critic_features).squeeze(-1)
        scaled = weights * (share / len(batch))
        policy, ratios, grad_mean, grad_log_std = self._policy_gradient(batch, mean, scaled)
        critic, grad_value = self._value_gradient(batch, value, scaled[1])
        self._log_std_grad.add_(grad_log_std + weights[2] * share)
        self._backward(features, critic_features, grad_mean, grad_value)
        entropy = distributions.entropy(self._log_std)
        bounds = losses.bounds_loss(mean).mean()
        return torch.stack((policy, critic, entropy, bounds)), mean, self._log_std, *ratios

    def _policy_gradient(
        self, batch: Batch, mean: torch.Tensor, scaled: torch.Tensor
    ) -> tuple[torch.Tensor, Sequence[torch.Tensor], torch.Tensor, torch.Tensor]:
        """Mean surrogate, ratios, and the gradients of the action means (surrogate, bounds) and of log-std."""
        precision = torch.exp(-self._log_std)
        standardised = (batch.actions - mean).mul_(precision)
        squares = standardised.square()
        constant = (self._log_std + distributions.LOG_SQRT_2PI).sum()
        log_prob = squares.sum(-1).mul_(-0.5).sub_(constant)
        surrogate, grad, *ratios = self._surrogate(batch, log_prob)
        grad = grad.mul_(-scaled[0]).unsqueeze(-1)
        grad_log_std = (grad * (squares - 1.0)).sum(0)
        excess = mean - mean.clamp(-losses.MEAN_BOUND, losses.MEAN_BOUND)
        grad_mean = (grad * standardised).mul_(precision).add_(excess * (2.0 * scaled[3]))
        return surrogate, ratios, grad_mean, grad_log_std

    def _surrogate(self, batch: Batch, log_prob: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Mean surrogate, minus its gradient by each log-probability (B,) times B, and ratios."""
        clip, config = self._config.e_clip, self._config.ewma
        if self._proximal is None:
            ratio = log_prob.sub_(batch.log_probs).exp_()
            plain = batch.advantages * ratio
            clipped = batch.advantages * ratio.clamp(1.0 - clip, 1.0 + clip)
            # d(-min(plain, clipped))/d log pi: the clipped term is constant wherever it is the smaller one.
            return -torch.minimum(plain, clipped).mean(), torch.where(plain <= clipped, plain, 0.0), ratio
        proximal = self._proximal.log_prob(batch)
        loss, ratio, behaviour_ratio = self._proximal.policy_loss(batch, log_prob, proximal, clip)
        grad = batch.advantages * behaviour_ratio.clamp_max(config.max_behaviour_ratio)
        if config.objective == "clip":
            bounded = ratio.clamp(1.0 - clip, 1.0 + clip)
            grad = torch.where(batch.advantages * ratio <= batch.advantages * bounded, grad, 0.0)
        else:
            grad.sub_(config.kl_penalty_coef * (log_prob - proximal))
        return loss.mean(), grad, ratio, behaviour_ratio

    def _value_gradient(
        self, batch: Batch, value: torch.Tensor, scale: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean value loss and its gradient (B,)."""
        error = value - batch.returns
        if not self._config.clip_value:
            return error.square().mean(), error * (2.0 * scale)
        clip = self._config.e_clip
        step = value - batch.values
        inside = step.abs() <= clip
        clipped = step.clamp_(-clip, clip).add_(batch.values).sub_(batch.returns)
        squares, clipped_squares = error.square(), clipped.square()
        slope = torch.where(squares >= clipped_squares, error, torch.where(inside, clipped, 0.0))
        return torch.maximum(squares, clipped_squares).mean(), slope * (2.0 * scale)

    def _backward(
        self,
        features: torch.Tensor,
        critic_features: torch.Tensor,
        grad_mean: torch.Tensor,
        grad_value: torch.Tensor,
    ) -> None:
        """Through the heads and the hidden layers."""
        mean_weight, mean_bias, value_weight, value_bias = self._head_grads
        _add_product(mean_weight, grad_mean, features)
        mean_bias.add_(grad_mean.sum(0))
        _add_product(value_weight, grad_value.unsqueeze(-1), critic_features)
        value_bias.add_(grad_value.sum())
        grad = torch.mm(grad_mean, self._mean.weight)
        if self._critic is self._actor:
            self._actor.backward(grad.addr_(grad_value, self._value.weight[0]))
        else:
            self._actor.backward(grad)
            self._critic.backward(torch.outer(grad_value, self._value.weight[0]))
