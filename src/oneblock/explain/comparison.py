"""What a comparison of two models says: where they part first, and why."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from oneblock.explain.table import Table
from oneblock.words import label, say


@dataclass(frozen=True)
class Cause:
    """What was changed in `model` ("A" or "B") so that it agrees with the other: kind, where, what is, what would be.

    `agrees` says whether all steps from there on agree then; else the models part again later.
    """

    kind: str
    where: str
    model: str
    before: str
    after: str
    agrees: bool


@dataclass(frozen=True)
class Difference:
    """Where two models part: the first step that differs and its brick, the largest difference there and where it is.

    `words` is the step's entry in the dictionary of words; `relative` is to the largest number of the step; `a` and `b`
    are the two numbers at `place`; both are infinite where one model hides what the other sees.
    """

    step: str
    brick: str
    words: str
    difference: float
    relative: float
    place: tuple[int, ...]
    a: float
    b: float
    cause: Cause | None


@dataclass(frozen=True)
class Comparison:
    """What a comparison found: no difference, or the first and, where its cause is known, those that are left then.

    `steps` were compared. `output` is the relative difference of the last of them. `rounded` tensors differ by no more
    than the rounding of how they are stored and were taken as equal; `weights` differ by more.
    """

    steps: int
    output: float
    rounded: int
    weights: int
    differences: tuple[Difference, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether no step is further apart than rounding explains."""
        return not self.differences

    @property
    def first(self) -> Difference | None:
        """The first difference."""
        return self.differences[0] if self.differences else None

    def table(self, lang: str = "en") -> Table:
        """A line for each difference, and what is to say about all of them."""
        keys = ("step", "brick", "difference", "relative", "place", "in a", "in b", "cause")
        rows = tuple(
            (one.step, f"{one.brick} ({say(one.words, lang).name})", one.difference, one.relative,
             ", ".join(map(str, one.place)), one.a, one.b, told(one.cause, lang))
            for one in self.differences
        )  # fmt: skip
        notes = [label("steps agree" if self.agrees else "output apart", lang, self.steps, f"{self.output:.1e}")]
        if self.rounded:
            notes.append(label("tensors rounded", lang, self.rounded))
        if self.weights:
            notes.append(label("tensors apart", lang, self.weights))
        for one in self.differences:
            if one.cause is not None:
                notes.append(label("tested all" if one.cause.agrees else "tested more", lang, told(one.cause, lang)))
                notes.append(say(f"cause.{one.cause.kind}", lang).purpose)
            else:
                notes.append(label("no cause", lang, one.brick))
        heads = tuple(label(key, lang) for key in keys) if rows else ()
        return Table(label("compared", lang), heads, rows, tuple(notes))

    def to_dict(self) -> dict[str, Any]:
        """For JSON; infinities become None."""
        found = asdict(self) | {"agrees": self.agrees}
        for one in (found, *found["differences"]):
            one |= {k: None for k, x in one.items() if isinstance(x, float) and not math.isfinite(x)}
        return found

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return self.table()._repr_html_()


def told(cause: Cause | None, lang: str) -> str:
    """A cause in a few words."""
    if cause is None:
        return label("unknown cause", lang)
    name = say(f"cause.{cause.kind}", lang).name
    other = "B" if cause.model == "A" else "A"
    if not cause.before:
        return label("cause at", lang, name, cause.where)
    return label("cause in", lang, name, cause.where, cause.model, cause.before, other, cause.after)
