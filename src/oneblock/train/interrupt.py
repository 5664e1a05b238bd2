"""Ctrl-C at any moment of a training step, obeyed at the end of the step; after the last step, obeyed at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self

__all__ = ["Interrupt"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupt:
    """While entered, the first SIGINT or SIGTERM only sets `asked`; a second one raises KeyboardInterrupt at once.

    Outside the main thread, where Python allows no handlers, signals keep their meaning.
    """

    def __init__(self) -> None:
        self.asked, self.patient = False, True
        self.before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self.before = {number: signal.signal(number, self.ask) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def ask(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """What the handler does."""
        if self.asked or not self.patient:
            raise KeyboardInterrupt
        self.asked = True

    def at_once(self) -> None:
        """From here on nothing is lost by stopping anywhere: the next signal, or one that came before, stops."""
        self.patient = False
        if self.asked:
            raise KeyboardInterrupt
