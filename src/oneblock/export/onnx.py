"""A model as ONNX: the written file is run and traced, so that what is shipped is what one can read."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from oneblock.export.write import standalone
from oneblock.files import replacing
from oneblock.hint import first_line
from oneblock.spec import Classify, Model, Seq2Seq, Spec

NEEDED = ("onnx", "onnxscript")
"""The packages that torch writes ONNX with."""
LARGE = 1_500_000_000
"""Bytes of weights beyond which they lie in a file of their own, `.data`: one ONNX file holds 2 GB at most."""
CLOSE = 1e-3
"""How far logits of the ONNX runtime may be from ours, as a share of the largest."""


def written(spec: Spec, tensors: dict[str, Tensor] | None = None) -> nn.Module:
    """The model of the written file, with these tensors (all of a state dict) or with new ones from seed 0.

    >>> from oneblock.zoo import named
    >>> written(named("gpt2", dim=8, depth=1, heads=2, vocab=9, length=4))(torch.tensor([[1, 2]])).shape
    torch.Size([1, 2, 9])
    """
    module: Any = ModuleType("model")
    module.__file__ = "model.py"
    exec(compile(standalone(spec, lines=None), "model.py", "exec"), module.__dict__)
    torch.manual_seed(0)
    model: nn.Module = module.Model()
    if tensors is not None:
        model.load_state_dict(tensors)
    return model.eval()


def examples(spec: Spec) -> dict[str, Tensor]:
    """Inputs by name, two texts each, one of them padded: (batch, length) or (batch, source) and (batch, target)."""

    def text(model: Model, length: int) -> tuple[Tensor, Tensor]:
        mask = torch.ones(2, length, dtype=torch.long)
        mask[1, -2:] = 0
        return torch.arange(2 * length).reshape(2, length) % model.embedding.vocab, mask

    if not isinstance(spec, Seq2Seq):
        ids, mask = text(spec, 7)
        return {"ids": ids, "mask": mask}
    source, mask = text(spec.encoder, 7)
    if isinstance(spec.decoder.head, Classify):
        return {"source": source, "mask": mask}
    target, target_mask = text(spec.decoder, 5)
    return {"source": source, "target": target, "mask": mask, "target_mask": target_mask}


def refuse() -> None:
    """Refuse where torch cannot write ONNX. ValueError: what is missing, and how to get it."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ValueError(
            f"--onnx: expected the package{'s' * (len(missing) > 1)} {' and '.join(missing)}, which torch writes ONNX "
            "with; pip install onnx onnxscript onnxruntime"
        )


def write_onnx(spec: Spec, path: Path, tensors: dict[str, Tensor] | None = None) -> float | None:
    """Write a model as ONNX; batch and lengths are free. How far the ONNX runtime's answer is; None where it is absent.

    Raises:
        ValueError: a package is missing, torch cannot trace the model, or the runtime answers otherwise.
    """
    refuse()
    model, inputs = written(spec, tensors), examples(spec)
    axes = {name: {0: "batch", 1: "target" if "target" in name else "length"} for name in inputs}
    # The CPU's kernel gives its answer in an order of axes that the tracer then relies on, its written form another.
    with sdpa_kernel(SDPBackend.MATH), quiet():
        try:
            program = torch.onnx.export(
                model, (), kwargs=inputs, dynamo=True, verbose=False, input_names=list(inputs),
                output_names=["output"], dynamic_shapes={name: _dims(said) for name, said in axes.items()},
            )  # fmt: skip
        except torch.onnx.errors.OnnxExporterError as error:
            raise ValueError(f"--onnx: torch cannot trace this model ({first_line(error)})") from None
    if program is None:
        raise ValueError("--onnx: torch gave no program for this model, and does not say why")
    large = sum(x.numel() * x.element_size() for x in model.parameters()) > LARGE
    with TemporaryDirectory(prefix=".tmp-", dir=path.parent) as folder:
        fresh = Path(folder) / path.name
        program.save(fresh, external_data=large)
        apart = None if find_spec("onnxruntime") is None else compared(model, inputs, fresh)
        for file in sorted(Path(folder).iterdir(), key=lambda file: file == fresh):  # the numbers before who names them
            with replacing(path.parent / file.name) as sibling:
                file.replace(sibling)
    return apart


@contextmanager
def quiet() -> Iterator[None]:
    """Without the tracer's notes on what it skips and renames."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _dims(axes: dict[int, str]) -> dict[int, Any]:
    return {axis: torch.export.Dim(name) for axis, name in axes.items()}


def compared(model: nn.Module, inputs: dict[str, Tensor], path: Path) -> float:
    """The largest difference between the ONNX runtime's answers and ours, for inputs as they are and smaller ones.

    Raises:
        ValueError: a difference is no rounding, or the runtime takes no inputs of another batch or length.
    """
    session: Any = import_module("onnxruntime").InferenceSession(path, providers=["CPUExecutionProvider"])
    fixed = [f"{one.name} {one.shape}" for one in session.get_inputs() if any(isinstance(n, int) for n in one.shape)]
    if fixed:
        raise ValueError(f"--onnx: torch fixed a size that must be free ({fixed[0]}); nothing was written")
    farthest = 0.0
    for given in (inputs, {name: x[:1, :3] for name, x in inputs.items()}):
        with torch.no_grad():
            ours = model(**given)
        theirs = torch.from_numpy(session.run(None, {name: x.numpy() for name, x in given.items()})[0])
        apart = float((ours - theirs).abs().max())
        if not apart <= CLOSE * max(1.0, float(ours.abs().max())):
            raise ValueError(f"--onnx: the ONNX runtime's answer is {apart:.1e} from ours; nothing was written")
        farthest = max(farthest, apart)
    return farthest
