"""Checks CAPO's claim on batches of a small control task: `python scripts/capo_report.py batches=20 replicas=4`.

A learner is trained on pendulums by PPO; from every iteration's batch, before PPO takes its step, replicas are
optimised and merged, and one network is optimised as many times as long. Printed are the batches on which the pool of
the replicas reaches at least their mean KL-penalised surrogate, and the means over the batches of surrogate, KL
divergence from the behaviour policy, Fisher signal and waste. `coefficient=` weighs the divergence, `seed=` draws other
batches, `mini_epochs=` and `minibatch_size=` are those of every replica.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence

from gymscale.scripts import exits
from gymscale.scripts.arguments import take_own
from gymscale.scripts.config import UsageError
from gymscale.scripts.pendulum import PendulumEnv

DEFAULTS = {
    "batches": "20",
    "replicas": "4",
    "coefficient": "1.0",
    "seed": "1",
    "num_envs": "256",
    "mini_epochs": "4",
    "minibatch_size": "1024",
}
KINDS = ("replicas", "pool", "distilled", "mean", "deeper")
QUANTITIES = ("surrogate", "kl", "signal", "waste")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return exits.guarded(lambda: _main(arguments))


def _main(argv: list[str]) -> int:
    if "--help" in argv:
        print(__doc__)
        return 0
    own, rest = take_own(argv, tuple(DEFAULTS))
    if rest:
        raise UsageError(f"unknown word {rest[0]!r}: this program knows {', '.join(f'{key}=' for key in DEFAULTS)}")
    try:
        settings = {key: float(own.get(key, value)) for key, value in DEFAULTS.items()}
    except ValueError as error:
        raise UsageError(f"numbers are expected: {error}") from error
    if min(settings["batches"], settings["replicas"] - 1, settings["num_envs"]) < 1:
        raise UsageError("batches and num_envs must be at least 1, replicas at least 2")
    rows = collect(settings)
    for line in report(rows):
        print(line)
    return 0


def collect(settings: dict[str, float]) -> list[dict[str, float]]:
    """Return the comparison of every batch."""
    from ppo.capo import ConsensusUpdate
    from ppo.capo_comparison import compare
    from ppo.config import TrainConfig
    from ppo.trainer import Trainer

    config = {
        "learning_rate": 3e-4,
        "horizon_length": 16,
        "mini_epochs": int(settings["mini_epochs"]),
        "minibatch_size": int(settings["minibatch_size"]),
        "lr_schedule": "adaptive",
        "reward_shaper": {"scale_value": 0.1},
    }
    params = {"network": {"mlp": {"units": [64, 64], "activation": "elu"}}, "config": config}
    capo = {"replicas": int(settings["replicas"]), "merge": "pool"}
    seed = int(settings["seed"])
    trainer = Trainer(
        PendulumEnv(int(settings["num_envs"]), "cpu", seed),
        TrainConfig.from_params(params, diagnostics={"enabled": False}),
        "cpu",
        None,
        seed=seed,
    )
    consensus = ConsensusUpdate(trainer.update, TrainConfig.from_params(params, capo=capo).capo)
    rows = []
    for _ in range(int(settings["batches"])):
        trainer.collector.collect()
        batch = trainer.learning_batch()[0]
        rows.append(compare(consensus, batch, settings["coefficient"]))
        trainer.update.run(batch)
    return rows


def report(rows: Sequence[dict[str, float]]) -> list[str]:
    """Return the lines to print."""
    lines = [f"{'mean over batches':>18} " + " ".join(f"{kind:>10}" for kind in KINDS)]
    for quantity in QUANTITIES:
        lines.append(f"{quantity:>18} " + " ".join(_cell(rows, f"{quantity}/{kind}") for kind in KINDS))
    for kind in KINDS[1:]:
        gains = [row[f"surrogate/{kind}"] - row["surrogate/replicas"] for row in rows]
        wins = sum(gain >= 0.0 for gain in gains)
        lines.append(
            f"{kind}: surrogate at least the mean replica's on {wins} of {len(rows)} batches, mean difference "
            f"{statistics.mean(gains):+.2e}; divergence smaller on "
            f"{sum(row[f'kl/{kind}'] <= row['kl/replicas'] for row in rows)}"
        )
    return lines


def _cell(rows: Sequence[dict[str, float]], key: str) -> str:
    return f"{statistics.mean(row[key] for row in rows):10.5f}" if key in rows[0] else " " * 10


if __name__ == "__main__":
    sys.exit(main())
