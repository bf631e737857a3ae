"""Settings of what goes beyond PPO: the sections `ewma`, `sapg`, `capo` and `diagnostics` beside `train.params`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ppo.reading import ConfigError, one_of, require


@dataclass(frozen=True)
class EwmaConfig:
    """PPO-EWMA (Hilton, Cobbe, Schulman 2021): the policy is kept near an average of its past, not near the last one.

    Off unless `com` is given.
    """

    com: float | None = None
    """centre of mass beta / (1 - beta): mean age of the proximal policy, in `unit`"""
    unit: str = "optimizer_step"
    """what `com` counts: optimizer_step, iteration or env_step"""
    update: str = "optimizer_step"
    """when the average moves: after every optimizer_step, or once at the start of each iteration"""
    objective: str = "clip"
    """`clip` the ratio to the proximal policy, or penalise the distance to it (`kl_penalty`)"""
    kl_penalty_coef: float = 1.0
    max_behaviour_ratio: float = 100.0
    """cap of pi_theta / pi_behaviour; the share of capped samples is logged"""

    def __post_init__(self) -> None:
        """Check values."""
        require(self.com is None or self.com >= 0, f"com must be at least 0, got {self.com}")
        one_of("unit", self.unit, ("optimizer_step", "iteration", "env_step"))
        one_of("update", self.update, ("optimizer_step", "iteration"))
        one_of("objective", self.objective, ("clip", "kl_penalty"))
        require(self.kl_penalty_coef >= 0, f"kl_penalty_coef must be at least 0, got {self.kl_penalty_coef}")
        cap = self.max_behaviour_ratio
        require(cap >= 1, f"max_behaviour_ratio must be at least 1, got {cap}")

    @property
    def enabled(self) -> bool:
        """Whether there is a proximal policy at all."""
        return self.com is not None


@dataclass(frozen=True)
class SapgConfig:
    """SAPG (Singla, Agarwal, Pathak 2024): blocks of environments explore differently, the last one learns from all.

    Off unless `num_blocks` or `block_size` is given.
    """

    num_blocks: int | None = None
    """equal, contiguous blocks of environments; the last one is the leader"""
    block_size: int | None = None
    """environments a block, instead of `num_blocks`"""
    conditioning: bool = True
    """append a learned vector of the block to the observation, and learn a log-std per block"""
    conditioning_size: int = 32
    entropy_scale: float = 0.0
    """entropy coefficients fall from 0.5 times this in the first block to 0 in the leader's"""
    relabel: bool = True
    """give the leader a random follower's data, relabelled"""
    shuffle: bool = True
    """mix the blocks: permute chunks of `seq_length` steps once an iteration, or each epoch if params.config.shuffle
    says so; otherwise as that says"""

    def __post_init__(self) -> None:
        """Check values."""
        for name in ("num_blocks", "block_size", "conditioning_size"):
            value = getattr(self, name)
            require(value is None or value >= 1, f"{name} must be at least 1, got {value}")
        require(self.num_blocks is None or self.block_size is None, "give num_blocks or block_size, not both")
        require(self.entropy_scale >= 0, f"entropy_scale must be at least 0, got {self.entropy_scale}")

    @property
    def enabled(self) -> bool:
        """Whether environments are divided into blocks."""
        return self.num_blocks is not None or self.block_size is not None

    def count(self, num_envs: int) -> int:
        """Number of blocks that `num_envs` environments are divided into; 0 without SAPG.

        Raises:
            ConfigError: if `block_size` does not divide them.
        """
        if self.block_size is None:
            return self.num_blocks or 0
        size = self.block_size
        count, rest = divmod(num_envs, size)
        if rest:
            multiples = [n * size for n in (count, count + 1) if n > 0]
            below = [d for d in range(1, size) if num_envs % d == 0][-1:]
            above = [d for d in range(size + 1, num_envs + 1) if num_envs % d == 0][:1]
            raise ConfigError(
                f"sapg.block_size {size} does not divide num_envs {num_envs}: take num_envs {_either(multiples)}, "
                f"block_size {_either(below + above)}, or num_blocks, which need not divide num_envs"
            )
        return count

    def check(self, num_envs: int) -> None:
        """Check that `num_envs` environments can be trained in blocks.

        Raises:
            ConfigError: if they cannot.
        """
        count = self.count(num_envs)
        require(
            count <= num_envs,
            f"sapg.num_blocks {count} needs at least as many environments, num_envs is {num_envs}",
        )


def _either(numbers: Iterable[int]) -> str:
    return " or ".join(str(number) for number in numbers)


@dataclass(frozen=True)
class CapoConfig:
    """CAPO (Mustafaoglu et al. 2026): replicas optimise one batch in different orders and are merged.

    Off unless `replicas` is given.
    """

    replicas: int | None = None
    merge: str = "pool"
    """`pool` of the replicas' policies (logarithmic, distilled into one network), `mean` of their parameters, or
    `deeper`: no replicas but as many times the mini-epochs, which costs the same"""
    distill_epochs: int = 2
    """epochs over the batch that bring the mean of the parameters nearer to the pool"""
    distill_learning_rate: float = 1e-6
    """Adam's rate of the first of these steps, the later ones are smaller; the mean is so near already that a rate
    like PPO's leads away from the pool"""

    def __post_init__(self) -> None:
        """Check values."""
        require(self.replicas is None or self.replicas >= 1, f"replicas must be at least 1, got {self.replicas}")
        one_of("merge", self.merge, ("pool", "mean", "deeper"))
        require(self.distill_epochs >= 1, f"distill_epochs must be at least 1, got {self.distill_epochs}")
        require(self.distill_learning_rate > 0, f"distill_learning_rate must be above 0: {self.distill_learning_rate}")

    @property
    def enabled(self) -> bool:
        """Whether an update has replicas, or as many mini-epochs as they would have together."""
        return self.replicas is not None

    @property
    def mini_epoch_factor(self) -> int:
        """How many times `mini_epochs` one network is optimised."""
        return self.replicas if self.replicas is not None and self.merge == "deeper" else 1


@dataclass(frozen=True)
class DiagnosticsConfig:
    """What is measured about each iteration's step of the outer loop, and when stagnation is called."""

    enabled: bool = True
    samples: int = 4096
    """samples of the batch, the same ones in every iteration, on which the policies before and after are compared"""
    noise_scale_every: int = 0
    """iterations between estimates of the gradient-noise scale; 0: never"""
    fisher_every: int = 0
    """iterations between measurements of Fisher signal and waste; 0: never"""
    window: int = 50
    """iterations without progress after which stagnation may be called"""
    solved: float | None = None
    """return from which stagnation is never called, since the task is solved (None: `score_to_win`)"""

    def __post_init__(self) -> None:
        """Check values."""
        for name in ("noise_scale_every", "fisher_every"):
            require(getattr(self, name) >= 0, f"{name} must be at least 0, got {getattr(self, name)}")
        require(self.samples >= 1, f"samples must be at least 1, got {self.samples}")
        require(self.window >= 4, f"window must be at least 4, got {self.window}")
