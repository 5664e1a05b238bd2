"""A mask as a matrix: one sign for each query and key, which says why the key is hidden.

hidden: (query, key), numbers of causes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from oneblock.explain.cause import CAUSES, causes, stand
from oneblock.explain.table import Table
from oneblock.explain.trace import Trace
from oneblock.spec import Mask
from oneblock.words import label

SIGNS = dict(zip(CAUSES, "●CWPD", strict=True))
"""What stands in the matrix for each cause."""


def mask_matrix(mask: Mask, length: int = 8, padding: Sequence[int] = (), lang: str = "en") -> Table:
    """Who may look at whom under a mask, `length` tokens among themselves; `padding` are the places of padding.

    A row is a query, a column a key; of several causes the first of padding, document, causal, window is named.
    ValueError: a length below 1, a place of padding outside.

    >>> from oneblock.spec import Causal, Window
    >>> print(mask_matrix(Causal() & Window(back=2), 3))
    causal, window: rows are queries, columns are keys
    q \\ k  0  1  2
    0      ●  C  C
    1      ●  ●  C
    2      W  ●  ●
    ● seen: the query may look at the key
    C causal: the key stands after the query
    W window: the key stands too far away
    """
    if length < 1 or any(not 0 <= place < length for place in padding):
        raise ValueError(f"mask: expected a length of at least 1 and padding inside it, got {length}, {list(padding)}")
    real = torch.ones(1, length, dtype=torch.long)
    real[0, list(padding)] = 0
    places = stand(real, real, None, "all")
    hidden = causes(mask, places, places)[0]
    names = [f"{token}" for token in range(length)]
    kinds = [cause for cause in CAUSES[1:] if bool((hidden == CAUSES.index(cause)).any())]
    title = ", ".join(label(f"cause {cause}", lang) for cause in kinds)
    return _matrix(title or label("full", lang), hidden, names, names, lang)


def masks(trace: Trace, name: str = "", row: int = 0, lang: str = "en") -> Table:
    """The mask of one attention of a trace, by the path of the attention ("layers.0.attention"), by default the first.

    `row` is which text of the batch; the first one's tokens are named. ValueError: no such attention or text.
    """
    known = [step.path.rpartition(".")[0] for step in trace if step.kind == "step.masked"]
    name = name or (known[0] if known else "")
    if name not in known:
        raise ValueError(f"mask: expected one of the attentions {', '.join(known) or '(there is none)'}, got {name!r}")
    hidden: Tensor = trace[f"{name}.masked"].operands["hidden"].value
    batch = len(trace[f"{name}.masked"].tensor)
    if not 0 <= row < batch:
        raise ValueError(f"mask: expected a text of 0 to {batch - 1}, got {row}")
    own = next((stack for stack in ("encoder.", "decoder.") if name.startswith(stack)), "")
    queries = _names(trace, own, hidden.shape[1], row)
    keys = _names(trace, "encoder." if name.endswith(".cross") else own, hidden.shape[2], row)
    return _matrix(label("mask of", lang, name), hidden[row if len(hidden) > 1 else 0], queries, keys, lang)


def _names(trace: Trace, stack: str, length: int, row: int) -> list[str]:
    tokens = trace.tokens.get(stack, ()) if row == 0 else ()
    return list(tokens) if len(tokens) == length else [str(place) for place in range(length)]


def _matrix(title: str, hidden: Tensor, queries: list[str], keys: list[str], lang: str) -> Table:
    """The table: a line for each query, the legend below."""
    signs = [[SIGNS[CAUSES[cause]] for cause in line] for line in hidden.tolist()]
    rows = tuple((name, *line) for name, line in zip(queries, signs, strict=True))
    there = {sign for line in signs for sign in line}
    legend = [
        f"{sign} {label('reason', lang, label(f'cause {cause}', lang), label(f'hidden by {cause}', lang))}"
        for cause, sign in SIGNS.items()
        if sign in there
    ]
    return Table(label("rows and columns", lang, title), ("q \\ k", *keys), rows, tuple(legend))
