"""A model in a few words per topic, where a topic is one thing in which architectures differ: mask, position, norm, ...

What differs between layers is said with the number of layers that have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from oneblock.cost import distinct
from oneblock.draw.describe import details, kind, number
from oneblock.spec import (
    Alibi,
    Attention,
    Block,
    Causal,
    Classify,
    FeedForward,
    Head,
    LayerNorm,
    Learned,
    Model,
    MoE,
    Norm,
    Pool,
    Relative,
    RMSNorm,
    Rope,
    SigmaNorm,
    Sinusoidal,
    Whole,
    Window,
    atoms,
    dims,
)
from oneblock.words import label, say

SUBLAYERS = {"attention": "Attention", "cross": "Attention.cross", "feedforward": "FeedForward"}


def per_layer(model: Model, lang: str, said: Callable[[Block], str]) -> str:
    """What `said` says of each layer; where they differ, with how many layers each holds for.

    >>> from oneblock.spec import Embedding
    >>> blocks = (Block(Attention(4, mask=Causal() & Window(8)), None),) * 5 + (Block(Attention(4), None),)
    >>> per_layer(Model(16, Embedding(10), blocks), "en", lambda block: masked(block.attention, "en"))
    'causal · window 8 (5 of 6 layers), causal (1 of 6 layers)'
    """
    texts: Counter[str] = Counter()
    for block, count in distinct(model.layers).items():
        texts[said(block)] += count
    if len(texts) < 2:
        return next(iter(texts), "") or label("none", lang)
    listed = [(text or label("none", lang), count) for text, count in texts.most_common()]
    return ", ".join(label("of layers", lang, text, count, len(model.layers)) for text, count in listed)


def structure(model: Model, lang: str) -> str:
    """Which sublayers a layer has."""

    def said(block: Block) -> str:
        return " + ".join(
            say(words, lang).name for name, words in SUBLAYERS.items() if getattr(block, name) is not None
        )

    return per_layer(model, lang, said)


def masked(attention: Attention | None, lang: str) -> str:
    """The rules of an attention's mask."""
    said = []
    for rule in sorted(atoms(attention.mask), key=repr) if attention else ():
        if isinstance(rule, Window) and rule.ahead is not None:
            said.append(label("window and ahead", lang, number(rule.back), number(rule.ahead)))
        elif isinstance(rule, Window):
            said.append(label("window", lang, number(rule.back)))
        else:
            said.append(label("causal" if isinstance(rule, Causal) else "full", lang))
    return " · ".join(said)


def mask(model: Model, lang: str) -> str:
    """Who sees whom in self-attention."""
    return per_layer(model, lang, lambda block: masked(block.attention, lang))


def position(model: Model, lang: str) -> str:
    """How the model knows where a token stands: added, turned, or as a bias."""
    said = [placed(model.embedding.position, lang)]
    if model.position_bias is not None:
        said.append(label("shared", lang, placed(model.position_bias, lang)))
    if any(block.attention and block.attention.position for block in model.layers):
        said.append(per_layer(model, lang, lambda b: placed(b.attention.position if b.attention else None, lang)))
    return " + ".join(filter(None, said)) or label("none", lang)


def placed(brick: Learned | Sinusoidal | Rope | Alibi | Relative | None, lang: str) -> str:
    """One way of knowing positions, with its numbers."""
    if brick is None:
        return ""
    said = [*details(brick, 0, lang)]
    if isinstance(brick, Learned) and brick.offset:
        said.append(label("offset", lang, brick.offset))
    if isinstance(brick, Sinusoidal):
        said += [label("halves", lang)] if brick.layout == "half" else []
        said += [label("offset", lang, brick.start)] if brick.start else []
        said += ["θ = " + number(brick.theta)] if brick.theta != 10_000 else []
        said += [label("closed", lang)] if brick.closed else []
    if isinstance(brick, Relative):
        said += [f"{brick.buckets} / {brick.distance}"] + ([label("both ways", lang)] if brick.both_ways else [])
    return say(type(brick), lang).name + (f" ({' · '.join(said)})" if said else "")


def wiring(model: Model, lang: str) -> str:
    """Where the norms stand and what is added."""

    def said(block: Block) -> str:
        scaled = [f"{name} × {number(by)}" for name, by in (("x", block.skip), ("f", block.branch_scale)) if by != 1]
        return " · ".join([say(f"wiring.{block.wiring}", lang).name, *scaled])

    return per_layer(model, lang, said) + (f" + {label('final norm', lang)}" if model.norm is not None else "")


def normed(brick: Norm | Whole | None, lang: str) -> str:
    """A norm with its choices."""
    if brick is None:
        return ""
    if isinstance(brick, Whole):
        return f"{say('Whole', lang).name}: {normed(brick.norm, lang)}"
    said = [say(type(brick), lang).name, *details(brick, 0, lang)]
    if isinstance(brick, LayerNorm | SigmaNorm) and not brick.bias:
        said.append(label("no bias", lang))
    if isinstance(brick, SigmaNorm) and brick.unbiased:
        said.append("n − 1")
    if isinstance(brick, RMSNorm) and brick.centred:
        said.append("1 + γ")
    return " · ".join(said)


def norm(model: Model, lang: str) -> str:
    """Which norms there are: in the layers, and at the embedding and the end where they are others."""
    usual = per_layer(model, lang, lambda block: "" if block.wiring == "bare" else normed(block.norm, lang))
    said = [usual]
    if model.embedding.norm is not None:
        same = normed(model.embedding.norm, lang)
        said.append(label("embedding normed", lang) + ("" if same == usual else f": {same}"))
    if model.norm is not None and (last := normed(model.norm, lang)) != usual:
        said.append(f"{label('final norm', lang)}: {last}")
    return " + ".join(said)


