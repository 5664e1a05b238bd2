"""How an unknown module is called, found by trying: its inputs, masks, positions, labels and cache."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from oneblock.check.calling import names
from oneblock.check.calling.adapter import Adapter, Ask, Kind
from oneblock.check.calling.convention import LENGTH, Convention, attempt, questions
from oneblock.check.calling.example import Example
from oneblock.check.calling.find_caches import cached
from oneblock.check.calling.find_kind import kind_of
from oneblock.check.calling.find_masks import masked
from oneblock.check.calling.masks import FORMS
from oneblock.check.calling.sizes import Sizes, sizes_of
from oneblock.check.copies import bare, copied
from oneblock.check.seeing.watch import watching
from oneblock.check.subject import gap
from oneblock.hint import first_line
from oneblock.words.phrase import Phrase


def found(
    module: nn.Module, kind: Kind | None = None, example: Example | None = None, until: float = float("inf")
) -> Adapter:
    """Find out how a module is called. ValueError: it cannot be called in any common way, with its own words."""
    parameters, example = signature(module), example or Example()
    sizes = example.sized(sizes_of(module))
    twin = copied(module).to("cpu").float().eval()
    way, sizes = first_call(twin, parameters, sizes, example, until)
    sizes = measured(twin, way, sizes)
    way = oriented(twin, way, sizes)
    way = whole(twin, way, parameters, sizes)
    kind, why = kind_of(twin, way, sizes, kind)
    way = masked(twin, way, parameters, sizes, kind)
    way = beside(twin, way, parameters, sizes)
    return adapter_of(way, sizes, kind, why)


def signature(module: nn.Module) -> dict[str, inspect.Parameter]:
    """The arguments of a module's forward."""
    forward = bare(module).forward
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = {name: one for name, one in inspect.signature(forward).parameters.items() if one.kind not in kinds}
    if not found:
        raise ValueError(f"check: {type(module).__name__}.forward takes no named argument; give an Adapter")
    return found


def first_call(
    twin: nn.Module, parameters: Mapping[str, inspect.Parameter], sizes: Sizes, example: Example, until: float
) -> tuple[Convention, Sizes]:
    """The first way of calling that works: ids or vectors, with or without a source, at one of the likely widths."""
    said: list[str] = []
    tries = (replace(one, until=until) for one in names.ways(parameters, sizes, example))
    for way in (replace(one, segment=n) for one in tries for n in ((1, 0) if one.segments else (1,))):
        for one in sizes.widths(way.ids, way.source_ids if way.source else None):
            try:
                attempt(twin, way, questions(way, one))
                return way, one
            except TimeoutError:
                raise
            except Exception as error:
                said.append(f"{type(error).__name__}: {first_line(error)}")
    likely = said[0] if said else "no argument looks like its input"
    raise ValueError(
        f"check: {type(twin).__name__} could not be called with ids or vectors; the first try ended in {likely}; "
        "give an example (inputs=, --inputs) or an Adapter"
    )


def measured(twin: nn.Module, way: Convention, sizes: Sizes) -> Sizes:
    """Sizes as the tables show them: rows of the one that reads our ids, and of the one that reads places."""
    ask = questions(way, sizes)
    with watching(twin) as watch:
        attempt(twin, way, ask)
    rows = {"tokens": sizes.vocab, "source": sizes.source_vocab}
    longest = sizes.longest
    places = torch.arange(LENGTH)
    for one in watch.operations:
        if one.name not in ("embedding", "index_select", "index") or len(one.operands) < 2:
            continue
        table, index = one.operands[0], one.operands[-1].flatten()
        for name in rows:
            ids = getattr(ask, name)
            if ids is not None and not ids.is_floating_point() and one.weights[0]:
                turned = (ids.flatten(), ids.T.flatten())
                rows[name] = table.shape[0] if any(torch.equal(index, x) for x in turned) else rows[name]
        if one.weights[0] and index.numel() % LENGTH == 0 and torch.equal(index[:LENGTH] - index[0], places):
            longest = longest or table.shape[0] - int(index[0])
    return replace(sizes, vocab=rows["tokens"], source_vocab=rows["source"], longest=longest)


