"""The figure of an architecture, drawn from its spec: one column per stream, bottom to top, as in the paper of 2017."""

from __future__ import annotations

from math import ceil
from zlib import crc32

from oneblock.cost import active, parameters, parts
from oneblock.draw.describe import number
from oneblock.draw.pen import Pen, clean
from oneblock.draw.stage import Stage
from oneblock.draw.stream import stream
from oneblock.draw.style import STYLE
from oneblock.draw.tree import rows
from oneblock.spec import Model, Seq2Seq, Spec, walk
from oneblock.words import label, say

MARGIN = 18.0
ALLEY = 26.0
"""Room between two columns for the wire of the memory, on each side of it."""


def svg(spec: Spec, lang: str = "en", length: int | None = None, title: str = "") -> str:
    """The architecture as an SVG picture that stands alone: light or dark as its reader prefers, light on paper.

    `length` is the number of tokens in the shapes, by default the word; `title` a name to be shown with it, any text.

    >>> from oneblock.zoo import named
    >>> svg(named("vaswani"))[:37]
    '<svg xmlns="http://www.w3.org/2000/sv'
    """
    pen = two(spec, lang, length) if isinstance(spec, Seq2Seq) else one(spec, lang, length)
    _caption(pen, spec, lang, title)
    return _page(pen, spec, lang, title)


def one(spec: Model, lang: str, length: int | None) -> Pen:
    """A single column. Where it is a decoder, the memory that it would look at comes in from the left."""
    stage = _stage(spec, spec, lang, length, "length", "", 1)
    stream(stage, spec, "inputs")
    if spec.head is None:
        stage.up()
        stage.pen.text(0, stage.y + 6, label("features", lang), "label", 13)
    edge, said = stage.pen.left - 14, label("encoder output", lang)
    for x, y in stage.inlets:
        stage.pen.wire([(edge, y), (x, y)], arrow=False)
        stage.pen.text(edge - 5, y - 3.5, said, "label", 11, "end")
    return stage.pen


def two(spec: Seq2Seq, lang: str, length: int | None) -> Pen:
    """Encoder and decoder side by side, and the wire from the one into every cross-attention of the other."""
    left = _stage(spec, spec.encoder, lang, length, "source", "encoder", -1)
    right = _stage(spec, spec.decoder, lang, length, "target", "decoder", 1)
    stream(left, spec.encoder, "inputs", say("encoder", lang).name)
    stream(right, spec.decoder, "outputs", say("decoder", lang).name)
    apart = left.pen.right + 2 * ALLEY - right.pen.left
    trunk, top = left.pen.right + ALLEY, left.y + 18
    pen = Pen()
    pen.place(left.pen)
    pen.place(right.pen, right=apart)
    for x, y in right.inlets:
        pen.wire([(0, left.y), (0, top), (trunk, top), (trunk, y), (x + apart, y)], arrow=False)
    if right.inlets:
        pen.text(trunk - 8, top + 5, left.shape(), "note", 9, "end")
    return pen


def _stage(whole: Spec, model: Model, lang: str, length: int | None, word: str, path: str, side: int) -> Stage:
    counts = {name: count for part in parts(whole) for name, count in part.counts.items()}
    said = number(length) if length else label(word, lang)
    return Stage(lang, model.dim, side, said, counts, letters(whole), path)


def letters(spec: Spec) -> dict[str, str]:
    """A letter for each matrix that stands in several places, by all of its places.

    >>> from oneblock.zoo import named
    >>> sorted(letters(named("vaswani")).values())
    ['E', 'E', 'E']
    """
    places: dict[str, str] = {}
    for part in parts(spec):
        for name, owner in part.shared.items():
            fresh = "E" + "′" * len(set(places.values()))
            places[owner] = places[f"{part.path}.{name}"] = places.get(owner, fresh)
    return places


def _caption(pen: Pen, spec: Spec, lang: str, title: str) -> None:
    model = spec.decoder if isinstance(spec, Seq2Seq) else spec
    said = [label("parameters of", lang, number(parameters(spec))), label("dim", lang, number(model.dim))]
    if (used := active(spec)) < parameters(spec):
        said.insert(1, label("active", lang, number(used)))
    rates = sorted({value for path, value in walk(spec) if path.endswith("dropout") and value})
    if rates:
        said.append(f"{say('dropout', lang).name.lower()} {', '.join(number(rate) for rate in rates)}")
    lines = [" · ".join(said)]
    if shared := sorted(set(letters(spec).values())):
        lines.append(label("one matrix", lang, ", ".join(shared)))
    middle, y = (pen.left + pen.right) / 2, pen.bottom - 26
    if title:
        pen.text(middle, y, title, "label", 13)
        y -= 16
    for line in lines:
        pen.text(middle, y, line, "caption", 10)
        y -= 14


def _page(pen: Pen, spec: Spec, lang: str, title: str) -> str:
    left, top = pen.left - MARGIN, -pen.top - MARGIN
    wide, high = ceil(pen.right - pen.left + 2 * MARGIN), ceil(pen.top - pen.bottom + 2 * MARGIN)
    name = say("Seq2Seq" if isinstance(spec, Seq2Seq) else "Model", lang).name
    listed = [row for row in rows(spec, lang) if row.level]
    described = label("stop", lang).join(
        f"{row.name if row.times == 1 else label('times', lang, row.times, row.name)} {row.details}".strip()
        for row in listed
    )
    mark = f"{crc32(f'{spec}{lang}{title}'.encode('utf-8', 'replace')):08x}"
    size = f'width="{wide}" height="{high}" viewBox="{left:.1f} {top:.1f} {wide} {high}"'
    marks = "\n".join(pen.marks)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="oneblock" {size} lang="{lang}" role="img" '
        f'aria-labelledby="title-{mark} desc-{mark}">\n'
        f'<title id="title-{mark}">{clean(f"{title}: {name}" if title else name)}</title>\n'
        f'<desc id="desc-{mark}">{clean(described)}</desc>\n'
        f"<style>{STYLE}</style>\n"
        f'<rect class="paper" x="{left:.1f}" y="{top:.1f}" width="{wide}" height="{high}"/>\n'
        f"{marks}\n</svg>\n"
    )
