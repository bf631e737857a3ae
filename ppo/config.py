"""Typed settings of the learner, read from rl_games' `params` tree (algo, model, network, config)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ppo.extensions import CapoConfig, DiagnosticsConfig, EwmaConfig, SapgConfig
from ppo.reading import ConfigError as ConfigError
from ppo.reading import build, convert, one_of, require, require_known, section

if TYPE_CHECKING:
    import torch

ACTIVATIONS = ("elu", "relu", "tanh", "selu", "gelu", "silu", "swish", "sigmoid", "softplus")
INITIALIZERS = ("default", "const_initializer", "orthogonal_initializer")
LR_SCHEDULES = ("adaptive", "linear", "constant")

# Keys of the IsaacGymEnvs tree that other parts decide (names, devices, printing, the player's flags).
_DECIDED_ELSEWHERE = frozenset(
    ("name", "full_experiment_name", "env_name", "num_actors", "multi_gpu", "print_stats", "device", "device_name")
    + ("player", "train_dir", "ppo")
)
_RENAMED = {"seq_len": "seq_length"}
_EXTENSIONS = {"ewma": EwmaConfig, "sapg": SapgConfig, "capo": CapoConfig, "diagnostics": DiagnosticsConfig}


@dataclass(frozen=True)
class RewardShaper:
    """Reward used for learning: clip((reward + shift_value) * scale_value, min_val, max_val)."""

    scale_value: float = 1.0
    shift_value: float = 0.0
    min_val: float = -math.inf
    max_val: float = math.inf

    def apply(self, rewards: torch.Tensor) -> torch.Tensor:
        """Shape rewards (N,)."""
        return ((rewards + self.shift_value) * self.scale_value).clamp(self.min_val, self.max_val)


@dataclass(frozen=True)
class Initializer:
    """Weight initialiser; `default` keeps torch's own, biases always start at 0."""

    name: str = "default"
    val: float = 0.0
    gain: float = 1.0


@dataclass(frozen=True)
class RnnConfig:
    """A recurrent layer before or after the MLP; actor and critic have one each if they are separate."""

    name: str
    units: int
    layers: int = 1
    before_mlp: bool = False
    concat_input: bool = False
    """after the MLP: its input is the MLP's output and the observation"""
    concat_output: bool = False
    """append the observation to its output"""
    layer_norm: bool = False


@dataclass(frozen=True)
class NetworkConfig:
    """Shape of the actor-critic, or of a central critic, which reads only what concerns features."""

    units: tuple[int, ...] = (256, 128, 64)
    activation: str = "elu"
    separate: bool = False
    rnn: RnnConfig | None = None
    fixed_sigma: bool = True
    """log-std is a parameter of its own; otherwise a linear function of the features"""
    initializer: Initializer = field(default_factory=Initializer)
    mu_init: Initializer = field(default_factory=Initializer)
    sigma_init: Initializer = field(default_factory=lambda: Initializer("const_initializer"))


@dataclass(frozen=True)
class CentralValueConfig:
    """A critic of its own on the privileged `states`, trained before the actor on the same returns."""

    learning_rate: float
    mini_epochs: int
    minibatch_size: int | None = None
    minibatch_size_per_env: int | None = None
    network: NetworkConfig = field(default_factory=NetworkConfig)
    lr_schedule: str = "constant"
    """`linear` with the actor's progress, or constant (`adaptive`, which rl_games accepts here, is constant too)"""
    normalize_input: bool = True
    clip_value: bool = True
    e_clip: float = 0.2
    truncate_grads: bool = False
    grad_norm: float = 1.0
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        """Check values."""
        _check_minibatch(self)
        _check_positive(self, "learning_rate", "e_clip", "grad_norm")
        require(self.mini_epochs >= 1, f"mini_epochs must be at least 1, got {self.mini_epochs}")
        one_of("lr_schedule", self.lr_schedule, LR_SCHEDULES)


