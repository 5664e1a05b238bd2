"""What tests of written files share: the written twin of a model, and whether both agree."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from oneblock.export import standalone
from oneblock.spec import (
    Classify,
    Head,
    Pool,
    Seq2Seq,
    Spec,
    Transform,
)
from oneblock.weights import save
from specs import padded, same

ROOT = Path(__file__).resolve().parent.parent
HEADS = {
    "none": None,
    "pool": Pool("first", Transform("tanh", None)),
    "mean": Pool("mean"),
    "labels of the last": Classify(3, "last", bias=False),
    "labels of the first": Classify(2, "first", Transform("gelu"), dropout=0.1),
    "words": Head(tied=True, bias=True, transform=Transform("gelu"), scale=0.5, softcap=4.0),
}
SIDES = (None, "right", "left")


def run(text: str, folder: Path) -> Any:
    """The module of a written file in a folder."""
    (folder / "model.py").write_text(text, encoding="utf-8")
    module = ModuleType("model")
    module.__file__ = str(folder / "model.py")
    exec(compile(text, "model.py", "exec"), module.__dict__)
    return module


def twin(model: nn.Module, folder: Path) -> nn.Module:
    """The written file's model, with the weights that ours saves; in float64."""
    save(model, folder)
    torch.set_default_dtype(torch.float64)
    try:
        return run(standalone(model.spec, lines=None), folder).load(folder / "model.safetensors")
    finally:
        torch.set_default_dtype(torch.float32)


def ours(model: Any, source: tuple[Tensor, Any], target: tuple[Tensor, Any]) -> Tensor:
    """What a model of ours makes of a batch: logits, a vector per text, or its stream."""
    spec = model.spec
    if isinstance(spec, Seq2Seq) and not isinstance(spec.decoder.head, Classify):
        out = model(*source, decoder_input_ids=target[0], decoder_attention_mask=target[1])
        if spec.decoder.head is None:
            return model.features(out.encoder_outputs, *target)[0]
    else:
        out = model(*source)
    return next(x for x in (out.logits, out.pooled, getattr(out.encoder_outputs, "x", None)) if x is not None)


def theirs(model: Any, spec: Spec, source: tuple[Tensor, Any], target: tuple[Tensor, Any]) -> Tensor:
    """What the written file's model makes of it; a model that needs no mask takes none."""
    given = {"mask": source[1], "target_mask": target[1]}
    known = {name: x for name, x in given.items() if name in signature(model.forward).parameters}
    two = isinstance(spec, Seq2Seq) and not isinstance(spec.decoder.head, Classify)
    return model(source[0], *([target[0]] if two else []), **known)


def batches(spec: Spec) -> list[tuple[tuple[Tensor, Any], tuple[Tensor, Any]]]:
    """A batch without padding, and batches of two texts padded on either side, with what an encoder reads first."""
    vocabs = (spec.encoder.embedding.vocab, spec.decoder.embedding.vocab) if isinstance(spec, Seq2Seq) else ()
    low, high = 3, min(vocabs or (spec.embedding.vocab,))
    found = []
    for side in SIDES:
        pair = [
            padded([torch.randint(low, high, (n,)) for n in lengths], side or "right") for lengths in ((7, 4), (6, 3))
        ]
        found.append(tuple((ids, mask if side else None) for ids, mask in pair))
    return found


def agree(model: nn.Module, folder: Path, tolerance: float = 1e-10) -> None:
    """Fail unless the written file's model is ours."""
    other = twin(model, folder)
    assert set(other.state_dict()) == set(model.state_dict())
    for source, target in batches(model.spec):
        same(theirs(other, model.spec, source, target), ours(model, source, target), tolerance)


def clean(folder: Path) -> None:
    """Fail unless ruff has nothing to say about the files of a folder, by the rules of this project."""
    for verb in (["check"], ["format", "--check"]):
        ruff = [
            sys.executable,
            "-m",
            "ruff",
            *verb,
            "--config",
            str(ROOT / "pyproject.toml"),
            "--no-cache",
            str(folder),
        ]
        done = subprocess.run(ruff, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:]


def bare(text: str) -> None:
    """Fail where a file imports us, tests what never changes, or defines what it never uses."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            assert "oneblock" not in ast.unparse(node)
        if isinstance(node, ast.If | ast.IfExp):
            asked = [part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)]
            assert any(not name.isupper() for name in asked), (
                f"line {node.lineno}: {ast.unparse(node.test)} never changes"
            )
    for node in tree.body:
        names = [node.targets[0].id] if isinstance(node, ast.Assign) else [getattr(node, "name", "Model")]
        for name in names:
            assert name in ("Model", "load") or len(re.findall(rf"\b{name}\b", text)) > 1, f"{name} is never used"
