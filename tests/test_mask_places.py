"""Where tokens stand: counting under padding, after a past, and per document; masks as rules without order."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oneblock.mask import Places, allowed, places, rule
from oneblock.spec import Causal, Every, Full, Mask, Window, atoms
from oracle import visible
from specs import ANY

rules = st.recursive(st.sampled_from(ANY), lambda inner: st.builds(lambda a, b: a & b, inner, inner), max_leaves=4)
bits = st.lists(st.integers(0, 1), min_size=5, max_size=5)


def test_all_ones_is_no_mask_at_all() -> None:
    assert places(3, torch.ones(2, 3)).real is None
    assert places(3, torch.ones(2, 3, dtype=torch.bool)).plain
    assert not places(3, torch.tensor([[1, 1, 0]])).plain
    assert not places(3, document=torch.tensor([[0, 0, 1]])).plain


@given(st.lists(bits, min_size=1, max_size=3))
def test_B08_real_tokens_are_counted_from_0(rows: list[list[int]]) -> None:
    here = places(5, torch.tensor(rows))
    for row, positions in zip(rows, here.position.expand(len(rows), -1).tolist(), strict=True):
        count = 0
        for real, position in zip(row, positions, strict=True):
            count += real
            assert position == max(count - 1, 0)
    assert here.index.tolist() == [[0, 1, 2, 3, 4]]


@given(st.lists(bits, min_size=1, max_size=3), st.integers(1, 4), st.booleans())
def test_B10_counting_goes_on_after_a_past(rows: list[list[int]], first: int, whole: bool) -> None:
    mask = torch.tensor(rows)
    past = places(first, mask[:, :first])
    new = places(5 - first, mask if whole else mask[:, first:], past=past)
    both, expected = past.then(new), places(5, mask)
    for name in ("index", "position"):
        assert torch.equal(*torch.broadcast_tensors(getattr(both, name), getattr(expected, name))), name
    real = torch.ones(1, 1) if both.real is None else both.real
    assert torch.equal(real.expand(len(rows), 5).bool(), mask.bool())


def test_without_a_mask_counting_goes_on_from_the_last_real_token() -> None:
    past = places(3, torch.tensor([[0, 0, 1], [1, 1, 1], [0, 0, 0]]))
    assert places(2, past=past).position.tolist() == [[1, 2], [3, 4], [0, 1]]


def test_given_positions_are_kept() -> None:
    assert places(3, position=torch.tensor([4, 4, 9])).position.tolist() == [[4, 4, 9]]
    assert places(3, torch.tensor([[0, 1, 1]]), position=torch.tensor([[7, 8, 9]])).position.tolist() == [[7, 8, 9]]


def test_parts_and_rows() -> None:
    here = places(4, torch.tensor([[0, 1, 1, 1], [1, 1, 1, 1]]))
    assert here.part(1, 3).index.tolist() == [[1, 2]]
    assert here.part(1, 3).real.tolist() == [[True, True], [True, True]]
    picked = here.rows(torch.tensor([1, 0, 1]))
    assert picked.real[:, 0].tolist() == [True, False, True]
    assert picked.index.shape == (1, 4)
    assert here.length == 4


@pytest.mark.parametrize("shape", [(2, 2), (2, 4), (6,), (1, 1, 3)])
def test_a_mask_of_another_length_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"attention_mask: expected \(batch, 3\)"):
        places(3, torch.ones(shape))


@given(st.lists(st.sampled_from(ANY), min_size=1, max_size=4))
def test_conjunction_has_no_order_no_repeats_and_no_depth(masks: list[Mask]) -> None:
    def joined(parts: tuple[Mask, ...]) -> Mask:
        first, *others = parts
        for other in others:
            first = first & other
        return first

    expected = Every.of(*masks)
    for order in permutations(masks):
        assert joined(order) == expected
        assert hash(joined(order)) == hash(expected)
    assert expected & expected == expected
    assert expected & Full() == expected
    assert not any(isinstance(part, Every) for part in atoms(expected))


@given(rules, rules)
def test_a_conjunction_allows_what_both_allow(a: Mask, b: Mask) -> None:
    here = places(6)
    both = allowed(a & b, here, here)
    assert torch.equal(*torch.broadcast_tensors(both, allowed(a, here, here) & allowed(b, here, here)))


@given(rules, bits, bits)
def test_documents_do_not_look_at_each_other(mask: Mask, borders: list[int], real: list[int]) -> None:
    document = torch.tensor([borders]).cumsum(1)
    here = places(5, torch.tensor([real]), document=document)
    shown = allowed(mask, here, here)
    assert torch.equal(shown.expand(1, 5, 5), torch.tensor(visible(mask, here, here, 1)))
    assert not (shown.expand(1, 5, 5) & (document[:, :, None] != document[:, None, :])).any()


@given(rules, st.lists(bits, min_size=2, max_size=2), st.lists(bits, min_size=2, max_size=2))
def test_the_same_rule_builds_flex_attentions_mask(mask: Mask, real: list[list[int]], borders: list[list[int]]) -> None:
    create_mask = pytest.importorskip("torch.nn.attention.flex_attention").create_mask
    here = places(5, torch.tensor(real), document=torch.tensor(borders).cumsum(1))
    shown, index, document = torch.tensor(real).bool(), here.index[0], here.document

    def mask_mod(b: torch.Tensor, h: torch.Tensor, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
        return rule(mask, index[q], index[k]) & shown[b, k] & (document[b, q] == document[b, k])

    dense = create_mask(mask_mod, 2, 1, 5, 5, device="cpu")
    assert torch.equal(dense[:, 0], allowed(mask, here, here).expand(2, 5, 5))


def test_places_hold_tensors_and_compare_by_identity() -> None:
    here = places(2)
    assert here == here
    assert here != places(2)
    assert isinstance(hash(here), int)
    assert isinstance(here, Places)


def test_windows_count_the_query_itself() -> None:
    here = places(4)
    assert allowed(Window(1, ahead=0), here, here)[0].int().tolist() == torch.eye(4).int().tolist()
    assert allowed(Window(2), here, here)[0].int().tolist() == [[1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1]]
    assert allowed(Causal() & Window(2), here, here)[0].sum(-1).tolist() == [1, 2, 2, 2]