@dataclass(frozen=True)
class TrainConfig:
    """Everything the trainer needs; names are rl_games' where rl_games has them."""

    learning_rate: float
    horizon_length: int
    mini_epochs: int
    minibatch_size: int | None = None
    minibatch_size_per_env: int | None = None
    network: NetworkConfig = field(default_factory=NetworkConfig)
    central_value_config: CentralValueConfig | None = None

    # Returns and advantages
    gamma: float = 0.99
    tau: float = 0.95
    value_bootstrap: bool = True
    reward_shaper: RewardShaper = field(default_factory=RewardShaper)
    normalize_input: bool = True
    normalize_value: bool = True
    normalize_advantage: bool = True
    clip_actions: bool = True

    # Losses
    e_clip: float = 0.2
    clip_value: bool = True
    critic_coef: float = 2.0
    entropy_coef: float = 0.0
    schedule_entropy: bool = False
    """let entropy_coef fall to 0 along a line over max_epochs or max_frames"""
    bounds_loss_coef: float = 0.0

    # Optimiser and its rate
    lr_schedule: str = "constant"
    schedule_type: str = "legacy"
    """`legacy` adapts after every minibatch, `standard` after every mini-epoch with its mean KL"""
    kl_threshold: float = 0.008
    kl_reference: str = "previous_visit"
    """what the adaptive rate measures against: the policy at a sample's `previous_visit`, or the `behaviour` policy"""
    kl_estimator: str = "rl_games"
    """`rl_games` (biased by its epsilons) or `exact`"""
    min_lr: float = 1e-6
    max_lr: float = 1e-2
    truncate_grads: bool = False
    grad_norm: float = 1.0
    weight_decay: float = 0.0
    seq_length: int = 4
    """steps of one training sequence of a recurrent network"""
    shuffle: str = "none"
    """`none`: contiguous groups of environments, always the same (rl_games); or anew each `epoch` or `iteration`"""
    micro_batch_size: int | None = None
    """largest number of samples in one backward pass; gradients accumulate over the minibatch (None: what
    fits a CPU's cache, and all at once on CUDA)"""
    mixed_precision: bool = False
    """bfloat16 autocast of the hidden layers on CUDA, as in rl_games"""
    mixed_precision_cpu: bool = False
    """the same on CPU: faster, but not shown to learn equally well everywhere"""
    cpu_update: str = "autograd"
    """`autograd`, or `hand_written` gradients (see `ppo.fast_cpu`): faster, only for an MLP with elu on a CPU"""
    torch_compile: str = "none"
    """compile policy and loss: `default` fuses kernels, `reduce-overhead` also replays CUDA graphs; `none` does not"""

    # Beyond PPO
    ewma: EwmaConfig = field(default_factory=EwmaConfig)
    sapg: SapgConfig = field(default_factory=SapgConfig)
    capo: CapoConfig = field(default_factory=CapoConfig)
    diagnostics: DiagnosticsConfig = field(default_factory=DiagnosticsConfig)

    # Length of the run, statistics, files
    max_epochs: int = -1
    max_frames: int = -1
    score_to_win: float = math.inf
    games_to_track: int = 100
    """reward_mean is over this many of the last finished episodes"""
    save_best_after: int = 100
    save_frequency: int = 0
    """iterations between checkpoints `ep_N`; 0 saves only at the end"""
    keep_last: int | None = None
    """keep only this many of the newest `ep_N` checkpoints (None: all)"""

    def __post_init__(self) -> None:
        """Check values and combinations."""
        _check_minibatch(self)
        _check_positive(self, "learning_rate", "kl_threshold", "e_clip", "grad_norm", "min_lr", "max_lr")
        for name in (
            "horizon_length",
            "mini_epochs",
            "micro_batch_size",
            "games_to_track",
            "keep_last",
            "seq_length",
        ):
            value = getattr(self, name)
            require(value is None or value >= 1, f"{name} must be at least 1, got {value}")
        for name in ("gamma", "tau"):
            require(0.0 <= getattr(self, name) <= 1.0, f"{name} must be in [0, 1], got {getattr(self, name)}")
        one_of("lr_schedule", self.lr_schedule, LR_SCHEDULES)
        one_of("schedule_type", self.schedule_type, ("legacy", "standard"))
        one_of("kl_reference", self.kl_reference, ("previous_visit", "behaviour"))
        one_of("kl_estimator", self.kl_estimator, ("rl_games", "exact"))
        one_of("cpu_update", self.cpu_update, ("autograd", "hand_written"))
        one_of("shuffle", self.shuffle, ("none", "epoch", "iteration"))
        one_of("torch_compile", self.torch_compile, ("none", "default", "reduce-overhead"))
        require(
            self.torch_compile != "reduce-overhead" or not self.network.rnn,
            "torch_compile reduce-overhead is not for recurrent networks; use default",
        )
        require(
            self.torch_compile == "none" or self.cpu_update == "autograd", "torch_compile needs cpu_update autograd"
        )
        require(
            not self.sapg.enabled or self.cpu_update == "autograd",
            "cpu_update hand_written is not for sapg; use autograd",
        )
        require(self.min_lr <= self.max_lr, f"min_lr {self.min_lr} is above max_lr {self.max_lr}")
        limited = self.max_epochs > 0 or self.max_frames > 0
        central = self.central_value_config
        require(limited or self.lr_schedule != "linear", "lr_schedule linear needs max_epochs or max_frames")
        require(limited or not self.schedule_entropy, "schedule_entropy needs max_epochs or max_frames")
        require(
            limited or central is None or central.lr_schedule != "linear",
            "central_value_config.lr_schedule linear needs max_epochs or max_frames",
        )
        if self.network.rnn or (central and central.network.rnn):
            require(
                self.horizon_length % self.seq_length == 0,
                f"seq_length {self.seq_length} does not divide horizon_length {self.horizon_length}",
            )

    @classmethod
    def from_tree(cls, train: Mapping[str, Any]) -> TrainConfig:
        """Read the plain dictionary of `train`: `params` and the sections of `ppo.extensions` beside it.

        Raises:
            ConfigError: on unknown, missing or unusable keys.
        """
        return cls.from_params(train["params"], **{name: train.get(name) for name in _EXTENSIONS})

    @classmethod
    def from_params(cls, params: Mapping[str, Any], **extensions: Mapping[str, Any] | None) -> TrainConfig:
        """Read the plain dictionary of `train.params`; `extensions` are the sections beside it.

        Raises:
            ConfigError: on unknown, missing or unusable keys.
        """
        require_known(extensions, _EXTENSIONS, "train")
        beyond = {name: build(_EXTENSIONS[name], section or {}, name) for name, section in extensions.items()}
        require_known(params, ("seed", "algo", "model", "network", "config", "load_checkpoint", "load_path"), "params")
        _require_name(params, "algo", "a2c_continuous")
        _require_name(params, "model", "continuous_a2c_logstd")
        config = section(params, "config", "params")
        config = {_RENAMED.get(k, k): v for k, v in config.items() if k not in _DECIDED_ELSEWHERE}
        if config.get("lr_schedule", "") in (None, "None", "fixed", "identity"):
            config["lr_schedule"] = "constant"
        if isinstance(config.get("torch_compile"), bool):  # as rl_games has it
            config["torch_compile"] = "default" if config["torch_compile"] else "none"
        config["reward_shaper"] = build(RewardShaper, config.get("reward_shaper") or {}, "params.config.reward_shaper")
        network = read_network(section(params, "network", "params"))
        central = config.pop("central_value_config", None)
        central = read_central_value(central) if central else None
        return build(cls, config, "params.config", network=network, central_value_config=central, **beyond)


