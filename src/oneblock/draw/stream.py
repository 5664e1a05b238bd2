"""One stream as a figure, from its tokens at the bottom to what comes out at the top."""

from __future__ import annotations

from oneblock.draw import glyphs
from oneblock.draw.block import HALF, block, norm
from oneblock.draw.describe import capped, details, number
from oneblock.draw.fold import Run, fold
from oneblock.draw.stage import GAP, WIDE, Stage
from oneblock.spec import Classify, Head, Learned, Model, Pool, Sinusoidal, Transform
from oneblock.words import label, say

BESIDE = 96.0
"""Width of a small box beside the main line."""


def stream(stage: Stage, model: Model, inputs: str, name: str = "") -> None:
    """Draw a model from the bottom up; `inputs` says what goes in, `name` what the stream is called."""
    stage.pen.text(0, stage.y, label(inputs, stage.lang), "label", 13)
    stage.pen.text(0, stage.y - 13, f"({stage.length})", "note", 9)
    stage.y += 14
    embedding(stage, model)
    bias = position_bias(stage, model)
    stage.up(GAP + 2, arrow=False)
    stage.note(stage.shape())
    runs = fold(model.layers)
    for run in runs:
        layers = label("layers" if "-" in run.layers else "layer", stage.lang, run.layers) if len(runs) > 1 else ""
        one_run(stage, run, [name if run is runs[0] else "", layers])
    for x, y in stage.biased if bias else ():
        stage.pen.wire([(stage.lane, bias), (stage.lane, y), (x, y)])
    if model.norm is not None:
        stage.up()
        norm(stage, model.norm, "norm")
    if isinstance(model.head, Head):
        head(stage, model, model.head)
    elif model.head is not None:
        whole(stage, model.head)


def embedding(stage: Stage, model: Model) -> None:
    """The embedding, and what is added to it: position and segment; then its norm."""
    brick, lang = model.embedding, stage.lang
    stage.up()
    bottom = stage.y
    lines = [say("Embedding", lang).name, *details(brick, stage.dim, lang)]
    stage.brick("embedding", lines, "embedding.token", stage.tip(brick))
    letter = stage.letters.get(stage.at("embedding.token.weight"))
    if letter:
        glyphs.badge(stage.pen, -stage.side * (WIDE / 2 - 14), (bottom + stage.y) / 2, letter)
    said = f"× √{number(stage.dim)}" if brick.scale else ""
    if isinstance(brick.position, Sinusoidal):
        add_wave(stage, said)
    elif isinstance(brick.position, Learned):
        lines = [say("Learned", lang).name, *details(brick.position, stage.dim, lang)]
        add_table(stage, lines, "embedding.position", stage.tip(brick.position), said)
    elif said:
        stage.up()
        stage.note(said)
    if brick.segments:
        said_segment = say("Embedding.segment", lang)
        lines = [said_segment.name, label("segments", lang, brick.segments)]
        add_table(stage, lines, "embedding.segment", f"{said_segment.formula}\n{said_segment.purpose}")
    if brick.norm is not None:
        stage.up(GAP + 4)
        norm(stage, brick.norm, "embedding.norm")


def add_wave(stage: Stage, said: str) -> None:
    """Sinusoids, added to the stream from the side."""
    stage.up(GAP + 3)
    stage.note(said)
    middle, x = stage.y + 8, stage.side * 62
    glyphs.plus(stage.pen, 0, middle)
    stage.pen.wire([(x - stage.side * 11, middle), (stage.side * 8, middle)])
    words = say("Sinusoidal", stage.lang)
    stage.pen.marks.append(f'<g class="brick" data-path="{stage.at("embedding.position")}">')
    stage.pen.marks.append(f"<title>{words.formula}\n{words.purpose}</title>")
    glyphs.wave(stage.pen, x, middle)
    stage.pen.marks.append("</g>")
    anchor = "start" if stage.side > 0 else "end"
    lines = words.name.split(" ", 1)
    for index, line in enumerate(lines):
        stage.pen.text(
            x + stage.side * 17, middle - 3.5 + 13 * (len(lines) / 2 - 0.5 - index), line, "label", 11, anchor
        )
    stage.y += 16


def add_table(stage: Stage, lines: list[str], name: str, tip: str, said: str = "") -> None:
    """A table of vectors, added to the stream from the side."""
    stage.up(GAP + 12)
    stage.note(said)
    start, middle = stage.y, stage.y + 8
    glyphs.plus(stage.pen, 0, middle)
    x = stage.side * (34 + BESIDE / 2)
    stage.y = middle - 18.5
    stage.brick("position", lines, name, tip, x, BESIDE)
    stage.y = start + 16
    stage.pen.wire([(x - stage.side * BESIDE / 2, middle), (stage.side * 8, middle)])


