"""Capacities of PhysX's GPU buffers, from the size of the scene: what does not fit is dropped without an exception."""

from __future__ import annotations

from dataclasses import dataclass

CONTACT_PAIRS_PER_SHAPE = 8
PATCHES_PER_SHAPE = 4
MIN_CONTACTS = 1 << 19
MIN_PATCHES = 5 << 14
MIN_PAIRS = 1 << 18
MIN_STACK = 1 << 26
MAX_COUNT = (1 << 31) - 1


@dataclass(frozen=True)
class GpuBuffers:
    """Capacities (counts; bytes for the stack and the heap)."""

    contacts: int
    patches: int
    found_lost_pairs: int
    aggregate_pairs: int
    collision_stack: int
    heap: int

    def attributes(self) -> list[tuple[str, str, int]]:
        """(attribute name without its prefix, USD type, value) of every capacity."""
        return [
            ("gpuMaxRigidContactCount", "UInt", self.contacts),
            ("gpuMaxRigidPatchCount", "UInt", self.patches),
            ("gpuFoundLostPairsCapacity", "UInt", self.found_lost_pairs),
            ("gpuFoundLostAggregatePairsCapacity", "UInt", self.aggregate_pairs),
            ("gpuTotalAggregatePairsCapacity", "UInt", self.aggregate_pairs),
            ("gpuCollisionStackSize", "UInt", self.collision_stack),
            ("gpuHeapCapacity", "UInt", self.heap),
        ]

    def __str__(self) -> str:
        """One line for the log."""
        return ", ".join(f"{name} {value}" for name, _, value in self.attributes())


def capacities(num_shapes: int, max_contact_pairs: int, multiplier: float) -> GpuBuffers:
    """Size the buffers for ``num_shapes`` moving shapes.

    ``max_contact_pairs`` (SimParams.physx.max_gpu_contact_pairs) is a lower bound of the contact capacity, and
    ``multiplier`` (default_buffer_size_multiplier) scales the rest, 2 being the neutral value.
    """
    factor = max(multiplier, 1.0) / 2.0

    def count(per_shape: float, least: int) -> int:
        return min(MAX_COUNT, max(least, int(num_shapes * per_shape * factor)))

    contacts = min(MAX_COUNT, max(count(CONTACT_PAIRS_PER_SHAPE * 2, MIN_CONTACTS), max_contact_pairs))
    return GpuBuffers(
        contacts=contacts,
        patches=count(PATCHES_PER_SHAPE, MIN_PATCHES),
        found_lost_pairs=count(CONTACT_PAIRS_PER_SHAPE * 2, MIN_PAIRS),
        aggregate_pairs=count(CONTACT_PAIRS_PER_SHAPE * 2, MIN_PAIRS),
        collision_stack=count(2048, MIN_STACK),
        heap=count(512, MIN_STACK),
    )
