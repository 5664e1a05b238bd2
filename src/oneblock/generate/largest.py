"""The k largest numbers of each row, where equal numbers are taken in the order in which they stand.

`torch.topk` leaves open which of several equal numbers it returns, so a search built on it may change with the batch
or the device. Here each number and its place become one whole number, so nothing is ever equal; and of a long row only
the blocks with the largest maxima are looked at, which is faster than `topk` on a whole vocabulary.

Shapes: values (rows, width) float32; results (rows, k).
"""

import torch
from torch import Tensor

__all__ = ["largest"]

BLOCK = 64  # numbers per block: a power of two keeps the maximum of a block in vector registers
LOW = 2**31 - 1


def largest(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The `k` largest of each row and their places, largest first, the earlier place first among equal numbers.

    `values` is (rows, width) float32 and `k` at most the width; both results are (rows, k).

    >>> largest(torch.tensor([[1.0, 3.0, 3.0, 2.0]]), 3)
    (tensor([[3., 3., 2.]]), tensor([[1, 2, 3]]))
    """
    width = values.shape[1]
    blocks = width // BLOCK
    if blocks <= 2 * k:
        chosen = _first(values, torch.arange(width, device=values.device), k)
        return values.gather(1, chosen), chosen
    # The k largest lie in the k blocks with the largest maxima: any other block has k numbers before each of its own.
    maxima = values[:, : blocks * BLOCK].reshape(-1, blocks, BLOCK).amax(-1)  # (rows, blocks)
    best = _first(maxima, torch.arange(blocks, device=values.device), k)
    places = (best[:, :, None] * BLOCK + torch.arange(BLOCK, device=values.device)).flatten(1)  # (rows, k * BLOCK)
    tail = torch.arange(blocks * BLOCK, width, device=values.device).expand(len(values), -1)
    places = torch.cat([places, tail], 1)
    chosen = _first(values.gather(1, places), places, k)
    return values.gather(1, chosen), chosen


def _first(values: Tensor, places: Tensor, k: int) -> Tensor:
    """The places of the k largest, from whole numbers that sort by value first and then by earlier place."""
    bits = values.contiguous().view(torch.int32)
    ordered = bits ^ ((bits >> 31) & LOW)  # float32 bits as an integer of the same order
    keys = (ordered.long() << 32) | (LOW - places)
    return LOW - (keys.topk(k, -1)[0] & LOW)
