"""Modules that are compiled, wrapped, without numbers, slow, or change themselves: one line, or an honest report."""

from __future__ import annotations

import time

import pytest
import torch
from torch import Tensor, nn

from check_corpus.hosts import HOSTS
from check_corpus.plant import seeded
from oneblock.check import Ask, check
from oneblock.check.asked import Check
from oneblock.check.copies import bare, copied
from oneblock.check.finding import Skipped


def model() -> nn.Module:
    """A language model by hand."""
    return seeded(HOSTS["gpt"].make)


def test_a_compiled_module_is_judged_by_what_it_compiles() -> None:
    module = torch.compile(model(), backend="eager")
    report = check(module, only=["causal", "batch"])  # type: ignore[arg-type]
    assert report.passed == ("causal", "batch")
    assert report.subject == "TinyGPT"


def test_a_wrapped_module_is_judged_by_what_it_wraps() -> None:
    wrapped = nn.DataParallel(model())
    assert type(bare(wrapped)).__name__ == "TinyGPT"
    assert check(wrapped, only=["causal"]).passed == ("causal",)


def test_a_module_without_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="TinyGPT is on the meta device, without numbers; give it weights first"):
        check(model().to("meta"))


class Slow(nn.Module):
    """Takes its time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds, self.token = seconds, nn.Embedding(11, 4)

    def forward(self, ids: Tensor) -> Tensor:
        time.sleep(self.seconds)
        return self.token(ids)  # type: ignore[no-any-return]


def test_a_slow_module_ends_when_its_time_is_over() -> None:
    began = time.monotonic()
    with pytest.raises(ValueError, match="the time given was over before it was found out how the module is called"):
        check(Slow(0.4), timeout=0.5)
    report = check(Slow(0.1), timeout=2.5)
    assert any(one.reason == "the time given was over" for one in report.skipped)
    assert time.monotonic() - began < 20


class Fickle(nn.Module):
    """Keeps what it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(11, 4)
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token(ids)
        self.seen += x.mean((0, 1)).detach()
        return x + self.seen  # type: ignore[no-any-return]


def test_a_module_that_changes_itself_is_left_as_it_was() -> None:
    module = Fickle()
    before = module.seen.clone()
    check(module)
    assert torch.equal(module.seen, before)


def test_a_question_that_breaks_a_module_is_said_to_be_skipped() -> None:
    def question(subject: object) -> object:
        del subject
        raise KeyError("no such key")

    said = Check("OB999", "odd", question)(None)  # type: ignore[arg-type]
    assert said == Skipped("OB999", "odd", "could not be asked: KeyError: 'no such key'")


def test_a_question_of_another_precision_and_of_some_rows() -> None:
    ask = Ask(torch.ones(3, 2, 4), real=torch.ones(3, 2, dtype=torch.bool))
    assert ask.to(torch.float64).tokens.dtype == torch.float64
    assert ask.rows([0, 2]).tokens.shape == (2, 2, 4)


class Remembers(nn.Module):
    """Calls its parts through a function made in `__init__`, which a deep copy would share with the original."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.up, self.drop = nn.Embedding(11, 8), nn.Linear(8, 8), nn.Dropout(0.5)
        up, drop = self.up, self.drop
        self.feed = lambda x: drop(up(x).relu())

    def forward(self, ids: Tensor, token_type_ids: Tensor) -> Tensor:
        if bool((token_type_ids == 1).all()):
            return self.feed(self.token(ids))  # type: ignore[no-any-return]
        raise ValueError("expected sentence 1")


def test_functions_that_a_copy_holds_use_the_copy() -> None:
    module = Remembers().train()
    twin = copied(module).eval().double()
    ids = torch.ones(1, 3, dtype=torch.long)
    y = twin(ids, ids)
    assert y.dtype == torch.float64
    assert torch.equal(y, twin(ids, ids))
    assert check(module, only=["dropout-eval", "unused", "batch"]).passed == ("batch", "dropout-eval", "unused")
