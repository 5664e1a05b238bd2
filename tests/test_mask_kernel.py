"""Every way of computing attention means what the mask says: kernel, written-out softmax, chunks, plain loops."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from oneblock.bricks.attend import Softmax, attend, fused, written
from oneblock.mask import Places, Sight, allowed, places
from oneblock.spec import Causal, Full, Mask, Window
from oracle import chunked, loops, visible
from specs import ANY, same


@dataclass
class Case:
    """One random attention: (batch, heads, length, width) tensors, and who may see whom."""

    q: Tensor
    k: Tensor
    v: Tensor
    sight: Sight
    bias: Tensor | None
    scale: float = 0.7

    def tensors(self) -> list[Tensor]:
        return [self.q, self.k, self.v, *([] if self.bias is None else [self.bias])]


class Table:
    """A position bias that looks its numbers up by the index of the query."""

    def __init__(self, table: Tensor, q: Places) -> None:
        self.table, self.first = table, int(q.index[0, 0])

    def __call__(self, q: Places, k: Places) -> Tensor:
        return self.table[:, :, q.index[0] - self.first, : k.length]


rules = st.sampled_from([*ANY, Window(2) & Window(4, ahead=1), Full() & Causal()])


@st.composite
def keys(draw: st.DrawFn, batch: int, length: int) -> Places:
    """Places of keys: padding anywhere, documents of any lengths."""
    bits = st.lists(st.integers(0, 1), min_size=length, max_size=length)
    real = draw(st.none() | st.lists(bits, min_size=batch, max_size=batch))
    borders = draw(st.none() | st.lists(bits, min_size=batch, max_size=batch))
    document = None if borders is None else torch.tensor(borders).cumsum(1)
    return places(length, None if real is None else torch.tensor(real), document=document)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    batch, kv_heads, group = draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    length, width, value = draw(st.integers(1, 6)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    k = draw(keys(batch, length))
    kind = draw(st.sampled_from(["all", "last", "elsewhere"]))
    first = draw(st.integers(0, length - 1))
    q = {"all": k, "last": k.part(first, length), "elsewhere": places(draw(st.integers(1, 5)))}[kind]
    torch.manual_seed(draw(st.integers(0, 9)))
    heads = kv_heads * group
    bias = torch.randn(draw(st.integers(1, batch)), heads, q.length, length, dtype=torch.float64)
    bias = bias.requires_grad_() if draw(st.booleans()) else None
    sight = Sight(draw(rules), q, k, None if bias is None else Table(bias, q))
    q = torch.randn(batch, heads, q.length, width, dtype=torch.float64, requires_grad=True)
    k = torch.randn(batch, kv_heads, length, width, dtype=torch.float64, requires_grad=True)
    v = torch.randn(batch, kv_heads, length, value, dtype=torch.float64, requires_grad=True)
    return Case(q, k, v, sight, bias)


def seen(case: Case) -> list[list[list[bool]]]:
    return visible(case.sight.mask, case.sight.q, case.sight.k, len(case.q))


def fresh(sight: Sight) -> Sight:
    return Sight(sight.mask, sight.q, sight.k, sight.bias)


def answers(case: Case, way: str, softcap: float | None) -> list[Tensor]:
    """The output of one way, and its gradients."""
    softmax, sight = Softmax(case.scale, softcap), fresh(case.sight)
    if way == "loops":
        out = loops(case.q, case.k, case.v, seen(case), case.scale, case.bias, softcap)
    elif way == "chunks":
        with chunked(2):
            out = attend(case.q, case.k, case.v, sight, softmax)
    else:
        out = {"kernel": fused, "written": written, "attend": attend}[way](case.q, case.k, case.v, sight, softmax)
    found = torch.autograd.grad((out * out.detach().cos()).sum() + out.sum(), case.tensors(), allow_unused=True)
    return [
        out.detach(),
        *(torch.zeros_like(x) if g is None else g for g, x in zip(found, case.tensors(), strict=True)),
    ]


@settings(max_examples=120)
@given(cases(), st.sampled_from([None, 1.5]))
def test_N01_E11_every_way_is_the_loops_forward_and_backward(case: Case, softcap: float | None) -> None:
    expected = answers(case, "loops", softcap)
    for way in ("written", "chunks", "attend", *(["kernel"] if softcap is None else [])):
        for got, right in zip(answers(case, way, softcap), expected, strict=True):
            assert got.isfinite().all()
            same(got, right, 1e-12)


@settings(max_examples=150)
@given(cases())
def test_allowed_is_the_words_of_the_mask(case: Case) -> None:
    shown = allowed(case.sight.mask, case.sight.q, case.sight.k)
    expected = torch.tensor(seen(case))
    assert torch.equal(shown.expand_as(expected), expected)


@settings(max_examples=150)
@given(cases())
@example(Case(*[torch.zeros(1, 1, 1, 1)] * 3, Sight(Causal(), places(1), places(1)), None))
def test_the_kernels_arguments_mean_the_same_as_the_mask(case: Case) -> None:
    sight, expected = fresh(case.sight), torch.tensor(seen(case))[:, None]
    arguments = sight.kernel
    if not arguments:
        assert expected.all()
    elif "is_causal" in arguments:
        assert arguments == {"is_causal": True}
        assert torch.equal(expected, torch.ones_like(expected).tril())
    elif case.bias is None:
        assert torch.equal(arguments["attn_mask"].expand_as(expected), expected)
    else:
        shown = arguments["attn_mask"] > -torch.inf
        assert torch.equal(*torch.broadcast_tensors(shown, expected))


@pytest.mark.parametrize(
    ("mask", "real", "arguments"),
    [
        (Full(), None, {}),
        (Causal(), None, {"is_causal": True}),
        (Full() & Causal(), None, {"is_causal": True}),
        (Full(), torch.ones(2, 4), {}),
        (Causal(), torch.ones(2, 4), {"is_causal": True}),
    ],
)
def test_the_cheapest_arguments_are_taken(mask: Mask, real: Tensor | None, arguments: dict[str, bool]) -> None:
    here = places(4, real)
    assert Sight(mask, here, here).kernel == arguments


def test_B19_causal_is_not_left_to_the_kernel_where_queries_are_only_the_last_keys() -> None:
    k = places(5)
    sight = Sight(Causal(), k.part(3, 5), k)
    assert "is_causal" not in sight.kernel
    assert sight.kernel["attn_mask"][0, 0].int().tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]


@settings(max_examples=60)
@given(cases(), st.integers(1, 3))
def test_rows_of_a_sight_are_rows_of_its_answer(case: Case, size: int) -> None:
    sight = Sight(case.sight.mask, case.sight.q, case.sight.k)
    length = sight.q.length
    parts = [sight.rows(a, a + size).visible for a in range(0, length, size)]
    joined = torch.cat([part.expand(-1, -1, min(size, length - i * size), -1) for i, part in enumerate(parts)], 2)
    assert torch.equal(joined, sight.visible.expand_as(joined))


@settings(max_examples=40)
@given(
    batch=st.integers(1, 3), kv_heads=st.integers(1, 2), group=st.integers(1, 3), keys=st.integers(1, 9),
    wide=st.integers(1, 2), hidden=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_a_lone_query_in_half_precision_is_the_kernel_within_rounding(
    batch: int, kv_heads: int, group: int, keys: int, wide: int, hidden: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    q = torch.randn(batch, kv_heads * group, 1, 4).bfloat16()
    k, v = torch.randn(batch, kv_heads, keys, 4).bfloat16(), torch.randn(batch, kv_heads, keys, 4 * wide).bfloat16()
    mask = torch.ones(batch, keys)
    mask[:, : keys // 2] = 0
    there = places(keys, mask if hidden else None)
    sight = Sight(Full(), there.part(keys - 1, keys), there)
    found = attend(q, k, v, sight, Softmax(0.5))
    expected = fused(q.float(), k.float(), v.float(), sight, Softmax(0.5))
    torch.testing.assert_close(found.float(), expected, rtol=0.02, atol=0.02)


@pytest.mark.parametrize(("rule", "free"), [(Causal(), True), (Full(), True), (Window(2), False)])
def test_the_newest_token_alone_needs_no_mask(rule: Mask, free: bool) -> None:
    before, now = places(3), places(1, past=places(3))
    sight = Sight(rule, now, before.then(now))
    assert sight.symbolic == free
    assert (sight.kernel == {}) == free
    assert bool(sight.visible.all()) == free
    older = Sight(Causal(), before.part(1, 2), before.then(now))
    assert not older.symbolic
    hidden = Sight(Causal(), now, places(3, torch.tensor([[0, 1, 1]])).then(now))
    assert not hidden.symbolic
