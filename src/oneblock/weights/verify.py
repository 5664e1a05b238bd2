"""Does a model compute what transformers makes of the same files? Brick by brick, against what rounding explains.

ids: (batch, length).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from oneblock.bricks import EncoderDecoder
from oneblock.spec import Classify, Tokens
from oneblock.weights.fetch import fetched
from oneblock.weights.fill import empty, spec_of
from oneblock.weights.folder import load
from oneblock.weights.hub import CONFIG, shapes
from oneblock.weights.pairs import Pair, Paired, paired
from oneblock.weights.reference import library, opened, opened_by
from oneblock.weights.watch import Call, Calls, apart, largest, watch
from oneblock.zoo import FAMILIES
from oneblock.zoo.config import read_public

BEYOND = 10.0
"""How many times the noise of its own rounding a brick may be away."""
ABSENT, ELSEWHERE, OTHERWISE, UNCALLED = "absent", "elsewhere", "shape", "uncalled"
"""Why a brick is not compared: `label("why absent")` and so on say it whole."""


@dataclass(frozen=True)
class Brick:
    """One brick: the module of theirs, the largest difference, and how far our float32 is from our float64."""

    name: str
    theirs: str
    difference: float
    noise: float

    @property
    def agrees(self) -> bool:
        """Whether rounding explains the difference."""
        return self.difference <= BEYOND * self.noise


@dataclass(frozen=True)
class Agreement:
    """What a comparison found.

    bricks: in the order in which they run; the last is the answer. first: the brick where the two part, or None.
    given: a brick that gave the first difference, None where it is `first` itself; else what reached it was different
    already although all before it agreed, so that the fault lies in between, in `first`. skipped: brick -> why it was
    not compared: the word after "why" in `words.labels`.
    """

    bricks: tuple[Brick, ...]
    first: str | None
    given: str | None
    skipped: Mapping[str, str]

    @property
    def agrees(self) -> bool:
        """Whether all that was compared agrees."""
        return self.first is None


Inputs = dict[str, Tensor]
Run = list[tuple[Calls, dict[str, Tensor]]]
"""Of each batch of inputs: the calls, and the answers by name."""
HEADS = ("head", "decoder.head")


def verify(
    folder: str | Path,
    reference: str | Path | None = None,
    ids: Sequence[int] | None = None,
    length: int = 12,
    seed: int = 0,
) -> Agreement:
    """Compare a model with what transformers computes from the same folder.

    Args:
        folder: or hub id, as `load` takes it.
        reference: a folder that transformers opens instead; by default the same one, or what our `save` makes of it
            where it is in our own format.
        ids: token ids of one text; by default random ones, once without and once with padding on the right.
        length: of random texts, in tokens.
        seed: of random ids.

    Raises:
        ValueError: transformers is not installed or cannot open the folder; a folder that `load` refuses; numbers
            that are not finite; a reference of another architecture; ids beyond the vocabulary.
    """
    known = library()
    ours = load(folder)
    for name, parameter in ours.named_parameters():
        if not bool(parameter.isfinite().all()):
            raise ValueError(
                f"{folder}: {name} holds numbers that are not finite, nothing can be compared; fetch it again"
            )
    with opened(ours, fetched(folder), reference) as there:
        family, name, spec = read_public(there / CONFIG, FAMILIES)
        alike(ours, empty(spec), f"{folder} and {reference}")
        batches = [{"input_ids": checked(ours, ids)}] if ids else drawn(ours, length, seed)
        table = paired(ours, family, name)
        names = [*{one: 0 for pair in table.pairs for one in pair.ours}]
        mine = run(ours, (*names, *HEADS), batches)
        exact = run(ours.double(), (*names, *HEADS), batches)
        theirs = opened_by(known, name, there)
        return compare(table, mine, exact, run(theirs, [*{pair.theirs: 0 for pair in table.pairs}], batches), batches)


def alike(ours: nn.Module, other: nn.Module, what: str) -> None:
    """Refuse models of different architectures, by their parameters' names and shapes: their bricks have no pairs."""
    a, b = shapes(ours.state_dict()), shapes(other.state_dict())
    for name in sorted(a.keys() | b.keys()):
        if a.get(name) != b.get(name):
            here, there = a.get(name, "absent"), b.get(name, "absent")
            raise ValueError(f"verify: {what} are not of one architecture: {name} is {here} and {there}")


