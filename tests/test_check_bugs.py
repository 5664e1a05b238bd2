"""Public bug reports that a check can see are seen, planted in models that lack them; what was none stays silent."""

from __future__ import annotations

import pytest
import torch

from check_corpus.hosts import HOSTS
from check_corpus.mutants import MUTANTS
from check_corpus.plant import seeded
from oneblock.check import check


def seen(host: str, name: str) -> None:
    """The planted fault is found by its check, as what it is."""
    mutants = [one for one in MUTANTS if (one.host, one.name) == (host, name)]
    assert mutants, (host, name)
    for mutant in mutants:
        report = check(seeded(mutant.make), only=[mutant.check], **mutant.options)
        assert mutant.fault in {fault.name for fault in report.faults}


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("turner", "triu handed to the fused kernel"),
        ("torch encoder", "floats to torch's layer"),
        ("gpt", "smallest number added to scores"),
        ("hf bert", "-1e9 in float16"),
    ],
)
def test_B01_B02_B14_B16_masks_in_the_wrong_form(host: str, name: str) -> None:
    seen(host, name)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("reader", "output cut to the longest text"),
        ("reader", "mask turned round in eval"),
        ("gpt", "positions not begun at the first token"),
        ("reader", "nan in gradients"),
    ],
)
def test_B04_B05_B08_B11_padding(host: str, name: str) -> None:
    seen(host, name)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("hf llama", "given positions dropped"),
        ("hf llama", "mask from the first key"),
        ("our gpt2", "keys not cut"),
        ("packed", "one memory for all"),
        ("packed", "no window with a cache"),
        ("packed", "only the tail of a prompt"),
        ("hf t5", "bias of the first query"),
    ],
)
def test_B10_B19_B53_B56_B58_B59_B67_caches(host: str, name: str) -> None:
    seen(host, name)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("hf t5", "feed-forward too large"),
        ("turner", "queries and keys paired differently"),
        ("hf llama", "angles in low precision"),
        ("reader", "sinusoids in low precision"),
        ("hf bert", "epsilon left at its default"),
        ("hf gpt2", "erf for tanh"),
    ],
)
def test_B17_B20_B22_B23_B26_B28_numbers(host: str, name: str) -> None:
    seen(host, name)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("gpt", "tied by copy"),
        ("gpt", "wrapped for several devices"),
        ("reader", "compiled part"),
        ("hf gpt2", "shifted twice"),
        ("gpt", "nan when nothing is labelled"),
        ("gpt", "mean of the texts' means"),
        ("hf llama", "documents forgotten in one layer"),
        ("hf marian", "the last label wraps round"),
    ],
)
def test_B29_B31_B32_B34_B35_B38_B68_saving_and_loss(host: str, name: str) -> None:
    seen(host, name)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("hf gpt2", "a draw thrown away"),
        ("hf bert", "layers copied from the first"),
        ("turner", "tiled"),
        ("experts", "padding in the balance"),
        ("experts", "raw scores as weights"),
        ("hf qwen moe", "not renormalised"),
    ],
)
def test_B40_B41_B61_B62_B65_state_and_experts(host: str, name: str) -> None:
    seen(host, name)


@pytest.mark.parametrize("host", ["hf mixtral", "our mixtral", "experts"])
def test_B64_one_function_written_in_two_ways_is_no_fault(host: str) -> None:
    report = check(seeded(HOSTS[host].make), only=["router-weights", "router-config"])
    assert report.faults == ()
    assert report.passed


@pytest.mark.parametrize("host", ["gpt", "hf llama", "our bert"])
def test_B07_rounding_is_no_fault(host: str) -> None:
    model = seeded(HOSTS[host].make).to(torch.bfloat16)
    report = check(model, only=["padding", "padding-amount", "batch-of-one", "causal"])
    assert report.faults == ()


def test_N20_E08_the_minimal_block_of_the_notes() -> None:
    as_decoder = check(seeded(HOSTS["notes block"].make), kind="decoder")
    assert [fault.name for fault in as_decoder.at("error")] == ["causal.leak"]
    as_encoder = check(seeded(HOSTS["notes block"].make))
    said = [(fault.severity, fault.name) for fault in as_encoder.faults]
    assert said == [("warning", "padding.unmasked"), ("note", "attention.weights_unused")]


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("gpt", "no scale"),
        ("gpt", "multiplied with the root"),
        ("gpt", "mask after softmax"),
        ("gpt", "mask after softmax, renormalised"),
        ("gpt", "padding mask ignored"),
        ("gpt", "ignored labels become a token"),
        ("gpt", "made and not called"),
        ("gpt", "no maximum"),
    ],
)
def test_N15_E09_E10_the_pitfalls_of_the_notes(host: str, name: str) -> None:
    seen(host, name)


def test_E10_a_mask_after_the_softmax_is_worse_without_renormalising() -> None:
    said = {}
    for name in ("mask after softmax", "mask after softmax, renormalised"):
        mutant = next(one for one in MUTANTS if (one.host, one.name) == ("gpt", name))
        report = check(seeded(mutant.make), only=["mask-order"], **mutant.options)
        said[name] = report.faults[0].severity
    assert said == {"mask after softmax": "error", "mask after softmax, renormalised": "warning"}
