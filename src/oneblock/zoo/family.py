"""What a family of models is, as data: its spec function and sizes, and how its public files name what a spec says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from oneblock.spec import Spec, get

Config = Mapping[str, Any]
"""A config.json, with the family's defaults filled in."""


def given(value: Any, config: Config) -> Any:  # noqa: ARG001
    """A value of a config.json as it stands."""
    return value


@dataclass(frozen=True)
class Key:
    """One key of a family's config.json.

    argument: of the spec function, which the key fills; None where another key's `read` looks at it.
    place: where a spec shows the value: a path, or a function of the spec.
    default: what the key means where a file leaves it out.
    read: (value, whole config) -> the argument.

    >>> from oneblock.spec import Attention
    >>> Key("heads", "heads").written(Attention(8))
    8
    """

    argument: str | None
    place: str | Callable[[Any], Any]
    default: Any = None
    read: Callable[[Any, Config], Any] = given

    def written(self, spec: Any) -> Any:
        """The value that says what this spec says. ValueError or AttributeError where the spec has no such place."""
        return get(spec, self.place) if isinstance(self.place, str) else self.place(spec)


@dataclass(frozen=True)
class Flip:
    """Their matrix lies on its side: (inputs, outputs)."""

    theirs: str


@dataclass(frozen=True)
class Fused:
    """Several of our projections are one of theirs, one after the other.

    With `groups`, they alternate: the rows of each of so many groups of heads stand together. With `flip`, their matrix
    lies on its side.
    """

    theirs: str
    groups: int = 1
    flip: bool = False


@dataclass(frozen=True)
class Experts:
    """Our stacked tensor is one of theirs per expert; the last `*` of their name is the expert's number."""

    theirs: str


@dataclass(frozen=True)
class Flat:
    """Their tensor has axes of size 1 that ours lacks: (1, vocab) for (vocab,)."""

    theirs: str


@dataclass(frozen=True)
class Paired:
    """Their queries or keys turn neighbours 2i and 2i + 1, ours i and i + head_dim / 2: rows change places per head."""

    theirs: str
    heads: int


Row = str | Flip | Fused | Experts | Flat | Paired
Rows = Mapping[str, Row]
"""Our module (`*` is a number, {q,k} are several) -> how theirs holds it. weight and bias follow along."""


def both(rows: Mapping[str, str]) -> dict[str, Row]:
    """Rows of one stack, for an encoder and a decoder: "encoder." and "decoder." in front of the names on either side.

    >>> both({"norm": "final_layer_norm"})["decoder.norm"]
    'decoder.final_layer_norm'
    """
    stacks = ("encoder", "decoder")
    return {f"{stack}.{ours}": f"{stack}.{theirs}" for stack in stacks for ours, theirs in rows.items()}


def table(columns: str, rows: Mapping[str, tuple[Any, ...]], **shared: Any) -> dict[str, dict[str, Any]]:
    """Published sizes as a table: name -> the arguments that the columns name, beside those that all rows share.

    >>> table("dim depth", {"tiny": (64, 2)}, tied=True)
    {'tiny': {'tied': True, 'dim': 64, 'depth': 2}}
    """
    return {name: shared | dict(zip(columns.split(), row, strict=True)) for name, row in rows.items()}


def causal(spec: Any, config: Config) -> Spec:  # noqa: ARG001
    """The spec as the family's function makes it."""
    made: Spec = spec
    return made


def itself(spec: Any) -> Any:
    """A spec as it is."""
    return spec


@dataclass(frozen=True)
class Kind:
    """One class of a family's public models: what it makes of the spec, and the rows of its own.

    rows: or a function of the spec that gives them. prefix: in front of the names of the family's rows. part: the part
    of the spec ("encoder.") that is kept. whole: such a spec -> one of the shape that the family's function makes.
    """

    rows: Rows | Callable[[Any], Rows] = field(default_factory=dict)
    spec: Callable[[Any, Config], Spec] = causal
    prefix: str = ""
    part: str = ""
    whole: Callable[[Any], Any] = itself


@dataclass(frozen=True)
class Family:
    """One family. `make` is its spec function; the rest says how its public files are read and written.

    sizes: published name -> arguments. kind: the `model_type` of its config.json. config: its keys. fixed: keys that
    must have one value. rows: names of tensors, or a function of the spec that gives them. kinds: class name (the first
    is the usual one) -> Kind. ignored: tensors that say nothing here (`*` matches anything). renamed: spellings in
    other files -> today's, or a function of the spec that gives them; tensors that come to one name must be equal.
    instead: a name of theirs -> the one that is read where a file leaves it out. copies: a tensor that their models
    hold beside another but never use -> that other one, which is written twice.
    """

    make: Callable[..., Spec]
    sizes: Mapping[str, Mapping[str, Any]]
    kind: str = ""
    config: Mapping[str, Key] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    rows: Rows | Callable[[Any], Rows] = field(default_factory=dict)
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    renamed: Mapping[str, str] | Callable[[Any], Mapping[str, str]] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)
    copies: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The family's name: that of its spec function."""
        return self.make.__name__

    def row(self, spec: Any, kind: Kind) -> dict[str, tuple[Row, str]]:
        """Our module -> (row, prefix of their name), for a spec of that kind."""
        spec = kind.whole(spec)
        rows, own = (table(spec) if callable(table) else table for table in (self.rows, kind.rows))
        kept = {ours.removeprefix(kind.part): row for ours, row in rows.items() if ours.startswith(kind.part)}
        return {ours: (row, kind.prefix) for ours, row in kept.items()} | {o: (r, "") for o, r in own.items()}

    def spellings(self, spec: Any) -> Mapping[str, str]:
        """Spellings in other files -> today's, for a spec."""
        return self.renamed(spec) if callable(self.renamed) else self.renamed