def minibatch_samples(config: TrainConfig | CentralValueConfig, num_envs: int) -> int:
    """Requested samples a minibatch; `minibatch_size` wins over `minibatch_size_per_env`."""
    if config.minibatch_size is not None:
        return config.minibatch_size
    assert config.minibatch_size_per_env is not None
    return config.minibatch_size_per_env * num_envs


def read_central_value(
    tree: Mapping[str, Any], where: str = "params.config.central_value_config"
) -> CentralValueConfig:
    """Read rl_games' `central_value_config` section.

    Raises:
        ConfigError: on unknown, missing or unusable keys.
    """
    inert = ("schedule_type", "kl_threshold")  # of an adaptive rate, which the central critic does not have
    settings = {key: value for key, value in tree.items() if key != "network" and key not in inert}
    if settings.get("lr_schedule") in (None, "None", "fixed", "identity"):
        settings["lr_schedule"] = "constant"
    network = read_network(section(tree, "network", where), f"{where}.network")
    return build(CentralValueConfig, settings, where, network=network)


def read_network(tree: Mapping[str, Any], where: str = "params.network") -> NetworkConfig:
    """Read rl_games' `network` section.

    Raises:
        ConfigError: on unknown, missing or unusable keys.
    """
    require_known(tree, ("name", "separate", "central_value", "space", "mlp", "rnn"), where)
    require(tree.get("name", "actor_critic") == "actor_critic", f"{where}.name must be actor_critic")
    mlp = section(tree, "mlp", where)
    require_known(mlp, ("units", "activation", "d2rl", "initializer", "regularizer"), f"{where}.mlp")
    require(not mlp.get("d2rl"), f"{where}.mlp.d2rl is not supported")
    regularizer = mlp.get("regularizer") or {}
    require(regularizer.get("name") in (None, "None"), f"{where}.mlp.regularizer is not supported")
    require("units" in mlp, f"{where}.mlp.units is missing")
    space = section(tree.get("space") or {"continuous": {}}, "continuous", f"{where}.space")
    known = ("mu_activation", "sigma_activation", "mu_init", "sigma_init", "fixed_sigma")
    require_known(space, known, f"{where}.space.continuous")
    for key in ("mu_activation", "sigma_activation"):
        require(space.get(key) in (None, "None"), f"{where}.space.continuous.{key} must be None")
    sigma = space.get("fixed_sigma", True)
    require(sigma in (True, False, "fixed"), f"{where}.space.continuous.fixed_sigma: expected bool, got {sigma!r}")
    rnn: RnnConfig | None = build(RnnConfig, tree["rnn"], f"{where}.rnn") if tree.get("rnn") else None
    if rnn is not None:
        one_of(f"{where}.rnn.name", rnn.name, ("lstm", "gru"))
        require(rnn.units >= 1 and rnn.layers >= 1, f"{where}.rnn: units and layers must be at least 1")
    settings = {
        "units": tuple(convert(int, unit, f"{where}.mlp.units") for unit in mlp["units"]),
        "activation": mlp.get("activation", "elu"),
        "separate": tree.get("separate", False),
        "fixed_sigma": bool(sigma),
    }
    one_of(f"{where}.mlp.activation", settings["activation"], ACTIVATIONS)
    require(all(unit >= 1 for unit in settings["units"]), f"{where}.mlp.units must all be at least 1")
    return build(
        NetworkConfig,
        settings,
        where,
        rnn=rnn,
        initializer=_read_initializer(mlp.get("initializer"), f"{where}.mlp.initializer"),
        mu_init=_read_initializer(space.get("mu_init"), f"{where}.space.continuous.mu_init"),
        sigma_init=_read_initializer(
            space.get("sigma_init") or {"name": "const_initializer"}, f"{where}.space.continuous.sigma_init"
        ),
    )


def _read_initializer(tree: Mapping[str, Any] | None, where: str) -> Initializer:
    initializer: Initializer = build(Initializer, tree or {}, where)
    one_of(f"{where}.name", initializer.name, INITIALIZERS)
    return initializer


def _check_minibatch(config: TrainConfig | CentralValueConfig) -> None:
    sizes = {name: getattr(config, name) for name in ("minibatch_size", "minibatch_size_per_env")}
    require(any(size is not None for size in sizes.values()), "minibatch_size (or minibatch_size_per_env) is missing")
    for name, size in sizes.items():
        require(size is None or size >= 1, f"{name} must be at least 1, got {size}")


def _check_positive(config: TrainConfig | CentralValueConfig, *names: str) -> None:
    for name in names:
        require(getattr(config, name) > 0, f"{name} must be above 0, got {getattr(config, name)}")


def _require_name(params: Mapping[str, Any], key: str, name: str) -> None:
    given = (params.get(key) or {}).get("name", name)
    require(given == name, f"params.{key}.name: expected {name}, got {given!r}")
