"""Masks of an unknown module: each argument called like one is tried in each form, and the form that hides is right."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from oneblock.check.calling import names
from oneblock.check.calling.adapter import Answer, Ask, Kind
from oneblock.check.calling.convention import Convention, attempt, questions
from oneblock.check.calling.sizes import Sizes
from oneblock.check.subject import gap


def masked(
    twin: nn.Module, way: Convention, parameters: Mapping[str, inspect.Parameter], sizes: Sizes, kind: Kind
) -> Convention:
    """Masks: each argument that is called like one is tried in each form; the form that hides is the right one."""
    if way.source:
        given = names.padding_of_source(parameters, way)
        way = replace(way, source_real=tuple(one for name in given if (one := tried(twin, way, name, sizes, True))))
    if kind == "seq2seq" and not way.ids:
        way = squared(twin, way, parameters, sizes)
    given = names.padding_of_tokens(parameters, way)
    way = replace(way, real=tuple(one for name in given[:1] if (one := tried(twin, way, name, sizes, False))))
    return told_by_id(twin, way, sizes)


def told_by_id(twin: nn.Module, way: Convention, sizes: Sizes) -> Convention:
    """Padding that the module tells by its id: texts with more of it at their end are answered the same."""
    texts = [("source", way.source_real)] if way.source else [("tokens", way.real)]
    held = [value for part in twin.modules() for name, value in vars(part).items() if names.PAD_ID.search(name)]
    for pad in dict.fromkeys([n for n in held if type(n) is int and n >= 0] + [sizes.pad]):
        for text, given in texts:
            if given or not (way.source_ids if text == "source" else way.ids):
                continue
            ask = questions(way, replace(sizes, pad=pad))
            x = getattr(ask, text)
            short = ask.but(**{text: x[:, :-2]})
            longer = ask.but(**{text: torch.cat([x[:, :-2], torch.full_like(x[:, -2:], pad)], 1)})
            try:
                y, same, other = (attempt(twin, way, one).y for one in (short, longer, ask))
            except Exception:
                continue
            same, other = (z[:, : y.shape[1]] if z.ndim == y.ndim >= 3 else z for z in (same, other))
            if gap(same, y) <= 1e-5 < gap(other, y):
                both = (text, "tokens") if text == "source" and way.ids else (text,)
                return replace(way, by_id=both, pad=pad)
    return way


def squared(twin: nn.Module, way: Convention, parameters: Mapping[str, inspect.Parameter], sizes: Sizes) -> Convention:
    """The causal mask that a bare decoder stack expects from its caller."""
    ask = questions(way, sizes)
    other = ask.but(tokens=torch.cat([ask.tokens[:, :-1], ask.tokens[:, -1:].roll(1, 0)], 1))
    plain = attempt(twin, way, ask).y
    if gap(attempt(twin, way, other).y[:, :-1], plain[:, :-1]) <= 1e-6:
        return way
    for name in names.CAUSAL:
        for form in ("square additive", "square hidden", "square real"):
            if name in parameters:
                one = replace(way, causal=((name, form),))
                try:
                    y, z = (attempt(twin, one, x).y for x in (ask, other))
                except Exception:
                    continue
                if bool(y.isfinite().all()) and gap(z[:, :-1], y[:, :-1]) <= 1e-6:
                    return one
    if {"tgt_mask", "tgt_key_padding_mask"} <= set(parameters):  # torch's own names: a leak is elsewhere
        return replace(way, causal=(("tgt_mask", "square additive"),))
    return way


def tried(twin: nn.Module, way: Convention, name: str, sizes: Sizes, source: bool) -> tuple[str, str] | None:
    """(argument, form) of a padding mask: the form that hides what is hidden, else the one its name promises."""
    ask = questions(way, sizes)
    length = (ask.source if source else ask.tokens).shape[1]  # type: ignore[union-attr]
    real = torch.ones(2, length, dtype=torch.bool)
    real[0, :2] = False
    working: list[str] = []
    for form in names.forms_of(name):
        where = "source_real" if source else "real"
        one = replace(way, **{where: (*getattr(way, where), (name, form))})
        try:
            plain = attempt(twin, one, ask.but(**{where: real}))
            working.append(form)
            if hides(twin, one, ask, real, plain, sizes, source):
                return name, form
        except Exception:
            continue
    return (name, working[0]) if working else None


def hides(twin: nn.Module, way: Convention, ask: Ask, real: Tensor, plain: Answer, sizes: Sizes, source: bool) -> bool:
    """Whether hidden tokens change nothing, and tokens that are not hidden still do."""
    where, what = ("source_real", "source") if source else ("real", "tokens")
    tokens = getattr(ask, what)

    def moved(row: int, position: int) -> float:
        other = tokens.clone()
        other[row, position] = (
            tokens[row, position].add(1) if tokens.is_floating_point() else (sizes.next(tokens[row, position]))
        )
        y = attempt(twin, way, ask.but(**{what: other, where: real})).y
        kept = slice(None) if source or y.ndim < 3 or y.shape[1] != ask.length else slice(2, None)
        a, b = (x[row][kept] if y.ndim >= 3 else x[row] for x in (y, plain.y))
        return (
            gap(a, b) if bool(a.isfinite().any()) else float("inf")
        )  # nothing but nan equals itself, and hides nothing

    return max(moved(0, 0), moved(0, 1)) <= 1e-5 < max(moved(0, 2), 2e-5 if not source else moved(0, 3))
