"""The `oneblock` command: finds the verb, runs it, and turns bad input into one clear line and exit code 2."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click
import typer
from typer.core import TyperGroup

from oneblock.spec import nearest

VERBS = {
    "translate": "Translate sentences between Chinese and English.",
    "show": "Show a model: bricks, formulas, shapes, parameters, and a picture.",
    "train": "Train a translation model as a run file says.",
    "eval": "Score a model's translations of a corpus: BLEU and chrF.",
}
"""Verb -> what it does, in the order of `oneblock --help`. Each is a function of its name in a file of its name."""


class Verbs(TyperGroup):
    """A group whose commands are read from their files only when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        if not _named(cmd_name):
            return click.Command(cmd_name, help=VERBS[cmd_name])
        module = import_module(f"oneblock.cli.{cmd_name}")
        app = typer.Typer(rich_markup_mode="rich")
        options = {"help": module.run.__doc__, "epilog": f"Example: [bold]{module.EXAMPLE}[/bold]"}
        app.command(cmd_name, **options)(module.run)
        return typer.main.get_command(app)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            raise ValueError(f"{args[0]!r} is no verb of oneblock; {nearest(args[0], VERBS)}")
        return super().resolve_command(ctx, args)


def _named(verb: str) -> bool:
    """Whether this process was asked for that verb; a mere listing needs no verb's file."""
    return verb in sys.argv[1:]


app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    epilog='Example: [bold]oneblock translate "我爱你"[/bold]',
)


@app.callback()
def oneblock(
    version: bool = typer.Option(False, "--version", help="Print the version and leave."),
) -> None:
    """One block, every Transformer: see it, train it, translate with it."""
    if version:
        typer.echo(import_module("oneblock").__version__)
        raise typer.Exit


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Exit codes: 0 done, 2 bad input (one line on stderr), 130 interrupted.

    ONEBLOCK_DEBUG=1 shows the traceback behind a line.
    """
    try:
        app(arguments, standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        _refuse(error.format_message())
    except (ValueError, OSError) as error:
        if os.environ.get("ONEBLOCK_DEBUG"):
            raise
        _refuse(str(error))
    except (KeyboardInterrupt, click.Abort):
        typer.echo("interrupted", err=True)
        sys.exit(130)


def _refuse(line: str) -> None:
    typer.echo(f"oneblock: {' '.join(line.split())}", err=True)
    sys.exit(2)
