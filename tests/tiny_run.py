"""A run of a few seconds: a made-up corpus, a tiny model; `python tiny_run.py FOLDER OUT [resume]` trains it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from oneblock.train import Result, Run, train

ENGLISH = {"cat": "猫", "dog": "狗", "bird": "鸟", "child": "孩子", "teacher": "老师", "doctor": "医生"}
VERBS = {"sees": "看见", "likes": "喜欢", "knows": "认识", "hears": "听见"}
RUN = """
seed = 3
[model]
name = "vaswani"
dim = 16
depth = 1
heads = 2
hidden = 32
dropout = 0.1
[data]
pairs = "pairs.tsv"
valid = 12
[tokenizer]
vocab = 330
dropout = 0.1
[batch]
tokens = 250
[optimizer]
lr = 0.01
warmup = 5
schedule = "linear"
[training]
steps = 24
log_every = 5
evaluate_every = 8
save_every = 6
keep = 2
average = 2
sample = 4
"""


def lay(folder: Path) -> Path:
    """Write corpus and run file into a folder; returns the run file."""
    lines = [
        f"The {a} {verb} the {b}.\t{x}{sees}{y}。\n"
        for a, x in ENGLISH.items()
        for verb, sees in VERBS.items()
        for b, y in ENGLISH.items()
        if a != b
    ]
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    (folder / "run.toml").write_text(RUN, encoding="utf-8")
    return folder / "run.toml"


def go(folder: Path, out: str = "out", *, resume: bool = False, **changes: Any) -> Result:
    """Train it, quietly; `changes` are keys of the run file, a__b for a.b."""
    overrides = [(key.replace("__", "."), str(value)) for key, value in changes.items()]
    return train(Run.load(lay(folder), overrides), folder / out, resume=resume, progress=False, dtype="float32")


if __name__ == "__main__":
    train(Run.load(Path(sys.argv[1]) / "run.toml"), sys.argv[2], resume="resume" in sys.argv, progress=False, threads=1)
