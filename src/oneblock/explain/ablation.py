"""What a part of a model is good for: take it away, or put another text's numbers there, and see what changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from oneblock.explain.edits import Edits, length, matching, mean, patch, zero
from oneblock.explain.inputs import Asked, Inputs, Traced, asked, spelt
from oneblock.explain.record import Edit
from oneblock.explain.table import Cell, Table
from oneblock.explain.trace import Trace, trace
from oneblock.generate.mode import evaluating
from oneblock.spec import Head, Seq2Seq
from oneblock.tap import listen
from oneblock.words import label

SUBLAYERS = ("attention.out", "cross.out", "feedforward.out")


def effects(
    model: Traced,
    inputs: Inputs,
    edits: Mapping[str, Mapping[str, Edit]],
    target: str | Tensor | Sequence[int] | None = None,
    *,
    token: int | None = None,
    against: int | None = None,
    position: int = -1,
    lang: str = "en",
) -> Table:
    """What each set of edits does to a prediction of the first text.

    Columns: the logit of `token` (by default the model's own choice), minus that of `against` if given; its change; the
    probability of `token`; how far the whole prediction moved (Kullback-Leibler divergence, nats); with a target the
    loss. The first line is without edits.

    Raises:
        ValueError: what `trace` refuses; a model without a head for tokens; a token or position that is not there.
    """
    what = asked(model, inputs, target)
    clean, loss = _logits(what, {}, position)
    token = int(clean.argmax()) if token is None else _known(token, clean)
    before = _measure(clean, token, against)
    with_loss = loss is not None
    rows: list[tuple[Cell, ...]] = []
    for name, edit in {label("unedited", lang): {}, **edits}.items():
        logits, now = _logits(what, edit, position)
        far = (clean.softmax(-1) * (clean.log_softmax(-1) - logits.log_softmax(-1))).sum().clamp(min=0).item()
        value = _measure(logits, token, against)
        row = (name, value, value - before, logits.softmax(-1)[token].item(), far)
        rows.append((*row, now) if with_loss else row)
    heads = ["edit", "logit", "change of it", "probability", "divergence", *(["loss"] if with_loss else [])]
    name = " − ".join(spelt(model, one) for one in (token, against) if one is not None)
    return Table(label("effects on", lang, name), tuple(label(head, lang) for head in heads), tuple(rows))


def ablate(
    model: Traced,
    inputs: Inputs,
    target: str | Tensor | Sequence[int] | None = None,
    *,
    per: Literal["sublayer", "head"] = "sublayer",
    how: Literal["zero", "mean"] = "zero",
    reference: Trace | None = None,
    **measured: Any,
) -> Table:
    """The effect of taking away each sublayer, or each head, one at a time; `measured` are options of `effects`.

    >>> import oneblock
    >>> model = oneblock.build(oneblock.named("gpt2", dim=8, depth=1, heads=2, vocab=9)).eval()
    >>> ablate(model, [1, 2, 3], per="head").column("edit")
    ('unedited', 'layers.0.attention.0', 'layers.0.attention.1')
    """
    if per not in ("sublayer", "head") or how not in ("zero", "mean"):
        raise ValueError(f"ablate: expected per 'sublayer' or 'head', how 'zero' or 'mean', got {per!r}, {how!r}")
    found = trace(model, inputs, target)
    instead: Callable[..., Edits] = zero if how == "zero" else mean
    options = {"reference": reference} if how == "mean" else {}
    edits = {}
    for step in found:
        path = step.path.rpartition(".")[0]
        if per == "sublayer" and step.path.endswith(SUBLAYERS):
            edits[path] = instead(found, step.path, **options)
        elif per == "head" and step.kind == "step.z":
            edits |= {f"{path}.{h}": instead(found, step.path, heads=[h], **options) for h in range(step.shape[1])}
    return effects(model, inputs, edits, target, **measured)


def patching(
    model: Traced,
    clean: Inputs,
    corrupt: Inputs,
    target: str | Tensor | Sequence[int] | None = None,
    *,
    names: str | None = None,
    token: int | None = None,
    against: int | None = None,
    position: int = -1,
    lang: str = "en",
) -> Table:
    """Where the difference between two texts of one length is carried: step by step, token by token.

    Each cell: one step of one token of the corrupt run is replaced by the clean run's; 0 if that changes nothing, 1 if
    it gives the clean logit of `token` minus `against`, by default the choices of the clean and of the corrupt run.

    Args:
        names: a glob of steps of one stack, by default the stream after every sublayer of the stack that is read.
        target: of an encoder-decoder, what it should write, to both texts.

    Raises:
        ValueError: texts of different lengths; two texts with the same prediction, or steps of two stacks.
    """
    good, bad = asked(model, clean, target), asked(model, corrupt, target)
    bad = Asked(bad.model, {**bad.call, **{k: v for k, v in good.call.items() if k != "input_ids"}}, bad.tokens)
    if good.call["input_ids"].shape != bad.call["input_ids"].shape:
        lengths = [call.call["input_ids"].shape[1] for call in (good, bad)]
        raise ValueError(f"patching: expected two texts of one length, got {lengths[0]} and {lengths[1]} tokens")
    best, worst = _logits(good, {}, position)[0], _logits(bad, {}, position)[0]
    token = int(best.argmax()) if token is None else _known(token, best)
    against = int(worst.argmax()) if against is None else _known(against, best)
    against = None if against == token else against
    high, low = _measure(best, token, against), _measure(worst, token, against)
    if abs(high - low) < 1e-9:
        raise ValueError("patching: both texts give the same logit, nothing can be carried over; choose others")
    source = trace(good.model, good.call)  # type: ignore[arg-type]
    stack = "encoder." if isinstance(good.model.spec, Seq2Seq) else ""
    steps = matching(source, (names or f"{stack}layers.*.stream*",))
    if len({"encoder." in step.path[:8] for step in steps}) > 1 or len({length(step) for step in steps}) > 1:
        raise ValueError("patching: expected steps of one stack, got two; give names=")
    shown = "decoder." if steps[0].path.startswith("decoder.") else stack
    rows: list[tuple[Cell, ...]] = []
    for step in steps:
        runs = (_logits(bad, patch(source, step.path, at=[one]), position)[0] for one in range(length(step)))
        rows.append((step.path, *((_measure(x, token, against) - low) / (high - low) for x in runs)))
    columns = (label("step", lang), *bad.tokens[shown][: length(steps[0])])
    name = " − ".join(spelt(model, one) for one in (token, against) if one is not None)
    return Table(label("carried of", lang, name), columns, tuple(rows), (label("carried note", lang),))


def _logits(what: Asked, edit: Mapping[str, Edit], position: int) -> tuple[Tensor, float | None]:
    """(the logits (vocab,) of the first text's prediction at a position, in float64; the loss)."""
    spec: Any = what.model.spec
    head = spec.decoder.head if isinstance(spec, Seq2Seq) else spec.head
    if not isinstance(head, Head):
        raise ValueError(f"effects: expected a head for tokens, got {type(head).__name__}")
    with evaluating(what.model), torch.no_grad(), listen(what.model, edit, only=""):
        out = what.model(**what.call)
    last = out.logits.shape[1]
    if not -last <= position < last:
        raise ValueError(f"position: expected one of {last} tokens, got {position}")
    return out.logits[0, position].double(), None if out.loss is None else out.loss.item()


def _known(token: int, logits: Tensor) -> int:
    if not 0 <= token < len(logits):
        raise ValueError(f"token: expected an id of the vocabulary of {len(logits)}, got {token}")
    return token


def _measure(logits: Tensor, token: int, against: int | None) -> float:
    return (logits[token] - (0.0 if against is None else logits[_known(against, logits)])).item()
