"""Both ends of a stack: the embedding and the head, each class written for what a model has."""

from __future__ import annotations

from typing import Any

from oneblock.export.file import File
from oneblock.export.parts import activation, norm
from oneblock.export.values import Code
from oneblock.spec import (
    Classify,
    Embedding,
    Head,
    Learned,
    Model,
    Sinusoidal,
)


def embeddings(file: File, stacks: list[Model]) -> list[Code]:
    """The class of embeddings, and how each stack makes its own."""
    waves = [model.embedding.position for model in stacks if isinstance(model.embedding.position, Sinusoidal)]
    names = {name: name.upper() for name in ("theta", "dim", "start")}
    calls = file.brick("Sinusoidal", [waving(one, file.dim) for one in dict.fromkeys(waves)], names)
    file.made |= dict(zip(dict.fromkeys(waves), calls, strict=True))
    uses = [embedded(file, model.embedding) for model in stacks]
    names = {"vocab": "VOCAB", "dim": "DIM", "segments": "SEGMENTS", "offset": "OFFSET"}
    told = {"position": [bool(use["position"]) for use in uses], "segment": [bool(use["segments"]) for use in uses]}
    every = all(all(places) for places in told.values() if any(places))
    asked = [f"{word}: Tensor{'' if every else ' | None = None'}" for word, places in told.items() if any(places)]
    docs = {"Embedding": f"Ids to vectors: {worded(uses)}.", "forward": "ids: (batch, length)."}
    return file.brick("Embedding", uses, names, signatures={"forward": ", ".join(["ids: Tensor", *asked])}, docs=docs)


def embedded(file: File, one: Embedding) -> dict[str, Any]:
    """What is known of an embedding."""
    place = one.position
    made = file.made[place] if isinstance(place, Sinusoidal) else None
    offset = 0
    if isinstance(place, Learned):
        made, offset = (
            Code(f"nn.Embedding({file.constants.use('POSITIONS', place.length + place.offset)}, DIM)"),
            place.offset,
        )
    file.constants.use("DIM", file.dim)
    return {
        "dim": file.dim, "vocab": one.vocab, "position": made, "offset": offset, "segments": one.segments,
        "kind": None if place is None else type(place).__name__.lower(), "norm": norm(file, one.norm, "DIM"),
        "scaled": one.scale is not None, "dropout": file.dropout("EMBEDDING_DROPOUT", one.dropout),
    }  # fmt: skip


def waving(one: Sinusoidal, dim: int) -> dict[str, Any]:
    """What is known of sinusoids."""
    half = (dim + 1) // 2
    return {
        "half": half, "last": max(half - 1, 1) if one.closed else dim / 2, "start": one.start, "theta": one.theta,
        "interleaved": one.layout == "interleaved", "odd": dim % 2 == 1, "dim": dim,
    }  # fmt: skip


def worded(uses: list[dict[str, Any]]) -> str:
    """An embedding as an equation."""
    token = "sqrt(dim) * token" if uses[0]["scaled"] else "token"
    position = " + position" if uses[0]["position"] else ""
    segment = " + segment" if uses[0]["segments"] else ""
    return f"norm({token}{position}{segment})" if uses[0]["norm"] else f"{token}{position}{segment}"


def headed(file: File, model: Model) -> Code | None:
    """The class of a head, and how it is made."""
    head = model.head
    if head is None:
        return None
    made = None
    if head.transform is not None:
        use = {"dim": file.dim, "activation": activation(file, head.transform.activation)}
        use["norm"] = norm(file, head.transform.norm, "DIM")
        (made,) = file.brick("Transform", [use], {"dim": "DIM"})
    use = {"dim": file.dim, "transform": made, "bias": getattr(head, "bias", False)}
    names = {"dim": "DIM", "outputs": "LABELS"}
    if isinstance(head, Head):
        use |= {"outputs": model.embedding.vocab, "scale": head.scale, "softcap": head.softcap}
        names |= {"outputs": "VOCAB", "scale": "LOGIT_SCALE", "softcap": "LOGIT_SOFTCAP"}
        return file.brick("Head", [use], names)[0]
    drop = head.dropout if isinstance(head, Classify) else 0.0
    use |= {"pool": head.pool, "dropout": file.dropout("HEAD_DROPOUT", drop)}
    use["outputs"] = head.labels if isinstance(head, Classify) else None
    title = "Classify" if isinstance(head, Classify) else "Pool"
    what = {"first": "The first real token", "last": "The last real token", "mean": "The mean over real tokens"}
    docs = {"Pool": f"{what[head.pool]} speaks for a text: {'labels' if use['outputs'] else 'one vector'} of it."}
    return file.brick("Pool", [use], names, title=title, docs=docs)[0]
