"""A written file holds exactly its model: the same logits, whatever the family, the head, the spec."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exported import HEADS, agree, bare, clean
from oneblock.export import standalone
from oneblock.spec import (
    Alibi,
    Causal,
    DynamicBase,
    Interpolate,
    LongRope,
    Rope,
    Seq2Seq,
    Smooth,
    Spec,
    Window,
    Yarn,
    put,
)
from oneblock.zoo import FAMILIES, named, names
from specs import ANY, exact, language_model, pairs, relatives, specs, translator
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


@st.composite
def reaching(draw: st.DrawFn) -> Seq2Seq:
    """Any pair whose cross-attention has masks and positions of its own."""
    spec = draw(pairs())
    places = st.none() | st.just(Alibi()) | relatives
    blocks = [
        put(block, "cross", replace(block.cross, mask=draw(st.sampled_from(ANY)), position=draw(places)))
        for block in spec.decoder.layers
    ]
    counted = draw(st.sampled_from(["real", "all"]))
    return Seq2Seq(replace(spec.encoder, counted=counted), replace(spec.decoder, layers=tuple(blocks)), spec.share)


def test_cross_attention_may_hide_and_may_know_where_tokens_stand(tmp_path: Path) -> None:
    @settings(max_examples=40)
    @given(reaching())
    def check(spec: Seq2Seq) -> None:
        agree(exact(spec), tmp_path)
        bare((tmp_path / "model.py").read_text(encoding="utf-8"))

    check()
    clean(tmp_path)


@pytest.mark.parametrize(
    ("paths", "says"),
    [
        ({"cross.position": Alibi()}, "there = (memory_real.cumsum(1) - 1).clamp(min=0)"),
        ({"cross.mask": Causal()}, "reach = reachable(memory_real, ids.shape[1])"),
        ({"0.cross.mask": Window(2, 1)}, "for layer, span in zip(self.layers, DECODER_CROSS_SIGHTS, strict=True):"),
        (
            {"0.cross.mask": Window(2, 1), "1.attention.mask": Causal() & Window(2)},
            "for layer, window, span in zip(self.layers, DECODER_WINDOWS, DECODER_CROSS_SIGHTS, strict=True):",
        ),
    ],
)
def test_what_cross_attention_asks_is_a_line_of_the_decoder(
    paths: dict[str, object], says: str, tmp_path: Path
) -> None:
    spec: Spec = translator()
    for path, value in paths.items():
        spec = put(spec, f"decoder.layers.{path if path[0].isdigit() else '*.' + path}", value)
    agree(exact(spec), tmp_path)
    text = (tmp_path / "model.py").read_text(encoding="utf-8")
    assert says in text
    assert len(text.splitlines()) <= 300
    bare(text)
    clean(tmp_path)


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
