"""How a module is called is found out, not asked: inputs, masks and their polarity, kinds, outputs, labels, caches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from check_corpus.hosts import HOSTS
from check_corpus.plant import seeded
from oneblock.check import Adapter, check
from oneblock.check.calling.example import read_example
from oneblock.check.calling.find import found
from oneblock.check.calling.masks import FORMS

VOCAB = 23


def attention(x: Tensor, hidden: Tensor | None) -> Tensor:
    """Softmax of x·x over keys that are not hidden (batch, queries | 1, keys)."""
    scores = x @ x.transpose(1, 2)
    if hidden is not None:
        scores = scores.masked_fill(hidden, float("-inf")).where(~hidden.all(-1, keepdim=True), torch.zeros(()).to(x))
    return scores.softmax(-1) @ x


class Masked(nn.Module):
    """Takes a padding mask in one of many forms, under one of many names."""

    def __init__(self, form: str, batch_first: bool = True, causal: bool = False, wraps: str = "tensor") -> None:
        super().__init__()
        self.form, self.batch_first, self.causal, self.wraps = form, batch_first, causal, wraps
        self.token = nn.Embedding(VOCAB, 8)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Any:
        tokens = tokens if self.batch_first else tokens.T
        length = tokens.shape[1]
        hidden = torch.zeros(1, 1, length, dtype=torch.bool)
        if mask is not None:
            if "additive" in self.form or self.form == "float hidden":
                if not mask.is_floating_point():
                    raise TypeError("expected a float mask")
                hidden = (mask != 0).view(len(tokens), -1, length)
            elif self.form == "one real":
                hidden = (mask == 0)[:, None]
            else:
                if mask.dtype != torch.bool:
                    raise TypeError("expected a bool mask")
                hidden = (~mask if "real" in self.form else mask).view(len(tokens), -1, length)
        if self.causal:
            hidden = hidden | torch.ones(length, length, dtype=torch.bool).triu(1)
        x = self.token(tokens)
        x = x + attention(x, hidden)
        y = x if self.batch_first else x.transpose(0, 1)
        return {"tensor": y, "tuple": (y, None), "dict": {"logits": y}, "dataclass": Reply(y)}[self.wraps]


@dataclass
class Reply:
    """An output of one's own."""

    hidden: Tensor


@settings(max_examples=40)
@given(
    form=st.sampled_from(sorted(FORMS)),
    causal=st.booleans(),
    wraps=st.sampled_from(["tensor", "tuple", "dict", "dataclass"]),
)
def test_polarity_kind_and_output_are_found(form: str, causal: bool, wraps: str) -> None:
    torch.manual_seed(0)
    adapter = found(Masked(form, causal=causal, wraps=wraps))
    assert adapter.kind == ("decoder" if causal else "encoder")
    assert adapter.vocab == VOCAB
    assert "real" in adapter.takes
    ((name, got),) = adapter.polarity
    assert name == "mask"
    mine, theirs = FORMS[form], FORMS[got]
    real = torch.tensor([[False, True, True]])
    same = mine.make(real, torch.zeros(1, 3, dtype=torch.long)), theirs.make(real, torch.zeros(1, 3, dtype=torch.long))
    assert mine.hides_where_true == theirs.hides_where_true
    assert same[0].numel() == same[1].numel() or {form, got} <= {"one real", "true real"} or "square" in form


def test_every_host_is_what_it_is() -> None:
    kinds = {name: found(seeded(host.make)).kind for name, host in HOSTS.items()}
    assert kinds == {name: host.kind for name, host in HOSTS.items()}


class Vectors(nn.Module):
    """Vectors with the length first."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(12, 12)

    def forward(self, x: Tensor) -> Tensor:
        return attention(self.mix(x).transpose(0, 1), None).transpose(0, 1)


def test_vectors_and_the_axis_of_the_batch_are_found() -> None:
    adapter = found(Vectors())
    assert (adapter.vocab, adapter.dim) == (None, 12)
    assert "length first" in adapter.told[0]


class OnlyWithTargets(nn.Module):
    """All logits come with targets alone, as in small repositories that people learn from."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.head = nn.Embedding(VOCAB, 8), nn.Linear(8, VOCAB)

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        length = idx.shape[1]
        x = self.token(idx)
        x = self.head(x + attention(x, torch.ones(length, length, dtype=torch.bool).triu(1)))
        if targets is None:
            return x[:, [-1]], None
        return x, nn.functional.cross_entropy(x.flatten(0, 1), targets.flatten(), ignore_index=-100)


