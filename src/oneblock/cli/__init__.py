"""The command line: one file per verb, loaded when it is called, so that `--help` is there at once."""

from oneblock.cli.main import main

__all__ = ["main"]
