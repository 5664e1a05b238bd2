"""Who is faster, and by how much: contenders take turns in one process, so that a bad minute of the machine hits all.

A figure alone says little on a shared machine. What is reported is the median over rounds of the ratio between two
contenders in the same round, with the quartiles; beside it what the machine itself could do in those minutes.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
MIB = 1024 * 1024


@dataclass(frozen=True)
class Contender:
    """Someone who takes turns: `turn(round)` does the round's work and says how many tokens that were."""

    name: str
    turn: Callable[[int], int]


def contest(contenders: Sequence[Contender], rounds: int, warm: int = 1) -> dict[str, list[float]]:
    """Tokens per second of each contender in each round. Who goes first changes from round to round.

    `warm` rounds come first and are not counted: they fill caches and let the allocator settle.
    """
    found: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for number in range(warm + rounds):
        first = number % len(contenders)
        for contender in [*contenders[first:], *contenders[:first]]:
            begun = time.perf_counter()
            tokens = contender.turn(number)
            seconds = time.perf_counter() - begun
            if number >= warm:
                found[contender.name].append(tokens / seconds)
    return found


def ratios(found: dict[str, list[float]], base: str) -> dict[str, dict[str, float]]:
    """How many times as fast as `base` each contender is: median and quartiles over rounds.

    >>> ratios({"a": [1.0, 2.0, 4.0], "b": [2.0, 2.0, 2.0]}, "b")["a"]
    {'median': 1.0, 'low': 0.5, 'high': 2.0}
    """
    against = {
        name: [mine / other for mine, other in zip(speeds, found[base], strict=True)] for name, speeds in found.items()
    }
    return {name: spread(values) for name, values in against.items()}


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median and quartiles; of fewer than four values, the least and the greatest instead of quartiles.

    >>> spread([1.0, 2.0, 3.0, 4.0, 5.0])
    {'median': 3.0, 'low': 2.0, 'high': 4.0}
    """
    low, high = min(values), max(values)
    if len(values) >= 4:
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": statistics.median(values), "low": low, "high": high}


def ceilings() -> dict[str, float]:
    """What this machine can do just now: matmul in GFLOP/s, in float32 and bfloat16, and copies in GB/s read + written.

    Takes about a second.
    """
    size, found = 1024, {}
    for dtype in (torch.float32, torch.bfloat16):
        a, b = torch.randn(2, size, size).to(dtype)
        seconds = fastest(lambda a=a, b=b: a @ b)
        found[f"matmul_{str(dtype).removeprefix('torch.')}_gflops"] = round(2 * size**3 / seconds / 1e9, 1)
    source = torch.ones(64 * MIB // 4)
    target = torch.empty_like(source)
    seconds = fastest(lambda: target.copy_(source))
    return found | {"copy_gb_per_second": round(2 * source.nbytes / seconds / 1e9, 1)}


def fastest(work: Callable[[], object], times: int = 8) -> float:
    """The least of some measured times, in seconds: what is possible when nobody disturbs."""
    work()
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found)


def resident() -> tuple[float, float]:
    """(memory that this process holds now, the most that it ever held), in MiB.

    On Linux from /proc: there `getrusage` starts a new process with the peak of the one that started it. Elsewhere the
    peak is all that is known, and stands for both.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        known = dict(line.split(":", 1) for line in status.read_text("utf-8").splitlines())
        return int(known["VmRSS"].split()[0]) / 1024, int(known["VmHWM"].split()[0]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (MIB if sys.platform == "darwin" else 1024)
    return peak, peak


def apart(module: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Run `python -m module arguments` in a process of its own; the last line that it prints is JSON."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{module} {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def machine() -> dict[str, Any]:
    """What a figure needs beside it to mean something: processor, cores, threads, versions."""
    names = ("torch", "transformers")
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        **{name: installed(name) for name in names},
    }


def processor() -> str:
    """The processor's name as the system gives it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def installed(name: str) -> str | None:
    """The version of a package, None when it is absent."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def rows(found: dict[str, list[float]], base: str, memory: dict[str, dict[str, float]] | None = None) -> list[dict]:
    """One row per contender: median tokens per second, ratio to `base`, all rounds, and memory where measured."""
    times = ratios(found, base)
    return [
        {
            "name": name,
            "tokens_per_second": round(statistics.median(speeds), 1),
            "ratio": {key: round(value, 3) for key, value in times[name].items()},
            "rounds": [round(speed, 1) for speed in speeds],
            **(memory or {}).get(name, {}),
        }
        for name, speeds in found.items()
    ]


def report(result: dict[str, Any], path: str | None) -> None:
    """Print a result for people; with `path`, also write it as JSON ("-": print JSON only)."""
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    if path == "-":
        print(text, end="")
        return
    about = result["machine"]
    print(f"{about['processor']}, {about['threads']} of {about['cores']} cores, torch {about['torch']}", end="")
    print(f", transformers {about['transformers']}, python {about['python']}, load {about['load']}")
    for when, ceiling in result["ceilings"].items():
        print(f"ceilings {when}: " + ", ".join(f"{name} {value:g}" for name, value in ceiling.items()))
    for name, value in result["check"].items():
        print(f"check: {name} {value:.1e}" if isinstance(value, float) else f"check: {name} {value}")
    wide = max(len(row["name"]) for row in result["contenders"])
    print(
        f"{'':{wide}}  tokens/s   times {result['base']} (quartiles)"
        + ("   peak MiB (beyond model)" * result["memory"])
    )
    for row in result["contenders"]:
        ratio = row["ratio"]
        line = f"{row['name']:{wide}}  {row['tokens_per_second']:8.0f}   "
        line += f"{ratio['median']:.2f} ({ratio['low']:.2f}-{ratio['high']:.2f})"
        if "peak_mib" in row:
            line = f"{line:{wide + 50}} {row['peak_mib']:.0f} ({row['beyond_mib']:.0f})"
        print(line)
    if path is not None:
        write(Path(path), text)


def write(path: Path, text: str) -> None:
    """Write a file by one rename."""
    draft = path.with_name(path.name + ".tmp")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
