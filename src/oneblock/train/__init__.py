"""Training: tasks, parameter groups, schedule, loop, checkpoints that survive a crash, and resuming bit for bit."""

from oneblock.train.config import Run
from oneblock.train.data import directions, read_split
from oneblock.train.evaluate import Score, evaluate
from oneblock.train.held_out import held_out
from oneblock.train.loop import Result, train

__all__ = ["Result", "Run", "Score", "directions", "evaluate", "held_out", "read_split", "train"]
