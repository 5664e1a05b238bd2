"""A dtype and a device by their words, as every function that loads a model takes them."""

from __future__ import annotations

import torch

from oneblock.hint import first_line, nearest

Dtype = str | torch.dtype | None
Device = str | torch.device
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "auto": None}
"""Word -> dtype of floating tensors; None keeps what is stored."""


def dtype_of(given: Dtype) -> torch.dtype | None:
    """The dtype that is meant. ValueError: no such word, or no dtype of floating-point numbers.

    >>> dtype_of("bfloat16"), dtype_of("auto"), dtype_of(torch.float64)
    (torch.bfloat16, None, torch.float64)
    """
    if given is None or (isinstance(given, torch.dtype) and given.is_floating_point):
        return given
    if not isinstance(given, str) or given not in DTYPES:
        raise ValueError(f"dtype: no type {given!r} of weights; {nearest(given, DTYPES)}")
    return DTYPES[given]


def device_of(given: Device) -> torch.device:
    """The device that is meant; "auto" is a GPU where there is one. ValueError: a word for none that can hold a tensor.

    >>> device_of("cpu")
    device(type='cpu')
    """
    if isinstance(given, torch.device):
        return given
    try:
        device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if given == "auto" else given)
        torch.empty(1, device=device).cpu()
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        said = first_line(error)
        raise ValueError(f"device: {given!r} cannot be used here ({said}); try auto or cpu") from None
    return device


__all__ = ["DTYPES", "Device", "Dtype", "device_of", "dtype_of"]
