"""A search looked at while it runs: every beam and what became of it; every token that might have been drawn.

scores: (rows, vocab), what the search chooses by; ids: (rows, length), what each row has written so far.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from oneblock.explain.inputs import Inputs, Traced, encoded, spelt
from oneblock.explain.table import Cell, Table
from oneblock.generate import Pipeline, Translator
from oneblock.generate.config import chosen
from oneblock.generate.hypothesis import Hypothesis
from oneblock.generate.mode import evaluating
from oneblock.generate.plan import Plan, plan
from oneblock.generate.walk import beams, walk
from oneblock.words import label

STAR = "★"


@dataclass(eq=False)
class Seen:
    """A filter that changes nothing and keeps what goes through it, step by step."""

    steps: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    def __call__(self, scores: Tensor, ids: Tensor) -> Tensor:
        self.steps.append((scores.detach().clone(), ids.clone()))
        return scores


@dataclass(frozen=True)
class Branch:
    """One continuation that a beam search considered: of beam `parent` at a step, by `token`."""

    step: int
    parent: int
    token: int
    logprob: float
    total: float
    written: tuple[int, ...]
    fate: str
    filling: tuple[object, ...] = ()


def beam_tree(model: Traced, inputs: Inputs, lang: str = "en", **options: Any) -> Table:
    """Every continuation that beam search considers: from which beam, how likely, and what becomes of it.

    The search is the library's own and finds what it finds without being looked at. Lines marked ★ lead to its best
    answer. A table shows the best `2 * num_beams` continuations of each step, as many as the search keeps in mind.

    Args:
        model: a pipeline or a translator, which read a text; or a model, which reads ids (length,).
        inputs: one text, or the ids of one.
        lang: "en" or "zh".
        options: those of `generate`; by default 4 beams, of a translator its own: 5, and its length limit.

    Raises:
        ValueError: whatever `generate` refuses; several texts; one beam only, or drawn ones.

    >>> import oneblock
    >>> model = oneblock.build(oneblock.named("gpt2", dim=8, depth=1, heads=2, vocab=9)).eval()
    >>> beam_tree(model, [1, 2, 3], num_beams=2, max_new_tokens=2).columns
    ('step', 'from', 'token', 'log p', 'sum', 'fate', 'written so far', 'best')
    """
    made, holder = planned(model, inputs, {"num_beams": 5 if isinstance(model, Translator) else 4} | options)
    if made.config.num_beams < 2 or made.config.sampled:
        raise ValueError("beam_tree: expected at least 2 beams and no drawing; use draws for what may be drawn")
    branches, best = tree(made)
    rows: list[tuple[Cell, ...]] = []
    for one in branches:
        whole = (*one.written, one.token)
        leads = STAR if best.tokens[: len(whole)] == whole else None
        fate = label(f"fate {one.fate}", lang, *one.filling)
        text = _text(holder, whole)
        rows.append((one.step, one.parent, spelt(holder, one.token), one.logprob, one.total, fate, text, leads))
    keys = ("step", "from beam", "token", "token log", "sum of logs", "fate", "written", "best")
    note = label("tree found", lang, _text(holder, best.tokens), f"{best.score:.4f}", made.config.length_penalty)
    title = label("tree of", lang, made.config.num_beams)
    return Table(title, tuple(label(key, lang) for key in keys), tuple(rows), (note,))


def draws(model: Traced, inputs: Inputs, top: int = 5, lang: str = "en", **options: Any) -> Table:
    """What might have come at each step: the likeliest tokens, before and after the filters, and the one that did.

    The probability is the model's own; "after filters" that of drawing the token: the softmax of the scores after
    temperature, top-k, top-p and whatever else was asked for. ★ marks what was drawn (or, without `do_sample`, taken).

    Args:
        model: as for `beam_tree`.
        inputs: as for `beam_tree`.
        top: so many tokens of each step, and the drawn one.
        lang: "en" or "zh".
        options: those of `generate`; the answer is the one that it gives with the same `seed`.

    Raises:
        ValueError: whatever `generate` refuses; several texts, several beams or answers; a top below 1.

    >>> import oneblock
    >>> model = oneblock.build(oneblock.named("gpt2", dim=8, depth=1, heads=2, vocab=9)).eval()
    >>> table = draws(model, [1, 2, 3], top=2, max_new_tokens=1, do_sample=True, top_k=2, seed=0)
    >>> round(sum(table.column("after filters")), 6)
    1.0
    """
    made, holder = planned(model, inputs, options)
    if made.config.num_beams > 1 or made.config.num_return_sequences > 1 or top < 1:
        raise ValueError("draws: expected one beam, one answer and a top of at least 1; use beam_tree for beams")
    before, after = Seen(), Seen()
    with evaluating(made.model):
        steps = list(walk(replace(made, filters=[before, *made.filters, after])))
    rows: list[tuple[Cell, ...]] = []
    for number, step in enumerate(steps):
        plain, left = before.steps[number][0][0].softmax(-1), after.steps[number][0][0].softmax(-1)
        drawn = int(step.tokens[0])
        order = sorted(range(len(plain)), key=lambda token: (-left[token].item(), -plain[token].item()))[:top]
        for token in order if drawn in order else [*order, drawn]:
            star = STAR if token == drawn else None
            rows.append((number, spelt(holder, token), token, plain[token].item(), left[token].item(), star))
    keys = ("step", "token", "id", "probability", "filtered", "drawn")
    return Table(label("candidates of", lang), tuple(label(key, lang) for key in keys), tuple(rows))


def planned(model: Traced, inputs: Inputs, options: dict[str, Any]) -> tuple[Plan, Pipeline | None]:
    """(what `generate` would do, the pipeline that reads texts). ValueError: several texts."""
    holder = model if isinstance(model, Pipeline) else None
    if isinstance(model, Translator):
        holder = Pipeline(model.model, model.tokenizer)
    ids: Any = encoded(holder, inputs) if isinstance(inputs, str) else inputs
    if isinstance(model, Translator):
        options = {"early_stopping": "never", "max_new_tokens": 2 * len(ids) + 10} | options
    inner: Any = model if holder is None else holder.model
    # The pipeline's own choice, so that the search here is the one that it makes.
    config = chosen(None, options) if holder is None else holder._chosen(None, options)[0]
    made = plan(inner, ids, None, config, holder)
    if len(made.before) > 1:
        raise ValueError(f"search: expected one text, got {len(made.before)}")
    return made, holder


def tree(made: Plan) -> tuple[list[Branch], Hypothesis]:
    """(all continuations that a search over one text considered, the best answer it found)."""
    seen = Seen()
    with evaluating(made.model):
        best = beams(replace(made, filters=[*made.filters, seen]))[0][0]
    prompt, found = made.before.shape[1], []
    live, rows = [0.0], [tuple(seen.steps[0][1][0].tolist())]
    for step, (scores, _) in enumerate(seen.steps):
        following = [tuple(row) for row in seen.steps[step + 1][1].tolist()] if step + 1 < len(seen.steps) else None
        sums: dict[tuple[int, ...], float] = {}
        going = 0
        for rank, (parent, token, logprob, total) in enumerate(ranked(scores, live, made)):
            whole = (*rows[parent], token)
            fate = _fate(made, (step, rank, going), whole[prompt:], total, following, whole)
            going += fate[0] not in ("ended", "limit", "late")
            sums[whole] = total if fate[0] == "live" else -math.inf
            found.append(Branch(step, parent, token, logprob, total, whole[prompt:-1], *fate))
        if following is not None:
            live, rows = [sums.get(row, -math.inf) for row in following], following
    return found, best


def ranked(scores: Tensor, live: list[float], made: Plan) -> Iterator[tuple[int, int, float, float]]:
    """(parent, token, log p, sum) of the best continuations, best first, in the search's arithmetic and order."""
    beam, ends = made.config.num_beams, len(made.eos)
    spare = max(2, 1 + ends) * beam
    logprob, token = scores.sort(dim=-1, descending=True, stable=True)  # (rows, vocab)
    total = scores.new_tensor(live)[:, None] + logprob[:, :spare]
    flat, order = total.flatten().sort(descending=True, stable=True)
    width = total.shape[1]
    for value, place in zip(flat[:spare].tolist(), order[:spare].tolist(), strict=True):
        if value > -math.inf:
            row, column = divmod(place, width)
            yield row, int(token[row, column]), logprob[row, column].item(), value


def _fate(
    made: Plan,
    place: tuple[int, int, int],
    new: tuple[int, ...],
    total: float,
    following: list[tuple[int, ...]] | None,
    whole: tuple[int, ...],
) -> tuple[str, tuple[object, ...]]:
    """(what becomes of a continuation, what to say with it).

    `place` is (its step, its rank there, how many that do not end were better).
    """
    config, (step, rank, going) = made.config, place
    ends = new[-1] in made.eos or (made.stops is not None and made.stops(new))
    limited = step + 1 >= config.max_new_tokens
    if rank < config.num_beams and (ends or limited):
        return ("ended" if ends else "limit"), (f"{total / (step + 1) ** config.length_penalty:.4f}",)
    if ends:
        return "late", (config.num_beams,)
    if following is not None and whole in following:
        return "live", (following.index(whole),)
    return ("stopped" if following is None and going < config.num_beams else "pruned"), ()


def _text(holder: Pipeline | None, tokens: tuple[int, ...]) -> str:
    return " ".join(map(str, tokens)) if holder is None else holder.decode(tokens)
