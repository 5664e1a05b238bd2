"""Two architectures compared: one line per brick that differs, said in words, and one line for all sizes.

Every change that `oneblock.spec.diff` finds stands in exactly one line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from oneblock.cost import distinct
from oneblock.draw import facts
from oneblock.draw.change import short
from oneblock.draw.describe import kind, number
from oneblock.draw.facts import per_layer
from oneblock.spec import Attention, Change, Model, MoE, Rope, Seq2Seq, Spec, atoms, diff, dims
from oneblock.words import ENTRIES, label, say

LISTED = 3
"""Changes that are listed one by one where the words for both sides are the same."""


@dataclass(frozen=True)
class Line:
    """A topic in which two specs differ: its name, what was and is there, what that does, and the changes behind it."""

    topic: str
    name: str
    said: str
    why: str
    changes: tuple[Change, ...]


Stack = tuple[str, Model, Model]
"""Name of a stream, before, after."""

TOPICS: dict[str, Callable[[Model, str], str]] = {
    "structure": facts.structure,
    "mask": facts.mask,
    "position": facts.position,
    "wiring": facts.wiring,
    "norm": facts.norm,
    "attention": facts.attention,
    "feedforward": facts.feedforward,
    "biases": facts.biases,
    "embedding": facts.embedding,
    "head": facts.head,
    "training": facts.training,
    "tokens": facts.tokens,
    "sizes": lambda model, lang: " · ".join(f"{label(name, lang)} {size}" for name, size in sizes(model, lang).items()),
}
"""topic -> what a model is in it, from structure to sizes."""

PLACES = (
    ("training", r"(.*\.)?dropout|balance"),
    ("tokens", r"tokens.*|counted"),
    ("sizes", r"dim|length|layers(\.length)?|embedding\.vocab"),
    ("sizes", r"(attention|cross)\.(heads|head_dim|value_dim)|feedforward\.(expert\.)?hidden"),
    ("position", r"embedding\.position.*|position_bias.*|(attention|cross)\.position.*"),
    ("norm", r"embedding\.norm.*|norm.*|block\.norm.*"),
    ("wiring", r"wiring|skip|branch_scale"),
    ("mask", r"(attention|cross)\.mask.*"),
    ("biases", r"(attention|cross)\.(bias|out_bias)|feedforward\.bias"),
    ("attention", r"(attention|cross)\.(kv_heads|qk_norm|scale|softcap).*"),
    ("feedforward", r"feedforward.*"),
    ("embedding", r"embedding.*|share"),
    ("head", r"head.*"),
)
"""Topic of the changes at a place, as a pattern; the first that fits. What fits none is structure."""


def topic(change: Change) -> str:
    """The topic that a change belongs to.

    >>> topic(Change("decoder.layers.*.attention.kv_heads", None, 2))
    'attention'
    """
    place = re.sub(r"^(encoder|decoder)\.", "", change.path)
    place = re.sub(r"^layers\.[^.]+\.(norm(?=\.|$))?", lambda found: "block.norm" if found[1] else "", place)
    if place == "norm" and None in (change.before, change.after):
        return "wiring"
    if place == "feedforward" and None in (change.before, change.after):
        return "structure"
    return next((name for name, pattern in PLACES if place and re.fullmatch(pattern, place)), "structure")


def compare(before: Spec, after: Spec, lang: str = "en") -> tuple[Line, ...]:
    """What tells two architectures apart, from structure to sizes; nothing where they are equal.

    Between an encoder-decoder and a single stream, the decoder is compared.

    >>> from oneblock.zoo import named
    >>> [(line.name, line.said) for line in compare(named("vaswani"), named("vaswani", depth=2))]
    [('Sizes', 'layers 6 → 2')]
    """
    stacks, changes = _stacks(before, after)
    lines = []
    for name, describe in TOPICS.items():
        mine = tuple(change for change in changes if topic(change) == name)
        said = _sizes(stacks, lang) if name == "sizes" else _said(stacks, describe, lang)
        if name == "embedding":
            said = "; ".join(filter(None, [said, _shared(before, after, lang)]))
        if name == "structure":
            said = "; ".join(filter(None, [_streamed(before, after, lang), said]))
        if mine and not said:
            said = _listed(mine, lang)
        if said:
            crossing = type(before) is not type(after) and name == "structure"
            words = _streams_of(after) if crossing else _new(name, stacks)
            why = say(words, lang).purpose if words else ""
            lines.append(Line(name, say(f"topic.{name}", lang).name, said, why, mine))
    return tuple(lines)


def _stacks(before: Spec, after: Spec) -> tuple[list[Stack], tuple[Change, ...]]:
    """The streams to compare, and the changes in them."""
    if isinstance(before, Seq2Seq) and isinstance(after, Seq2Seq):
        pairs = [("encoder", before.encoder, after.encoder), ("decoder", before.decoder, after.decoder)]
        return pairs, diff(before, after)
    a, b = (spec.decoder if isinstance(spec, Seq2Seq) else spec for spec in (before, after))
    return [("", a, b)], diff(a, b)


def _streamed(before: Spec, after: Spec, lang: str) -> str:
    """That an encoder comes or goes."""
    words = [say(_streams_of(spec), lang).name for spec in (before, after)]
    return "" if words[0] == words[1] else label("change", lang, *words)


def _streams_of(spec: Spec) -> str:
    return "streams.two" if isinstance(spec, Seq2Seq) else "streams.one"


def _said(stacks: list[Stack], describe: Callable[[Model, str], str], lang: str) -> str:
    """Before and after, once where all streams agree; nothing where the words are the same."""
    told = {}
    for name, a, b in stacks:
        before, after = describe(a, lang), describe(b, lang)
        told[name] = label("change", lang, before, after) if before != after else ""
    return _streams(told, lang)


def _streams(told: dict[str, str], lang: str) -> str:
    if len(set(told.values())) == 1:
        return next(iter(told.values()))
    listed = [label("in streams", lang, say(name, lang).name, text) for name, text in told.items() if text]
    return "; ".join(listed)


def _sizes(stacks: list[Stack], lang: str) -> str:
    told = {}
    for name, a, b in stacks:
        before, after = sizes(a, lang), sizes(b, lang)
        parts = [
            f"{label(size, lang)} {label('change', lang, before[size], after[size])}"
            for size in before
            if before[size] != after[size]
        ]
        told[name] = " · ".join(parts)
    return _streams(told, lang)


def sizes(model: Model, lang: str) -> dict[str, str]:
    """The sizes of a model by the key of their label, as text.

    >>> from oneblock.zoo import named
    >>> sizes(named("vaswani").decoder, "en")["size heads"]
    '8 × 64'
    """

    def heads(brick: Attention | None) -> str:
        _, head_dim, value_dim = dims(brick, model.dim) if brick else (0, 0, 0)
        wide = f"{head_dim}" if head_dim == value_dim else f"{head_dim} / {value_dim}"
        return f"{brick.heads} × {wide}" if brick else ""

    def hidden(brick: object) -> str:
        inner = brick.expert if isinstance(brick, MoE) else brick
        return number(getattr(inner, "hidden", 0))

    return {
        "size dim": number(model.dim),
        "size layers": str(len(model.layers)),
        "size heads": per_layer(model, lang, lambda block: heads(block.attention)),
        "size hidden": per_layer(model, lang, lambda block: hidden(block.feedforward)),
        "size vocab": number(model.embedding.vocab),
        "size length": label("none", lang) if model.length is None else number(model.length),
    }


def _shared(before: Spec, after: Spec, lang: str) -> str:
    if not (isinstance(before, Seq2Seq) and isinstance(after, Seq2Seq)) or before.share == after.share:
        return ""
    words = [label("one for both" if spec.share else "one for each", lang) for spec in (before, after)]
    return label("change", lang, *words)


def _listed(changes: tuple[Change, ...], lang: str) -> str:
    """Changes one by one, for what our words do not tell apart."""
    said = [f"{c.path} {label('change', lang, short(c.before, lang), short(c.after, lang))}" for c in changes[:LISTED]]
    return "; ".join(said + (["…"] if len(changes) > LISTED else []))


def _new(name: str, stacks: list[Stack]) -> str:
    """The words for what is new in a topic; where nothing is new, for the topic itself; none for sizes."""
    old = [word for _, a, _ in stacks for word in kinds(name, a)]
    new = [word for _, _, b in stacks for word in kinds(name, b) if word not in old]
    return "" if name == "sizes" else new[0] if new else f"topic.{name}"


def kinds(name: str, model: Model) -> list[str]:
    """The words for the kinds of bricks that a model has in a topic."""
    blocks = list(distinct(model.layers))
    attentions = [block.attention for block in blocks if block.attention is not None]
    feedforwards = [block.feedforward for block in blocks if block.feedforward is not None]
    found: dict[str, list[object]] = {
        "structure": ["Attention.cross" for block in blocks if block.cross is not None],
        "mask": [rule for one in attentions for rule in sorted(atoms(one.mask), key=repr)],
        "position": [
            *(one.position for one in attentions),
            *(one.position.scaling for one in attentions if isinstance(one.position, Rope)),
            model.position_bias,
            model.embedding.position,
        ],
        "wiring": [f"wiring.{block.wiring}" for block in blocks],
        "norm": [*(block.norm for block in blocks), model.norm, model.embedding.norm],
        "attention": [
            *(facts.sharing(one) for one in attentions),
            *("qk_norm" for one in attentions if one.qk_norm is not None),
            *("softcap" for one in attentions if one.softcap is not None),
        ],
        "feedforward": [*feedforwards, *(getattr(one, "activation", "MoE") for one in feedforwards)],
        "biases": ["biases.none" if facts.biases(model, "en") == label("none") else "biases.some"],
        "embedding": [
            *(["Embedding.segment"] if model.embedding.segments else []),
            "embedding.scaled" if model.embedding.scale else "embedding.plain",
        ],
        "head": [model.head, getattr(model.head, "transform", None)],
        "training": ["dropout"] if any(facts.dropouts(model).values()) else [],
    }
    said = [brick if isinstance(brick, str) else kind(brick) for brick in found.get(name, []) if brick is not None]
    return [word for word in said if word in ENTRIES]
