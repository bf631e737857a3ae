"""rl-games (https://github.com/Denys88/rl_games), through the same translation that `train.algo=rl_games` uses."""

from __future__ import annotations

import contextlib
import os
import tempfile

import torch

from gymscale.scripts import rl_games_bridge
from gymscale.scripts.learners import Job, Turn


def run(job: Job, turn: Turn, compiled: bool = False) -> None:
    """Train; see `gymscale.scripts.learners`. With `compiled` torch compiles its model, as rl-games does by default."""
    params = rl_games_bridge.translate(job.params, job.env.num_envs, job.device)
    params["seed"] = job.seed
    params["config"] |= {"max_epochs": -1, "max_frames": -1, "score_to_win": float("inf"), "print_stats": False}
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
        params["config"] |= {"train_dir": folder, "full_experiment_name": "run"}
        with contextlib.redirect_stdout(nowhere):
            agent = rl_games_bridge.build_agent(params, job.env, job.config.horizon_length)
            if compiled:
                agent.model = torch.compile(agent.model)
            agent.init_tensors()
            agent.obs = agent.env_reset()
        while turn():
            agent.update_epoch()
            agent.train_epoch()
            agent.dataset.update_values_dict(None)
