"""`oneblock train`: a run file in, a run folder out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import oneblock

EXAMPLE = "oneblock train recipes/tatoeba.toml --set training.steps=2000 --out runs/first"


def run(
    run_file: Annotated[Path, typer.Argument(metavar="RUN.toml", help="What to train, on what, for how long.")],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="a.b=c",
            help="Change one value of the run file; repeatable. Paths count from the run file's folder.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The run folder; by default runs/ and the run file's name.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the newest whole checkpoint in --out.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    dtype: Annotated[str, typer.Option(help="Of matrix products: auto, float32, bfloat16.")] = "auto",
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; by default torch's choice.")] = None,
    seed: Annotated[int | None, typer.Option(help="Instead of the run file's seed.")] = None,
) -> None:
    """Train a translation model. Ctrl-C saves and stops; --resume goes on, bit for bit as if nothing had been.

    The run folder holds spec.json, run.toml, tokenizer.json, model.safetensors, metrics.jsonl, env.json, curve.svg and
    checkpoints/. `oneblock translate --model DIR` uses it from the first save on: until the first evaluation
    model.safetensors are the last saved weights, then the best.
    """
    changes = [_pair(setting) for setting in settings or ()]
    if seed is not None:
        changes.append(("seed", str(seed)))
    run = oneblock.Run.load(run_file, changes)
    folder = out or Path("runs") / run_file.stem
    result = oneblock.train(run, folder, resume=resume, device=device, dtype=dtype, threads=threads)
    kept = {"out": str(result.out), "step": result.step, "kept": result.kept, "scores": result.scores}
    print(json.dumps(kept, ensure_ascii=False))


def _pair(setting: str) -> tuple[str, str]:
    key, equals, value = setting.partition("=")
    if not equals or not key:
        raise ValueError(f"--set: expected key=value such as optimizer.lr=1e-3, got {setting!r}")
    return key.strip(), value.strip()
