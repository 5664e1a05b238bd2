"""FLOPs of a forward pass: our closed formulas beside three counters that people install, and beside what runs.

    python -m benchmarks.flops [--json FILE]

"Counted" is torch's own counter on meta tensors, where attention is written out in products that it sees. The others
(torchinfo, calflops, fvcore) run the very same module on a CPU; who is not installed is skipped with a line. One that
counts multiply-adds is doubled, so that all columns are in the same unit.
"""

from __future__ import annotations

import argparse
import json
import logging
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import oneblock
from oneblock.explain.counted import flops, forward, on_meta
from oneblock.files import write_file

CASES: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("gpt2", {}, 128),
    ("gpt2", {}, 1024),
    ("bert", {}, 128),
    ("bert", {}, 512),
    ("llama", {"dim": 512, "depth": 4, "heads": 8, "kv_heads": 2, "hidden": 1376, "vocab": 8000}, 512),
    ("mixtral", {"dim": 512, "depth": 2, "heads": 8, "kv_heads": 2, "hidden": 1024, "vocab": 8000}, 256),
)
"""(family, arguments, tokens)."""


class Logits(nn.Module):
    """A model as counters want it: one tensor in, one tensor out; its answer of many parts stays unseen by hooks."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        logits: Tensor = self.model.forward(ids).logits
        return logits


def torchinfo(model: nn.Module, ids: Tensor) -> float:
    """Multiply-adds that torchinfo reports, doubled."""
    return 2.0 * import_module("torchinfo").summary(model, input_data=ids, verbose=0).total_mult_adds


def calflops(model: nn.Module, ids: Tensor) -> float:
    """FLOPs that calflops reports."""
    count = import_module("calflops").calculate_flops
    found, _, _ = count(model, args=[ids], print_results=False, output_as_string=False)
    return float(found)


def fvcore(model: nn.Module, ids: Tensor) -> float:
    """Multiply-adds that fvcore reports as FLOPs, doubled."""
    logging.getLogger("fvcore").setLevel(logging.ERROR)
    return 2.0 * import_module("fvcore.nn").FlopCountAnalysis(model, ids).unsupported_ops_warnings(False).total()


PEERS: dict[str, Callable[[nn.Module, Tensor], float]] = {
    "torchinfo": torchinfo,
    "calflops": calflops,
    "fvcore": fvcore,
}


@dataclass(frozen=True)
class Row:
    """One model: our formula, torch's count, and what others say (None: not installed, or it failed)."""

    model: str
    tokens: int
    formula: int
    counted: int
    others: dict[str, float | None]
    failed: dict[str, str]


def row(name: str, arguments: dict[str, Any], tokens: int, peers: list[str]) -> Row:
    """Count one model in every way."""
    spec = oneblock.named(name, **arguments)
    found = oneblock.cost(spec, length=tokens, dtype="bfloat16")
    with torch.no_grad():
        truth = flops(forward(on_meta(spec).eval(), found.job))[""]
        model = Logits(oneblock.build(spec)).eval()
        ids = torch.randint(0, 100, (1, tokens))
        others, failed = dict[str, float | None](), dict[str, str]()
        for peer in peers:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    others[peer] = PEERS[peer](model, ids)
            except Exception as error:  # whatever another library raises is its answer
                others[peer], failed[peer] = None, f"{type(error).__name__}: {error}".splitlines()[0][:100]
    return Row(name, tokens, found.forward, truth, others, failed)


def installed(peer: str) -> bool:
    """Whether a peer is there; says so in a line if not."""
    try:
        print(f"{peer} {version(peer)}")
    except PackageNotFoundError:
        print(f"{peer}: not installed, skipped")
        return False
    return True


def said(one: Row) -> str:
    """A row as text: counts, and each other's share of what runs."""
    shares = [
        f"{name} failed" if value is None else f"{name} {value / one.counted:.3f}" for name, value in one.others.items()
    ]
    exact = "=" if one.formula == one.counted else "≠"
    return f"{one.model:<8} {one.tokens:>5}  {one.formula:>16,} {exact} {one.counted:>16,}  {'  '.join(shares)}"


def main() -> None:
    """Print a table; with --json, keep it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    peers = [peer for peer in PEERS if installed(peer)]
    print("model   tokens           formula            counted  others: share of what is counted")
    rows = []
    for name, arguments, tokens in CASES:
        rows.append(row(name, arguments, tokens, peers))
        print(said(rows[-1]), *(f"    {peer}: {why}" for peer, why in rows[-1].failed.items()), sep="\n", flush=True)
    if chosen.json:
        kept = {"torch": torch.__version__, "peers": {peer: version(peer) for peer in peers}}
        write_file(chosen.json, json.dumps(kept | {"rows": [asdict(one) for one in rows]}, indent=2).encode())


if __name__ == "__main__":
    main()
