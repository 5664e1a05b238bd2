"""A spec for the eye: as a table, as a figure, and what changed between two specs as lines of text."""

from __future__ import annotations

import oneblock.draw.experts
import oneblock.draw.outputs
import oneblock.draw.rotations
import oneblock.draw.steps  # noqa: F401 - these register the rows of what stands inside a stream
from oneblock.draw.change import changes
from oneblock.draw.figure import svg
from oneblock.draw.table import cells, heading, text, width
from oneblock.draw.tree import Row
from oneblock.draw.tree import rows as table

__all__ = ["Row", "cells", "changes", "heading", "svg", "table", "text", "width"]
