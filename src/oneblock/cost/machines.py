"""Machines by name: the rate of their matrix products, of their memory, how much of it there is, and who says so."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oneblock.files import read_json
from oneblock.hint import nearest

HERE = "here"
"""The name of the machine that `oneblock probe` measured."""


@dataclass(frozen=True)
class Machine:
    """`rates`: FLOP/s of matrix products by type of number; `bandwidth`: bytes/s of memory; `memory`: bytes.

    Published rates are peaks of dense products that no program reaches; probed ones were reached.
    """

    name: str
    rates: Mapping[str, float]
    bandwidth: float
    memory: float
    source: str

    def rate(self, dtype: str) -> float:
        """FLOP/s in numbers of a type; ValueError where nothing is said of it."""
        if dtype not in self.rates:
            raise ValueError(f"machine {self.name}: no rate in {dtype}; expected {' or '.join(sorted(self.rates))}")
        return self.rates[dtype]


def _known(name: str, float32: float, half: float, bandwidth: float, memory: float, source: str) -> Machine:
    rates = {"float32": float32 * 1e12, "bfloat16": half * 1e12, "float16": half * 1e12}
    return Machine(name, rates, bandwidth * 1e9, memory * 1e9, source)


MACHINES = {
    machine.name: machine
    for machine in (
        _known("nvidia-a100", 19.5, 312, 2039, 80, "NVIDIA A100 datasheet, SXM 80 GB; float32 without TF32"),
        _known("nvidia-h100", 67, 989.4, 3350, 80, "NVIDIA H100 datasheet, SXM, without sparsity"),
        _known("nvidia-h200", 67, 989.4, 4800, 141, "NVIDIA H200 datasheet, SXM, without sparsity"),
        _known("nvidia-l4", 30.3, 121, 300, 24, "NVIDIA L4 datasheet, without sparsity"),
        _known("nvidia-rtx-4090", 82.6, 165.2, 1008, 24, "NVIDIA Ada architecture paper, float32 accumulation"),
        _known("amd-mi300x", 163.4, 1307.4, 5300, 192, "AMD Instinct MI300X datasheet, without sparsity"),
        _known("apple-m2", 3.6, 3.6, 100, 24, "Apple newsroom, June 2022: GPU of 10 cores"),
        _known("cpu-2-cores", 0.25, 1.07, 18.5, 16, "measured: two virtual cores with AVX-512 and AMX, torch 2.13"),
    )
}
"""The machines that we know by name."""


def place(environ: Mapping[str, str] | None = None) -> Path:
    """Where `oneblock probe` keeps what it found: in the user's cache folder.

    >>> place({"XDG_CACHE_HOME": "/tmp/caches"}).as_posix()
    '/tmp/caches/oneblock/machine.json'
    """
    environ = os.environ if environ is None else environ
    folder = environ.get("XDG_CACHE_HOME") or environ.get("LOCALAPPDATA")
    return (Path(folder) if folder else Path.home() / ".cache") / "oneblock" / "machine.json"


def machine(name: str | None = None) -> Machine:
    """The machine of that name; without one, the one that was probed, or a small CPU.

    Raises ValueError for a name that is not known, and for "here" where nothing was probed.

    >>> machine("nvidia-h100").bandwidth
    3350000000000.0
    >>> machine("nvidia-h10")
    Traceback (most recent call last):
    ValueError: machine: no machine 'nvidia-h10'; did you mean nvidia-h100?
    """
    path = place()
    if name == HERE or (name is None and path.is_file()):
        if not path.is_file():
            raise ValueError(
                f"machine: nothing is known of this one ({path} is not there); `oneblock probe` measures it"
            )
        return read(path)
    name = name or "cpu-2-cores"
    if name not in MACHINES:
        raise ValueError(f"machine: no machine {name!r}; {nearest(name, [*MACHINES, HERE])}")
    return MACHINES[name]


def read(path: Path) -> Machine:
    """A machine out of the file that a probe wrote. ValueError, one line, for a file that holds something else."""
    saved: Any = read_json(path)
    fields = {"name": str, "rates": dict, "bandwidth": float | int, "memory": float | int, "source": str}
    right = isinstance(saved, dict) and all(isinstance(saved.get(key), kind) for key, kind in fields.items())
    rates = list(saved["rates"].values()) if right else []
    if not rates or not all(isinstance(rate, float | int) and rate > 0 for rate in [*rates, saved["bandwidth"]]):
        raise ValueError(f"{path}: expected what `oneblock probe` writes; run it again")
    return Machine(**{key: saved[key] for key in fields})
