"""A worked exercise as data, in no language: the steps of one block with their numbers, and sums written out.

A terminal, a page and JSON print these numbers and compute none of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from oneblock.explain.lens import Candidates, Lens
from oneblock.explain.step import Statistics
from oneblock.explain.worked.number import shown
from oneblock.explain.worked.wording import Written
from oneblock.spec import Spec

Row = tuple[float, ...]
Matrix = tuple[Row, ...]


@dataclass(frozen=True)
class Line:
    """name = how = value: one number, and the sum that gives it; `how` may be empty. `note` is the key of a label."""

    name: str
    how: str
    value: float
    note: str = ""

    def __str__(self) -> str:
        return " = ".join(filter(None, (self.name, self.how, shown(self.value))))


@dataclass(frozen=True)
class Part:
    """What a step was made from: its name, and the step or parameter it is.

    `number` is that of the step where it is shown too; `shape` is that of the formula, `stored` that of a file where a
    matrix lies on its side.
    """

    name: str
    source: str
    path: str
    shape: tuple[int, ...]
    stored: tuple[int, ...] = ()
    number: int | None = None


@dataclass(frozen=True)
class Softmax:
    """One row of a softmax by hand: for each key the score, score − largest, exp of that, and its share of the sum."""

    query: int
    scores: Row
    largest: float
    shifted: Row
    exps: Row
    sum: float
    weights: Row


@dataclass(frozen=True)
class Shown:
    """A step. `dims` and `shape` leave out the batch; `row` are the first numbers at `index`, of `width` there.
    `written` is its formula with what this step leaves out left out."""

    number: int
    path: str
    kind: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    parts: tuple[Part, ...]
    statistics: Statistics
    index: tuple[int, ...]
    row: Row
    width: int
    lines: tuple[Line, ...]
    softmax: Softmax | None = None
    written: Written = field(default_factory=Written)


@dataclass(frozen=True)
class Head:
    """One head's matrices (query, key): scores, scores with −∞ where hidden, weights."""

    scores: Matrix
    masked: Matrix
    weights: Matrix


@dataclass(frozen=True)
class Cell:
    """One score from query and key to weight: the dot product, and the share of the softmax."""

    head: int
    query: int
    key: int
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Maps:
    """An attention: who looks at whom. `hidden` are causes; `heads` those shown in full, `all` the weights of all."""

    path: str
    kind: str
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    hidden: tuple[tuple[int, ...], ...]
    heads: dict[int, Head]
    all: tuple[Matrix, ...]
    head: int
    query: int
    cells: tuple[Cell, ...] = ()


@dataclass(frozen=True)
class Section:
    """A sublayer, an embedding, a head: its steps in order. `formula` has this spec's numbers in it; `layer` is None
    outside a block; `wiring` names its norms' places."""

    path: str
    stack: str
    kind: str
    formula: str
    layer: int | None
    wiring: str
    steps: tuple[Shown, ...]
    maps: Maps | None = None


@dataclass(frozen=True)
class Addition:
    """An addition to the stream at the chosen token: ‖x‖, ‖f(x)‖, their ratio, and ‖x‖ after it.

    The embedding begins the stream: it has no ratio.
    """

    path: str
    before: float
    added: float
    ratio: float | None
    after: float


@dataclass(frozen=True)
class Overview:
    """The weights of an attention outside the shown block: head -> (query, key)."""

    path: str
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    all: tuple[Matrix, ...]


@dataclass(frozen=True)
class Chosen:
    """What is worked by hand: the block, the head, and the token of each stack."""

    layer: int
    head: int
    token: dict[str, int]


@dataclass(frozen=True)
class Every:
    """A step of the whole trace, in short."""

    path: str
    kind: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    statistics: Statistics


@dataclass(frozen=True)
class Exercise:
    """A trace as it is shown. `sizes` are letters and what they stand for here; `answers` what the decoder should say
    at each of its tokens; `whole` whether a block is shown and not only steps that were asked for."""

    model: str
    text: str
    spec: Spec = field(repr=False)
    random: bool
    chosen: Chosen
    sizes: tuple[tuple[str, int], ...]
    tokens: dict[str, tuple[str, ...]]
    answers: tuple[str, ...]
    sections: tuple[Section, ...]
    additions: dict[str, tuple[Addition, ...]]
    overview: tuple[Overview, ...]
    candidates: Candidates | None
    lens: Lens | None
    loss: float | None
    every: tuple[Every, ...] = field(repr=False)
    whole: bool = True
