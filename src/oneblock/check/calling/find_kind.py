"""Whether a module is a decoder, an encoder, or both: by its signature, its behaviour, and the signs it carries."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oneblock.check.calling import names
from oneblock.check.calling.adapter import Ask, Kind
from oneblock.check.calling.convention import LENGTH, Convention, attempt, questions
from oneblock.check.calling.sizes import Sizes
from oneblock.check.seeing.watch import VIEWS, Operation, watching
from oneblock.check.subject import gap
from oneblock.words.phrase import Phrase

MASKING = (
    "where",
    "masked_fill",
    "bitwise_and",
    "bitwise_or",
    "bitwise_not",
    "logical_and",
    "logical_or",
    "logical_not",
)
"""Operations on what is True where one may, or must not, look."""


def kind_of(
    twin: nn.Module,
    way: Convention,
    sizes: Sizes,
    told: Kind | None,
) -> tuple[Kind, Phrase]:
    """(kind, why): as told, else by the signature, by behaviour, and by what the module is made of."""
    if told:
        return told, Phrase("as told")
    if way.source:
        return "seq2seq", Phrase("it takes {} and {}", way.source, way.tokens)
    ask = questions(way, sizes)
    other = ask.but(tokens=torch.cat([ask.tokens[:, :-1], ask.tokens[:, -1:].roll(1, 0)], 1))
    y = attempt(twin, way, ask).y
    if y.ndim < 3 or y.shape[1] != LENGTH:
        return "encoder", Phrase("it answers with one vector per text")
    z = attempt(twin, way, other).y
    if gap(z[:, :-1], y[:, :-1]) <= 1e-6:
        return "decoder", Phrase("changing the last token changes nothing before it")
    sign = names.means_causal(twin) or lower_triangle(twin, way, ask)
    if sign:
        return "decoder", sign
    return "encoder", Phrase("earlier tokens see later ones, and nothing says that they must not")


def lower_triangle(twin: nn.Module, way: Convention, ask: Ask) -> Phrase | None:
    """A sign that a triangle was meant: a call of tril or triu, or a buffer that holds one."""
    for name, buffer in twin.named_buffers():
        x = buffer.squeeze()
        if x.ndim == 2 and x.shape[0] == x.shape[1] > 1:
            hidden = (x == 0) if not x.is_floating_point() or x.min() >= 0 else (x != 0)
            upper = torch.ones_like(hidden).triu(1).bool()
            if torch.equal(hidden.bool(), upper) or torch.equal(hidden.bool(), ~upper):
                return Phrase("its buffer {} is a triangle", name)
    from_torch = triangles(twin, way, ask)
    return Phrase("it makes a triangle ({})", from_torch) if from_torch else None


def triangles(twin: nn.Module, way: Convention, ask: Ask) -> str:
    """The operation of one forward pass that makes a triangle or attends causally, if any."""
    with watching(twin) as watch:
        attempt(twin, way, ask)
    for one in watch.operations:
        compared = one.name in ("lt", "gt", "le", "ge") and square_triangle(one.result)
        made = one.name in ("tril", "triu") and len({*one.result.shape[-2:]}) == 1  # windows have other shapes
        if made or (compared and masks(one, watch.operations)):
            return one.name
        if one.name.startswith("_scaled_dot_product") and any(x is True for x in one.arguments):
            return "is_causal"
    return ""


def masks(one: Operation, operations: list[Operation]) -> bool:
    """Whether a comparison is used as a mask, and not counted with, as buckets of distances are."""
    seen = {one.number}
    for user in operations[one.number + 1 :]:
        if seen.isdisjoint(user.sources):
            continue
        if user.name in MASKING:
            return True
        if user.name in VIEWS:
            seen.add(user.number)
    return False


def square_triangle(x: Tensor) -> bool:
    """Whether the last two axes hold a triangle of True."""
    x = x.bool()
    while x.ndim > 2:
        x = x[0]
    if x.ndim != 2 or x.shape[0] != x.shape[1]:
        return False
    lower = torch.ones_like(x).tril()
    upper = torch.ones_like(x).triu(1)
    return any(torch.equal(x, one) or torch.equal(x, ~one) for one in (lower, upper))
