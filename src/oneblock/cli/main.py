"""The `oneblock` command: finds the verb, runs it, and turns bad input into one clear line and exit code 2."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from oneblock.spec import nearest

VERBS = {
    "translate": "Translate sentences between Chinese and English.",
    "show": "Show a model: bricks, formulas, shapes, parameters, and a picture.",
    "train": "Train a translation model as a run file says.",
    "eval": "Score a model's translations of a corpus: BLEU and chrF.",
}
"""Verb -> what it does, in the order of `oneblock --help`. Each is `run` in a file of its name."""

USAGE = next(cls for cls in typer.BadParameter.__mro__ if cls.__name__ == "ClickException")
"""What typer raises for words it does not understand; it is public only as the base of BadParameter."""


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
    """Run the command line. Exit codes: 0 done, 2 bad input (one line on stderr), 130 interrupted.

    ONEBLOCK_DEBUG=1 shows the traceback behind a line.
    """
    for stream in (sys.stdout, sys.stderr):  # a redirected stream may be unable to hold Chinese (Windows)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        code = app(arguments, standalone_mode=False)
    except typer.Exit as done:
        code = done.exit_code
    except USAGE as error:
        code = _refuse(error.format_message())
    except (ValueError, OSError) as error:
        if os.environ.get("ONEBLOCK_DEBUG"):
            raise
        code = _refuse(str(error))
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("interrupted", err=True)
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def _refuse(line: str) -> int:
    if line.strip():  # no verb: the help was shown already
        typer.echo(f"oneblock: {' '.join(line.split())}", err=True)
    return 2
