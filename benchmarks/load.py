"""How long does loading take, and how much memory does it hold? `python -m benchmarks.load --model llama`.

A model folder with random weights is made once, in a temporary place. Each turn is a process of its own, in which
everything is imported first: our `load`, and the other library's `from_pretrained`, each followed by one forward pass.
Then every number is read, so that no page of the files is left on the disk. Memory is what the process then holds
beyond what it held before.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from benchmarks.contest import MIB, apart, machine, resident, spread, write

import oneblock

SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("gpt2", {}),
    "llama": (
        "llama", {"dim": 768, "depth": 12, "heads": 12, "hidden": 2048, "vocab": 50_257, "length": 1024},
    ),
}  # fmt: skip
"""Shapes of 124 and of 162 million parameters: 498 and 649 MB in float32."""
OURS, THEIRS = "oneblock", "transformers"
MOST = 1.2
"""How many times its weights a loaded model may hold."""
IDS = [[5, 6, 7, 8, 9, 10, 11, 12]]


def parser() -> argparse.ArgumentParser:
    """What can be chosen."""
    found = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    found.add_argument("--model", choices=SHAPES, default="gpt2", help="the shape; small runs: see --depth")
    found.add_argument("--depth", type=int, help="layers, instead of the shape's own")
    found.add_argument("--rounds", type=int, default=5)
    found.add_argument("--threads", type=int, default=1)
    found.add_argument("--json", metavar="FILE", help='also write the result as JSON; "-": print JSON only')
    found.add_argument("--alone", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)
    return found


def alone(name: str, folder: str) -> dict[str, float]:
    """One contender: seconds to load and for the first pass, MiB held then and at most, beyond those held before."""
    load = opener(name)
    before, _ = resident()
    begun = time.perf_counter()
    model = load(folder)
    loaded = time.perf_counter()
    with torch.no_grad():
        logits = model(torch.tensor(IDS)).logits
    passed = time.perf_counter()
    for parameter in model.parameters():  # rows of the embedding that no token asked for were not read yet
        parameter.detach().sum()
    held, peak = resident()
    return {
        "load_s": loaded - begun,
        "first_s": passed - begun,
        "held_mib": held - before,
        "peak_mib": peak - before,
        "check": logits.double().abs().mean().item(),
    }


def opener(name: str) -> Any:
    """What opens a folder, everything that it needs imported."""
    if name == OURS:
        oneblock.build(oneblock.named("gpt2", dim=8, depth=1, heads=2, hidden=8, vocab=8, length=8))
        return oneblock.load
    from transformers import GPT2LMHeadModel, LlamaForCausalLM

    kinds = {"gpt2": GPT2LMHeadModel, "llama": LlamaForCausalLM}

    def load(folder: str) -> Any:
        kind = json.loads((Path(folder) / "config.json").read_text("utf-8"))["model_type"]
        return kinds[kind].from_pretrained(folder, dtype=torch.float32).eval()

    return load


def run(options: argparse.Namespace) -> dict[str, Any]:
    """All turns, one after the other, another contender first in each round; the first round does not count."""
    family, sizes = SHAPES[options.model]
    sizes = sizes | ({} if options.depth is None else {"depth": options.depth})
    with TemporaryDirectory() as folder:
        torch.manual_seed(0)
        model = oneblock.build(oneblock.named(family, **sizes))
        oneblock.save(model, folder, format="hf")
        size, count = (Path(folder) / "model.safetensors").stat().st_size, oneblock.parameters(model.spec)
        del model
        turns: dict[str, list[dict[str, float]]] = {OURS: [], THEIRS: []}
        for number in range(options.rounds + 1):
            for name in sorted(turns, reverse=bool(number % 2)):
                arguments = ["--threads", str(options.threads), "--alone", name, folder]
                found = apart("benchmarks.load", arguments)
                turns[name] += [found] if number else []
    checks = [turn.pop("check") for found in turns.values() for turn in found]
    if max(checks) - min(checks) > 1e-4 * max(checks):
        raise RuntimeError(f"the contenders do not compute the same: {checks}")
    table = {
        name: {key: spread([turn[key] for turn in found]) for key in found[0]} | {"turns": found}
        for name, found in turns.items()
    }
    return {
        "benchmark": "load",
        "machine": machine(),
        "model": {"shape": options.model, **sizes, "parameters": count, "mib": size / MIB},
        "times_model": {name: round(found["held_mib"]["median"] * MIB / size, 3) for name, found in table.items()},
        "peak_times_model": {name: round(found["peak_mib"]["median"] * MIB / size, 3) for name, found in table.items()},
        "contenders": table,
    }


def report(result: dict[str, Any], path: str | None) -> None:
    """Print a result for people; with `path`, also write it as JSON ("-": print JSON only)."""
    text = json.dumps(result, indent=1) + "\n"
    if path == "-":
        print(text, end="")
        return
    about, model = result["machine"], result["model"]
    print(f"{about['processor']}, {about['threads']} of {about['cores']} cores, torch {about['torch']}", end="")
    print(f", transformers {about['transformers']}, python {about['python']}, load {about['load']}")
    print(f"{model['shape']}: {model['parameters']:,} parameters, {model['mib']:.0f} MiB")
    print(f"{'':12}  load s             with a first pass s  MiB held (times model)  MiB at most (times model)")
    for name, found in result["contenders"].items():
        load, first = (said(found[key]) for key in ("load_s", "first_s"))
        held, peak = found["held_mib"]["median"], found["peak_mib"]["median"]
        print(
            f"{name:12}  {load:18} {first:20} {held:5.0f} ({result['times_model'][name]:.2f})"
            f"            {peak:5.0f} ({result['peak_times_model'][name]:.2f})"
        )
    kept = result["times_model"][OURS] <= MOST and result["peak_times_model"][OURS] <= MOST
    print(f"at most {MOST} times the model, at any time: {'yes' if kept else 'NO'}")
    if path is not None:
        write(Path(path), text)


def said(figure: dict[str, float]) -> str:
    """A median with its quartiles."""
    return f"{figure['median']:.2f} ({figure['low']:.2f}-{figure['high']:.2f})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, print, write."""
    options = parser().parse_args(arguments)
    torch.set_num_threads(options.threads)
    if options.alone:
        json.dump(alone(*options.alone), sys.stdout)
        return
    report(run(options), options.json)


if __name__ == "__main__":
    main()
