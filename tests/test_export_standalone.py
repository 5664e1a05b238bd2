"""A written file holds exactly its model: the same logits, names of tensors, gradients, and nothing that is unused.

ids: (batch, length); logits: (batch, length, vocab).
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from dataclasses import replace
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from torch import Tensor, nn

from oneblock.cost import parameters
from oneblock.export import standalone
from oneblock.spec import (
    Alibi,
    Attention,
    Block,
    Causal,
    Classify,
    DynamicBase,
    FeedForward,
    Full,
    Head,
    Interpolate,
    LongRope,
    Model,
    Pool,
    Relative,
    Rope,
    Seq2Seq,
    Smooth,
    Spec,
    Transform,
    Window,
    Yarn,
    put,
)
from oneblock.weights import save
from oneblock.zoo import FAMILIES, named, names
from specs import exact, language_model, padded, same, specs, translator
from test_families_cached import model_of

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
        return run(standalone(model.spec), folder).load(folder / "model.safetensors")
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


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_gives_the_same_logits(name: str, tmp_path: Path) -> None:
    model = model_of(name)
    agree(model, tmp_path)
    text = (tmp_path / "model.py").read_text(encoding="utf-8")
    bare(text)
    assert len(text.splitlines()) <= 300


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("name", ["llama", "bert", "bart", "t5"])
def test_every_head_gives_the_same_answer(name: str, head: str, tmp_path: Path) -> None:
    spec = model_of(name).spec
    stack = "decoder." if isinstance(spec, Seq2Seq) else ""
    agree(exact(put(spec, f"{stack}head", HEADS[head])), tmp_path)
    bare((tmp_path / "model.py").read_text(encoding="utf-8"))
    clean(tmp_path)


def test_any_spec_gives_the_same_answer_and_is_clean(tmp_path: Path) -> None:
    written: list[str] = []

    @settings(max_examples=60)
    @given(specs)
    def check(spec: Spec) -> None:
        agree(exact(spec), tmp_path)
        text = (tmp_path / "model.py").read_text(encoding="utf-8")
        bare(text)
        written.append(text)

    check()
    folder = tmp_path / "all"
    folder.mkdir()
    for i, text in enumerate(written):
        (folder / f"model{i}.py").write_text(text, encoding="utf-8")
    clean(folder)


def test_every_named_model_is_at_most_300_lines_and_clean(tmp_path: Path) -> None:
    for i, name in enumerate(names()):
        text = standalone(named(name), name)
        bare(text)
        assert len(text.splitlines()) <= 300, name
        assert text.startswith(f'"""{name}: ')
        (tmp_path / f"model{i}.py").write_text(text, encoding="utf-8")
    clean(tmp_path)


STRETCHED = {
    "interpolated": Interpolate(4.0),
    "smooth": Smooth(8.0, 16),
    "ramped": Yarn(4.0, 16),
    "ramped, not truncated": Yarn(4.0, 64, truncate=False, attention=0.9),
    "by the length": DynamicBase(2.0, 4),
    "searched": LongRope((1.0, 1.5), (2.0, 4.0), 5, 1.1),
}


@pytest.mark.parametrize("scaling", STRETCHED)
def test_every_stretching_of_rotary_positions_within_and_beyond_the_trained_length(
    scaling: str, tmp_path: Path
) -> None:
    rope = Rope(50.0, layout="interleaved", scaling=STRETCHED[scaling])
    agree(exact(language_model(attention={"position": rope})), tmp_path)
    clean(tmp_path)


def test_a_long_table_of_factors_is_a_few_lines(tmp_path: Path) -> None:
    factors = tuple(1 + i / 7 for i in range(48))
    spec = named("phi3", position=Rope(scaling=LongRope(factors, factors[::-1], 4096, 1.19)))
    text = standalone(spec)
    assert len(text.splitlines()) <= 240
    (tmp_path / "model.py").write_text(text, encoding="utf-8")
    clean(tmp_path)


@pytest.mark.parametrize("name", ["gemma2", "bert", "qwen3_moe", "t5"])
def test_gradients_are_the_same_under_padding(name: str, tmp_path: Path) -> None:
    """A token at padding sees nobody: its row is 0/0, and must not reach the others."""
    model = exact(model_of(name).spec)
    other = twin(model, tmp_path)
    source, target = batches(model.spec)[-1]
    for out in (ours(model, source, target), theirs(other, model.spec, source, target)):
        out.square().sum().backward()
    found = dict(other.named_parameters())
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None
        same(found[key].grad, parameter.grad, 1e-9 * float(parameter.grad.abs().max() + 1))


