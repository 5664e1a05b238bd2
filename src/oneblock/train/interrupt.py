"""Ctrl-C at any moment of a training step, obeyed at the end of the step."""

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
        self.asked = False
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
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
