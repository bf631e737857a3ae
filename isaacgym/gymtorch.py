"""Interoperation of Gym tensors and torch tensors (API notes, section 12).

A Gym ``Tensor`` simply holds a torch tensor, so wrapping and unwrapping never copy.
"""

from __future__ import annotations

from typing import overload

import torch

__all__ = ["GymSim", "Tensor", "unwrap_tensor", "wrap_tensor"]

_DTYPES = (torch.float32, torch.int32, torch.uint8)


class GymSim:
    """Name that some projects use in annotations; it has no behaviour."""


class Tensor:
    """Descriptor of the memory of a torch tensor, which it keeps alive."""

    def __init__(self, tensor: torch.Tensor, own_data: bool = False) -> None:
        """Describe ``tensor``.

        Args:
            tensor: the memory to describe.
            own_data: True for buffers that the simulation allocated.
        """
        self.torch = tensor
        """The torch tensor itself."""
        self.own_data = own_data
        """True if the simulation allocated the memory, False if the caller did."""

    @property
    def data_ptr(self) -> int:
        """Address of the first element."""
        return self.torch.data_ptr()

    @property
    def data_address(self) -> int:
        """Address of the first element."""
        return self.torch.data_ptr()

    @property
    def device(self) -> int:
        """CUDA device index, -1 for the CPU."""
        device = self.torch.device
        return -1 if device.type == "cpu" else (device.index or 0)

    @property
    def dtype(self) -> torch.dtype:
        """Element type."""
        return self.torch.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return tuple(self.torch.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.torch.ndim

    def __repr__(self) -> str:
        """Return shape, type and device."""
        return f"Tensor(shape={self.shape}, dtype={self.dtype}, device={self.torch.device})"


@overload
def wrap_tensor(gym_tensor: Tensor, offsets: object = None, counts: object = None) -> torch.Tensor: ...


@overload
def wrap_tensor(gym_tensor: None, offsets: object = None, counts: object = None) -> None: ...


def wrap_tensor(gym_tensor: Tensor | None, offsets: object = None, counts: object = None) -> torch.Tensor | None:
    """Return the torch tensor over the memory of ``gym_tensor``; None stays None.

    ``offsets`` and ``counts`` (sub-views) are not supported and must be None.
    """
    if offsets is not None or counts is not None:
        raise NotImplementedError("gymtorch.wrap_tensor: offsets and counts are not supported; slice the result")
    return None if gym_tensor is None else gym_tensor.torch


def unwrap_tensor(torch_tensor: torch.Tensor) -> Tensor:
    """Return the Gym descriptor of ``torch_tensor``, without a copy.

    Raises:
        TypeError: not a torch tensor.
        ValueError: not contiguous, or neither float32 (values), int32 (indices) nor uint8 (images).
    """
    if not isinstance(torch_tensor, torch.Tensor):
        raise TypeError(f"gymtorch.unwrap_tensor: a torch.Tensor is needed, got {type(torch_tensor).__name__}")
    if torch_tensor.dtype not in _DTYPES:
        raise ValueError(
            f"gymtorch.unwrap_tensor: float32 values or int32 indices are needed, got {torch_tensor.dtype}; "
            "convert with .float() or .to(torch.int32)"
        )
    if not torch_tensor.is_contiguous():
        raise ValueError(
            f"gymtorch.unwrap_tensor: a contiguous tensor is needed, got strides {torch_tensor.stride()} for shape "
            f"{tuple(torch_tensor.shape)}; call .contiguous()"
        )
    return Tensor(torch_tensor)
