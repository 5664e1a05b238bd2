"""Where a module attends: every softmax over keys that one forward pass ran, what it was made of, and what it fed.

Shapes: q (…, queries, head_dim), k (…, keys, head_dim), scores, masked and weights (…, queries, keys).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from oneblock.check.finding import Where
from oneblock.check.seeing.made import DEEPEST, PRODUCTS, above, normed, scalar, through, unscaled
from oneblock.check.seeing.watch import COPIES, VIEWS, Operation, users

SOFTMAX = ("_softmax", "_safe_softmax")
FUSED = "_scaled_dot_product"


@dataclass
class Site:
    """One softmax over keys.

    `factor`: scores are this times q·k of what was projected; None where something learned, or unknown, multiplies.
    `kernel` is what the attention itself multiplies q·k with, `before` what q and k were multiplied with on their way.
    `chain`: operations from q·k to the softmax, in order; `after`: from the weights to the product with the values.
    `final`: the weights as values are multiplied with them; `summed` their sums over the axis of the values.
    `normed`: queries or keys were normalised after their projection.
    """

    where: Where
    fused: bool
    q: Tensor
    k: Tensor
    factor: float | None
    kernel: float | None = None
    before: float | None = None
    normed: bool = False
    weights: Tensor | None = None
    final: Tensor | None = None
    summed: Tensor | None = None
    product: Tensor | None = None
    masked: Tensor | None = None
    manual: bool = False
    shifted: bool = True
    softmax: Operation | None = None
    chain: list[Operation] = field(default_factory=list)
    after: list[Operation] = field(default_factory=list)
    out: Operation | None = None
    v: Tensor | None = None
    causal: bool = False
    mask: Tensor | None = None
    dropout: float = 0.0
    q_made: int | None = None
    k_made: int | None = None
    v_made: int | None = None
    """Numbers of the operations that made query, key and value, before they were scaled."""

    @property
    def head_dim(self) -> int:
        """Numbers per query."""
        return self.q.shape[-1]

    @property
    def queries(self) -> int:
        """How many queries."""
        return self.q.shape[-2]

    @property
    def keys(self) -> int:
        """How many keys."""
        return self.k.shape[-2]


def dots(site: Site) -> Tensor:
    """q·k (…, queries, keys), keys that heads share laid under the queries of each."""
    q, k = site.q, site.k
    if q.ndim == k.ndim == 4 and k.shape[1] != q.shape[1] and q.shape[1] % k.shape[1] == 0:
        k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    return q @ k.transpose(-1, -2)


def sites(operations: Sequence[Operation]) -> list[Site]:
    """Every place where this forward pass attended, in order."""
    used = users(operations)
    found = []
    for one in operations:
        if one.name.startswith(FUSED) and len(one.operands) >= 3:
            found.append(fused_site(one, operations))
        elif one.name in SOFTMAX or manual_softmax(one, operations):
            site = written_site(one, operations, used)
            found += [site] if site else []
    return found


def fused_site(one: Operation, operations: Sequence[Operation]) -> Site:
    """A fused kernel: queries, keys and values are its operands."""
    q, k, v = one.operands[:3]
    scale = one.options.get("scale")
    kernel = q.shape[-1] ** -0.5 if scale is None else float(scale)
    (q_made, by_q), (k_made, by_k) = (unscaled(one.sources[n], operations) for n in (0, 1))
    before = times(by_q, by_k)
    causal = any(x is True for x in (*one.arguments, one.options.get("is_causal")))
    mask = one.options.get("attn_mask", one.operands[3] if len(one.operands) > 3 else None)
    numbers = [x for x in one.arguments if isinstance(x, float)]
    return Site(
        one.where, True, q, k, times(kernel, before), kernel, before, normed(q_made, operations), softmax=one, out=one,
        v=v, causal=causal, mask=mask if isinstance(mask, Tensor) else None, dropout=numbers[0] if numbers else 0.0,
        q_made=q_made, k_made=k_made, v_made=unscaled(one.sources[2], operations)[0],
    )  # fmt: skip


def times(*numbers: float | None) -> float | None:
    """The product, None where one of them is not known."""
    found = 1.0
    for number in numbers:
        if number is None:
            return None
        found *= number
    return found


def written_site(one: Operation, operations: Sequence[Operation], used: dict[int, list[Operation]]) -> Site | None:
    """A softmax written out, or None where what it reads was no product of queries and keys."""
    manual = manual_softmax(one, operations)
    chain = climb((manual or one).sources[0], operations, one.result.shape)
    if chain is None:
        return None
    product, *rest = chain
    if product.name in ("addmm", "mm") and product.weights and any(product.weights):
        return None  # a projection: the softmax of a router or of a head
    at = 1 if product.name in ("baddbmm", "addmm") else 0
    q, k = product.operands[at], product.operands[at + 1].transpose(-1, -2)
    (q_made, by_q), (k_made, by_k) = (unscaled(product.sources[at + n], operations) for n in (0, 1))
    alpha = float(product.options.get("alpha", 1.0))
    kernel = None if several(rest, operations) else times(*(scalar(x, operations) for x in rest), alpha)
    site = Site(
        one.where, False, shaped(q, one.result.shape), shaped(k, one.result.shape), times(kernel, by_q, by_k), kernel,
        times(by_q, by_k), normed(q_made, operations), one.result, product=product.result.reshape(one.result.shape),
        masked=(manual or one).operands[0], manual=manual is not None, softmax=one, chain=[product, *rest],
        q_made=q_made, k_made=k_made,
        shifted=manual is None or any(step.name in ("sub", "rsub") for step in rest),
    )  # fmt: skip
    ending(site, one, operations, used)
    return site


def ending(site: Site, one: Operation, operations: Sequence[Operation], used: dict[int, list[Operation]]) -> None:
    """What becomes of the weights."""
    site.after, site.out = down(one, used)
    if site.out is None:
        return
    made = {one.number, *(step.number for step in site.after)}
    last = [through(n, operations) for n in site.out.sources]
    of = next((n for n, step in enumerate(last) if step is not None and step.number in made), None)
    if of is None or len(site.out.operands) < 2:
        return
    given, step = site.out.operands[of], last[of]
    values = 1 - of if len(site.out.operands) == 2 else of + 1
    site.v, site.v_made = site.out.operands[values], unscaled(site.out.sources[values], operations)[0]
    first = of == (1 if site.out.name in ("baddbmm", "addmm") else 0)
    site.summed = given.sum(-1 if first else -2)
    if step is not None and step.result.numel() == one.result.numel():
        site.final = step.result.reshape(one.result.shape)


def several(chain: Sequence[Operation], operations: Sequence[Operation]) -> bool:
    """Whether scores are a sum of several products, as where positions have keys of their own."""
    sums = [one for one in chain if one.name in ("add", "sub") and len(one.sources) > 1]
    return any(all(multiplied(n, operations) for n in one.sources[:2]) for one in sums)


def multiplied(number: int | None, operations: Sequence[Operation]) -> bool:
    """Whether products of what was computed, not of weights, lead to a tensor."""
    return any(one.name in PRODUCTS and not any(one.weights) for one in above(number, operations, 16))


def shaped(x: Tensor, shape: torch.Size) -> Tensor:
    """Queries or keys with the leading axes of the weights, where they have as many; grouped heads keep their own."""
    lead = shape[:-2]
    return x.reshape(*lead, *x.shape[-2:]) if lead.numel() == x.shape[:-2].numel() else x


def manual_softmax(one: Operation, operations: Sequence[Operation]) -> Operation | None:
    """The `exp` of a softmax that was written as exp / sum(exp), else None."""
    if one.name not in ("div", "true_divide") or len(one.sources) < 2 or None in one.sources[:2]:
        return None
    upper, lower = (through(n, operations) for n in one.sources[:2])
    if upper is None or lower is None or lower.name not in ("sum", "add", "clamp", "clamp_min"):
        return None
    if lower.name != "sum":
        lower = next((x for n in lower.sources if (x := through(n, operations)) and x.name == "sum"), lower)
    if lower.name != "sum" or lower.sources[0] is None:
        return None
    summed = through(lower.sources[0], operations)
    same = summed is not None and summed.name == "exp" and torch.equal(summed.result, upper.result)
    return upper if upper.name == "exp" and same else None


def climb(
    start: int | None, operations: Sequence[Operation], shape: torch.Size, depth: int = 0
) -> list[Operation] | None:
    """The operations from a product down to `start`, in order; None where no product of this size lies above."""
    if start is None or depth > DEEPEST:
        return None
    one = operations[start]
    if one.name in PRODUCTS and one.result.numel() == shape.numel():
        return [one]
    if one.result.numel() != shape.numel():
        return None
    for source in one.sources:
        found = climb(source, operations, shape, depth + 1)
        if found is not None:
            return found if one.name in VIEWS | COPIES else [*found, one]
    return None


def down(one: Operation, used: dict[int, list[Operation]]) -> tuple[list[Operation], Operation | None]:
    """(what happens to the weights, the product with the values)."""
    steps: list[Operation] = []
    front, seen = [one], {one.number}
    while front and len(steps) < DEEPEST:
        at = front.pop(0)
        for user in used.get(at.number, []):
            if user.number in seen:
                continue
            seen.add(user.number)
            if user.name in PRODUCTS:
                return steps, user
            if user.name not in VIEWS | COPIES:
                steps.append(user)
            front.append(user)
    return steps, None
