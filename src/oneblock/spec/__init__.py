"""What a Transformer is: small frozen dataclasses and the functions over their tree. Standard library only."""

from oneblock.spec.choices import SLOTS, Activation, Layout, Slot, Wiring, nearest
from oneblock.spec.masks import Causal, Every, Full, Mask, Window, atoms
from oneblock.spec.model import (
    Attention,
    Block,
    Embedding,
    FeedForward,
    Head,
    Model,
    Seq2Seq,
    Spec,
    Tokens,
    Transform,
    dims,
    scale,
    validate,
)
from oneblock.spec.norms import LayerNorm, Norm, RMSNorm, SigmaNorm
from oneblock.spec.positions import Alibi, Learned, Relative, Rope, Sinusoidal
from oneblock.spec.saved import from_dict, to_dict
from oneblock.spec.tree import Change, apply, diff, get, put, walk

__all__ = [
    "SLOTS",
    "Activation",
    "Alibi",
    "Attention",
    "Block",
    "Causal",
    "Change",
    "Embedding",
    "Every",
    "FeedForward",
    "Full",
    "Head",
    "LayerNorm",
    "Layout",
    "Learned",
    "Mask",
    "Model",
    "Norm",
    "RMSNorm",
    "Relative",
    "Rope",
    "Seq2Seq",
    "SigmaNorm",
    "Sinusoidal",
    "Slot",
    "Spec",
    "Tokens",
    "Transform",
    "Window",
    "Wiring",
    "apply",
    "atoms",
    "diff",
    "dims",
    "from_dict",
    "get",
    "nearest",
    "put",
    "scale",
    "to_dict",
    "validate",
    "walk",
]
