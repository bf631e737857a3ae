"""Nothing in a rollout or an update waits for the device.

On the CPU every way to read a tensor on the host is counted; on CUDA torch's own debug mode raises at the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ppo.config import TrainConfig
from ppo.trainer import Trainer
from tests.ppo.envs import Cartpole
from tests.ppo.settings import CONFIG

READING_OPERATORS = ("_local_scalar_dense", "nonzero", "masked_select", "equal", "_unique2", "repeat_interleave")
READING_METHODS = ("tolist", "numpy", "cpu", "__array__")
"""Methods that read memory without an operator."""

CENTRAL = {"minibatch_size": 64, "mini_epochs": 2, "learning_rate": 1e-3, "network": {"mlp": {"units": [8]}}}
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "shuffled_micro_batches": {"shuffle": "epoch", "micro_batch_size": 20},
    "standard_schedule_exact_kl": {"schedule_type": "standard", "kl_estimator": "exact", "kl_reference": "behaviour"},
    "no_normalisation": {"normalize_input": False, "normalize_value": False, "normalize_advantage": False},
    "central_critic": {"central_value_config": CENTRAL},
    "recurrent": {"rnn": {"name": "lstm", "units": 8, "layer_norm": True}},
    "state_dependent_sigma": {"space": {"continuous": {"fixed_sigma": False}}},
    "autocast": {"mixed_precision": True, "mixed_precision_cpu": True},
    "hand_written": {"cpu_update": "hand_written", "micro_batch_size": 20},
    "ewma": {"ewma": {"com": 5.0}},
    "capo": {"capo": {"replicas": 2}},
    "ewma_penalty_once_an_iteration": {"ewma": {"com": 5.0, "update": "iteration", "objective": "kl_penalty"}},
}


def make_trainer(variant: str, device: str = "cpu") -> Trainer:
    settings = dict(VARIANTS[variant])
    extensions = {key: settings.pop(key) for key in ("ewma", "sapg", "capo", "diagnostics") if key in settings}
    network = {"separate": True, "mlp": {"units": [16, 8], "activation": "elu"}}
    network |= {key: settings.pop(key) for key in ("rnn", "space") if key in settings}
    config = {**CONFIG, "horizon_length": 8, "minibatch_size": 64, "mini_epochs": 2, **settings}
    config = TrainConfig.from_params({"network": network, "config": config}, **extensions)
    return Trainer(OnDevice(Cartpole(32), device), config, device, None)


class OnDevice:
    """An environment of the CPU whose results were put on the device beforehand: its own copies do not count."""

    def __init__(self, env: Cartpole, device: str) -> None:
        self.env, self.device, self.num_envs = env, device, env.num_envs
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.state_space, self.signature = env.state_space, env.signature
        self.results: list[Any] = []
        for _ in range(20):
            observation, reward, done, info = env.step(torch.zeros(env.num_envs, 1))
            self.results.append((self._put(observation), reward.to(device), done.to(device), self._put(info)))
        self.count = 0

    def _put(self, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {name: tensor.to(self.device) for name, tensor in tensors.items()}

    def reset(self) -> dict[str, torch.Tensor]:
        return self.results[0][0]

    def step(self, actions: torch.Tensor) -> Any:
        self.count += 1
        return self.results[self.count % len(self.results)]


class CountReads(TorchDispatchMode):
    """Names of the operators that read a tensor on the host."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        operator = func.__name__.split(".")[0]
        by_mask = operator in ("index", "index_put", "index_put_") and any(
            index is not None and index.dtype == torch.bool for index in args[1]
        )
        if operator in READING_OPERATORS or by_mask:
            self.found.append(str(func))
        return func(*args, **(kwargs or {}))


class InThisThread:
    """A pool without threads: operators are only counted in the thread that counts."""

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(function(*args))
        return done


@contextmanager
def counted_reads() -> Iterator[list[str]]:
    with CountReads() as mode, pytest.MonkeyPatch.context() as patch:
        for name in READING_METHODS:
            method = getattr(torch.Tensor, name)

            def read(tensor, *args, name=name, method=method, **kwargs):
                mode.found.append(name)
                return method(tensor, *args, **kwargs)

            patch.setattr(torch.Tensor, name, read)
        yield mode.found


@pytest.mark.parametrize("variant", VARIANTS)
def test_D4_rollout_and_update_read_nothing_on_the_host(variant: str) -> None:
    trainer = make_trainer(variant)
    if trainer.update._hand_written is not None:
        trainer.update._hand_written._pool = InThisThread()
    trainer.collector.collect()
    trainer._learn()  # whatever is prepared once
    with counted_reads() as found:
        trainer.collector.collect()
        trainer._learn()
    assert found == []


def test_every_way_to_read_is_counted() -> None:
    x = torch.ones(3)
    with counted_reads() as found:
        float(x[0]), bool(x[0]), x[0].item(), x.tolist(), x.numpy(), x.cpu(), x[x > 2.0], x.equal(x), x.unique()
        torch.where(x > 0.0)
    assert len(found) == 10


@pytest.mark.gpu
@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "hand_written"])
def test_D4_rollout_and_update_never_wait_for_the_gpu(variant: str) -> None:  # pragma: needs cuda
    trainer = make_trainer(variant, "cuda:0")
    trainer.collector.collect()
    trainer._learn()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        trainer.collector.collect()
        trainer._learn()
    finally:
        torch.cuda.set_sync_debug_mode("default")
