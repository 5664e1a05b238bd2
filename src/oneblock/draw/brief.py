"""A whole architecture in a word or two per topic, for lists of many models: kinds without their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from oneblock.cost import distinct
from oneblock.draw.facts import bent, masked, sharing
from oneblock.spec import Block, Model, Seq2Seq, Spec
from oneblock.words import label, say


def brief(topic: str, spec: Spec, lang: str = "en") -> str:
    """What an architecture is in a topic; what differs between layers or streams stands side by side.

    >>> from oneblock.zoo import named
    >>> [brief(topic, named("vaswani")) for topic in ("mask", "position", "feedforward")]
    ['full / causal', 'Sinusoidal position', 'ReLU']
    """
    models = (spec.encoder, spec.decoder) if isinstance(spec, Seq2Seq) else (spec,)
    said = dict.fromkeys(" + ".join(dict.fromkeys(TOPICS[topic](model, lang))) for model in models)
    return " / ".join(filter(None, said)) or label("none", lang)


def _layers(said: Callable[[Block, str], str]) -> Callable[[Model, str], Iterator[str]]:
    """What is said of each kind of layer that there is."""

    def each(model: Model, lang: str) -> Iterator[str]:
        return (text for block in distinct(model.layers) if (text := said(block, lang)))

    return each


def _positions(model: Model, lang: str) -> Iterator[str]:
    """The ways of knowing positions."""
    turned = (block.attention.position for block in distinct(model.layers) if block.attention)
    for brick in (model.embedding.position, model.position_bias, *turned):
        if brick is not None:
            yield say(type(brick), lang).name


def _shared(block: Block, lang: str) -> str:
    return say(sharing(block.attention), lang).name if block.attention else ""


def _normed(block: Block, lang: str) -> str:
    return "" if block.wiring == "bare" else say(type(block.norm), lang).name


TOPICS: dict[str, Callable[[Model, str], Iterator[str]]] = {
    "mask": _layers(lambda block, lang: masked(block.attention, lang)),
    "position": _positions,
    "wiring": _layers(lambda block, lang: say(f"wiring.{block.wiring}", lang).name),
    "norm": _layers(_normed),
    "attention": _layers(_shared),
    "feedforward": _layers(lambda block, lang: bent(block.feedforward, lang).partition(" · ")[0]),
}
