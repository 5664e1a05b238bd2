"""Whether a checkpoint belongs to this run: what both must have in common, and in words what they have not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from oneblock.spec import Change, Seq2Seq, diff, to_dict
from oneblock.spec.read import read
from oneblock.text import Pair, Tokenizer
from oneblock.train.config import Run
from oneblock.train.data import Example, corpus_hash

__all__ = ["check", "identify"]

KEYS = {"seed": "seed", "batch": "[batch]", "bpe dropout": "tokenizer.dropout"}
"""What a mark is called -> the key of the run file it comes from."""
SHOWN = 3
"""Differences of two specs that are named; the rest is counted."""


def identify(
    run: Run, spec: Seq2Seq, tokenizer: Tokenizer, found: Iterable[Example], held_out: Iterable[Pair]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Marks that must be equal for a checkpoint to be resumed, and a hash of each thing that "corpus" is made of."""
    found, held_out, pieces = list(found), list(held_out), tokenizer.to_json().encode()
    marks = {
        "spec": hashlib.sha256(json.dumps(to_dict(spec), sort_keys=True).encode()).hexdigest(),
        "corpus": corpus_hash(found, held_out, pieces),
        "seed": run.seed,
        "batch": f"{run.batch.tokens} tokens, accumulate {run.batch.accumulate}, longest {run.batch.longest}",
        "bpe dropout": run.tokenizer.dropout,
    }
    parts = {
        "training pairs": corpus_hash(found, [], b""),
        "validation pairs": corpus_hash([], held_out, b""),
        "tokenizer.json": hashlib.sha256(pieces).hexdigest(),
    }
    return marks, parts


def check(
    path: Path, saved: Mapping[str, Any], marks: Mapping[str, Any], parts: Mapping[str, str], spec: Seq2Seq, run: Run
) -> None:
    """ValueError that says in words what is not as it was in the checkpoint at `path`, whose state is `saved`."""
    then = saved["identity"]
    for name, now in marks.items():
        if then.get(name) == now:
            continue
        if name == "spec":
            # Hashes of equal specs differ where a newer version knows a field that the older one had not.
            if not (changes := diff(read(path / "spec.json"), spec)):
                continue
            what = f"another model: {_changes(changes)}"
        elif name == "corpus":
            what = f"another corpus: {_parts(saved.get('parts', {}), parts, run)}"
        else:
            what = f"another {name}: {KEYS[name]} was {then.get(name)}, is {now}"
        remedy = "resume with the run file it was started with, or start a new run in another --out"
        raise ValueError(f"{path}: made with {what}; {remedy}")


def _changes(changes: Sequence[Change]) -> str:
    said = [f"{change.path} was {_short(change.before)}, is {_short(change.after)}" for change in changes[:SHOWN]]
    return "; ".join(said) + (f"; and {len(changes) - SHOWN} more" if len(changes) > SHOWN else "")


def _parts(then: Mapping[str, str], now: Mapping[str, str], run: Run) -> str:
    """Which of the things that a corpus is made of have changed, with the file each comes from."""
    files = {
        "training pairs": run.data.files(),
        "validation pairs": run.data.files("valid_") or run.data.files(),
        "tokenizer.json": None,
    }
    changed = [name for name in now if then.get(name) != now[name]] if then else list(now)
    named = [f"{name} ({_named(files[name])})" if files[name] else name for name in changed]
    return f"{' and '.join(named)} {'changed' if then else 'may have changed'}"


def _named(files: Any) -> str:
    return files if isinstance(files, str) else " and ".join(files)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:39] + "…"
