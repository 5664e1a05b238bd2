"""Every layout of files that no config.json goes with, by the name that asks for it."""

from __future__ import annotations

from oneblock.zoo.authors import AUTHORS
from oneblock.zoo.layout import Layout
from oneblock.zoo.nano import NANO
from oneblock.zoo.stacks import STACKS

FLAT = "meta"
"""The layout whose names the parts of a flat file have."""
LAYOUTS: dict[str, Layout] = {FLAT: AUTHORS, "nano": NANO, "torch": STACKS}
