"""The layout in which the first open rotary models were released: neighbours are turned; also as one flat file."""

from __future__ import annotations

import re

from oneblock.spec import Rope, Smooth, Spec, Tokens
from oneblock.zoo.family import Paired, Row, Rows
from oneblock.zoo.layout import Layout, Shapes, count, needed
from oneblock.zoo.llama import llama

ROWS: dict[str, Row] = {
    "embedding.token": "tok_embeddings",
    "layers.*.attention.{v,out}": "layers.*.attention.{wv,wo}",
    "layers.*.feedforward.{gate,down,up}": "layers.*.feed_forward.{w1,w2,w3}",
    "layers.*.norms.attention_pre": "layers.*.attention_norm",
    "layers.*.norms.feedforward_pre": "layers.*.ffn_norm",
    "norm": "norm",
    "head.out": "output",
}


def authors(
    shapes: Shapes,
    *,
    heads: int = 0,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    eps: float = 1e-5,
    theta: float = 10_000.0,
    stretched: bool = False,
    factor: float | None = None,
    length: int | None = None,
) -> tuple[Spec, Rows]:
    """Our models turn halves: rows of queries and keys change places.

    `stretched` (version 3.1 and later) stretches positions by `factor`, 8 by default.
    """
    needed(heads)
    vocab, dim = shapes["tok_embeddings.weight"]
    width = head_dim or dim // heads
    keys = shapes["layers.0.attention.wk.weight"][0] // width
    if kv_heads not in (None, keys):
        raise ValueError(f"kv_heads: the shapes show {keys}, got {kv_heads}")
    spec = llama(
        dim,
        count(shapes, r"layers\.(\d+)\."),
        heads,
        None if keys == heads else keys,
        shapes["layers.0.feed_forward.w1.weight"][0],
        vocab,
        None if width * heads == dim else width,
        Rope(float(theta), scaling=Smooth(factor or 8.0, 8192) if stretched else None),
        eps,
        tied="output.weight" not in shapes,
        length=length,
        tokens=Tokens(bos=128_000, eos=128_001) if vocab >= 128_000 else Tokens(bos=1, eos=2),
    )
    turned = {name: Paired(f"layers.*.attention.w{name}", n) for name, n in (("q", heads), ("k", keys))}
    return spec, ROWS | {f"layers.*.attention.{name}": row for name, row in turned.items()}


def axis(name: str, shape: tuple[int, ...], dim: int) -> int | None:
    """Along which axis the parts of a tensor follow each other in the authors' several files."""
    if len(shape) == 1:
        return None
    if "tok_embeddings" in name:
        return 0 if shape[1] == dim else 1
    return 1 if re.search(r"\.(wo|w2)\.", name) else 0


AUTHORS = Layout(
    r"layers\.0\.attention\.wq\.weight",
    authors,
    {
        "n_heads": "heads", "n_kv_heads": "kv_heads", "norm_eps": "eps", "rope_theta": "theta",
        "use_scaled_rope": "stretched", "rope_scaling_factor": "factor", "max_seq_len": "length",
    },
    ("dim", "n_layers", "vocab_size", "multiple_of", "ffn_dim_multiplier", "hidden_dim"),
    ("rope.freqs",),
    axis=axis,
)  # fmt: skip

HEADER = ("dim", "hidden", "depth", "heads", "kv_heads", "vocab", "length")
"""The seven 32-bit integers at the start of a file of llama2.c (Karpathy 2023), version 0; a negative vocab: untied."""

FLAT: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("tok_embeddings.weight", ("vocab", "dim")),
    ("layers.*.attention_norm.weight", ("depth", "dim")),
    ("layers.*.attention.wq.weight", ("depth", "dim", "dim")),
    ("layers.*.attention.wk.weight", ("depth", "narrow", "dim")),
    ("layers.*.attention.wv.weight", ("depth", "narrow", "dim")),
    ("layers.*.attention.wo.weight", ("depth", "dim", "dim")),
    ("layers.*.ffn_norm.weight", ("depth", "dim")),
    ("layers.*.feed_forward.w1.weight", ("depth", "hidden", "dim")),
    ("layers.*.feed_forward.w2.weight", ("depth", "dim", "hidden")),
    ("layers.*.feed_forward.w3.weight", ("depth", "hidden", "dim")),
    ("norm.weight", ("dim",)),
    ("", ("length", "head_dim")),
    ("output.weight", ("vocab", "dim")),
)
"""What follows, float32: (name, shape); a star is the first axis. The nameless one is a table of angles."""