def compare(table: Paired, mine: Run, exact: Run, theirs: Run, batches: list[Inputs]) -> Agreement:
    """The verdict over three runs on the same inputs."""
    found: dict[str, Brick] = {}
    inside: dict[str, bool] = {}
    skipped = dict(table.alone)
    for pair in table.pairs:
        for at, name in enumerate(pair.ours):
            gaps = [_gaps(pair, at, name, *calls) for calls in _turns(mine, exact, theirs, batches)]
            if wrong := next((gap for gap in gaps if isinstance(gap, str)), None):
                skipped[name] = wrong
                continue
            far, noise, given = (max(column) for column in zip(*gaps, strict=True))  # type: ignore[misc]
            found[name], inside[name] = Brick(name, pair.theirs, far, noise), given > BEYOND
    order = [name for name in mine[0][0] if name in found]
    last = _output(mine, exact, theirs, batches)
    found["output"] = last
    for name in order:
        if not found[name].agrees and _after(name, found).agrees:
            skipped[name] = ELSEWHERE
    bricks = tuple(found[name] for name in (*order, "output") if name not in skipped)
    first = next((brick.name for brick in bricks if not brick.agrees), None)
    if first is None or not inside.get(first):
        return Agreement(bricks, first, None, skipped)
    between = re.sub(r"\.norms$", "", first.rpartition(".")[0])
    return Agreement(bricks, between or first, first if between else None, skipped)


def _output(mine: Run, exact: Run, theirs: Run, batches: list[Inputs]) -> Brick:
    """How far apart the answers are that both give."""
    far, noise = 0.0, 0.0
    for (_, a), (_, b), (_, c), one in zip(mine, exact, theirs, batches, strict=True):
        real = _real(one)
        both = [name for name in a if name in c]
        gaps = [apart(a[name], c[name], real) for name in both]
        if not both or None in gaps:
            raise ValueError("verify: the two give answers of different shapes; they are not one model")
        far = max(far, *(gap for gap in gaps if gap is not None))
        noise = max(noise, *(max(apart(a[name], b[name], real) or 0.0, _unit(a[name])) for name in both))
    return Brick("output", "output", far, noise)


def _after(name: str, found: Mapping[str, Brick]) -> Brick:
    """What a brick is for: its block, the embedding, the output."""
    match = re.fullmatch(r"((?:.*\.)?(?:layers\.\d+|embedding))\..*", name)
    return found.get(match[1], found["output"]) if match else found["output"]


def _gaps(
    pair: Pair, at: int, name: str, ours: Calls, exact: Calls, theirs: Calls, real: Tensor | None
) -> str | tuple[float, float, float]:
    """(difference, noise, difference of what it was given as a multiple of its noise), or why they say nothing."""
    if pair.theirs not in theirs:
        return ABSENT
    if len(ours.get(name, [])) != len(theirs[pair.theirs]):
        return UNCALLED
    found = []
    for a, b, c in zip(ours[name], exact[name], theirs[pair.theirs], strict=True):
        out = c.given if pair.reads else c.gave
        if a.gave is None or b.gave is None or out is None:
            return OTHERWISE
        try:
            gap = apart(a.gave, pair.parts(out)[at], real)
        except (ValueError, RuntimeError):
            gap = None
        if gap is None:
            return OTHERWISE
        noise = max(apart(a.gave, b.gave, real) or 0.0, _unit(a.gave))
        found.append((gap, noise, 0.0 if pair.reads else _inside(a, b, c, real)))
    return tuple(max(column) for column in zip(*found, strict=True))  # type: ignore[return-value]