def position_bias(stage: Stage, model: Model) -> float:
    """The table of score biases that all self-attentions share, beside the line; returns its top, 0 without one."""
    if model.position_bias is None:
        return 0.0
    words = say("Relative", stage.lang)
    stage.up(16, arrow=False)
    beside = any(one.wiring.startswith("parallel") for one in model.layers)
    stage.lane = x = -stage.side * ((HALF + 10 if beside else WIDE / 2) + glyphs.GLYPH + 26)
    stage.bias = model.position_bias
    heads = next((one.attention.heads for one in model.layers if one.attention), 0)
    lines = [words.name, f"{model.position_bias.buckets} × {heads}"]
    start = stage.y
    top = stage.brick("position", lines, "position_bias", f"{words.formula}\n{words.purpose}", x, 124)
    stage.y = start
    stage.up(top - start, arrow=False)
    return top


def one_run(stage: Stage, run: Run, beside: list[str]) -> None:
    """A frame round equal blocks, or round a pattern of them; how often it comes, and what it is, stand beside it."""
    start = stage.up(GAP - 3, arrow=False)
    with stage.apart() as inner:
        if len(run.blocks) == 1:
            block(stage, run.blocks[0], f"layers.{run.start}")
        else:
            for part in fold(run.blocks, run.start):
                one_run(stage, part, [])
    left, right = inner.left - 12, inner.right + 12
    role = "bracket" if len(run.blocks) > 1 else "frame"
    stage.pen.rect(left, start, right - left, stage.y + 10 - start, role, corner=12)
    stage.pen.place(inner)
    stage.up(10, arrow=False)
    x = (right if stage.side > 0 else left) + stage.side * 9
    middle, anchor = (start + stage.y) / 2, "start" if stage.side > 0 else "end"
    if run.times > 1:
        stage.pen.text(x, middle, f"{run.times} ×", "times", 19, anchor)
        middle -= 16
    for said in filter(None, beside):
        stage.pen.text(x, middle, said, "label", 11, anchor)
        middle -= 14


def head(stage: Stage, model: Model, brick: Head) -> None:
    """From the stream to the probability of every token of the vocabulary."""
    lang, vocab = stage.lang, model.embedding.vocab
    transform(stage, brick.transform)
    stage.up()
    bottom = stage.y
    lines = [say("step.logits", lang).name, f"{number(stage.dim)} → {number(vocab)}"]
    stage.brick("linear", lines, "head.out", stage.tip(brick))
    letter = stage.letters.get(stage.at("head.out.weight"))
    if letter:
        glyphs.badge(stage.pen, -stage.side * (WIDE / 2 - 14), (bottom + stage.y) / 2, letter, turned=True)
    stage.up()
    if brick.scale is not None or brick.softcap is not None:
        stage.note(capped("y" if brick.scale is None else f"{number(brick.scale)} y", brick.softcap))
    softmax = say("step.softmax", lang)
    stage.brick("softmax", [softmax.name], "head.softmax", f"{softmax.formula}\n{softmax.purpose}")
    end(stage, label("probabilities", lang), stage.shape(vocab))


def whole(stage: Stage, brick: Pool | Classify) -> None:
    """From the stream to one vector for the whole text, or to one score per label."""
    lang = stage.lang
    stage.up()
    pooled = say(f"pool.{brick.pool}", lang)
    stage.brick("linear", [say("Pool", lang).name, pooled.name], "head.pool", f"{pooled.formula}\n{pooled.purpose}")
    if isinstance(brick, Pool):
        transform(stage, brick.transform)
        end(stage, label("text vector", lang), f"({number(stage.dim)})")
        return
    stage.up()
    stage.note(f"({number(stage.dim)})")
    if brick.transform is not None:
        transform(stage, brick.transform, arrow=False)
        stage.up()
    lines = [say("step.labels", lang).name, f"{number(stage.dim)} → {number(brick.labels)}"]
    stage.brick("linear", lines, "head.out", stage.tip(brick))
    end(stage, label("label scores", lang), f"({number(brick.labels)})")


def transform(stage: Stage, brick: Transform | None, arrow: bool = True) -> None:
    """The dense layer before an output, if there is one."""
    if brick is None:
        return
    if arrow:
        stage.up()
    lines = [say("Transform", stage.lang).name, " · ".join(details(brick, stage.dim, stage.lang))]
    stage.brick("linear", lines, "head.transform", stage.tip(brick))


def end(stage: Stage, said: str, shape: str) -> None:
    """What comes out at the top, and its shape."""
    stage.up()
    stage.pen.text(0, stage.y + 19, said, "label", 13)
    stage.pen.text(0, stage.y + 6, shape, "note", 9)
    stage.y += 30
