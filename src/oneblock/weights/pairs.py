"""Which module of another library does what each brick of ours does: the rows that name tensors name modules too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile

from torch import Tensor, nn

from oneblock.weights import rows
from oneblock.weights.fill import spec_of
from oneblock.zoo.family import Experts, Family, Flat, Row

WEIGHT = ".weight"
LAYER = re.compile(r"((?:.*\.)?layers\.\d+)\..*")
STACKED, NO_MODULE = "stacked", "parameter"


@dataclass(frozen=True)
class Pair:
    """Some modules of ours and one of theirs that give the same numbers; `row` says how, `shapes` are our weights'.

    `reads`: it is what goes into their module that counts, not what comes out.
    """

    ours: tuple[str, ...]
    theirs: str
    row: Row = ""
    shapes: tuple[tuple[int, ...], ...] = ()
    reads: bool = False

    def parts(self, x: Tensor) -> list[Tensor]:
        """What their module gives, (batch, ..., features), as each of ours gives it."""
        if not self.shapes:
            return [x]
        wide = x.movedim(-1, 0)
        flat = wide.ndim == 2  # a matrix would be taken for a weight that lies on its side
        found = rows.ours(self.row, [wide[..., None] if flat else wide], list(self.shapes))
        return [(part[..., 0] if flat else part).movedim(0, -1) for part in found]


@dataclass(frozen=True)
class Paired:
    """All pairs of a model, and the bricks that have none, with the reason."""

    pairs: tuple[Pair, ...]
    alone: Mapping[str, str] = field(default_factory=dict)


def paired(model: nn.Module, family: Family, name: str) -> Paired:
    """The pairs of a model and class `name` of a family: projections, norms and tables, whole blocks, embeddings."""
    shapes = {key: tuple(x.shape) for key, x in model.state_dict(keep_vars=True).items()}
    found: dict[tuple[str, ...], Pair] = {}
    alone: dict[str, str] = {}
    for group in rows.groups(family.row(spec_of(model), family.kinds[name]), shapes):
        ours = tuple(key.removesuffix(WEIGHT) for key in group.ours)
        if not all(key.endswith(WEIGHT) for key in (*group.ours, *group.theirs)):
            alone |= {key: NO_MODULE for key in group.ours if not key.endswith(".bias")}
        elif isinstance(group.row, Experts | Flat):
            alone |= dict.fromkeys(ours, STACKED if isinstance(group.row, Experts) else NO_MODULE)
        else:
            theirs = group.theirs[0].removesuffix(WEIGHT)
            found[ours] = Pair(ours, theirs, group.row, tuple(shapes[key] for key in group.ours))
    return Paired((*found.values(), *_blocks(list(found.values()))), alone)


def _blocks(pairs: list[Pair]) -> Iterator[Pair]:
    """Whole blocks: where the names of their modules begin alike; and what goes into the first, the embedding."""
    inside: dict[str, list[list[str]]] = {}
    for pair in pairs:
        if match := LAYER.fullmatch(pair.ours[0]):
            inside.setdefault(match[1], []).append(pair.theirs.split("."))
    for block, names in inside.items():
        common = [words[0] for words in takewhile(lambda words: len(set(words)) == 1, zip(*names, strict=False))]
        while common and not common[-1].isdigit():
            common.pop()
        if common:
            yield Pair((block,), ".".join(common))
        if common and block.endswith("layers.0"):
            yield Pair((f"{block.removesuffix('layers.0')}embedding",), ".".join(common), reads=True)


__all__ = ["Pair", "Paired", "paired"]
