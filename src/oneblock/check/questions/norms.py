"""Questions about norms and activations: over which axis, by which formula, and as the configuration says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.finding import Fault
from oneblock.check.seeing.norms import NormSite, norm_sites
from oneblock.check.seeing.watch import Operation
from oneblock.check.subject import Subject, fault

EPSILON = (
    "layer_norm_eps", "rms_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon", "layernorm_epsilon",
    "rms_norm_epsilon", "layernorm_eps",
)  # fmt: skip
ACTIVATION = ("hidden_act", "activation_function", "hidden_activation", "dense_act_fn", "activation", "act_fn")
MEANT = {
    "gelu": "erf", "gelu_python": "erf", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh", "gelu_fast": "tanh",
    "gelu_accurate": "tanh", "quick_gelu": "quick", "relu": "relu", "silu": "silu", "swish": "silu",
}  # fmt: skip
"""What a configuration calls an activation -> which function it means."""
GELUS = ("erf", "tanh", "quick")
BATCHES = (3, 5, 7)


def seen(subject: Subject) -> tuple[list[Operation], int]:
    """(operations of one run, its batch): a batch that is no other size in the model."""
    if "norm run" not in subject.memo:
        taken = subject.sizes | subject.numbers | {subject.length}
        batch = next((n for n in BATCHES if n not in taken), BATCHES[0])
        subject.memo["norm run"] = subject.watched(subject.ask(batch=batch))[1], batch
    found: tuple[list[Operation], int] = subject.memo["norm run"]
    return found


def all_norms(subject: Subject) -> list[NormSite]:
    """Every norm of one run, remembered."""
    if "norms" not in subject.memo:
        subject.memo["norms"] = norm_sites(seen(subject)[0])
    found: list[NormSite] = subject.memo["norms"]
    if not found:
        raise CannotAskError("no norm was found in its forward")
    return found


def after_convolution(number: int | None, operations: Sequence[Operation]) -> bool:
    """Whether what is normalised comes out of a convolution, no product of matrices between."""
    for _ in range(12):
        if number is None:
            return False
        one = operations[number]
        if "conv" in one.name:
            return True
        if one.name in ("addmm", "mm", "bmm", "embedding"):
            return False
        number = one.sources[0] if one.sources else None
    return False


@asks("OB701", "norm-axis")
def axis(subject: Subject) -> Iterator[Fault]:
    """A norm must reduce features of one token: not other tokens, not other texts."""
    sites, (operations, batch) = all_norms(subject), seen(subject)
    rows = batch * subject.length
    for site in sites:
        if after_convolution(site.source, operations):
            continue
        of_source = subject.kind == "seq2seq" and site.reduces(subject.length + 1, rows + batch)
        if of_source or site.reduces(subject.length, rows):
            yield fault("norm.time", where=site.where, axes=str(list(site.axes)), shape=str(list(site.x.shape)))
            return
        if site.reduces(batch, rows):
            yield fault("norm.batch", where=site.where, axes=str(list(site.axes)), shape=str(list(site.x.shape)))
            return


@asks("OB702", "batch-norm")
def batch_norm(subject: Subject) -> Iterator[Fault]:
    """A norm with statistics of the batch has no place behind anything but a convolution."""
    operations, _ = seen(subject)
    for one in operations:
        if "batch_norm" in one.name and not after_convolution(one.sources[0], operations):
            yield fault("norm.batchnorm", "warning", one.where, shape=str(list(one.operands[0].shape)))
            return


@asks("OB703", "norm-formula")
def formula(subject: Subject) -> Iterator[Fault]:
    """Epsilon belongs under the root, beside the variance."""
    wrong = [site for site in all_norms(subject) if site.outside and site.epsilon]
    if wrong:
        times = 1e-3 / (1e-3 + wrong[0].epsilon) * (1e-6 + wrong[0].epsilon) ** 0.5 / 1e-3
        said = {"epsilon": wrong[0].epsilon, "times": max(times, 1 / times), "count": len(wrong)}
        yield fault("norm.outside", "warning", wrong[0].where, **said)


@asks("OB704", "norm-variance")
def variance(subject: Subject) -> Iterator[Fault]:
    """The variance of a norm is the mean of squares, over n and not n - 1."""
    wrong = [site for site in all_norms(subject) if site.correction == 1]
    if wrong:
        count = 1
        for one in wrong[0].axes:
            count *= wrong[0].x.shape[one]
        said = {"n": count, "off": 1 - (1 - 1 / count) ** 0.5, "count": len(wrong)}
        yield fault("norm.unbiased", "warning", wrong[0].where, **said)


@asks("OB705", "epsilon")
def epsilon(subject: Subject) -> Iterator[Fault]:
    """Every norm must use the epsilon that the module's configuration says."""
    config = subject.config
    said = {name: float(value) for name in EPSILON if isinstance(value := getattr(config, name, None), float)}
    if not said:
        raise CannotAskError("no configuration says an epsilon")
    for site in all_norms(subject):
        if not any(abs(site.epsilon - value) <= 0.01 * value for value in said.values()):
            name, value = next(iter(said.items()))
            yield fault("norm.epsilon", where=site.where, got=site.epsilon, setting=name, expected=value)
            return


