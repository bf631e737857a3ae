"""Our own learner."""

from __future__ import annotations

import dataclasses
import math

from gymscale.scripts.learners import Job, Turn
from ppo.trainer import Trainer


class _TurnTaker:
    """A logger, which the trainer calls at the end of an iteration, that waits for the next turn."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self.trainer: Trainer | None = None

    def log(self, metrics: dict[str, float], step: int) -> None:
        """End the run when it is over."""
        del metrics, step
        if not self._turn() and self.trainer is not None:
            self.trainer.request_stop("enough")

    def close(self) -> None:
        """Nothing is held open."""


def run(job: Job, turn: Turn) -> None:
    """Train; see `gymscale.scripts.learners`."""
    config = dataclasses.replace(job.config, max_epochs=-1, max_frames=-1, score_to_win=math.inf)
    turns = _TurnTaker(turn)
    turns.trainer = Trainer(job.env, config, job.device, None, [turns], job.seed)
    if turn():
        turns.trainer.train()
