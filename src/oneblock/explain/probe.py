"""What this machine can do: the rate of its matrix products in each type of number, and of its memory."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch

from oneblock.cost.machines import HERE, Machine, place
from oneblock.files import write_file

SIDES = (256, 512, 1024, 2048, 4096, 8192)
"""Rows of the matrices that are multiplied: the largest whose product takes an eighth of the time that there is."""
COPIED = {"cpu": 256 << 20}
"""Bytes that are copied, more than any cache holds; 1 GiB on an accelerator."""
DTYPES = ("float32", "bfloat16", "float16")


def probe(seconds: float = 5.0, device: str | None = None, keep: bool = True) -> Machine:
    """Measure this machine: products of square matrices in three types of number, and copies, the fastest of many.

    Args:
        seconds: how long it may take, about.
        device: "cpu", "cuda", "mps"; by default an accelerator if there is one.
        keep: write what was found into the user's cache folder, where `oneblock cost --machine here` reads it.

    Returns:
        A machine called "here": FLOP/s by type, bytes/s read and written, bytes of memory, and how that was found.

    >>> probe(0.1, "cpu", keep=False).rates["float32"] > 1e8
    True
    """
    device = device or accelerator()
    share = seconds / (len(DTYPES) + 1)
    rates = {dtype: product(dtype, device, share) for dtype in DTYPES}
    chip = torch.cuda.get_device_name() if device.startswith("cuda") else platform.processor() or platform.machine()
    source = f"probed {time.strftime('%Y-%m-%d')}: {device} {chip}, {torch.get_num_threads()} threads, "
    found = Machine(HERE, rates, copy(device, share), memory(device), f"{source}torch {torch.__version__}")
    if keep:
        write(found)
    return found


def write(found: Machine, path: Path | None = None) -> Path:
    """Keep what was found, in one step; OSError in one line where that cannot be."""
    path = place() if path is None else path
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, (json.dumps(asdict(found), indent=2) + "\n").encode())
    return path


def accelerator() -> str:
    """The device that models would run on here."""
    return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"


def product(dtype: str, device: str, seconds: float) -> float:
    """FLOP/s of the product of two square matrices."""
    best = 0.0
    for side in SIDES:
        a, b = torch.randn(2, side, side, device=device).to(getattr(torch, dtype))
        out = torch.empty_like(a)
        work = partial(torch.mm, a, b, out=out)
        best = max(best, 2 * side**3 / fastest(work, device, 0.0))
        if 8 * 2 * (2 * side) ** 3 / best > seconds:
            break
    return max(best, 2 * side**3 / fastest(work, device, seconds / 2))


def copy(device: str, seconds: float) -> float:
    """Bytes/s of a copy, read and written."""
    source = torch.ones(COPIED.get(device, 1 << 30), dtype=torch.uint8, device=device)
    target = torch.zeros_like(source)
    return 2 * source.nbytes / fastest(lambda: target.copy_(source), device, seconds)


def memory(device: str) -> float:
    """Bytes of memory that there are."""
    if device.startswith("cuda"):
        return float(torch.cuda.get_device_properties(device).total_memory)
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return 0.0


def fastest(work: Callable[[], object], device: str, seconds: float) -> float:
    """The least of the durations that fit into some seconds, after one that is not counted; at least one counts."""
    wait = torch.cuda.synchronize if device.startswith("cuda") else torch.mps.synchronize if device == "mps" else int
    work()
    wait()
    least, end = float("inf"), time.perf_counter() + seconds
    while least == float("inf") or time.perf_counter() < end:
        begun = time.perf_counter()
        work()
        wait()
        least = min(least, time.perf_counter() - begun)
    return least
