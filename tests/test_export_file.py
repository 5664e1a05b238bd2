"""What a written file is like: gradients, dropout, refusals, and nothing that is unused."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from exported import agree, bare, batches, clean, ours, run, theirs, twin
from oneblock.cost import parameters
from oneblock.export import standalone
from oneblock.spec import (
    Alibi,
    Attention,
    Block,
    FeedForward,
    Full,
    Model,
    MoE,
    Relative,
    RMSNorm,
    SigmaNorm,
    Spec,
    Window,
    put,
)
from oneblock.weights import save
from oneblock.zoo import named
from specs import exact, language_model, same, translator
from test_families_cached import model_of


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
        (translator().decoder, "layers.0.cross: expected None"),
        (language_model(attention={"heads": 3}), "expected a divisor of dim"),
    ],
)
def test_what_no_file_is_written_of_is_refused_in_one_line(spec: Spec, says: str) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        standalone(spec)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_too_long_to_read_is_refused_unless_it_is_wanted(tmp_path: Path) -> None:
    """Blocks that are all unlike need a class each: no fold makes them short."""
    gated = Block(
        Attention(4, position=Alibi(), softcap=3.0), MoE(FeedForward(8, "silu", True), 4, 2), wiring="sandwich"
    )
    wide = Block(Attention(4, position=Relative(8, 20)), FeedForward(8), norm=SigmaNorm(), wiring="parallel")
    spec = replace(language_model(depth=1), norm=RMSNorm())
    spec = replace(spec, layers=(*spec.layers, gated, wide))
    with pytest.raises(
        ValueError, match=r"at most 300 lines, this model takes \d+: its 3 blocks are of 3 kinds"
    ) as refused:
        standalone(spec)
    line = str(refused.value)
    assert "\n" not in line
    taken = int(line.rpartition("--lines ")[2])
    text = standalone(spec, lines=taken)
    assert len(text.splitlines()) == taken
    assert text == standalone(spec, lines=None)
    with pytest.raises(ValueError, match=f"at most {taken - 1} lines"):
        standalone(spec, lines=taken - 1)
    agree(exact(spec), tmp_path)


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
