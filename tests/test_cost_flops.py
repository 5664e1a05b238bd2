"""FLOPs by closed form are what torch's counter counts on meta tensors: every family, with and without a cache."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from torch.utils.flop_counter import flop_registry

from oneblock.cost import cost
from oneblock.explain.counted import answer, flops, forward, on_meta
from oneblock.spec import Spec
from oneblock.zoo import FAMILIES, named
from specs import specs
from test_families_cached import SMALL, TINY, WRITERS

BATCH, LENGTH, SOURCE = 2, 9, 7


def tiny(name: str) -> Spec:
    return named(name, **(SMALL | TINY.get(name, {})))


def counted(spec: Spec, length: int = LENGTH) -> tuple[int, int]:
    """(forward, backward) of a model without dropout, its scores written out."""
    job, out = cost(spec, BATCH, length, source=SOURCE).job, []
    run = forward(on_meta(spec).eval(), job)
    return flops(lambda: out.append(answer(run())))[""], flops(lambda: out[0].float().sum().backward())[""]


@pytest.mark.parametrize("name", FAMILIES)
def test_forward_and_backward_of_every_family_are_what_a_counter_counts(name: str) -> None:
    said = cost(tiny(name), BATCH, LENGTH, "train", source=SOURCE, attention="plain")
    assert (said.forward, said.backward) == counted(tiny(name))
    assert said.forward == cost(tiny(name), BATCH, LENGTH, source=SOURCE).forward


@pytest.mark.parametrize("length", [1, LENGTH])
@pytest.mark.parametrize("name", WRITERS)
def test_a_step_with_a_cache_is_what_a_counter_counts(name: str, length: int) -> None:
    said = cost(tiny(name), BATCH, length, "decode", source=SOURCE)
    with torch.no_grad():
        assert said.forward == flops(forward(on_meta(tiny(name)).eval(), said.job))[""]


@settings(max_examples=25, deadline=None)
@given(specs)
def test_any_spec_is_counted_forward_and_backward(spec: Spec) -> None:
    said = cost(spec, BATCH, LENGTH, "train", source=SOURCE, attention="plain")
    assert (said.forward, said.backward) == counted(spec)


def test_291_648_307_200_flops() -> None:
    """As the sizing notebook of nanoGPT has it, with its 17,716,740,096 per block."""
    spec = named("gpt2")
    said = cost(spec, length=1024)
    assert said.forward == 291_648_307_200
    block = [line for line in said.lines if line.path.startswith("layers.0")]
    assert {line.times for line in block} == {12}
    assert sum(term.value for line in block for term in line.terms if term.column == "forward") == 17_716_740_096


@pytest.mark.parametrize(("kv_heads", "keys"), [(4, 9), (2, 300)])
def test_the_fused_kernel_makes_five_products_backward_as_the_counter_has_it(kv_heads: int, keys: int) -> None:
    """The counter knows the kernel of GPUs; its formula is called here with the shapes of one attention."""
    spec = named("llama", **(SMALL | {"depth": 1, "kv_heads": kv_heads}))
    said = cost(spec, BATCH, keys, "train", attention="fused")
    mine = {
        column: sum(
            term.value
            for line in said.lines
            for term in line.terms
            if (term.column, term.name) in {(column, "scores"), (column, "mix")}
        )
        for column in ("forward", "backward")
    }
    shape, aten = (BATCH, 4, keys, 4), torch.ops.aten
    forward_of = flop_registry[aten._scaled_dot_product_flash_attention]
    backward_of = flop_registry[aten._scaled_dot_product_flash_attention_backward]
    assert mine["forward"] == forward_of(shape, shape, shape, out_val=None)
    assert mine["backward"] == backward_of(shape, shape, shape, shape, out_val=None)


@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_scores_computed_in_chunks_are_computed_again_by_backward(name: str) -> None:
    """Beyond 2^20 scores of a head, dropout or a bias trained with them makes our attention go chunk by chunk."""
    length = 1032
    spec = named(name, **(SMALL | TINY.get(name, {}) | {"depth": 1} | ({"length": length} if name == "gpt2" else {})))
    said, out = cost(spec, 1, length, "train"), []
    run = forward(on_meta(spec).train(), said.job)
    assert said.forward == flops(lambda: out.append(answer(run())))[""]
    assert said.backward == flops(lambda: out[0].float().sum().backward())[""]
    assert said.backward > 2 * said.forward
