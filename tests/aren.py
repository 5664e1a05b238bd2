"""A small trained Transformer that spells Arabic names in Latin letters, from another library's file into our spec.

The file is CTranslate2's `model.bin`, format 2: a header, then tensors one after the other, all little-endian.
"""

from __future__ import annotations

import struct
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from oneblock.bricks import EncoderDecoder, build_model
from oneblock.spec import (
    Attention,
    Block,
    Embedding,
    FeedForward,
    Full,
    Head,
    LayerNorm,
    Model,
    Seq2Seq,
    Sinusoidal,
    Tokens,
)

DEPTH, SOURCE_VOCAB, TARGET_VOCAB = 6, 51, 43
NORM, LINEAR = {"weight": "gamma", "bias": "beta"}, {"weight": "weight", "bias": "bias"}


class Aren(NamedTuple):
    """The model, and the characters that its source and target ids stand for."""

    model: EncoderDecoder
    source: list[str]
    target: list[str]


class Reader:
    """Numbers and words from bytes, from the front on."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, kind: str) -> int:
        """One number, in the letters of `struct`."""
        (value,) = struct.unpack_from(f"<{kind}", self.data, self.at)
        self.at += struct.calcsize(f"<{kind}")
        return value

    def bytes(self, count: int) -> bytes:
        """The next `count` bytes."""
        self.at += count
        return self.data[self.at - count : self.at]

    def word(self) -> str:
        """A word, behind its length, before a zero byte."""
        return self.bytes(self.number("H")).rstrip(b"\0").decode()


def read(path: Path) -> dict[str, Tensor]:
    """The tensors of a model.bin: format, spec name, revision, count; then name, shape, item size, data of each."""
    reader = Reader(path.read_bytes())
    head = reader.number("I"), reader.word(), reader.number("I")
    assert head == (2, "TransformerBase", 2), f"another kind of file: {head}"
    tensors = {}
    for _ in range(reader.number("I")):
        name = reader.word()
        shape = [reader.number("I") for _ in range(reader.number("B"))]
        size, count = reader.number("B"), reader.number("I")
        assert size == 4, f"{name}: expected 4 bytes for each number, got {size}"
        assert count == prod(shape), f"{name}: {count} numbers for a shape of {shape}"
        data = np.frombuffer(reader.bytes(4 * count), "<f4").reshape(shape)
        tensors[name] = torch.from_numpy(data.copy())
    assert reader.at == len(reader.data), "bytes are left behind the last tensor"
    return tensors


def spec() -> Seq2Seq:
    """What the file holds: pre-norm, a final norm on both sides, two vocabularies, a head of its own with a bias."""
    everyone, ffn = Attention(8, mask=Full(), bias=True), FeedForward(128, "relu", bias=True)
    waves = Sinusoidal(layout="half", start=1, closed=True)
    tokens = Tokens(pad=0, bos=1, eos=2, start=1)

    def half(vocab: int, block: Block, head: Head | None) -> Model:
        embedding = Embedding(vocab, waves, scale="sqrt_dim")
        return Model(32, embedding, (block,) * DEPTH, norm=LayerNorm(), head=head, tokens=tokens)

    encode = Block(everyone, ffn)
    decode = Block(Attention(8, bias=True), ffn, cross=everyone)
    return Seq2Seq(half(SOURCE_VOCAB, encode, None), half(TARGET_VOCAB, decode, Head(bias=True)), share=False)


def renamed(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Their tensors under our names; q, k and v (of cross-attention k and v) lie in one tensor."""
    found: dict[str, Tensor] = {}

    def take(ours: tuple[str, ...], theirs: str, kinds: dict[str, str] = LINEAR) -> None:
        for kind, name in kinds.items():
            parts = tensors.pop(f"{theirs}/{name}").chunk(len(ours))
            found.update({f"{path}.{kind}": part for path, part in zip(ours, parts, strict=True)})

    for side in ("encoder", "decoder"):
        found[f"{side}.embedding.token.weight"] = tensors.pop(f"{side}/embeddings/weight")
        take((f"{side}.norm",), f"{side}/layer_norm", NORM)
        for i in range(DEPTH):
            block, layer = f"{side}.layers.{i}", f"{side}/layer_{i}"
            attention, cross, ffn = f"{block}.attention", f"{block}.cross", f"{block}.feedforward"
            take((f"{attention}.q", f"{attention}.k", f"{attention}.v"), f"{layer}/self_attention/linear_0")
            take((f"{attention}.out",), f"{layer}/self_attention/linear_1")
            take((f"{block}.norms.attention_pre",), f"{layer}/self_attention/layer_norm", NORM)
            take((f"{ffn}.up",), f"{layer}/ffn/linear_0")
            take((f"{ffn}.down",), f"{layer}/ffn/linear_1")
            take((f"{block}.norms.feedforward_pre",), f"{layer}/ffn/layer_norm", NORM)
            if side == "decoder":
                take((f"{cross}.q",), f"{layer}/attention/linear_0")
                take((f"{cross}.k", f"{cross}.v"), f"{layer}/attention/linear_1")
                take((f"{cross}.out",), f"{layer}/attention/linear_2")
                take((f"{block}.norms.cross_pre",), f"{layer}/attention/layer_norm", NORM)
    take(("decoder.head.out",), "decoder/projection")
    assert not tensors, f"tensors that no name of ours takes: {sorted(tensors)}"
    return found


def load(folder: Path) -> Aren:
    """The model in our bricks, in eval mode, with its vocabularies."""
    model = build_model(spec())
    model.load_state_dict(renamed(read(folder / "model.bin")), strict=True)
    return Aren(model.eval(), words(folder / "source_vocabulary.txt"), words(folder / "target_vocabulary.txt"))


def words(path: Path) -> list[str]:
    """One entry per line; the last row of each table belongs to what is unknown, and the files do not list it."""
    return [*path.read_text("utf-8").removesuffix("\n").split("\n"), "<unk>"]
