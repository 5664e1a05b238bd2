"""How good a translator is on sentences that were held out: `python -m benchmarks.quality MODEL_DIR`.

Scores greedy search, beam search and, beside them, a look-up of the most similar training sentence (retrieval.py), by
BLEU and chrF (sacrebleu, one reference): over all held-out pairs, by length of the source, and apart for sources that
one word (in Chinese: one character) put in, left out or changed turns into a training sentence, which a model may
know by heart. Prints Markdown for a model card, or JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.retrieval import Nearest, OneEdit, words

from oneblock.generate import Translator, prepack
from oneblock.text import Pair
from oneblock.train import Run, directions, read_split
from oneblock.train.evaluate import score

ROOT = Path(__file__).resolve().parent.parent
RECIPE = ROOT / "recipes" / "tatoeba.toml"
UNSPACED = ("zh", "ja", "th")
BINS = ((1, 4), (5, 8), (9, 12), (13, None))
"""Lengths of the source that are scored apart: words, or characters where no spaces part words."""
NAMES = {"en": "English", "zh": "Chinese"}

Say = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """Some of the held-out sentences, how many they are, and (BLEU, chrF) of each system on them."""

    sentences: str
    number: int
    scores: dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Direction:
    """All rows of one direction, the first of them for all sentences."""

    source: str
    target: str
    rows: tuple[Row, ...]
    signatures: tuple[str, str]


def measure(
    translator: Translator, run: Run, *, limit: int | None = None, beams: Sequence[int] = (1, 5), say: Say = print
) -> list[Direction]:
    """Score `translator` on the test pairs that `run` holds out, in every direction it trains.

    `limit` takes the first so many pairs, a fair sample since a split is shuffled. ValueError: nothing is held out.
    """
    begun = time.perf_counter()
    split = read_split(run.data)
    test = split.test[:limit]
    if not test:
        raise ValueError("data.test is 0, so no pairs are held out; name a run file that holds out some")
    say(f"{len(split.train):,} training pairs, {len(test):,} of {len(split.test):,} test pairs")
    found = []
    for way in directions(run.data):
        back = way[0] != run.data.languages[0]
        train, held = ([flipped(pair) for pair in part] if back else part for part in (split.train, test))
        systems = {"retrieval": retrieved(train, held)}
        say(f"{'-'.join(way)}: nearest training sentences found ({time.perf_counter() - begun:.0f} s)")
        for beam in beams:
            systems["greedy" if beam == 1 else f"beam {beam}"] = translated(translator, held, way, beam, say)
        found.append(Direction(*way, *table(systems, train, held, way)))
    return found


def flipped(pair: Pair) -> Pair:
    """The pair read the other way."""
    return Pair(pair.target, pair.source, pair.line)


def retrieved(train: Sequence[Pair], held: Sequence[Pair]) -> list[str]:
    """The translation of the training sentence most similar to each held-out source."""
    nearest = Nearest([pair.source for pair in train])
    return [train[nearest(pair.source)].target for pair in held]


def translated(translator: Translator, held: Sequence[Pair], way: tuple[str, str], beam: int, say: Say) -> list[str]:
    """The model's translations, with a line of progress about every tenth."""
    begun, next_line = time.perf_counter(), 0.1

    def progress(done: int, total: int) -> None:
        nonlocal next_line
        if done >= next_line * total:
            seconds = time.perf_counter() - begun
            say(f"{'-'.join(way)} beam {beam}: {done}/{total}, {seconds * (total - done) / done:.0f} s left")
            next_line = done / total + 0.1

    found = translator([pair.source for pair in held], to=way[1], beam=beam, progress=progress)
    say(f"{'-'.join(way)} beam {beam}: {sum(not item.finished for item in found)} stopped at the length limit")
    return [item.text for item in found]


def table(
    systems: dict[str, list[str]], train: Sequence[Pair], held: Sequence[Pair], way: tuple[str, str]
) -> tuple[tuple[Row, ...], tuple[str, str]]:
    """(rows for all sentences, by length, near and far from training; the signatures of BLEU and chrF)."""
    spaced = way[0] not in UNSPACED
    lengths = [len(words(pair.source, spaced)) for pair in held]
    near = OneEdit((pair.source for pair in train), spaced)
    close = [pair.source in near for pair in held]
    unit = "word" if spaced else "character"
    groups = {"all": range(len(held))}
    for least, most in BINS:
        name = f"{least} to {most} {unit}s" if most else f"{least} {unit}s or more"
        groups[name] = [at for at, n in enumerate(lengths) if least <= n and (most is None or n <= most)]
    groups[f"one {unit} or less from a training sentence"] = [at for at, is_close in enumerate(close) if is_close]
    groups["further from all of those"] = [at for at, is_close in enumerate(close) if not is_close]
    references = [pair.target for pair in held]
    rows = []
    for name, places in groups.items():
        kept = [references[at] for at in places]
        values = {key: score([found[at] for at in places], kept, way[1])[:2] for key, found in systems.items() if kept}
        rows.append(Row(name, len(places), values))
    return tuple(rows), score(references, references, way[1])[2:]


def markdown(found: Sequence[Direction]) -> str:
    """The tables, ready for a model card."""
    parts = []
    for way in found:
        systems = list(way.rows[0].scores)
        head = ["sentences", "number", *(f"{name} {metric}" for name in systems for metric in ("BLEU", "chrF"))]
        lines = [head, ["---", *["---:"] * (len(head) - 1)]]
        for row in way.rows:
            pairs = [row.scores[name] for name in systems] if row.scores else [("", "")] * len(systems)
            figures = [f"{value:.1f}" if row.scores else "–" for pair in pairs for value in pair]
            lines.append([row.sentences, f"{row.number:,}", *figures])
        title = f"**{NAMES.get(way.source, way.source)} to {NAMES.get(way.target, way.target)}**"
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        parts.append(f"{title}\n\n{body}\n\n`{way.signatures[0]}`, `{way.signatures[1]}`\n")
    return "\n".join(parts)


def as_json(found: Sequence[Direction], **known: Any) -> str:
    """The same as JSON, figures in full."""
    ways = [
        {
            "direction": f"{way.source}-{way.target}",
            "bleu_signature": way.signatures[0],
            "chrf_signature": way.signatures[1],
            "rows": [
                {
                    "sentences": row.sentences,
                    "number": row.number,
                    "scores": {name: {"bleu": bleu, "chrf": chrf} for name, (bleu, chrf) in row.scores.items()},
                }
                for row in way.rows
            ],
        }
        for way in found
    ]
    return json.dumps({**known, "directions": ways}, ensure_ascii=False, indent=1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__.split("\n")[0])
    parser.add_argument("model", metavar="MODEL_DIR", help="spec.json, model.safetensors and tokenizer.json lie in it")
    parser.add_argument("--data", default=RECIPE, help="run file whose held-out pairs are used; default: the recipe")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N held-out pairs")
    parser.add_argument("--json", action="store_true", help="JSON instead of Markdown")
    parser.add_argument("--int8", action="store_true", help="with weights and activations rounded to bytes")
    options = parser.parse_args(arguments)
    try:
        translator = Translator.load(options.model)
        if options.int8:
            prepack(translator.model, 64, "int8")
        found = measure(translator, Run.load(options.data), limit=options.limit, say=to_stderr)
    except ValueError as error:
        parser.error(str(error))
    print(as_json(found, model=str(options.model), data=str(options.data)) if options.json else markdown(found))


def to_stderr(line: str) -> None:
    """Progress goes where it does not mix with results."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