def attention(model: Model, lang: str) -> str:
    """How heads share keys and values, and what is done to queries, keys and scores."""

    def said(block: Block) -> str:
        brick = block.attention
        if brick is None:
            return ""
        kv_heads, kinds = dims(brick, model.dim)[0], sharing(brick)
        shared = label("heads on", lang, brick.heads, kv_heads) if kinds == "heads.grouped" else ""
        listed = [shared or say(kinds, lang).name]
        if brick.qk_norm is not None:
            listed.append(f"{say('qk_norm', lang).name} ({normed(brick.qk_norm, lang)})")
        if brick.scale is not None:
            listed.append(f"{number(brick.scale)} q kᵀ")
        if brick.softcap is not None:
            listed.append(label("softcap", lang, number(brick.softcap)))
        return " · ".join(listed)

    return per_layer(model, lang, said)


def sharing(brick: Attention) -> str:
    """The word for how many heads share keys and values."""
    kv_heads = brick.kv_heads or brick.heads
    return "heads.each" if kv_heads == brick.heads else "heads.one" if kv_heads == 1 else "heads.grouped"


def feedforward(model: Model, lang: str) -> str:
    """The activation, gated or not; one for all or many experts."""
    return per_layer(model, lang, lambda block: bent(block.feedforward, lang))


def bent(brick: FeedForward | MoE | None, lang: str) -> str:
    """A feed-forward without its sizes."""
    if brick is None:
        return ""
    if isinstance(brick, MoE):
        listed = label("experts of", lang, brick.active, brick.experts, bent(brick.expert, lang))
        return f"{listed} · {say(kind(brick.router), lang).name}"
    name = say(brick.activation, lang).name
    return label("gated", lang, name) if brick.gated else name


def biases(model: Model, lang: str) -> str:
    """Which projections have a bias."""

    def said(block: Block) -> str:
        found = []
        for name in ("attention", "cross"):
            brick, called = getattr(block, name), say(SUBLAYERS[name], lang).name
            if brick is not None:
                last = brick.bias if brick.out_bias is None else brick.out_bias
                both = [called] if brick.bias and last else [f"{called} q, k, v"] if brick.bias else []
                found += both or ([f"{called} out"] if last else [])
        if isinstance(block.feedforward, FeedForward) and block.feedforward.bias:
            found.append(say("FeedForward", lang).name)
        return ", ".join(found)

    return per_layer(model, lang, said)


def embedding(model: Model, lang: str) -> str:
    """What is done to token vectors, and which segments there are."""
    said = ["× √d"] if model.embedding.scale else []
    said += [label("segments", lang, model.embedding.segments)] if model.embedding.segments else []
    return " · ".join(said) or label("none", lang)


def head(model: Model, lang: str) -> str:
    """What is made of the stream at the end."""
    brick = model.head
    if brick is None:
        return label("features", lang)
    said = [say(kind(brick), lang).name]
    if isinstance(brick, Head) and not brick.tied:
        said.append(label("own matrix", lang))
    if isinstance(brick, Pool | Classify):
        said.append(say(f"pool.{brick.pool}", lang).name)
    if isinstance(brick, Classify):
        said.append(label("labels", lang, brick.labels))
    if brick.transform is not None:
        said += [say("Transform", lang).name, say(brick.transform.activation, lang).name]
        said += filter(None, [normed(brick.transform.norm, lang)])
    if isinstance(brick, Head | Classify) and brick.bias:
        said.append(say("biases.some", lang).name)
    if isinstance(brick, Head):
        said += [] if brick.scale is None else [f"{number(brick.scale)} y"]
        said += [] if brick.softcap is None else [label("softcap", lang, number(brick.softcap))]
    return " · ".join(said)


def training(model: Model, lang: str) -> str:
    """Dropout by its rate, and the weight of the experts' balance."""
    rates: dict[float, list[str]] = {}
    for name, rate in dropouts(model).items():
        if rate:
            rates.setdefault(rate, []).append(label(name, lang))
    said = [f"{say('dropout', lang).name} {number(rate)} ({', '.join(names)})" for rate, names in rates.items()]
    said += [label("balance", lang, number(model.balance))] if model.balance else []
    return " · ".join(said) or label("none", lang)


def dropouts(model: Model) -> dict[str, float]:
    """The largest rate of dropout at each place."""
    rates = {"at embedding": model.embedding.dropout, "at sublayers": 0.0, "at weights": 0.0, "at hidden": 0.0}
    for block in distinct(model.layers):
        inner = max((one.dropout for one in (block.attention, block.cross) if one is not None), default=0.0)
        hidden = block.feedforward.dropout if isinstance(block.feedforward, FeedForward) else 0.0
        for name, rate in (("at sublayers", block.dropout), ("at weights", inner), ("at hidden", hidden)):
            rates[name] = max(rates[name], rate)
    last = getattr(model.head, "dropout", 0.0)
    return rates | {"at end": model.dropout, "at head": last}


def tokens(model: Model, lang: str) -> str:
    """The special ids, and which tokens positions count."""
    plain = {name: value for name, value in vars(model.tokens).items() if value not in (None, ())}
    said = [f"{name} {', '.join(map(str, ids)) if isinstance(ids, tuple) else ids}" for name, ids in plain.items()]
    said += [label("padding counted", lang)] if model.counted == "all" else []
    return ", ".join(said) or label("none", lang)
