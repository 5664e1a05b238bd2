"""Everything a run needs before its first step: folder, data, tokenizer, spec, model, and a note of the machine."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch import nn

from oneblock import zoo
from oneblock.bricks import build_model
from oneblock.files import sweep, write_file
from oneblock.generate.pieces import capacity
from oneblock.spec import Head, Seq2Seq, Spec, from_dict, to_dict, validate
from oneblock.spec.read import read
from oneblock.text import Pair, Tokenizer
from oneblock.train.config import ModelPart, Run
from oneblock.train.data import directions, examples, read_split
from oneblock.train.same import identify
from oneblock.train.stream import Stream

__all__ = ["Setup", "environment", "make_spec", "open_folder", "prepare"]


@dataclass(frozen=True)
class Setup:
    """A run made ready: where it lies, what it learns from, and the untrained model."""

    run: Run
    out: Path
    tokenizer: Tokenizer
    spec: Seq2Seq
    model: nn.Module
    train: Stream
    valid: Stream | None
    valid_pairs: list[Pair]
    identity: dict[str, Any]  # what must be equal for a checkpoint to be resumed
    parts: dict[str, str]  # what its corpus is made of


def open_folder(out: Path, resume: bool) -> None:
    """Make the run folder; ValueError when it holds something and nothing is to be resumed."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out}: expected a folder for the run, got a file")
    if out.is_dir() and any(out.iterdir()) and not resume:
        raise ValueError(f"{out}: not empty; give another --out, or --resume to go on with the run that lies there")
    out.mkdir(parents=True, exist_ok=True)
    sweep(out)


def prepare(run: Run, out: Path, device: torch.device) -> Setup:
    """Read the data, train or load the tokenizer, build the model from the run's seed; nothing is written yet."""
    split = read_split(run.data)
    found = examples(split.train, run.data)
    tokenizer = _tokenizer(run, out, split.train)
    spec = make_spec(run.model, tokenizer)
    identity, parts = identify(run, spec, tokenizer, found, split.valid)
    special = spec.decoder.tokens
    room = capacity(spec.encoder, spec.decoder) or run.batch.longest
    size = {"budget": run.batch.tokens, "longest": min(run.batch.longest, room)}
    train = Stream(
        found, tokenizer, special, seed=run.seed, accumulate=run.batch.accumulate, dropout=run.tokenizer.dropout, **size
    )
    held_out = examples(split.valid, run.data)
    valid = Stream(held_out, tokenizer, special, **size) if held_out else None
    torch.manual_seed(run.seed)
    model = build_model(spec).to(device)
    return Setup(run, out, tokenizer, spec, model, train, valid, split.valid, identity, parts)


def write_head(setup: Setup, dtype: torch.dtype) -> None:
    """Write what a run folder says about itself; once it is known that the run may use the folder."""
    device = next(setup.model.parameters()).device
    heads = {
        "run.toml": setup.run.dump(setup.out),
        "spec.json": json.dumps(to_dict(setup.spec), indent=1) + "\n",
        "tokenizer.json": setup.tokenizer.to_json(),
        "env.json": json.dumps(environment(device, dtype), indent=1) + "\n",
    }
    for name, text in heads.items():
        write_file(setup.out / name, text.encode())


def make_spec(part: ModelPart, tokenizer: Tokenizer) -> Seq2Seq:
    """The spec that `[model]` asks for, its vocabulary the tokenizer's; ValueError when it is no encoder-decoder.

    An argument that is a table is itself a spec: `position = {type = "Learned", length = 256}`.
    """
    if part.spec is not None:
        if part.arguments:
            raise ValueError(f"model.{next(iter(part.arguments))}: model.spec is given, so no arguments are allowed")
        try:
            spec = read(Path(part.spec))
        except ValueError as error:
            raise ValueError(f"model.spec: {error}") from None
    elif part.name is None:
        raise ValueError("model.name: missing; name one of `oneblock models`, or give model.spec")
    else:
        spec = _from_zoo(part.name, {"vocab": len(tokenizer)} | dict(part.arguments))
    if not isinstance(spec, Seq2Seq):
        raise ValueError(f"model: expected an encoder-decoder, got a {type(spec).__name__}")
    if not isinstance(spec.decoder.head, Head):
        raise ValueError("model: expected a decoder that ends in a head for tokens, as a translator has")
    for side in (spec.encoder, spec.decoder):
        if side.balance:
            raise ValueError(f"model.balance: this trainer's loss knows none, got {side.balance}; set it to 0")
        if side.embedding.vocab < len(tokenizer):
            raise ValueError(f"model.vocab: {side.embedding.vocab} is less than the tokenizer's {len(tokenizer)}")
    ids = (tokenizer.pad, tokenizer.eos)
    if (spec.decoder.tokens.pad, spec.decoder.tokens.eos) != ids:
        raise ValueError(f"model.tokens: pad and eos must be the tokenizer's {ids}, got {spec.decoder.tokens}")
    return spec


def _from_zoo(name: str, arguments: Mapping[str, Any]) -> Spec:
    """The named spec, all its values of the right types; ValueError with the key of `[model]` that is wrong first."""
    given = {key: from_dict(value, f"model.{key}") for key, value in arguments.items()}
    try:
        spec = from_dict(to_dict(zoo.named(name, **given)))
        validate(spec)
    except TypeError as error:
        raise ValueError(f"model: {name} cannot be made of {dict(arguments)}: {error}") from None
    except ValueError as error:
        key = str(error).partition(":")[0].rpartition(".")[2]
        raise ValueError(f"model.{key}: {error}" if key in given else f"model: {error}") from None
    return spec


def environment(device: torch.device, dtype: torch.dtype) -> dict[str, Any]:
    """The machine and the versions a figure was reached with."""
    names = ("oneblock", "torch", "tokenizers", "safetensors", "sacrebleu")
    versions = {}
    for name in names:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cpu": _processor(),
        "cpus": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else str(device),
        "dtype": str(dtype).removeprefix("torch."),
        "versions": versions,
    }


def _processor() -> str:
    """The processor's name; Linux has it in a file only."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _tokenizer(run: Run, out: Path, pairs: list[Pair]) -> Tokenizer:
    """The run folder's tokenizer if it has checkpoints (a resumed run), else the named one, else a new one."""
    if any((out / "checkpoints").glob("step-*")):
        return Tokenizer.load(out)
    try:
        if run.tokenizer.path is None:
            lines = (line for pair in pairs for line in (pair.source, pair.target))
            return Tokenizer.train(lines, run.tokenizer.vocab, languages=run.data.languages)
        tokenizer = Tokenizer.load(run.tokenizer.path)
    except ValueError as error:
        part = "data" if str(error).startswith("languages: ") else "tokenizer"
        raise ValueError(f"{part}.{error}" if run.tokenizer.path is None else f"tokenizer.path: {error}") from None
    for _, language in directions(run.data):
        if language not in tokenizer.languages:
            raise ValueError(
                f"data.languages: {run.tokenizer.path} knows {list(tokenizer.languages)}, got {language!r}; "
                "name other languages, or leave tokenizer.path out to train a tokenizer"
            )
    return tokenizer
