"""Faults that others reported in experts, starts, lengths and fused matrices: the right value, by their numbers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from oneblock.bricks import build
from oneblock.bricks.experts import imbalance
from oneblock.generate import beam_search
from oneblock.spec import (
    FeedForward,
    MoE,
    Softmax,
    TopSoftmax,
    put,
)
from oneblock.weights import rows
from oneblock.zoo import FAMILIES, named
from oneblock.zoo.config import read_config
from oneblock.zoo.family import Fused
from specs import exact, same, translator


def test_B43_every_finished_beam_scores_the_mean_of_its_new_tokens() -> None:
    """Every token has log-probability -10.825: behind a prompt of any length that is the score too."""

    class Even:
        def __call__(self, tokens: Tensor) -> Tensor:
            return torch.zeros(len(tokens), 50_257, dtype=torch.float64)

        def reorder(self, kept: Tensor, sentences: Tensor | None) -> None:
            pass

    found = beam_search(Even(), 1, start=0, eos=2, beam=4, n_best=4, max_length=10, length_penalty=1.0)[0]
    assert [best.score for best in found] == pytest.approx([-10.825] * 4, abs=1e-3)


def routed(shares: list[list[float]], chosen: list[list[int]], layers: int = 1) -> float:
    return imbalance([(torch.tensor(shares), torch.tensor(chosen))] * layers, None).item()


@pytest.mark.parametrize("layers", [1, 3])
def test_B62_an_even_router_is_2_and_one_that_uses_two_of_eight_experts_is_8(layers: int) -> None:
    even = [[1 / 8] * 8] * 4
    assert routed(even, [[0, 1], [2, 3], [4, 5], [6, 7]], layers) == pytest.approx(2.0)
    assert routed([[0.5, 0.5] + [0.0] * 6] * 5, [[0, 1]] * 5, layers) == pytest.approx(8.0)


def test_B62_layers_are_one_sample_and_padding_none() -> None:
    """Two layers, each of which uses one half of the experts, are balanced together."""
    left, right = ([[0.5, 0.5, 0, 0]] * 2, [[0, 1]] * 2), ([[0, 0, 0.5, 0.5]] * 2, [[2, 3]] * 2)
    both = [tuple(map(torch.tensor, one)) for one in (left, right)]
    assert imbalance(both, None).item() == pytest.approx(2.0)
    assert [imbalance([one], None).item() for one in both] == pytest.approx([4.0, 4.0])
    mixed = torch.cat([both[0][0][:1], both[1][0][:1]]), torch.cat([both[0][1][:1], both[1][1][:1]])
    assert imbalance([mixed], torch.tensor([[True, False]])).item() == pytest.approx(4.0)


ROUTERS = {
    "renormalised": (Softmax(), [0.7311, 0.2689]),
    "over the chosen": (TopSoftmax(), [0.7311, 0.2689]),
    "shares": (Softmax(renormalise=False), [0.6439, 0.2369]),
}


def weights(router: Any, scores: list[float], active: int = 2) -> list[float]:
    """What a router gives the experts it chooses, best first."""
    brick = build(MoE(FeedForward(3), len(scores), active, router), 1).double()
    with torch.no_grad():
        brick.router.weight.copy_(torch.tensor(scores)[:, None])
        return brick.route(torch.ones(1, 1, dtype=torch.float64), None)[0][0].tolist()


@pytest.mark.parametrize("name", ROUTERS)
def test_B64_softmax_before_or_after_the_choice_is_one_function_once_renormalised(name: str) -> None:
    router, expected = ROUTERS[name]
    assert weights(router, [2.0, 1.0, 0.0, -1.0]) == pytest.approx(expected, abs=5e-5)
    for _ in range(20):
        scores = (3 * torch.randn(6)).tolist()
        one, two, plain = (weights(router, scores, 3) for router, _ in ROUTERS.values())
        assert one == pytest.approx(two, abs=1e-12)
        assert plain != pytest.approx(one, abs=1e-6)


@pytest.mark.parametrize(("name", "total"), [("renormalised", 1.0), ("over the chosen", 1.0), ("shares", 0.8808)])
def test_B65_weights_are_shares_and_never_raw_scores(name: str, total: float) -> None:
    assert sum(weights(ROUTERS[name][0], [2.0, 1.0, 0.0, -1.0])) == pytest.approx(total, abs=5e-5)
    for scores in ([30.0, -30.0, 3.0], [-5.0, -6.0, -7.0], [0.0, 0.0, 0.0]):
        found = weights(ROUTERS[name][0], scores)
        assert all(0 < weight <= 1 for weight in found)
        assert sum(found) <= 1 + 1e-12


def test_B65_a_family_names_its_way() -> None:
    config = {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "num_hidden_layers": 1}
    for said, router in ((True, Softmax()), (False, Softmax(renormalise=False))):
        spec = read_config(config | {"norm_topk_prob": said}, FAMILIES)[2]
        assert spec.layers[0].feedforward.router == router
    assert named("mixtral").layers[0].feedforward.router == Softmax()
    with pytest.raises(ValueError, match="norm_topk_probs: not understood"):
        read_config(config | {"norm_topk_probs": True}, FAMILIES)


@pytest.mark.parametrize(
    ("groups", "fused"),
    [(2, [1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3]), (1, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3])],
    ids=["by head", "by kind"],
)
@pytest.mark.parametrize("ndim", [2, 1])
def test_B71_queries_keys_and_values_of_one_matrix_come_apart(groups: int, fused: list[int], ndim: int) -> None:
    """Two heads of two features; a matrix of theirs, or its bias."""
    row, theirs = Fused("qkv", groups), torch.tensor(fused, dtype=torch.float32)
    theirs = theirs[:, None].expand(12, 5).clone() if ndim == 2 else theirs
    shape = (4, 5) if ndim == 2 else (4,)
    parts = rows.ours(row, [theirs], [shape] * 3)
    assert [tuple(part.shape) for part in parts] == [shape] * 3
    assert [part.unique().tolist() for part in parts] == [[1], [2], [3]]
    assert torch.equal(rows.theirs(row, parts)[0], theirs)
    with pytest.raises(ValueError, match="qkv: expected 12 rows, got 11"):
        rows.ours(row, [theirs[:11]], [shape] * 3)


def test_B71_each_family_names_its_layout() -> None:
    def row(name: str, **sizes: Any) -> Any:
        family = FAMILIES[name]
        spec = named(name, dim=8, depth=1, heads=2, vocab=13, **sizes)
        return family.row(spec, next(iter(family.kinds.values())))["layers.*.attention.{q,k,v}"][0]

    assert row("neox").groups == 2
    assert row("gpt2").groups == row("phi3").groups == 1


def test_B70_a_config_names_the_start_or_padding_is_it() -> None:
    config = {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "pad_token_id": 1}
    assert read_config(config | {"decoder_start_token_id": 0}, FAMILIES)[2].decoder.tokens.start == 0
    model = exact(put(translator(), "decoder.tokens", read_config(config, FAMILIES)[2].decoder.tokens))
    labels = torch.tensor([[5, 6]])
    source = torch.tensor([[7, 8, 9]])
    same(model(source, labels=labels).logits, model(source, decoder_input_ids=torch.tensor([[1, 5]])).logits)
