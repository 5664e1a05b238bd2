"""Whole stacks: what a forward pass must know, and the classes that run one stack, or an encoder and a decoder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oneblock.export.constants import period, runs
from oneblock.export.file import File
from oneblock.export.parts import norm
from oneblock.export.sights import seen
from oneblock.export.values import Code
from oneblock.spec import (
    Classify,
    Head,
    Model,
    Pool,
    Rope,
    Seq2Seq,
)


def listed(calls: list[Code], depth: str) -> Code:
    """The blocks of a stack as an expression: a loop where they are alike, else a list of what differs."""
    if not calls:
        return Code("")
    size, grouped = period(list(calls)), runs(list(calls))
    if size == 1:
        return Code(f"{calls[0]} for _ in range({depth})" if len(calls) > 1 else f"[{calls[0]}]")
    turns = f"block for _ in range({len(calls) // size}) for block in ({', '.join(calls[:size])})"
    if size < len(calls) and len(turns) < 80:
        return Code(turns)
    short = max(map(len, calls)) < 80
    lines = [
        one
        for call, count in grouped
        for one in ([call] * count if count == 1 or not short else [f"*({call} for _ in range({count}))"])
    ]
    return Code(f"[{', '.join(lines)}]")


def needs(model: Model) -> dict[str, bool]:
    """What a stack's forward pass must know, by the names that its blocks have for it; `real` and `pools` besides."""
    attends = any(block.attention for block in model.layers)
    turned = any(block.attention and block.attention.position for block in model.layers)
    reads = any(block.cross for block in model.layers)
    there = any(block.cross and block.cross.position for block in model.layers)
    bias = biased(model)
    position = model.embedding.position is not None or bias or turned or there
    pools = isinstance(model.head, Pool | Classify)
    real = attends or pools or (position and model.counted == "real")
    return {
        "see": attends, "position": position, "bias": bias, "memory": reads, "reach": reads, "there": there,
        "real": real, "pools": pools,
    }  # fmt: skip


def biased(model: Model) -> bool:
    """Whether a stack gives a bias to its attentions, some of which have none of their own."""
    own = [block.attention.position for block in model.layers if block.attention is not None]
    return model.position_bias is not None and any(one is None or isinstance(one, Rope) for one in own)


def told(file: File, model: Model) -> list[str]:
    """What a stack tells its blocks besides the stream."""
    known = needs(model)
    return [word for word in (*file.context, "memory", "reach", "there") if known.get(word)]


def stack(file: File, model: Model, title: str, calls: tuple[Code, Code | None], layers: list[Code], docs: str) -> None:
    """Write the class of a stack; `calls` make its embedding and its head."""
    prefix = "" if title == "Model" else title.upper() + "_"
    known, masks = needs(model), looking(file, model, prefix)
    words = masks.pop("words")
    alone, segments = title == "Model", model.embedding.segments
    table = model.position_bias
    heads = next((block.attention.heads for block in model.layers if block.attention is not None), 1)
    depth = file.constants.use("DEPTH", len(layers))
    if not depth.isidentifier():
        depth = file.constants.use(f"{prefix}DEPTH", len(layers))
    use = {
        "embedding": calls[0], "layers": listed(layers, depth), "norm": norm(file, model.norm, "DIM"),
        "position_bias": None if table is None else file.made[table, heads, 0], "alone": alone, "head": calls[1],
        "dropout": file.dropout("FINAL_DROPOUT", model.dropout), "tied": alone and tied(model),
        "masked": alone and known["real"], "counted": model.counted if known["position"] else None,
        "segment": None if not segments else "none" if title == "Decoder" else "asked", "biased": known["bias"],
        "placing": Code(", ".join(placing(model))), "there": file.counted if known["there"] else None,
        **masks, "heading": Code("real" if known["pools"] else ""),
    }  # fmt: skip
    masked = ["mask: Tensor | None = None" if alone else "real: Tensor"] if known["real"] else []
    memory = ["memory: Tensor, memory_real: Tensor"] if known["memory"] else []
    asked = ["segment: Tensor | None = None"] if use["segment"] == "asked" else []
    signature = ", ".join(["ids: Tensor", *masked, *memory, *asked])
    file.brick(
        "Stack", [use], {}, title=title, signatures={"forward": signature}, renamed=words,
        docs={"Stack": docs, "forward": shapes(model, title, known["real"])},
    )  # fmt: skip