def test_logits_that_come_with_targets_alone_are_asked_for_with_targets() -> None:
    adapter = found(OnlyWithTargets())
    assert adapter.kind == "decoder"
    assert "labels" in adapter.takes
    assert check(OnlyWithTargets(), only=["causal"]).passed == ("causal",)


def test_an_adapter_of_ten_lines_is_enough_for_the_rest() -> None:
    class Odd(Vectors):
        def forward(self, pack: dict[str, Tensor]) -> Tensor:  # type: ignore[override]
            return super().forward(pack["the words"])

    def call(module: nn.Module, ask: Any, cache: Any, use_cache: bool) -> Tensor:
        del cache, use_cache
        return module({"the words": ask.tokens.transpose(0, 1)}).transpose(0, 1)

    with pytest.raises(ValueError, match="Odd could not be called with ids or vectors; the first try ended in"):
        check(Odd())
    assert check(Odd(), adapter=Adapter(call, "encoder", dim=12), only=["batch"]).passed == ("batch",)


class Wide(nn.Module):
    """Nothing in it tells how wide its vectors are, nor that it needs a switch."""

    def forward(self, stuff: Tensor, *, fast: bool) -> Tensor:
        assert not fast
        return attention(stuff, None) * torch.arange(stuff.shape[-1]).to(stuff).reshape(5)


def test_an_example_tells_width_and_fixed_arguments() -> None:
    report = check(Wide(), {"stuff": torch.zeros(1, 3, 5), "fast": False}, only=["batch"])
    assert report.passed == ("batch",)
    with pytest.raises(ValueError, match=r"inputs: expected ids .* or vectors .*, got \(3,\)"):
        read_example(torch.zeros(3))


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (lambda: 3, "expected a torch.nn.Module, got int"),
        (lambda: nothing(), "returns nothing with no vectors"),
        (lambda: not_finite(), "not finite, before anything was changed"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(module: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        check(module())
    assert "\n" not in str(error.value)


def nothing() -> nn.Module:
    """Answers None."""
    module = Vectors()
    module.forward = lambda x: None  # type: ignore[method-assign, assignment, return-value]  # noqa: ARG005
    return module


def not_finite() -> nn.Module:
    """Weights are NaN from the start."""
    module = Vectors()
    nn.init.constant_(module.mix.weight, float("nan"))
    return module


@pytest.mark.parametrize("name", ["gpt", "torch transformer", "hf gpt2", "our llama"])
def test_a_module_is_left_as_it_was_found(name: str) -> None:
    module = seeded(HOSTS[name].make).train()
    next(module.parameters()).grad = torch.ones_like(next(module.parameters()))
    calls: list[int] = []
    handle = module.register_forward_hook(lambda *_: calls.append(1))

    def state() -> dict[str, Any]:
        return {
            "numbers": {key: value.clone() for key, value in module.state_dict().items()},
            "modes": [part.training for part in module.modules()],
            "gradients": [None if x.grad is None else x.grad.clone() for x in module.parameters()],
            "wanted": [x.requires_grad for x in module.parameters()],
            "types": [(x.dtype, x.device) for x in module.parameters()],
            "hooks": [len(part._forward_hooks) + len(part._forward_pre_hooks) for part in module.modules()],
            "random": torch.get_rng_state(),
            "default": torch.get_default_dtype(),
            "fast": torch.backends.mha.get_fastpath_enabled(),
            "grad": torch.is_grad_enabled(),
        }

    before = state()
    check(module)
    after = state()
    handle.remove()
    assert before.keys() == after.keys()
    for key, value in before.items():
        got = after[key]
        if key == "numbers":
            assert value.keys() == got.keys()
            assert all(torch.equal(value[one], got[one]) for one in value)
        elif key == "gradients":
            pairs = zip(value, got, strict=True)
            assert all((a is None and b is None) or torch.equal(a, b) for a, b in pairs)
        elif key == "random":
            assert torch.equal(value, got)
        else:
            assert value == got, key
