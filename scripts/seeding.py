"""Seeds every random generator of a run."""

from __future__ import annotations

import os
import random

import numpy as np
import torch


def seed_everything(seed: int, deterministic: bool, rank: int = 0) -> int:
    """Seed python, numpy and torch on all devices.

    Args:
        seed: -1 draws one from 0 to 9999, or takes 42 + rank with `deterministic`; other seeds get the rank added.
        deterministic: Use deterministic torch kernels.
        rank: The process number of a run on several processes.

    Returns:
        The seed that was used.
    """
    if seed == -1:
        seed = 42 + rank if deterministic else random.SystemRandom().randint(0, 9999)
    else:
        seed += rank
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    if deterministic:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.deterministic = True
        torch.use_deterministic_algorithms(True)
    return seed
