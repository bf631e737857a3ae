"""rl-games' actor-critic written out by hand, with the names of its state dict: what a checkpoint of it means."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Statistics(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("running_mean", torch.randn(size, dtype=torch.float64))
        self.register_buffer("running_var", torch.rand(size, dtype=torch.float64) * 4.0 + 0.1)
        self.register_buffer("count", torch.tensor(1234.0, dtype=torch.float64))

    def normalize(self, x: torch.Tensor) -> torch.Tensor:
        return ((x - self.running_mean.float()) / (self.running_var.float() + 1e-5).sqrt()).clamp(-5.0, 5.0)

    def denormalize(self, x: torch.Tensor) -> torch.Tensor:
        return x.clamp(-5.0, 5.0) * (self.running_var.float() + 1e-5).sqrt() + self.running_mean.float()


class Cells(nn.Module):
    """The extra level of names that rl-games' recurrent layers have; time comes first."""

    def __init__(self, kind: str, inputs: int, units: int, layers: int) -> None:
        super().__init__()
        self.rnn = {"lstm": nn.LSTM, "gru": nn.GRU}[kind](inputs, units, layers)


class Network(nn.Module):
    """`a2c_network`: shared or separate, recurrent before or after the MLP."""

    def __init__(self, num_obs: int, num_actions: int, units: list[int], separate: bool, rnn: dict[str, Any]) -> None:
        super().__init__()
        self.separate, self.settings = separate, rnn
        sides = ("actor", "critic") if separate else ("actor",)
        width = units[-1]
        for side in sides:
            inputs = num_obs
            if rnn:
                before, prefix = rnn["before_mlp"], f"{side[0]}_" if separate else ""
                cell_inputs = num_obs if before else units[-1] + num_obs * rnn["concat_input"]
                setattr(self, f"{prefix}rnn", Cells(rnn["name"], cell_inputs, rnn["units"], rnn["layers"]))
                if rnn["layer_norm"]:
                    norm = nn.LayerNorm(rnn["units"])
                    nn.init.normal_(norm.weight)
                    nn.init.normal_(norm.bias)
                    setattr(self, f"{prefix}layer_norm", norm)
                inputs = rnn["units"] + num_obs * rnn["concat_output"] if before else num_obs
                width = units[-1] if before else rnn["units"] + num_obs * rnn["concat_output"]
            layers: list[nn.Module] = []
            for unit in units:
                layers += [nn.Linear(inputs, unit), nn.ELU()]
                inputs = unit
            setattr(self, f"{side}_mlp", nn.Sequential(*layers))
        self.value = nn.Linear(width, 1)
        self.mu = nn.Linear(width, num_actions)
        self.sigma = nn.Parameter(torch.randn(num_actions))

    def features(self, side: str, x: torch.Tensor, states: dict[str, Any]) -> torch.Tensor:
        mlp, rnn = getattr(self, f"{side}_mlp"), self.settings
        if not rnn:
            return mlp(x)
        prefix = f"{side[0]}_" if self.separate else ""
        inputs = x if rnn["before_mlp"] else mlp(x)
        if rnn["concat_input"]:
            inputs = torch.cat([inputs, x], dim=1)
        cells = getattr(self, f"{prefix}rnn").rnn
        output, states[side] = cells(inputs[None], states.get(side))
        output = output[0]
        if rnn["layer_norm"]:
            output = getattr(self, f"{prefix}layer_norm")(output)
        if rnn["concat_output"]:
            output = torch.cat([output, x], dim=1)
        return mlp(output) if rnn["before_mlp"] else output

    def forward(self, x: torch.Tensor, states: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        actor = self.features("actor", x, states)
        critic = self.features("critic", x, states) if self.separate else actor
        return self.mu(actor), self.value(critic)


class Model(nn.Module):
    """The `model` of a checkpoint, or with `states` as observations the central critic's."""

    def __init__(self, num_obs: int, num_actions: int, units: list[int], separate: bool, rnn: dict[str, Any]) -> None:
        super().__init__()
        self.value_mean_std = Statistics(1)
        self.running_mean_std = Statistics(num_obs)
        self.a2c_network = Network(num_obs, num_actions, units, separate, rnn)

    @torch.no_grad()
    def forward(self, observations: torch.Tensor, states: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        mean, value = self.a2c_network(self.running_mean_std.normalize(observations), states)
        return mean, self.value_mean_std.denormalize(value)[:, 0]


def checkpoint(model: nn.Module, central: nn.Module | None = None, **more: Any) -> dict[str, Any]:
    """The content of rl-games' file, as far as a policy goes."""
    content = {"model": model.state_dict(), "epoch": 12, "frame": 3456, **more}
    content["optimizer"] = {"state": {}, "param_groups": [{"lr": 0.00021}]}
    if central is not None:
        content["assymetric_vf_nets"] = {f"model.{name}": value for name, value in central.state_dict().items()}
    return content