@asks("OB706", "activation")
def activation(subject: Subject) -> Iterator[Fault]:
    """The feed-forward must use the activation that the module's configuration says, in its very form."""
    said = {name: value for name in ACTIVATION if isinstance(value := getattr(subject.config, name, None), str)}
    name, value = next(((name, value) for name, value in said.items() if value in MEANT), ("", ""))
    if not name:
        raise CannotAskError("no configuration says an activation that is known here")
    operations, _ = seen(subject)
    found = [(form, one) for one in operations if (form := activates(one, operations))]
    wanted = MEANT[value]
    wrong = [(form, one) for form, one in found if form != wanted and form in GELUS]
    if wanted not in GELUS or not wrong:
        wrong = [] if any(form == wanted for form, _ in found) else [pair for pair in found if pair[0] != wanted]
    if wrong:
        form, one = wrong[0]
        yield fault("activation.config", where=one.where, got=form, setting=name, expected=value)


def activates(one: Operation, operations: Sequence[Operation]) -> str:
    """Which activation an operation is, or is the heart of; "" for none."""
    if one.name == "gelu":
        told: Any = one.options.get("approximate", one.arguments[1] if len(one.arguments) > 1 else "none")
        return "tanh" if told == "tanh" else "erf"
    if one.name in ("erf", "relu", "silu"):
        return one.name
    if one.name in ("tanh", "sigmoid"):
        numbers = above(one, operations, 6)
        if one.name == "tanh" and any(abs(x - 0.044715) < 1e-4 for x in numbers):
            return "tanh"
        if one.name == "sigmoid" and any(abs(x - 1.702) < 1e-3 for x in numbers):
            return "quick"
        if one.name == "sigmoid" and times_itself(one, operations):
            return "silu"
    return ""


def above(one: Operation, operations: Sequence[Operation], depth: int) -> list[float]:
    """The plain numbers in the operations that made this one's operand."""
    found, front = [], [(one, 0)]
    while front:
        at, far = front.pop()
        found += at.scalars
        if far < depth:
            front += [
                (operations[n], far + 1) for n in at.sources if n is not None and operations[n].name in ARITHMETIC
            ]
    return found


ARITHMETIC = frozenset(["add", "mul", "pow", "div", "sub", "sqrt"])


def times_itself(one: Operation, operations: Sequence[Operation]) -> bool:
    """Whether x is multiplied with the sigmoid of x."""
    users = [x for x in operations[one.number : one.number + 4] if x.name == "mul" and one.number in x.sources]
    return any(one.sources[0] in x.sources for x in users)