def looking(file: File, model: Model, prefix: str) -> dict[str, Any]:
    """What a stack's forward pass does about masks: made once, or for each of the kinds that its layers turn to."""
    own, lent = seen(file, model, prefix), seen(file, model, prefix, "cross")
    tables = [one for one in (own, lent) if one.table]
    items = {
        "see": f"sights[{own.word}]" if own.table else "see",
        "reach": f"reaches[{lent.word}]" if lent.table else "reach",
    }
    return {
        "sight": own.alike, "reach": lent.alike, "windows": own.table, "ranges": lent.table,
        "words": {"window": own.word, "span": lent.word}, "window": own.spread, "span": lent.spread,
        "turns": Code(", ".join(one.word for one in tables)), "each": Code(", ".join(str(one.table) for one in tables)),
        "context": Code(", ".join(items.get(word, word) for word in told(file, model))),
    }  # fmt: skip


def placing(model: Model) -> list[str]:
    """What an embedding is told besides ids."""
    segment = ["segment=segment"] if model.embedding.segments else []
    return (["position"] if model.embedding.position else []) + segment


def shapes(model: Model, title: str, masked: bool) -> str:
    """The docstring of a stack's forward pass."""
    given = "ids: (batch, length)"
    if masked:
        alone = title == "Model"
        given += f"; {'mask' if alone else 'real'}: (batch, length), {'0' if alone else 'False'} at padding"
    return f"{given}. Gives {gives(model)}."


def gives(model: Model) -> str:
    """What comes out of a stack."""
    if isinstance(model.head, Head):
        return "logits (batch, length, vocab)"
    if isinstance(model.head, Classify):
        return "logits (batch, labels)"
    return "(batch, dim)" if isinstance(model.head, Pool) else "the stream (batch, length, dim)"


def tied(model: Model) -> bool:
    """Whether the head's matrix is the embedding's."""
    return isinstance(model.head, Head) and model.head.tied


def pair(file: File, spec: Seq2Seq) -> None:
    """Write the class that holds an encoder and a decoder."""
    encoder, decoder = needs(spec.encoder), needs(spec.decoder)
    classifies, segments = isinstance(spec.decoder.head, Classify), bool(spec.encoder.embedding.segments)
    tokens = spec.decoder.tokens
    first = next((one for one in (tokens.start, tokens.bos, tokens.pad) if one is not None), None)
    encoding = (["real"] if encoder["real"] else []) + (["segment"] if segments else [])
    own = decoder["real"] and not classifies
    decoding = ["written" if own else "real"] if decoder["real"] else []
    decoding += ["memory", "real"] if decoder["memory"] else []
    use = {
        "share": spec.share, "tied": tied(spec.decoder), "classifies": classifies, "first": first, "written": own,
        "encoding": Code(", ".join(encoding)), "decoding": Code(", ".join(decoding)),
    }  # fmt: skip
    said = ["source: Tensor", *([] if classifies else ["target: Tensor"]), "mask: Tensor | None = None"]
    said += ["target_mask: Tensor | None = None"] if own else []
    said += ["segment: Tensor | None = None"] if segments else []
    target = "" if classifies else " and (batch, target)"
    made = gives(spec.decoder).replace("length", "target")
    docs = f"ids: (batch, source){target}; masks: 0 at padding. Gives {made}."
    file.brick(
        "Pair", [use], {"first": "FIRST"}, title="Model", signatures={"forward": ", ".join(said)},
        docs={"forward": docs},
    )  # fmt: skip


def found(spec: Model | Seq2Seq) -> Iterator[tuple[Model, str]]:
    """The stacks of a spec, with the names of their classes."""
    if isinstance(spec, Seq2Seq):
        yield spec.encoder, "Encoder"
        yield spec.decoder, "Decoder"
    else:
        yield spec, "Model"
