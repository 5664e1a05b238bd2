"""What queries, keys and scores were made of: numbers they were multiplied with, rotations, norms, projections.

Shapes: any; the last axis of a query or key is head_dim.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

from oneblock.check.seeing.watch import COPIES, VIEWS, Operation

PRODUCTS = ("bmm", "mm", "baddbmm", "addmm", "matmul", "dot", "mv", "convolution")
TURNS = ("add", "sub", "cat", "stack", "view_as_real", "view_as_complex", "index_put", "copy")
NORMS = ("native_layer_norm", "_fused_rms_norm", "rsqrt", "linalg_vector_norm", "norm", "native_group_norm")
DEEPEST = 40
STEADY = 1e-3
"""A rotation keeps the length of every vector to this part of it, in whatever precision its angles are."""


def through(number: int | None, operations: Sequence[Operation]) -> Operation | None:
    """The operation that made a tensor, views and copies passed over."""
    while number is not None and operations[number].name in VIEWS | COPIES:
        number = operations[number].sources[0]
    return None if number is None else operations[number]


def above(number: int | None, operations: Sequence[Operation], depth: int = DEEPEST) -> Iterator[Operation]:
    """The operations that lead to a tensor, nearest first, up to and including products with weights."""
    front, seen = [(number, 0)], set()
    while front:
        at, far = front.pop(0)
        if at is None or at in seen or far > depth:
            continue
        seen.add(at)
        one = operations[at]
        yield one
        if not (one.name in PRODUCTS and any(one.weights)):
            front += [(source, far + 1) for source in one.sources]


def projection(number: int | None, operations: Sequence[Operation]) -> Operation | None:
    """The product with weights that a query or key comes from."""
    return next((one for one in above(number, operations) if one.name in PRODUCTS and any(one.weights)), None)


def normed(number: int | None, operations: Sequence[Operation]) -> bool:
    """Whether a query or key was normalised after its projection; then its scale says nothing about q·k."""
    seen = list(above(number, operations))
    return any(one.name in NORMS for one in seen) and any(one.name in PRODUCTS and any(one.weights) for one in seen)


def learned(one: Operation, operand: int, operations: Sequence[Operation]) -> bool:
    """Whether an operand is a parameter, or a small function of one."""
    if one.learned[operand]:
        return True
    return any(any(step.learned) for step in above(one.sources[operand], operations, 6))


def scalar(one: Operation, operations: Sequence[Operation]) -> float | None:
    """The number that an operation multiplies with: 1 for masks and sums, None for what is learned or is no number."""
    if one.name not in ("mul", "div"):
        return 1.0
    full = [n for n, x in enumerate(one.operands) if x.numel() > 1]
    single = [n for n, x in enumerate(one.operands) if x.numel() == 1]
    if len(full) > 1:
        by = one.operands[full[1] if one.operands[full[0]].shape == one.result.shape else full[0]]
        return 1.0 if bool(((by == 0) | (by == 1)).all()) else None
    if any(learned(one, n, operations) for n in single):
        return None
    numbers = [float(one.operands[n].flatten()[0]) for n in single] or one.scalars[-1:] or [1.0]
    factor = numbers[-1]
    return factor if one.name == "mul" else 1 / factor if factor else None


def unscaled(number: int | None, operations: Sequence[Operation]) -> tuple[int | None, float | None]:
    """(the operation that made a query or key, the number it was multiplied with since; None: something learned)."""
    factor: float | None = 1.0
    faces: list[Tensor] = []
    while number is not None and factor is not None:
        one = operations[number]
        faces.append(one.result)
        full = [n for n, x in enumerate(one.operands) if x.numel() > 1]
        if one.name in VIEWS | COPIES:
            number = one.sources[0]
        elif one.name in ("mul", "div") and len(full) == 1 and one.sources[full[0]] is not None:
            by = scalar(one, operations)
            factor, number = (None, number) if by is None else (factor * by, one.sources[full[0]])
            faces = []
        elif one.name in TURNS and (turned := before_turn(one, faces, operations)):
            number, factor, faces = turned[0], factor * turned[1], []
        else:
            break
    return number, factor


def before_turn(one: Operation, faces: Sequence[Tensor], operations: Sequence[Operation]) -> tuple[int, float] | None:
    """(the vectors that were rotated, the factor by which all of them became longer), None where it was no rotation.

    `faces` are the ways in which the result was looked at since: the last axis of one of them is the rotated vector.
    """
    found = None
    for step in above(one.number, operations, 16):
        if step.number >= one.number or any(step.weights) or (found and step.number > found[0]):
            continue
        for face in faces:
            if face.shape == step.result.shape and (ratio := steady(face, step.result)) is not None:
                found = (step.number, ratio)
                break
    return found


def steady(y: Tensor, x: Tensor) -> float | None:
    """The one factor between the lengths of two sets of vectors, None where it varies."""
    if not (x.is_floating_point() and y.is_floating_point()) or not x.ndim:
        return None
    long, short = y.double().norm(dim=-1), x.double().norm(dim=-1)
    if short.numel() < 4 or bool((short < 1e-9).any()) or float(short.std() / short.mean()) < 1e-6:
        return None
    ratio = long / short
    return float(ratio.mean()) if float((ratio - ratio.mean()).abs().max() / ratio.mean()) < STEADY else None
