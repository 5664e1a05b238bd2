"""Blocks: a class for each order of norms and residuals that a stack has, with its equation written out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from oneblock.export.file import File
from oneblock.export.parts import norm
from oneblock.export.text import LONGEST, merged
from oneblock.export.values import Code
from oneblock.spec import SLOTS, Attention, Block, FeedForward, MoE, Wiring

EQUATIONS: dict[Wiring, str] = {
    "pre": "x <- x + f(norm(x))",
    "post": "x <- norm(x + f(x))",
    "branch": "x <- x + norm(f(x))",
    "sandwich": "x <- x + norm(f(norm(x)))",
    "parallel": "x <- x + attention(norm(x)) + feedforward(norm'(x))",
    "parallel-shared": "h = norm(x), x <- x + attention(h) + feedforward(h)",
    "bare": "x <- x + f(x)",
}
NAMES: dict[Wiring, str] = {
    "pre": "Pre",
    "post": "Post",
    "branch": "Branch",
    "sandwich": "Sandwich",
    "parallel": "Parallel",
    "parallel-shared": "Shared",
    "bare": "Bare",
}
SUBLAYERS = ("attention", "cross", "feedforward")
ROOM = LONGEST - 8
"""Columns of a line in a method."""


@dataclass(frozen=True)
class Shape:
    """What blocks of one class have in common."""

    wiring: Wiring
    order: tuple[str, ...]
    norm: Code | None
    skip: float
    branch_scale: float
    dropout: float

    @property
    def names(self) -> list[str]:
        """The names of its norms."""
        normed = self.order if self.wiring != "parallel-shared" else ("attention",)
        return [f"{name}_{slot}" for name in normed for slot in SLOTS[self.wiring]]


def shape(file: File, block: Block) -> Shape:
    """The class that a block belongs to."""
    order = tuple(name for name in SUBLAYERS if getattr(block, name) is not None)
    normed = norm(file, block.norm, "DIM") if SLOTS[block.wiring] and order else None
    return Shape(block.wiring, order, normed, float(block.skip), float(block.branch_scale), block.dropout)


def blocks(file: File, layers: tuple[Block, ...], prefix: str, biased: bool, context: list[str]) -> list[Code]:
    """Write the classes of a stack's blocks, and say how each block is made.

    prefix: of their names. biased: whether attention is given a bias. context: what the stack tells its blocks.
    """
    shapes = [shape(file, block) for block in layers]
    classes: dict[Shape, str] = {}
    several = len(set(shapes)) > 1
    for one in dict.fromkeys(shapes):
        name = f"{prefix}{NAMES[one.wiring] if several else ''}Block"
        taken = sum(other.rstrip("0123456789") == name for other in classes.values())
        classes[one] = f"{name}{taken + 1 if taken else ''}"
    calls: dict[int, Code] = {}
    for one, name in classes.items():
        own = [i for i, other in enumerate(shapes) if other == one]
        made = {i: {part: sublayer(file, getattr(layers[i], part), part, biased) for part in one.order} for i in own}
        differ = [part for part in one.order if len({made[i][part] for i in own}) > 1]
        inside = {part: made[own[0]][part] for part in one.order if part not in differ}
        kinds = {part: " | ".join(dict.fromkeys(made[i][part].partition("(")[0] for i in own)) for part in differ}
        file.parts[name] = merged("\n".join(written(file, name, one, inside, kinds, context)))
        calls |= {i: Code(f"{name}({', '.join(made[i][part] for part in differ)})") for i in own}
    return [calls[i] for i in range(len(layers))]


def sublayer(file: File, spec: Attention | FeedForward | MoE, name: str, biased: bool) -> Code:
    """How a sublayer is made."""
    known = (spec, name == "cross", biased and name == "attention") if isinstance(spec, Attention) else spec
    return file.made[known]


def written(
    file: File, name: str, one: Shape, inside: dict[str, Code], kinds: dict[str, str], context: list[str]
) -> list[str]:
    """The lines of a class of blocks."""
    said = "".join(f", {part}: {kind}" for part, kind in kinds.items())
    forward = equations(file, one, context)
    body = "\n".join(forward)
    named = (word if re.search(rf"\b{word}\b", body) else f"_{word}" for word in context)
    passed = "".join(f", {word}: Tensor" for word in named)
    lines = [
        f"class {name}(nn.Module):",
        f'    """{title(one)}."""',
        "",
        f"    def __init__(self{said}) -> None:",
        "        super().__init__()",
        *(f"        self.{part} = {inside.get(part, part)}" for part in one.order),
    ]
    if one.names and one.norm:
        each = ", ".join(f'"{name}"' for name in one.names) + "," * (len(one.names) == 1)
        line = f"self.norms = nn.ModuleDict({{name: {one.norm} for name in ({each})}})"
        if len(line) > ROOM:
            lines.append(f"        names = ({each})")
            line = f"self.norms = nn.ModuleDict({{name: {one.norm} for name in names}})"
        lines.append(f"        {line}")
    if dropout := file.dropout("DROPOUT", one.dropout):
        lines.append(f"        self.dropout = {dropout}")
    return [
        *lines,
        "",
        f"    def forward(self, x: Tensor{passed}) -> Tensor:",
        '        """x: (batch, length, dim), before and after."""',
        *(f"        {line}" for line in forward),
    ]


def title(one: Shape) -> str:
    """The equation of a class of blocks, and what f is."""
    said = EQUATIONS[one.wiring]
    if one.skip != 1:
        said = said.replace("x +", "skip * x +") if one.skip else said.replace("x + ", "")
    if one.branch_scale != 1:
        said = said.replace("+ ", "+ scale * ").replace("<- f", "<- scale * f")
    words = {"attention": "attention", "cross": "attention to the memory", "feedforward": "feed-forward"}
    serial = not one.wiring.startswith("parallel")
    return said + (" for f = " + ", then ".join(words[name] for name in one.order) if serial and one.order else "")


def equations(file: File, one: Shape, context: list[str]) -> list[str]:
    """The lines of `forward`."""
    asked = {"cross": ["reach", "memory=memory"], "feedforward": []}
    if "there" in context:
        asked["cross"] = ["reach", "position", "memory=memory", "there=there"]
    asked["attention"] = [word for word in file.context if word in context]

    def normed(name: str, slot: str, x: str) -> str:
        return f'self.norms["{name}_{slot}"]({x})' if f"{name}_{slot}" in one.names else x

    def called(name: str, x: str) -> str:
        return f"self.{name}({', '.join([x, *asked[name]])})"

    def dropped(y: str) -> str:
        return f"self.dropout({y})" if one.dropout else y

    skip, scale = (
        "" if factor == 1 else f"{file.constants.use(name, factor)} * "
        for name, factor in (("SKIP", one.skip), ("BRANCH_SCALE", one.branch_scale))
    )
    if one.wiring.startswith("parallel"):
        return side_by_side(one, skip, scale, called, dropped)
    lines: list[str] = []
    for name in one.order:
        y = dropped(normed(name, "branch", called(name, normed(name, "pre", "x"))))
        x = normed(name, "post", f"{skip}x + {scale}{y}" if one.skip else f"{scale}{y}")
        if len(x) + len("return ") > ROOM:
            lines.append(f"y = {called(name, normed(name, 'pre', 'x'))}")
            y = dropped(normed(name, "branch", "y"))
            x = normed(name, "post", f"{skip}x + {scale}{y}" if one.skip else f"{scale}{y}")
        lines.append(f"x = {x}")
    return [*lines[:-1], lines[-1].replace("x = ", "return ", 1)] if lines else ["return x"]


def side_by_side(
    one: Shape, skip: str, scale: str, called: Callable[[str, str], str], dropped: Callable[[str], str]
) -> list[str]:
    """The lines of a parallel block."""
    shared = one.wiring == "parallel-shared"
    lines = ['h = self.norms["attention_pre"](x)'] if shared else []
    read = {name: "h" if shared else f'self.norms["{name}_pre"](x)' for name in one.order}
    first, second = (dropped(called(name, read[name])) for name in ("attention", "feedforward"))
    total = f"{first} + {second}"
    if scale or len(f"return {skip}x + {total}") > ROOM:
        lines += [f"y = {first}", f"y = y + {second}"]
        total = f"{scale}y"
    return [*lines, f"return {skip}x + {total}" if one.skip else f"return {total}"]


__all__ = ["blocks"]