def test_a_model_that_has_learned_nothing_is_ready_to_train(tmp_path: Path) -> None:
    spec = put(named("vaswani", dim=16, depth=2, heads=4, hidden=24, vocab=13), "decoder.head.bias", True)
    model = run(standalone(spec), tmp_path).Model()
    assert sum(p.numel() for p in model.parameters()) == parameters(spec)
    assert model.encoder.embedding.token.weight is model.decoder.head.out.weight
    assert model.decoder.head.out.bias.abs().sum() == 0
    assert abs(float(model.decoder.embedding.token.weight.detach().std()) - 16**-0.5) < 0.05
    first, second = (layer.attention.q.weight for layer in model.encoder.layers)
    assert not torch.equal(first, second)
    source, target = torch.randint(3, 13, (2, 5)), torch.randint(3, 13, (2, 4))
    assert not torch.equal(model.train()(source, target), model(source, target)), "dropout acts"
    assert torch.equal(model.eval()(source, target), model(source, target))


def test_dropout_is_there_where_the_spec_has_it_and_nowhere_else() -> None:
    off, on = named("llama"), put(named("llama"), "layers.*.attention.dropout", 0.1)
    assert "dropout" not in standalone(off).lower()
    assert "dropout_p=DROPOUT if self.training else 0.0" in standalone(on)
    every = named("gpt2", dropout=0.1)
    assert standalone(put(every, "embedding.dropout", 0.2)).count("EMBEDDING_DROPOUT") == 2


def test_blocks_that_differ_are_a_short_list() -> None:
    assert "WINDOWS = (4096, None) * 21" in standalone(named("gemma2"))
    mixed = standalone(named("qwen3_moe", depth=4, dense=(0,)))
    assert "nn.ModuleList([Block(FeedForward()), *(Block(MoE()) for _ in range(3))])" in mixed
    assert "nn.ModuleList(Block() for _ in range(DEPTH))" in standalone(named("qwen3_moe"))


def test_a_file_runs_where_there_is_no_oneblock(tmp_path: Path) -> None:
    model = model_of("mistral")
    save(model, tmp_path)
    (tmp_path / "model.py").write_text(standalone(model.spec), encoding="utf-8")
    ids = torch.randint(5, 17, (1, 6))
    code = (
        "import sys; sys.modules['oneblock'] = None; import torch, model;"
        "torch.set_default_dtype(torch.float64);"
        f"print(model.load()(torch.tensor({ids.tolist()})).flatten().tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    same(torch.tensor(ast.literal_eval(done.stdout)).double(), model(ids).logits.detach().flatten(), 1e-6)
    done = subprocess.run([sys.executable, "model.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"{parameters(model.spec):,} parameters\n"


def test_a_file_is_the_same_every_time_and_needs_no_torch_to_be_written() -> None:
    code = (
        "import sys, oneblock.export as e, oneblock.zoo as z;"
        "print(e.standalone(z.named('gemma2'))); assert 'torch' not in sys.modules"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1


def test_wrong_weights_are_refused(tmp_path: Path) -> None:
    save(exact(language_model(depth=1)), tmp_path)
    module = run(standalone(language_model(depth=2)), tmp_path)
    with pytest.raises(RuntimeError, match="Missing key"):
        module.load(tmp_path / "model.safetensors")


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (
            put(translator(), "decoder.layers.0.cross.position", Alibi()),
            "decoder.layers.0.cross.position: .* got Alibi",
        ),
        (put(translator(), "decoder.layers.1.cross.mask", Causal()), "decoder.layers.1.cross.mask: .* got Causal"),
        (translator().decoder, "layers.0.cross: expected None"),
        (language_model(attention={"heads": 3}), "expected a divisor of dim"),
    ],
)
def test_what_no_file_is_written_of_is_refused_in_one_line(spec: Spec, says: str) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        standalone(spec)
    assert "\n" not in str(refused.value)


def test_a_name_cannot_break_out_of_its_docstring() -> None:
    text = standalone(language_model(), 'x"""\nimport os\n"""\\')
    assert text.splitlines()[0] == '"""ximport os: a Transformer in one file.'
    assert [type(node).__name__ for node in ast.parse(text).body[:2]] == ["Expr", "ImportFrom"]


def test_edges_of_what_a_spec_may_say(tmp_path: Path) -> None:
    lone = language_model(depth=1, attention={"mask": Full()}, block={"skip": 0.0, "branch_scale": 2.0})
    none = replace(lone, layers=())
    both = Block(Attention(4, position=Relative(8, 20, both_ways=True), mask=Window(2, 1)), FeedForward(8))
    mixed = Model(16, lone.embedding, (*lone.layers, both), position_bias=Relative(8, 20))
    for spec in (lone, none, mixed):
        agree(exact(spec), tmp_path)
        bare((tmp_path / "model.py").read_text(encoding="utf-8"))
        clean(tmp_path)