def _inside(ours: Call, exact: Call, theirs: Call, real: Tensor | None) -> float:
    """How far apart the inputs of two modules are, as a multiple of the noise; 0 where that cannot be said."""
    a, b, c = ours.given, exact.given, theirs.given
    if a is None or b is None or c is None or not a.is_floating_point() or not c.is_floating_point():
        return 0.0
    gap = apart(a, c, real)
    return 0.0 if gap is None else gap / max(apart(a, b, real) or 0.0, _unit(a), 1e-30)


def _unit(x: Tensor) -> float:
    """What one rounding of the largest number is: less noise than that is luck."""
    return largest(x) * torch.finfo(torch.float32).eps / 2


def _turns(mine: Run, exact: Run, theirs: Run, batches: list[Inputs]) -> Iterator[tuple[Any, ...]]:
    for (a, _), (b, _), (c, _), one in zip(mine, exact, theirs, batches, strict=True):
        yield a, b, c, _real(one)


def _real(inputs: Inputs) -> Tensor | None:
    mask = inputs.get("attention_mask")
    return None if mask is None else mask.bool()


def run(model: nn.Module, names: Sequence[str], batches: list[Inputs]) -> Run:
    """What the modules of those names and the model itself give for each batch."""
    found = []
    for one in batches:
        calls, out = watch(model, names, one)
        found.append((calls, answers(out, calls)))
    return found


def answers(out: Any, calls: Calls) -> dict[str, Tensor]:
    """What a model of either library gives: logits, one vector per text, the final stream; those that it has."""
    head = next((calls[name][0].given for name in HEADS if name in calls), None)
    memory = None if "decoder.head" in calls else getattr(getattr(out, "encoder_outputs", None), "x", None)
    found = {
        "logits": getattr(out, "logits", None),
        "pooled": getattr(out, "pooled", getattr(out, "pooler_output", None)),
        "final": next((x for x in (getattr(out, "last_hidden_state", None), head, memory) if x is not None), None),
    }
    return {name: x for name, x in found.items() if x is not None}


def drawn(model: nn.Module, length: int, seed: int) -> list[Inputs]:
    """Random ids, no special token among them: all of one length; and padded on the right, under a mask."""
    spec = spec_of(model)
    two = isinstance(model, EncoderDecoder)
    read, write = (spec.encoder, spec.decoder) if two else (spec, spec)
    generator = torch.Generator().manual_seed(seed)

    def some(part: Any, width: int) -> Tensor:
        said: Tokens = part.tokens
        special = {said.pad, said.bos, said.eos, said.start, *said.stop}
        plain = torch.tensor([at for at in range(part.embedding.vocab) if at not in special] or [0])
        return plain[torch.randint(len(plain), (2, width), generator=generator)]

    longest = [part.length for part in (read, write) if part.length]
    if length < 2 or length > min(longest, default=length):
        raise ValueError(f"length: expected 2 to {min(longest, default=1024)} tokens, got {length}")
    ids = some(read, length)
    rest = {"decoder_input_ids": some(write, length - 1)} if two else {}
    mask = torch.ones_like(ids)
    mask[1, (length + 1) // 2 :] = 0
    pad = read.tokens.pad
    single = {name: x[:1] for name, x in ({"input_ids": ids} | rest).items()}
    if pad is None and isinstance(write.head, Classify):  # the other library then takes one text at a time
        return [single]
    return [single, {"input_ids": ids.masked_fill(mask == 0, pad or 0), "attention_mask": mask} | rest]


def checked(model: nn.Module, ids: Sequence[int]) -> Tensor:
    """One text's ids as a batch."""
    spec = spec_of(model)
    if isinstance(model, EncoderDecoder):
        raise ValueError("ids: an encoder-decoder is compared on random ids only; leave them out")
    if not 0 <= min(ids) <= max(ids) < spec.embedding.vocab:
        raise ValueError(f"ids: expected 0 to {spec.embedding.vocab - 1}, got {min(ids)} to {max(ids)}")
    return torch.tensor([list(ids)])


__all__ = ["Agreement", "Brick", "verify"]
