"""What a Transformer is: small frozen dataclasses and the functions over their tree. Standard library only."""

from oneblock.spec import experts, heads, masks, model, norms, positions, scalings
from oneblock.spec.choices import SLOTS, Activation, Layout, Slot, Wiring, nearest
from oneblock.spec.experts import FeedForward, MoE, Softmax, TopSoftmax
from oneblock.spec.heads import Classify, Head, Pool, Pooling, Transform
from oneblock.spec.masks import Causal, Every, Full, Mask, Window, atoms
from oneblock.spec.model import (
    Attention,
    Block,
    Embedding,
    Model,
    Seq2Seq,
    Spec,
    Tokens,
    dims,
    scale,
    validate,
)
from oneblock.spec.norms import LayerNorm, Norm, RMSNorm, SigmaNorm, Whole
from oneblock.spec.positions import Alibi, Learned, Relative, Rope, Sinusoidal
from oneblock.spec.scalings import DynamicBase, Interpolate, LongRope, Scaling, Smooth, Yarn
from oneblock.tree import Change, apply, diff, from_dict, get, known, put, to_dict, walk

known(experts, heads, masks, model, norms, positions, scalings)

__all__ = [
    "SLOTS",
    "Activation",
    "Alibi",
    "Attention",
    "Block",
    "Causal",
    "Change",
    "Classify",
    "DynamicBase",
    "Embedding",
    "Every",
    "FeedForward",
    "Full",
    "Head",
    "Interpolate",
    "LayerNorm",
    "Layout",
    "Learned",
    "LongRope",
    "Mask",
    "MoE",
    "Model",
    "Norm",
    "Pool",
    "Pooling",
    "RMSNorm",
    "Relative",
    "Rope",
    "Scaling",
    "Seq2Seq",
    "SigmaNorm",
    "Sinusoidal",
    "Slot",
    "Smooth",
    "Softmax",
    "Spec",
    "Tokens",
    "TopSoftmax",
    "Transform",
    "Whole",
    "Window",
    "Wiring",
    "Yarn",
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
