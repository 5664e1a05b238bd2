"""The `oneblock` command: finds the verb, runs it, and turns bad input into one clear line and exit code 2."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from errno import EPIPE
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from oneblock.hint import nearest

VERBS = {
    "translate": "Translate sentences between Chinese and English.",
    "show": "Show a model: bricks, formulas, shapes, parameters, and a picture.",
    "diff": "Compare two models: a line per brick that differs, or a patch.",
    "cost": "Price a model, or a change: FLOPs, bytes and least time of every brick.",
    "probe": "Measure this machine: rates of matrix products and of memory.",
    "models": "List the models known by name: bricks, parameters, cache, paper.",
    "generate": "Write on where a text ends, or answer a source.",
    "score": "How likely a model finds a text: perplexity and log-probabilities.",
    "embed": "A vector for every text.",
    "fill": "Words for the gaps of a text.",
    "classify": "Which label a text has.",
    "convert": "Read a model in any layout we know and write it in another.",
    "export": "Write a model as one readable PyTorch file, or as ONNX.",
    "check": "Ask anyone's Transformer whether it is right: leaks, padding, scale, masks, cache, loss.",
    "compare": "Run two models on one input: the first brick that differs, and why.",
    "verify": "Compare a model with the reference library's, brick by brick.",
    "trace": "Follow a text through a model: every step, with its numbers, worked by hand.",
    "train": "Train a translation model as a run file says.",
    "eval": "Score a model's translations of a corpus: BLEU and chrF.",
}
"""Verb -> what it does, in the order of `oneblock --help`. Each is `run` in a file of its name."""

USAGE = next(cls for cls in typer.BadParameter.__mro__ if cls.__name__ == "ClickException")
"""What typer raises for words it does not understand; it is public only as the base of BadParameter."""


INTERRUPTED = 130
"""The exit code of a program that Ctrl-C ended: what a shell reports for signal 2, SIGINT."""
UNREAD = 141
"""The exit code of a program whose output nobody reads to its end: what a shell reports for signal 13, SIGPIPE."""


class Verbs(TyperGroup):
    """A group whose commands are read from their files only when they are called."""

    called = ""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        verb = typer.Typer(rich_markup_mode="rich")
        if cmd_name != self.called:  # a line in the list of verbs
            verb.command(cmd_name, help=VERBS[cmd_name])(lambda: None)
            return typer.main.get_command(verb)
        module = import_module(f"oneblock.cli.{cmd_name}")
        verb.command(cmd_name, help=module.run.__doc__, epilog=f"Example: [bold]{module.EXAMPLE}[/bold]")(module.run)
        return typer.main.get_command(verb)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in VERBS:
            raise ValueError(f"{args[0]!r} is no verb of oneblock; {nearest(args[0], VERBS)}")
        self.called = args[0]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    epilog='Example: [bold]oneblock translate "我爱你"[/bold]',
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(import_module("oneblock").__version__)
        raise typer.Exit


@app.callback()
def oneblock(
    version: bool = typer.Option(False, "--version", help="Print the version and leave.", callback=_version),
) -> None:
    """One block, every Transformer: see it, train it, translate with it."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Exit codes: 0 done, 2 bad input (one line on stderr), 130 interrupted, 141 nobody reads on.

    ONEBLOCK_DEBUG=1 shows the traceback behind a line.
    """
    for stream in (sys.stdout, sys.stderr):  # a redirected stream may be unable to hold Chinese (Windows)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        code = _code(arguments)
    except BrokenPipeError:
        code = UNREAD
    sys.exit(_flushed(code))


def _code(arguments: list[str] | None) -> int:
    """The exit code of a command line, after its refusal, if any, was printed. BrokenPipeError: nobody reads on."""
    try:
        code = app(arguments, standalone_mode=False)  # some versions of typer give 130 for Ctrl-C, some raise Abort
        if code == INTERRUPTED:
            raise KeyboardInterrupt
    except typer.Exit as done:
        code = done.exit_code
    except USAGE as error:
        code = _refuse(error.format_message())
    except (ValueError, OSError) as error:
        if os.environ.get("ONEBLOCK_DEBUG"):
            raise
        code = _refuse(_said(error))
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("interrupted", err=True)
        code = INTERRUPTED
    except SystemExit:  # typer's and rich's answer to a pipe that nobody reads
        raise BrokenPipeError(EPIPE, "Broken pipe") from None
    return code if isinstance(code, int) else 0


def _said(error: Exception) -> str:
    """What an error says, a system's error with the file's name first and without its number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _flushed(code: int) -> int:
    """The exit code after all output was written; what cannot be written is said here and not by Python at its end."""
    try:
        sys.stdout.flush()
        return code
    except OSError as error:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD if error.errno == EPIPE else _refuse(f"standard output: {error.strerror}")


def _refuse(line: str) -> int:
    if line.strip():  # no verb: the help was shown already
        typer.echo(f"oneblock: {' '.join(line.split())}", err=True)
    return 2