def oriented(twin: nn.Module, way: Convention, sizes: Sizes) -> Convention:
    """Whether the batch comes first: told by what mixes with what, and by the module's own word where that is open."""
    if way.ids and way.source is None and sizes.batch_first is not False:
        return way
    ask = questions(way, sizes, LENGTH, 3)

    def mixes(axis: int) -> bool:
        """Whether a change at index 0 of one axis of the raw input is felt at its other indices."""
        raw = replace(way, batch_first=True)
        with_change = ask.tokens.clone()
        at = (slice(None),) * axis + (0,)
        with_change[at] = with_change[at] + (1 if way.ids else 1.0)
        if way.ids:
            with_change %= max(sizes.vocab or 2, 2)
        a, b = attempt(twin, raw, ask).y, attempt(twin, raw, ask.but(tokens=with_change)).y
        rest = (slice(None),) * axis + (slice(1, None),)
        return gap(b[rest], a[rest]) > 1e-6

    try:
        over_first, over_second = mixes(0), mixes(1)
    except Exception:
        return way
    if over_first and not over_second:
        return replace(way, batch_first=False)
    if over_first == over_second and sizes.batch_first is False:
        return replace(way, batch_first=False)
    return way


def whole(twin: nn.Module, way: Convention, parameters: Mapping[str, inspect.Parameter], sizes: Sizes) -> Convention:
    """Labels, and whether the module answers for all positions only when it is given some."""
    labels = next((name for name in names.LABELS if name in parameters and name not in (way.tokens, way.source)), None)
    if labels is None or not way.ids:
        return way
    ask = questions(way, sizes)
    asked = replace(way, labels=labels)
    try:
        with_labels = attempt(twin, asked, ask.but(labels=ask.tokens))
    except Exception:
        return way
    plain = attempt(twin, way, ask)
    if with_labels.loss is None:
        return way
    return replace(asked, full=plain.y.shape[:2] != with_labels.y.shape[:2] and with_labels.y.shape[1] == LENGTH)


def beside(twin: nn.Module, way: Convention, parameters: Mapping[str, inspect.Parameter], sizes: Sizes) -> Convention:
    """Positions, documents and caches, where the module takes them."""
    ask = questions(way, sizes)
    positions = torch.arange(LENGTH).expand(2, LENGTH)
    free = [name for name in parameters if name not in (way.tokens, way.source)]
    changes: list[tuple[dict[str, Any], Callable[[], Ask]]] = []
    if name := next((one for one in names.POSITIONS if one in free), None):
        changes.append(({"positions": name}, lambda: ask.but(positions=positions)))
    if name := next((one for one in names.DOCUMENTS if one in free), None):
        changes.append(({"documents": name}, lambda: ask.but(documents=positions // 3)))
    for change, asked in changes:
        one = replace(way, **change)
        try:
            attempt(twin, one, asked())
            way = one
        except Exception:
            continue
    return cached(twin, way, parameters, ask)


def adapter_of(way: Convention, sizes: Sizes, kind: Kind, why: Phrase) -> Adapter:
    """The adapter that a convention makes."""
    kinds = ("ids" if way.ids else "vectors", "ids" if way.source_ids else "vectors")
    told = [Phrase(f"{{}}: {kinds[0]}, {'batch' if way.batch_first else 'length'} first", way.tokens)]
    told += [Phrase(f"{{}}: the source, {kinds[1]}", way.source)] if way.source else []
    told += [Phrase("padding is told by its id {}", way.pad)] if way.by_id else []
    told += [Phrase(f"{{}}: {FORMS[form].said}", name) for name, form in (*way.real, *way.source_real)]
    told += [Phrase("{}: a causal mask from the caller", name) for name, _ in way.causal]
    held = ((way.positions, "positions"), (way.labels, "labels"), (way.cache, "a cache"))
    told += [Phrase(f"{{}}: {what}", name) for name, what in held if name]
    told += [Phrase("its cache is held by the module")] if way.held else []
    told += [Phrase(f"{kind}: {why.template}", *why.fills)]
    return Adapter(
        way.call,
        kind,
        sizes.vocab if way.ids else None,
        None if way.ids else sizes.dim,
        (sizes.source_vocab or sizes.vocab) if way.source and way.source_ids else None,
        None if not way.source or way.source_ids else sizes.source_dim or sizes.dim,
        way.takes(),
        way.pad if way.by_id else sizes.pad,
        sizes.longest,
        told=tuple(told),
        avoid=sizes.avoid,
        polarity=(*way.real, *way.source_real),
        even=way.even,
    )
