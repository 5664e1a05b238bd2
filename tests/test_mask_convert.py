"""Masks of other libraries: opposite polarities are turned, and what would hide nothing is refused."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from oneblock.bricks import Context
from oneblock.mask import allowed, from_added, from_hidden, places, to_added, to_hidden
from oneblock.spec import Attention, Causal, Full
from specs import exact, same

grids = st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=4).map(torch.tensor)
dtypes = st.sampled_from([torch.float32, torch.float64, torch.float16, torch.bfloat16])


@given(grids, dtypes)
def test_B01_there_and_back(visible: Tensor, dtype: torch.dtype) -> None:
    assert torch.equal(from_hidden(to_hidden(visible)), visible)
    added = to_added(visible, dtype)
    assert added.dtype == dtype
    assert torch.equal(from_added(added), visible)
    assert torch.equal(from_hidden(added), visible)
    least = torch.zeros(visible.shape, dtype=dtype).masked_fill(~visible, torch.finfo(dtype).min)
    assert torch.equal(from_added(least), visible)


def test_B01_true_means_may_look_here_and_in_the_kernel_and_the_opposite_in_multihead_attention() -> None:
    q, k, v = torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 2, 2), torch.eye(2)[None, None]
    mask = torch.tensor([[True, False]])
    assert F.scaled_dot_product_attention(q, k, v, attn_mask=mask).flatten().tolist() == [1, 0]
    hidden = to_hidden(mask)
    assert hidden.tolist() == [[False, True]]
    other = nn.MultiheadAttention(2, 1, bias=False, batch_first=True)
    with torch.no_grad():
        weights = other(torch.ones(1, 1, 2), torch.ones(1, 2, 2), torch.ones(1, 2, 2), attn_mask=hidden)[1]
    assert weights.flatten().tolist() == [1, 0]


def test_B01_causal_as_multihead_attention_wants_it() -> None:
    shown = allowed(Causal(), places(3), places(3))[0]
    assert torch.equal(to_hidden(shown), torch.ones(3, 3).triu(1).bool())
    assert torch.equal(to_added(shown), nn.Transformer.generate_square_subsequent_mask(3))


@pytest.mark.parametrize("mask", [[[0.0, 1.0]], [[1.0, 0.0]], [[1.0, 1.0]]])
def test_B02_floats_of_only_0_and_1_are_refused(mask: list[list[float]]) -> None:
    for convert in (from_hidden, from_added):
        with pytest.raises(ValueError, match="floats of only 0 and 1 would be added to the scores and hide nothing"):
            convert(torch.tensor(mask))


def test_B02_what_they_would_have_done() -> None:
    q, k, v = torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 2, 2), torch.eye(2)[None, None]
    weights = F.scaled_dot_product_attention(q, k, v, attn_mask=torch.tensor([[1.0, 0.0]])).flatten()
    assert weights.tolist() == pytest.approx([0.7311, 0.2689], abs=1e-4)


@pytest.mark.parametrize("number", [-1e4, -1e9, 0.5, 3.0])
def test_E11_a_finite_fill_is_no_mask(number: float) -> None:
    with pytest.raises(ValueError, match="expected only 0 and -inf, got other numbers; a bias is no mask"):
        from_added(torch.tensor([[0.0, number]]))


def test_whole_numbers_are_refused_with_the_way_they_should_go() -> None:
    with pytest.raises(ValueError, match="1 = real masks go in as attention_mask"):
        from_hidden(torch.tensor([[0, 1]]))


def test_zeros_hide_nothing_and_are_fine() -> None:
    assert from_added(torch.zeros(2, 2)).all()


@pytest.mark.parametrize("mask", [Causal(), Full()])
def test_N20_multihead_attention_with_our_masks_is_our_attention(mask: Causal | Full) -> None:
    ours, theirs = exact(Attention(2, mask=mask, bias=True), 8), nn.MultiheadAttention(8, 2, batch_first=True).double()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.q.weight, ours.k.weight, ours.v.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.q.bias, ours.k.bias, ours.v.bias]))
        theirs.out_proj.load_state_dict(ours.out.state_dict())
    x, real = torch.randn(2, 4, 8, dtype=torch.float64), torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
    here = places(4, real)
    expected = ours(x, Context(here))
    shown = allowed(mask, here, here).repeat_interleave(2, 0)
    same(theirs(x, x, x, attn_mask=to_hidden(shown).expand(4, 4, 4), need_weights=False)[0], expected)
    rule = to_hidden(allowed(mask, places(4), places(4))[0]).expand(4, 4)
    same(theirs(x, x, x, attn_mask=rule, key_padding_mask=to_hidden(real.bool()), need_weights=False)[0], expected)
