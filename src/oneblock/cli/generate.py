"""`oneblock generate`: a model writes on where a text ends, or answers a source; one answer is shown as it grows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer

import oneblock
from oneblock.cli import texts as shared

EXAMPLE = 'oneblock generate runs/story "Once upon a time" --do-sample --top-p 0.9 --seed 1'


CHOICES = (
    "max_new_tokens do_sample temperature top_k top_p min_p typical_p repetition_penalty no_repeat_ngram_size "
    "num_beams num_return_sequences length_penalty seed"
)
"""Options that go on as they are."""
SAMPLING = "temperature top_k top_p min_p typical_p seed"
"""Those that are about drawing."""
WORTH = 50
"""Tokens from which on laying out the weights takes less time than it saves."""
BLANK = {"prompt": "", "text": "", "tokens": (), "score": 0.0, "logprob": 0.0, "finished": True}
"""The answer to a blank line."""


def run(
    model: shared.Model,
    prompts: Annotated[list[str] | None, typer.Argument(metavar="PROMPT…", help="Prompts, each in quotes.")] = None,
    file: shared.File = None,
    max_new_tokens: Annotated[int, typer.Option(help="Tokens of an answer at the most.")] = 100,
    do_sample: Annotated[bool, typer.Option("--do-sample", help="Draw tokens, not the likeliest.")] = False,
    temperature: Annotated[float, typer.Option(help="Above 1 more various, below 1 more certain.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="Draw from so many likeliest tokens.")] = None,
    top_p: Annotated[float, typer.Option(help="Draw from the fewest tokens of that probability.")] = 1.0,
    min_p: Annotated[float | None, typer.Option(help="... at least that share of the likeliest's.")] = None,
    typical_p: Annotated[float, typer.Option(help="... the most typical of that probability.")] = 1.0,
    repetition_penalty: Annotated[float, typer.Option(help="Above 1: what came before comes less.")] = 1.0,
    no_repeat_ngram_size: Annotated[int, typer.Option(help="No so many tokens twice.")] = 0,
    num_beams: Annotated[int, typer.Option(help="Answers kept at each step; 1 is greedy.")] = 1,
    num_return_sequences: Annotated[int, typer.Option(help="Answers to each prompt, best first.")] = 1,
    length_penalty: Annotated[float, typer.Option(help="Of beams: above 0 favours long answers.")] = 1.0,
    early_stopping: Annotated[str, typer.Option(help="Of beams: true, false or never.")] = "false",
    stop: Annotated[list[str] | None, typer.Option(help="End where this appears; repeatable.")] = None,
    seed: Annotated[int | None, typer.Option(help="The same draws again.")] = None,
    to: Annotated[str | None, typer.Option(metavar="en|zh", help="Target language, of a translator.")] = None,
    cache: Annotated[str | None, typer.Option(help="growing, static or rolling.")] = None,
    compile: Annotated[bool, typer.Option("--compile", help="Make each step one graph.")] = False,
    as_json: shared.Json = False,
    device: shared.Device = "auto",
    dtype: Annotated[str, typer.Option(help="Of the weights: float32, bfloat16, float16, auto, or int8.")] = "float32",
    threads: shared.Threads = None,
) -> None:
    """Write on: the prompt and what follows; of an encoder-decoder, what it answers.

    Prompts come from the arguments, else the lines of --file, else those of standard input; a blank line gives a blank
    line. Answers to many are printed 16 at a time.
    """
    told = dict(locals())
    options = _options(told)
    asked = shared.read("generate", prompts, file, EXAMPLE, blank=True)
    pipeline = _opened(told, len(asked))
    _note_unread(told)
    if len(asked) == 1 and asked[0].strip() and num_beams == 1 and num_return_sequences == 1 and not as_json:
        _write(pipeline, asked[0], options)
        return
    for answer in _answers(pipeline, asked, options):
        line = json.dumps(answer, ensure_ascii=False) if as_json else _whole(pipeline, answer)
        print(line, flush=True)


def _options(told: dict[str, Any]) -> dict[str, Any]:
    """What was asked for on the command line, as `generate` takes it, checked before a model is read."""
    early = told["early_stopping"]
    if early not in ("true", "false", "never"):
        raise ValueError(f"--early-stopping: expected true, false or never, got {early!r}")
    others = {"early_stopping": {"true": True, "false": False}.get(early, early), "stop_strings": told["stop"] or None}
    choices = {name: told[name] for name in CHOICES.split()} | others
    oneblock.GenerationConfig(**choices)
    return choices | {name: told[name] for name in ("cache", "compile", "to")}


def _opened(told: dict[str, Any], texts: int) -> Any:
    """The model with its tokenizer; its weights laid out for so many texts if that pays."""
    rounded = told["dtype"] == "int8"
    pipeline = shared.opened(told["model"], told["device"], "float32" if rounded else told["dtype"], told["threads"])
    if rounded or told["max_new_tokens"] >= WORTH:
        rows = min(texts, pipeline.BATCH) * max(told["num_beams"], told["num_return_sequences"])
        oneblock.prepack(pipeline.model, rows, "int8" if rounded else None)
    return pipeline


def _note_unread(told: dict[str, Any]) -> None:
    """Say which options have no effect because nothing is drawn."""
    given = [name for name in SAMPLING.split() if told[name] != getattr(oneblock.GenerationConfig, name)]
    if given and not told["do_sample"]:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        typer.echo(f"note: {names}: not looked at without --do-sample", err=True)


def _write(pipeline: Any, prompt: str, options: dict[str, Any]) -> None:
    """Show one answer while it is written; whatever ends it, the line ends too."""
    with shared.warned():
        pieces = pipeline.stream(prompt, **options)
    try:
        print("" if pipeline.pair else prompt, end="", flush=True)
        for piece in pieces:
            print(piece, end="", flush=True)
    finally:
        print()


def _answers(pipeline: Any, asked: list[str], options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The answers to all prompts in order, each as soon as its batch is done; to a blank one as many blank ones."""
    found = pipeline.answers([prompt for prompt in asked if prompt.strip()], **options)
    for prompt in asked:
        if not prompt.strip():
            yield from [BLANK | {"prompt": prompt}] * options["num_return_sequences"]
            continue
        with shared.warned():
            answers = next(found)
        yield from map(asdict, answers)


def _whole(pipeline: Any, answer: dict[str, Any]) -> str:
    prompt, text = answer["prompt"], answer["text"]
    return str(text if pipeline.pair or not prompt.strip() else prompt + text)
