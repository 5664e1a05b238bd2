"""What a run reports: one JSON object per line in metrics.jsonl, and a progress line on the terminal."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

__all__ = ["Log", "Show", "read_rows"]


class Log:
    """Appends rows to a JSON-lines file; after a resume the file is first cut back to what the checkpoint had seen."""

    def __init__(self, path: Path, size: int = 0) -> None:
        self.file = path.open("ab")
        self.file.truncate(min(size, path.stat().st_size))
        self.file.seek(0, os.SEEK_END)

    def __call__(self, row: dict[str, Any]) -> None:
        """Append one row and hand it to the system, so that a killed process loses none."""
        self.file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        self.file.flush()

    def size(self) -> int:
        """Bytes so far, all of them on the disk: what a checkpoint remembers."""
        os.fsync(self.file.fileno())
        return self.file.tell()

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a metrics.jsonl; a last line that was cut short by a crash is left out."""
    rows = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows


class Show:
    """Progress on stderr: a live bar on a terminal, plain lines elsewhere, nothing when `on` is False."""

    def __init__(self, steps: int, done: int, on: bool) -> None:
        self.on, self.steps = on, steps
        self.warned: set[str] = set()
        console = Console(stderr=True)
        self.live = on and console.is_terminal
        self.bar = Progress(
            TextColumn("step"),
            MofNCompleteColumn(),
            BarColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=console,
            disable=not self.live,
        )
        self.task = self.bar.add_task("", total=steps, completed=done)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def begin(self, done: int) -> None:
        """So many steps were done before: they say nothing about the speed of this process."""
        self.bar.reset(self.task, completed=done)

    def step(self, step: int) -> None:
        """One more step is done."""
        self.bar.update(self.task, completed=step)

    def train(self, row: dict[str, Any], left: float) -> None:
        """A row of training figures; `left` is the seconds still to go."""
        text = f"loss {row['loss']:.3f}  lr {row['lr']:.2e}  {row['tokens_per_second']:,.0f} target tokens/s"
        self.bar.update(self.task, description=text)
        if not self.live:
            self.say(f"step {row['step']}/{self.steps}  {text}  {left / 60:.1f} min left")

    def say(self, text: str) -> None:
        """A line that stays."""
        if self.live:
            self.bar.console.print(text, highlight=False, markup=False)
        elif self.on:
            print(text, file=sys.stderr, flush=True)

    def warn(self, text: str) -> None:
        """A line that is said once, also where no progress is shown."""
        if text in self.warned:
            return
        self.warned.add(text)
        if self.on:
            self.say(text)
        else:
            print(text, file=sys.stderr, flush=True)
