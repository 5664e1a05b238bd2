"""Planted faults: how many `oneblock check` finds and places, how often it cries wolf, beside two other tools.

    python -m benchmarks.checks [--seeds 20] [--json FILE]

Every model of the corpus (tests/check_corpus) holds one fault that its host lacks. The other tools are given the inputs
that we found out, as their documentation asks; a fault counts as found where one of their tests fails on the faulty
model that passes on its host. Who is not installed is skipped with a line:
`pip install pytest-torch==1.1.1 torchtest2==0.1.0`.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from check_corpus.hosts import HOSTS
from check_corpus.mutants import MUTANTS
from check_corpus.plant import Mutant, seeded
from oneblock.check import check
from oneblock.check.calling.convention import Convention
from oneblock.check.calling.find import found
from oneblock.check.subject import Subject
from oneblock.files import write_file

Tool = Callable[[nn.Module, dict[str, Any]], set[str]]
"""(module, arguments of a call) -> names of the tests that fail."""


def arguments(module: nn.Module, kind: Any = None) -> dict[str, Any]:
    """A call of a module, as we found out that it is called: with masks and labels where it takes them."""
    adapter = found(module, kind)
    subject = Subject(module, adapter)
    ask = subject.ask()
    real = torch.ones(ask.tokens.shape[:2], dtype=torch.bool)
    ask = ask.but(real=real) if "real" in adapter.takes else ask
    ask = ask.but(labels=ask.tokens) if "labels" in adapter.takes and adapter.vocab else ask
    way = getattr(adapter.call, "__self__", None)
    return way.arguments(ask, None, False) if isinstance(way, Convention) else {}


def pytest_torch(module: nn.Module, inputs: dict[str, Any]) -> set[str]:
    """The inference contract, invariances, a round trip and finite gradients of pytest-torch."""
    tool = import_module("pytest_torch")
    plain = {name: x for name, x in inputs.items() if name not in ("labels", "targets", "use_cache")}
    asked: dict[str, Callable[[nn.Module], Any]] = {
        "contract": lambda twin: tool.check_inference_contract(twin, inputs).raise_if_failed(),
        "layout": lambda twin: tool.assert_layout_invariant(twin, inputs),
        "gradients": lambda twin: tool.assert_gradients_finite(twin, inputs, lambda *found: squares(found)),
        "checkpoint": lambda twin: tool.assert_checkpoint_roundtrip(lambda: copy.deepcopy(twin), inputs, model=twin),
    }
    ids, mask = "input_ids", "attention_mask"
    if ids in plain and mask in plain and set(plain) == {ids, mask}:
        hidden = plain[mask].clone()
        hidden[:, -2:] = 0
        asked["padding"] = lambda twin: tool.assert_padding_invariant(twin, plain)
        asked["mask"] = lambda twin: tool.assert_mask_invariant(twin, plain | {mask: hidden})
    failed = set()
    for name, ask in asked.items():
        try:
            ask(copy.deepcopy(module).eval())
        except Exception:
            failed.add(name)
    return failed


def squares(found: Any) -> torch.Tensor:
    """The mean square of all that a module answers with."""
    flat = [
        x for x in tree_flatten(found)[0] if isinstance(x, torch.Tensor) and x.is_floating_point() and x.requires_grad
    ]
    return torch.stack([x.square().mean() for x in flat]).sum()


def torchtest2(module: nn.Module, inputs: dict[str, Any]) -> set[str]:
    """All applicable checks of torchtest2."""
    report = import_module("torchtest2").check_model(copy.deepcopy(module), inputs, overfit_steps=50)
    return {one.name for one in report.results if str(one.status).lower().endswith("fail")}


TOOLS: dict[str, Tool] = {"pytest-torch": pytest_torch, "torchtest2": torchtest2}


def installed() -> dict[str, str]:
    """Tool -> version, of those that are there."""
    versions = {}
    for name in TOOLS:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            print(f"{name}: not installed, its column is left out", file=sys.stderr)
    return versions


def failures(tool: str, make: Callable[[], nn.Module], kind: Any) -> set[str]:
    """The tests of a tool that fail on a model; "error" where the tool itself fails."""
    module = seeded(make)
    try:
        return TOOLS[tool](module, arguments(module, kind))
    except Exception as error:
        return {f"error: {type(error).__name__}"}


def judged(mutant: Mutant, tools: list[str]) -> dict[str, Any]:
    """What everyone says of one planted fault."""
    began = time.perf_counter()
    report = check(seeded(mutant.make), **mutant.options)
    right = [fault for fault in report.faults if fault.name == mutant.fault]
    places = (mutant.module,) if isinstance(mutant.module, str) else mutant.module
    row: dict[str, Any] = {
        "check": mutant.check,
        "host": mutant.host,
        "name": mutant.name,
        "found": bool(right),
        "placed": bool(right) and (places is None or right[0].where.module in places),
        "seconds": round(time.perf_counter() - began, 2),
    }
    kind = mutant.options.get("kind")
    for tool in tools:
        row[tool] = bool(failures(tool, mutant.make, kind) - failures(tool, HOSTS[mutant.host].make, kind))
    return row


def alarms(seeds: int) -> Iterator[tuple[str, int, list[str]]]:
    """(host, seed, faults that are not true of it)."""
    for name, host in HOSTS.items():
        for seed in range(seeds):
            report = check(seeded(host.make, seed), seed=seed, **dict(host.options))
            said = {(fault.name, fault.where.module) for fault in report.faults}
            yield name, seed, sorted(f"{fault} at {module or '.'}" for fault, module in said - host.true)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="seeds per host, in the count of false alarms")
    parser.add_argument("--json", type=Path, help="write rows here")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    versions = installed()
    rows = []
    for number, mutant in enumerate(MUTANTS):
        print(f"\r{number + 1} of {len(MUTANTS)}  {mutant.host}: {mutant.name:60.60}", end="", file=sys.stderr)
        rows.append(judged(mutant, list(versions)))
    print(file=sys.stderr)
    columns = ["found", "placed", *versions]
    print("| check | faults | " + " | ".join(columns) + " |")
    print("|---|---|" + "---|" * len(columns))
    for name in [*dict.fromkeys(row["check"] for row in rows), ""]:
        some = [row for row in rows if name in ("", row["check"])]
        print(
            f"| {name or 'all'} | {len(some)} | "
            + " | ".join(str(sum(row[one] for row in some)) for one in columns)
            + " |"
        )
    wrong = []
    for host, seed, said in alarms(chosen.seeds):
        print(f"\r{host} {seed:3}   ", end="", file=sys.stderr)
        wrong += [{"host": host, "seed": seed, "said": said}] * bool(said)
    print(file=sys.stderr)
    runs = len(HOSTS) * chosen.seeds
    print(f"\nfalse alarms: {len(wrong)} of {runs} runs over {len(HOSTS)} hosts and {chosen.seeds} seeds")
    for one in wrong:
        print(f"  {one['host']}, seed {one['seed']}: {'; '.join(one['said'])}")
    if versions:
        for tool in versions:
            said = {name: failures(tool, host.make, None) for name, host in HOSTS.items()}
            print(f"{tool} {versions[tool]}: something fails on {sum(map(bool, said.values()))} of {len(HOSTS)} hosts")
    if chosen.json:
        whole = {"rows": rows, "alarms": wrong, "versions": versions | {"torch": torch.__version__}}
        write_file(chosen.json, json.dumps(whole, indent=1).encode())


if __name__ == "__main__":
    main()
