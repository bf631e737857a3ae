"""Memory of this process."""

from __future__ import annotations

import resource


def peak_memory(device: str) -> int:
    """Return the largest memory use so far in MiB: of the process on the CPU, of torch on a GPU."""
    if device == "cpu":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    import torch  # pragma: needs cuda

    return torch.cuda.max_memory_allocated() // 2**20  # pragma: needs cuda
