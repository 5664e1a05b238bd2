"""Questions about how a module starts: layers that differ, are their own, learn, and know nothing yet."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.copies import copied, undisturbed
from oneblock.check.finding import Fault, Where
from oneblock.check.subject import Subject, fault

FAR = 1.5
"""Nats above ln(vocab) that are far: logits that spread by about 1.7."""
CODES = (nn.ModuleList, nn.Sequential)


def fresh(subject: Subject) -> nn.Module:
    """A module as it starts: from the reference, else the one given, if its norms look untrained. Else skip."""
    if subject.reference is not None:
        with undisturbed(subject.seed):
            return subject.reference().to("cpu").eval()
    if trained(subject.module):
        raise CannotAskError("the weights look trained; give reference=, which makes a fresh module")
    return subject.module


def trained(module: nn.Module) -> bool:
    """Whether vectors of gains and biases have moved away from constants."""
    vectors = [x for x in module.parameters() if x.ndim == 1 and x.numel() > 1]
    gains = [
        x
        for part in module.modules()
        if "norm" in type(part).__name__.lower()
        for x in part.parameters(recurse=False)
        if x.numel() > 1
    ]
    judged = gains or vectors
    return not judged or any(bool((x != x.flatten()[0]).any()) for x in judged)


@asks("OB709", "layers-equal")
def layers_equal(subject: Subject) -> Iterator[Fault]:
    """Layers that start equal learn the same for a while: each must have drawn its own weights."""
    for path, part in subject.module.named_modules():
        if not isinstance(part, CODES):
            continue
        children = [child for child in part.children() if any(True for _ in child.parameters())]
        alike = [child for child in children if type(child) is type(children[0]) and child is not children[0]]
        equal = [child for child in alike if same_start(children[0], child)]
        if equal:
            yield fault("layers.equal", "warning", Where(path), count=1 + len(equal), of=len(children))


def same_start(a: nn.Module, b: nn.Module) -> bool:
    """Whether all random weights of two modules are equal, though they are not the same weights."""
    pairs = list(zip(a.parameters(), b.parameters(), strict=False))
    if len(pairs) != len(list(a.parameters())) or any(x.shape != y.shape or x is y for x, y in pairs):
        return False
    drawn = [(x, y) for x, y in pairs if x.ndim > 1 and bool((x != x.flatten()[0]).any())]
    return bool(drawn) and all(torch.equal(x, y) for x, y in drawn)


@asks("OB710", "layers-shared")
def layers_shared(subject: Subject) -> Iterator[Fault]:
    """One module under several names of one owner is one set of weights."""
    for path, part in subject.module.named_modules():
        held: dict[int, list[str]] = {}
        for name, child in part._modules.items():
            if child is not None and any(True for _ in child.parameters()) and not isinstance(child, nn.Embedding):
                held.setdefault(id(child), []).append(name)
        for names in held.values():
            if len(names) > 1:
                yield fault("layers.shared", "warning", Where(path), names=", ".join(names), count=len(names))


@asks("OB711", "start-loss")
def start_loss(subject: Subject) -> Iterator[Fault]:
    """A model that has learnt nothing must be no surer of any token than of another: its loss is near ln(vocab)."""
    vocab = subject.adapter.vocab
    twin = copied(fresh(subject)).to("cpu").double().eval()
    y = subject.answer(subject.ask(batch=4), module=twin).y
    if vocab is None or y.ndim != 3 or y.shape[-1] < max(vocab, 2):
        raise CannotAskError("the module answers with no logits over its vocabulary")
    loss = float((y.logsumexp(-1) - y.mean(-1)).mean())
    expected = math.log(y.shape[-1])
    if loss > expected + FAR:
        yield fault("start.loss", "warning", head_of(twin, y.shape[-1]), loss=loss, expected=expected, spread=spread(y))


def spread(y: Tensor) -> float:
    """The spread of logits over the vocabulary."""
    return float(y.std(-1, unbiased=False).mean())


def head_of(module: nn.Module, vocab: int) -> Where:
    """The last part that makes as many numbers as there are ids."""
    found = ""
    for path, part in module.named_modules():
        weight = getattr(part, "weight", None)
        if (
            isinstance(weight, Tensor)
            and weight.ndim == 2
            and weight.shape[0] == vocab
            and not isinstance(part, nn.Embedding)
        ):
            found = path
    return Where(found)
