"""Functions over any tree of frozen dataclasses: walk, read, change, compare, save. They know no Transformer."""

from oneblock.tree.changes import Change, apply, diff, from_patch, to_patch
from oneblock.tree.places import children, get, put, walk
from oneblock.tree.saved import TYPES, from_dict, known, to_dict

__all__ = [
    "TYPES",
    "Change",
    "apply",
    "children",
    "diff",
    "from_dict",
    "from_patch",
    "get",
    "known",
    "put",
    "to_dict",
    "to_patch",
    "walk",
]
