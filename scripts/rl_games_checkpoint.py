"""Reads rl-games' checkpoints without rl-games: names of version 1.6, and where older ones differ.

The networks of both sides are the same functions, so the weights carry over as they are, and so do the statistics of
observations and values: both normalise by the running mean and variance + 1e-5 and clamp to +-5.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gymscale.scripts.config import UsageError

STATISTICS = {"running_mean": "mean", "running_var": "var", "count": "count"}

ACTOR_CRITIC = (
    (r"a2c_network\.(actor|critic)_mlp\.(\d+)\.(weight|bias)", "network.{0}.mlp.{1}.{2}"),
    (r"a2c_network\.(?:a_)?rnn\.(?:rnn\.)?((?:weight|bias)_[ih]h_l\d+)", "network.actor.rnn.rnn.{0}"),
    (r"a2c_network\.c_rnn\.(?:rnn\.)?((?:weight|bias)_[ih]h_l\d+)", "network.critic.rnn.rnn.{0}"),
    (r"a2c_network\.(?:a_)?layer_norm\.(weight|bias)", "network.actor.rnn.layer_norm.{0}"),
    (r"a2c_network\.c_layer_norm\.(weight|bias)", "network.critic.rnn.layer_norm.{0}"),
    (r"a2c_network\.mu\.(weight|bias)", "network.mean.{0}"),
    (r"a2c_network\.value\.(weight|bias)", "network.value.{0}"),
    (r"a2c_network\.sigma((?:\.weight|\.bias)?)", "network.log_std{0}"),
    (r"running_mean_std\.(running_mean|running_var|count)", "obs_normalizer.{0}"),
    (r"value_mean_std\.(running_mean|running_var|count)", "value_normalizer.{0}"),
)
"""Patterns of names in rl-games' `model` and what our agent calls the same."""

CENTRAL_CRITIC = (
    (r"a2c_network\.actor_mlp\.(\d+)\.(weight|bias)", "central.features.mlp.{0}.{1}"),
    (r"a2c_network\.rnn\.(?:rnn\.)?((?:weight|bias)_[ih]h_l\d+)", "central.features.rnn.rnn.{0}"),
    (r"a2c_network\.layer_norm\.(weight|bias)", "central.features.rnn.layer_norm.{0}"),
    (r"a2c_network\.value\.(weight|bias)", "central.value.{0}"),
    (r"running_mean_std\.(running_mean|running_var|count)", "central.normalizer.{0}"),
    (r"value_mean_std\.(running_mean|running_var|count)", "value_normalizer.{0}"),
)
"""The same for the central critic, whose statistics of values are those that both networks use."""

UNUSED_IN_CENTRAL = re.compile(r"a2c_network\.(mu|sigma)\b.*")
"""Heads that a central critic may have, but never uses."""


def read(path: Path, trusted: bool = False) -> dict[str, Any]:
    """Load rl-games' checkpoint onto the CPU.

    Args:
        path: The file.
        trusted: Load Python objects of any kind, which may run code that the file brings along.

    Raises:
        UsageError: The file is missing, unreadable or something else.
    """
    if not path.is_file():
        raise UsageError(f"no checkpoint file '{path}'")
    try:
        torch.serialization.add_safe_globals(_numpy_scalars())
        content = torch.load(path, map_location="cpu", weights_only=not trusted)
    except pickle.UnpicklingError as error:
        if "GLOBAL" in str(error):
            raise UsageError(
                f"{path} holds Python objects that could run code when loaded; if you trust where it comes from, "
                "add trusted=True"
            ) from None
        raise UsageError(f"{path} is truncated or not a checkpoint") from None
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, AttributeError):
        raise UsageError(f"{path} is truncated or not a checkpoint") from None
    if isinstance(content, dict):
        content = content.get(0, content)  # forks that train on several GPUs file it under the number of the process
    if not isinstance(content, dict) or not isinstance(content.get("model"), Mapping):
        raise UsageError(f"{path} is not a checkpoint of rl-games: it has no 'model'")
    if not any("a2c_network." in name for name in content["model"]):
        raise UsageError(f"{path} is not a checkpoint of rl-games' PPO: it has no 'a2c_network'")
    return content


def _numpy_scalars() -> list[Any]:
    """Return what loading a numpy number takes, which rl-games stores as the best reward, under old and new names."""
    rebuild = np.float32(0.0).__reduce__()[0]
    names = ("numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar")
    kinds = [type(np.dtype(kind)) for kind in (np.float32, np.float64, np.int64)]
    return [*((rebuild, name) for name in names), np.dtype, *kinds]


def convert(content: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Return the state dict of our agent for a checkpoint's content.

    Raises:
        UsageError: A layer that our networks do not have.
    """
    model = {_plain(name): value for name, value in content["model"].items()}
    # Old versions kept the statistics beside the model.
    for section, prefix in (("running_mean_std", "running_mean_std."), ("reward_mean_std", "value_mean_std.")):
        for name, value in content.get(section, {}).items():
            model.setdefault(prefix + name, value)
    state = _rename(model, ACTOR_CRITIC)
    central = content.get("assymetric_vf_nets")
    if central is not None:
        names = {name: _plain(name).removeprefix("model.") for name in central}
        used = {names[name]: value for name, value in central.items() if not UNUSED_IN_CENTRAL.match(names[name])}
        state |= _rename(used, CENTRAL_CRITIC)
    return state


def _plain(name: str) -> str:
    """Return a name without what torch.compile puts into it."""
    return name.replace("_orig_mod.", "")


def _rename(tensors: Mapping[str, torch.Tensor], patterns: tuple[tuple[str, str], ...]) -> dict[str, torch.Tensor]:
    """Rename tensors; layers of an MLP are counted without their activations."""
    renamed = {}
    for name, value in tensors.items():
        for pattern, ours in patterns:
            if found := re.fullmatch(pattern, name):
                parts = [str(int(part) // 2) if part.isdigit() else part for part in found.groups()]
                renamed[ours.format(*(STATISTICS.get(part, part) for part in parts))] = value
                break
        else:
            raise UsageError(f"the checkpoint has '{name}': our networks have no such layer")
    return renamed


def check_fit(state: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor]) -> None:
    """Compare a converted state dict with that of the agent which the config describes.

    Raises:
        UsageError: Naming the first thing that differs.
    """
    advice = "choose task, train config and network settings of the run that the checkpoint is from"
    for name in sorted({*state, *wanted}):
        if name not in wanted:
            raise UsageError(f"the checkpoint has {name}, which this config does not: {advice}")
        if name not in state:
            raise UsageError(f"this config has {name}, which the checkpoint does not: {advice}")
        if state[name].shape != wanted[name].shape:
            raise UsageError(
                f"{name} is {tuple(state[name].shape)} in the checkpoint, {tuple(wanted[name].shape)} in this config: "
                f"{advice}"
            )
