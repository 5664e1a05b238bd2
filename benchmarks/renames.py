"""The weights of an `nn.Transformer` under our names, in a spec that computes the same.

Shapes: batch = sentences, source, target = tokens, real = target tokens that are not padding, dim, vocab.
"""

from __future__ import annotations

import re
from dataclasses import replace

import torch
from torch import Tensor, nn

from oneblock import weights
from oneblock.bricks import build_model
from oneblock.spec import LayerNorm, Seq2Seq
from oneblock.train.data import Batch

NAMES = {
    "self_attn": "attention",
    "multihead_attn": "cross",
    "out_proj": "out",
    "linear1": "feedforward.up",
    "linear2": "feedforward.down",
}
NORMS = {
    "encoder": {"norm1": "attention", "norm2": "feedforward"},
    "decoder": {"norm1": "attention", "norm2": "cross", "norm3": "feedforward"},
}
FUSED = re.compile(r"in_proj_(weight|bias)$")


def renamed(tensors: dict[str, Tensor], wiring: str) -> dict[str, Tensor]:
    """The tensors of an `nn.Transformer` by our names; q, k and v, which it keeps in one, apart.

    >>> sorted(renamed({"encoder.layers.0.self_attn.in_proj_bias": torch.zeros(6)}, "post"))[0]
    'encoder.layers.0.attention.k.bias'
    """
    found = {}
    for name, tensor in tensors.items():
        norms = NORMS[name.split(".")[0]]
        known = NAMES | {norm: f"norms.{sublayer}_{wiring}" for norm, sublayer in norms.items()}
        ours = ".".join(known.get(part, part) for part in name.split("."))
        if fused := FUSED.search(ours):
            for part, third in zip("qkv", tensor.chunk(3), strict=True):
                found[f"{ours[: fused.start()]}{part}.{fused[1]}"] = third.clone()
        else:
            found[ours] = tensor.clone()
    return found


def converted(theirs: nn.Module, spec: Seq2Seq) -> nn.Module:
    """`theirs.transformer` and `.embedding` in the module of `spec` with a last norm on either side; in eval mode."""
    normed = (replace(side, norm=side.norm or LayerNorm()) for side in (spec.encoder, spec.decoder))
    ours = build_model(replace(spec, **dict(zip(("encoder", "decoder"), normed, strict=True))))
    wiring = spec.encoder.layers[0].wiring
    tensors = renamed({name: p.detach() for name, p in theirs.transformer.named_parameters()}, wiring)
    tensors["encoder.embedding.token.weight"] = theirs.embedding.weight.detach().clone()
    weights.fill(ours, tensors, "nn.Transformer")
    return ours.eval()


@torch.no_grad()
def largest_difference(ours: nn.Module, batch: Batch, theirs: Tensor) -> float:
    """Largest absolute difference between our logits and `theirs` (real, vocab) at the real target tokens."""
    logits = ours(batch.source, batch.mask, decoder_input_ids=batch.inputs).logits.flatten(
        0, 1
    )  # (batch * target, vocab)
    return (theirs - (logits if batch.places is None else logits[batch.places])).abs().max().item()
