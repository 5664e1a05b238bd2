"""A written file holds exactly its model: the same logits, whatever the family, the head, the spec."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from exported import HEADS, agree, bare, clean
from oneblock.export import standalone
from oneblock.spec import (
    DynamicBase,
    Interpolate,
    LongRope,
    Rope,
    Seq2Seq,
    Smooth,
    Spec,
    Yarn,
    put,
)
from oneblock.zoo import FAMILIES, named, names
from specs import exact, language_model, specs
from test_families_cached import model_of


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
