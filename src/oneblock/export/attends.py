"""The one class of attention that a file has, written for all attentions of a model at once."""

from __future__ import annotations

from typing import Any

from oneblock.export.file import File
from oneblock.export.parts import norm, placed
from oneblock.export.values import Code
from oneblock.spec import (
    Alibi,
    Attention,
    Relative,
    Rope,
    Whole,
    dims,
)

Asked = tuple[Attention, bool, bool]
"""An attention, whether it reads a memory, and whether its stack gives it a bias."""
WIDTHS = {"dim": "DIM", "heads": "HEADS", "kv_heads": "KV_HEADS", "head_dim": "HEAD_DIM", "value_dim": "VALUE_DIM"}
"""What is known of widths -> its constant."""
USUALLY = {"kv_heads": "heads", "value_dim": "head_dim"}
"""Widths that are usually equal to another one, and then go by its name."""


def attention(file: File, found: list[Asked]) -> None:
    """Write the class of attention for all that a model has, and remember what it is told besides the stream."""
    distinct = list(dict.fromkeys(found))
    if not distinct:
        return
    asks = [one for one, _, _ in distinct]
    widths = [dict(zip(("kv_heads", "head_dim", "value_dim"), dims(one, file.dim), strict=True)) for one in asks]
    flow = flows(distinct)
    uses = [flow | known(one) | width | {"dim": file.dim} for one, width in zip(asks, widths, strict=True)]
    aliases = {name: same for name, same in USUALLY.items() if all(use[name] == use[same] for use in uses)}
    for use, one in zip(uses, asks, strict=True):
        use |= modules(file, one, {name: width_of(file, aliases.get(name, name), use, uses) for name in WIDTHS})
    told = {
        "position": ("sometimes" if flow["lent"] == "sometimes" else "always") if needs_position(asks) else "never",
        "bias": flow["given"],
        "memory": flow["lent"],
        "there": flow["placed"],
    }
    file.context = ["see", *(word for word in ("position", "bias") if told[word] != "never")]
    said = [f"{word}: Tensor{'' if when == 'always' else ' | None = None'}" for word, when in told.items()]
    said = [one for one, when in zip(said, told.values(), strict=True) if when != "never"]
    names = WIDTHS | {"scale": "SCALE", "softcap": "SOFTCAP", "dropout": file.share_name("ATTENTION_DROPOUT")}
    renamed = {"memory": "x"} if flow["lent"] == "never" else {}
    renamed |= {"there": "position"} if flow["placed"] == "never" else {}
    calls = file.brick(
        "Attention", uses, names, aliases=aliases, renamed=renamed,
        signatures={"forward": ", ".join(["x: Tensor", "see: Tensor", *said])},
        docs={"Attention": formula(asks, flow["added"] != "never")},
    )  # fmt: skip
    file.made |= dict(zip(distinct, calls, strict=True))


def needs_position(asks: list[Attention]) -> bool:
    """Whether any attention knows where tokens stand by itself."""
    return any(one.position is not None for one in asks)


def flows(distinct: list[Asked]) -> dict[str, Any]:
    """What a forward pass must ask because attentions of one file differ in it: always, sometimes, or never.

    lent: reads a memory. given: is given a bias. own: whether any has one of its own. lacking: what one without adds.
    added: has a bias at all. placed: is told where a memory's tokens stand. drops: whether any drops weights.
    """
    owns = [isinstance(one.position, Alibi | Relative) for one, _, _ in distinct]
    given = often([use[2] for use in distinct])
    lent = often([use[1] for use in distinct])
    return {
        "lent": lent,
        "given": given,
        "own": any(owns),
        "lacking": Code("None" if given == "never" else "bias"),
        "added": often([own or use[2] for own, use in zip(owns, distinct, strict=True)]),
        "placed": lent if any(reads and one.position for one, reads, _ in distinct) else "never",
        "drops": any(one.dropout for one, _, _ in distinct),
    }


def often(truths: list[bool]) -> str:
    """How often something is true.

    >>> often([True, False])
    'sometimes'
    """
    return "always" if all(truths) else "sometimes" if any(truths) else "never"


def known(one: Attention) -> dict[str, Any]:
    """What is known of an attention besides its widths and its modules."""
    whole = isinstance(one.qk_norm, Whole)
    return {
        "heads": one.heads, "bias": one.bias, "out_bias": one.bias if one.out_bias is None else one.out_bias,
        "whole": whole, "each": one.qk_norm is not None and not whole, "softcap": one.softcap, "scale": one.scale,
        "dropout": one.dropout, "grouped": one.kv_heads not in (None, one.heads),
    }  # fmt: skip


def modules(file: File, one: Attention, text: dict[str, str]) -> dict[str, Code | None]:
    """How the modules inside an attention are made; `text` names its widths."""
    whole = isinstance(one.qk_norm, Whole)
    inner = one.qk_norm.norm if isinstance(one.qk_norm, Whole) else one.qk_norm
    made: dict[str, Code | None] = {}
    for name, heads in (("q_norm", "heads"), ("k_norm", "kv_heads")):
        call = norm(file, inner, f"{text[heads]} * {text['head_dim']}" if whole else text["head_dim"])
        made[name] = Code(f'nn.ModuleDict({{"norm": {call}}})') if whole else call
    place = None if one.position is None else file.made[placed(one, file.dim)]
    turned = isinstance(one.position, Rope)
    return made | {"rotary": place if turned else None, "position": None if turned else place}


def width_of(file: File, name: str, use: dict[str, Any], uses: list[dict[str, Any]]) -> str:
    """A width by its name where all uses have the same."""
    alike = len({other[name] for other in uses}) == 1
    return file.constants.use(WIDTHS[name], use[name]) if alike else str(use[name])


def formula(asks: list[Attention], biased: bool) -> str:
    """Attention as an equation."""
    usual = all(one.scale is None for one in asks)
    scores = "q k^T" if {one.scale for one in asks} == {1.0} else "q k^T / sqrt(head_dim)" if usual else "scale * q k^T"
    scores = f"cap({scores})" if any(one.softcap for one in asks) else scores
    return f"softmax({scores}{' + bias' if biased else ''}) v for each head, then a projection: tokens look at tokens."


__all__ = ["attention"]
