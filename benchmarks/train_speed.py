"""How fast is training, and how much memory does it take? `python -m benchmarks.train_speed --size tiny`.

Four contenders of equal size and with equal weights learn from the same batches, taking turns: our training step in
float32 and in bfloat16, `nn.Transformer` and transformers' Marian in the usual loop. First it is checked that all of
them compute the same logits and the same loss. Memory is measured in a process of its own for each.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from benchmarks import peers
from benchmarks.contest import ROOT, Contender, apart, ceilings, contest, machine, report, resident, rows
from torch import nn

from oneblock.text import Batches, Tokenizer, read_pairs
from oneblock.train.data import Batch, Row, collate
from oneblock.train.task import loss_sum

PAIRS = ROOT.parent / "shared" / "data" / "tatoeba-cmn-eng" / "cmn.txt"
SENTENCES = 6000
ROUNDS = {"small": 5, "tiny": 9, "base": 4}
TOLERANCE = 1e-4
OURS, HALF, TORCH, MARIAN = "oneblock", "oneblock bfloat16", "nn.Transformer", "Marian"


def parser() -> argparse.ArgumentParser:
    """What can be chosen."""
    found = argparse.ArgumentParser(prog="python -m benchmarks.train_speed", description=__doc__)
    found.add_argument("--size", choices=peers.SIZES, default="tiny")
    found.add_argument("--rounds", type=int, help="turns of each contender (default: 9 for tiny, 4 for base)")
    found.add_argument("--tokens", type=int, default=3000, help="padded source and target tokens of a batch")
    found.add_argument("--vocab", type=int, default=6000)
    found.add_argument("--pairs", type=Path, default=PAIRS, help="sentence pairs; absent: random tokens")
    found.add_argument("--threads", type=int, default=1)
    found.add_argument("--no-memory", action="store_true", help="leave out the processes that measure memory")
    found.add_argument("--json", metavar="FILE", help='also write the result as JSON; "-": print JSON only')
    found.add_argument("--alone", nargs=2, metavar=("NAME", "BATCHES"), help=argparse.SUPPRESS)
    return found


def sentence_pairs(path: Path, vocab: int) -> tuple[list[Row], int]:
    """(source ids, target ids) of some sentences, and the size of their vocabulary; random ones without a file."""
    rng = random.Random(0)
    if not path.is_file():
        lengths = [(rng.randint(3, 14), rng.randint(3, 14)) for _ in range(SENTENCES)]
        return [tuple([*rng.choices(range(3, vocab), k=n - 1), peers.EOS] for n in pair) for pair in lengths], vocab
    pairs = rng.sample(list(read_pairs(path)), SENTENCES)
    tokenizer = Tokenizer.train((side for pair in pairs for side in pair[:2]), vocab, languages=("en", "zh"))
    return [(tokenizer.encode(pair.source, to="zh"), tokenizer.encode(pair.target)) for pair in pairs], len(tokenizer)


def batches_of(found: Sequence[Row], tokens: int, count: int) -> list[list[Row]]:
    """`count` batches under a budget of padded tokens."""
    plan = Batches([(len(source), len(target)) for source, target in found], tokens, seed=1)
    return [[found[index] for index in plan(step)] for step in range(count)]


def alone(name: str, file: Path, size: peers.Size) -> dict[str, float]:
    """Memory of one contender: after the model is built, and the most while it trains on all batches, in MiB."""
    saved = json.loads(file.read_text("utf-8"))
    batches = [collate(batch, peers.TOKENS) for batch in saved["batches"]]
    make = {TORCH: peers.Torch, MARIAN: peers.marian}.get(name, peers.ours)
    step = stepping(name, make(size, saved["vocab"]).train())
    before, _ = resident()
    for batch in prepared(name, batches):
        step(batch)
    _, peak = resident()
    return {"peak_mib": round(peak, 1), "beyond_mib": round(peak - before, 1)}


def prepared(name: str, batches: Sequence[Batch]) -> list[Batch] | list[peers.Padded]:
    """The batches as that contender takes them."""
    return list(batches) if name in (OURS, HALF) else [peers.Padded.of(batch) for batch in batches]


def stepping(name: str, model: nn.Module) -> peers.Step:
    """How that contender trains."""
    if name in (OURS, HALF):
        return peers.our_step(model, torch.bfloat16 if name == HALF else torch.float32)
    return peers.plain_step(model, peers.torch_logits if name == TORCH else peers.marian_logits)


@torch.no_grad()
def check(models: dict[str, nn.Module], batch: Batch) -> dict[str, float]:
    """The largest difference between our logits and theirs, of real tokens, and between the losses. Raises if large."""
    mine = models[OURS].eval()
    padded = peers.Padded.of(batch)
    logits = mine(batch.source, batch.mask, decoder_input_ids=batch.inputs).logits
    loss = loss_sum(mine, batch, peers.SMOOTHING) / batch.tokens
    found = {}
    for name, theirs in ((TORCH, peers.torch_logits), (MARIAN, peers.marian_logits)):
        other = theirs(models[name].eval(), padded)
        found[f"logits of {name}"] = (other - logits)[padded.labels >= 0].abs().max().item()
        found[f"loss of {name}"] = (padded.loss(other) - loss).abs().item()
    if max(found.values()) > TOLERANCE:
        raise RuntimeError(f"the contenders do not compute the same: {found}")
    return found


def run(options: argparse.Namespace) -> dict[str, Any]:
    """The whole contest."""
    torch.manual_seed(0)
    size, count = peers.SIZES[options.size], (options.rounds or ROUNDS[options.size]) + 1
    pairs, vocab = sentence_pairs(options.pairs, options.vocab)
    plain = batches_of(pairs, options.tokens, count)
    batches = [collate(batch, peers.TOKENS) for batch in plain]
    theirs = peers.marian(size, vocab)
    mine = peers.as_ours(theirs, size)
    models = {OURS: mine, HALF: copy.deepcopy(mine), TORCH: peers.as_torch(theirs, size), MARIAN: theirs}
    checked = check(models, batches[0])
    steps = {name: stepping(name, model.train()) for name, model in models.items()}
    contenders = [
        Contender(name, lambda number, step=step, work=prepared(name, batches): step(work[number]))
        for name, step in steps.items()
    ]
    before = ceilings()
    found = contest(contenders, count - 1)
    after = ceilings()
    memory = {} if options.no_memory else memories(options, plain[:3], vocab)
    return {
        "benchmark": "train_speed",
        "machine": machine(),
        "size": {"name": options.size, **vars(size), "vocab": vocab, "parameters": parameters(mine)},
        "batches": {
            "from": options.pairs.name if options.pairs.is_file() else "random tokens",
            "padded_tokens": options.tokens,
            "target_tokens": [batch.tokens for batch in batches[1:]],
        },
        "ceilings": {"before": before, "after": after},
        "check": checked,
        "base": TORCH,
        "memory": bool(memory),
        "contenders": rows(found, TORCH, memory),
    }


def memories(options: argparse.Namespace, batches: list[list[Row]], vocab: int) -> dict[str, dict[str, float]]:
    """Each contender's memory, measured in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "batches.json"
        file.write_text(json.dumps({"vocab": vocab, "batches": batches}), encoding="utf-8")
        common = ["--size", options.size, "--threads", str(options.threads)]
        return {
            name: apart("benchmarks.train_speed", [*common, "--alone", name, str(file)])
            for name in (OURS, HALF, TORCH, MARIAN)
        }


def parameters(model: nn.Module) -> int:
    """How many numbers are trained; shared ones count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, print, write."""
    options = parser().parse_args(arguments)
    torch.set_num_threads(options.threads)
    if options.alone:
        name, file = options.alone
        json.dump(alone(name, Path(file), peers.SIZES[options.size]), sys.stdout)
        return
    report(run(options), options.json)


if __name__ == "__main__":
    main()
