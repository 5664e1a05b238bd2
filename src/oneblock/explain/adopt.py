"""Anyone's Transformer as our spec and bricks: through its saved form, proven equal on the spot.

x: (batch, length, dim); ids: (batch, length).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from oneblock import weights
from oneblock.bricks import Context, EncoderDecoder, Memory
from oneblock.generate.mode import evaluating
from oneblock.mask import places
from oneblock.weights import read_foreign

CLOSE = 1e-4
"""The largest difference to an adopted module, relative to its largest output: what float32 rounds."""
LENGTH = 7
"""Tokens of the input on which both are compared."""


def adopt(module: nn.Module, causal: bool = False) -> nn.Module:
    """The same model made of our bricks, in eval mode, with equal outputs on a random input.

    `nn.Transformer`, its encoder and decoder give a model that reads `inputs_embeds` (a stack without embedding),
    a single layer gives a block, `nn.MultiheadAttention` an attention, to be called with x (batch, length, dim);
    models of transformers give the model of their family, read from what `save_pretrained` writes.

    Args:
        module: what to adopt; it is not changed.
        causal: an encoder, a layer or an attention of torch's that is always called with a causal mask.

    Raises:
        ValueError: a module that we cannot be, with the first difference.

    >>> layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    >>> block, x = adopt(layer), torch.randn(2, 3, 8)
    >>> bool(torch.allclose(block(x), layer(x), atol=1e-5)), block.attention.spec.heads
    (True, 2)
    """
    if isinstance(module, nn.MultiheadAttention):
        return attention(module, causal)
    if isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
        return layer(module, causal)
    if isinstance(module, nn.Transformer | nn.TransformerEncoder | nn.TransformerDecoder):
        return proven(module, stack(module, causal), stack_outputs(module, causal))
    if hasattr(module, "save_pretrained") and hasattr(module, "config"):
        return of_transformers(module)
    raise ValueError(
        f"adopt: expected a Transformer of torch.nn or of the transformers library, got {type(module).__name__}; "
        "trace shows its operations as they are"
    )


def of_transformers(module: Any) -> nn.Module:
    """A model of transformers, by way of a folder."""
    with tempfile.TemporaryDirectory() as there:
        module.save_pretrained(there)
        dtype = next(module.parameters()).dtype
        ours = weights.load(there, dtype=dtype)
    ids = torch.arange(LENGTH)[None] % 5 + 1

    def outputs(model: nn.Module) -> tuple[Tensor, Tensor]:
        call = {"input_ids": ids} | ({"decoder_input_ids": ids.flip(1)} if isinstance(model, EncoderDecoder) else {})
        theirs, own = module(**call), model(**call)
        return first(theirs), own.logits if own.logits is not None else own.encoder_outputs.x

    return proven(module, ours, outputs)


def first(output: Any) -> Tensor:
    """The logits of an output of transformers, else its hidden state."""
    found: Tensor = output["logits"] if "logits" in output else output["last_hidden_state"]
    return found


def stack(module: nn.Module, causal: bool) -> nn.Module:
    """A stack of torch's, by way of a file; every layer must be like the first."""
    layers = [
        part for part in module.modules() if isinstance(part, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer)
    ]
    said = [described(part) for part in layers]
    for number, one in enumerate(said):
        for name, value in one.items():
            if value != said[0][name]:
                raise ValueError(
                    f"adopt: layer {number}: expected {name} {said[0][name]!r} as in the first, got {value!r}"
                )
    with tempfile.TemporaryDirectory() as there:
        path = Path(there) / "model.safetensors"
        save_file({name: x.detach().cpu().clone() for name, x in module.state_dict().items()}, path)
        alone = {} if isinstance(module, nn.Transformer) else {"causal": causal}
        return read_foreign(path, "torch", dtype=next(module.parameters()).dtype, **said[0], **alone)


def described(part: Any) -> dict[str, Any]:
    """What the shapes of a layer's weights do not say."""
    name = getattr(part.activation, "__name__", type(part.activation).__name__.lower())
    if name not in ("relu", "gelu"):
        raise ValueError(f"adopt: activation: expected relu or gelu, got {name}")
    if getattr(part.activation, "approximate", "none") == "tanh":
        name = "gelu_tanh"
    refused(part.self_attn)
    wiring = "pre" if part.norm_first else "post"
    return {"heads": part.self_attn.num_heads, "activation": name, "wiring": wiring, "eps": part.norm1.eps}


def refused(part: nn.MultiheadAttention) -> None:
    """ValueError for what our attention does not have."""
    if part.bias_k is not None or part.add_zero_attn:
        raise ValueError(
            "adopt: MultiheadAttention: expected no add_bias_kv and no add_zero_attn, our attention has none"
        )
    if part.in_proj_weight is None:
        raise ValueError("adopt: MultiheadAttention: expected keys and values as wide as queries, got kdim or vdim")


def layer(module: Any, causal: bool) -> nn.Module:
    """A single layer, as the only one of a stack."""
    holder = nn.TransformerEncoder if isinstance(module, nn.TransformerEncoderLayer) else nn.TransformerDecoder
    known = {"enable_nested_tensor": False} if holder is nn.TransformerEncoder else {}
    whole = holder(module, 1, **known)
    found = proven(whole, stack(whole, causal), stack_outputs(whole, causal), type(module).__name__)
    block: nn.Module = found.layers[0]  # type: ignore[union-attr, index]
    return block


def attention(module: nn.MultiheadAttention, causal: bool) -> nn.Module:
    """An attention, as part of the only layer of a stack whose other parts are idle."""
    refused(module)
    known = {"bias": module.in_proj_bias is not None, "batch_first": True, "dropout": 0.0}
    holder = nn.TransformerEncoderLayer(module.embed_dim, module.num_heads, 1, **known)
    holder.self_attn.load_state_dict(module.state_dict())
    dtype = next(module.parameters()).dtype
    found: nn.Module = layer(holder.to(dtype).eval(), causal).attention  # type: ignore[assignment]
    x = torch.randn(2, LENGTH, module.embed_dim, dtype=dtype)
    hidden = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1) if causal else None

    def outputs(ours: nn.Module) -> tuple[Tensor, Tensor]:
        side = x if module.batch_first else x.transpose(0, 1)
        theirs = module(side, side, side, attn_mask=hidden, need_weights=False)[0]
        return theirs if module.batch_first else theirs.transpose(0, 1), ours(x)

    return proven(module, found, outputs)


def stack_outputs(module: Any, causal: bool) -> Callable[[Any], tuple[Tensor, Tensor]]:
    """How a stack of torch's and ours are asked the same."""
    parts = [part for part in module.modules() if isinstance(part, nn.MultiheadAttention)]
    dim, first_, dtype = parts[0].embed_dim, parts[0].batch_first, next(module.parameters()).dtype
    x, memory = torch.randn(2, LENGTH, dim, dtype=dtype), torch.randn(2, LENGTH - 2, dim, dtype=dtype)
    hidden = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
    a, b = (x, memory) if first_ else (x.transpose(0, 1), memory.transpose(0, 1))

    def outputs(ours: Any) -> tuple[Tensor, Tensor]:
        if isinstance(module, nn.TransformerEncoder):
            theirs, own = module(a, mask=hidden if causal else None), ours(inputs_embeds=x).encoder_outputs.x
        elif isinstance(module, nn.TransformerDecoder):
            theirs = module(a, b, tgt_mask=hidden)
            own = ours.stream(None, Context(places(LENGTH), Memory(memory, places(LENGTH - 2))), vectors=x)[0]
        else:
            theirs, read = module(b, a, tgt_mask=hidden), ours.encode(inputs_embeds=memory)
            own = ours.decoder.stream(None, Context(places(LENGTH), read), vectors=x)[0]
        return theirs if first_ else theirs.transpose(0, 1), own

    return outputs


@torch.no_grad()
def proven(
    module: nn.Module, ours: nn.Module, outputs: Callable[[Any], tuple[Tensor, Tensor]], called: str = ""
) -> nn.Module:
    """Ours, if both give the same. ValueError: the largest difference, and where it is."""
    with evaluating(module), evaluating(ours):
        theirs, own = outputs(ours)
    if theirs.shape != own.shape:
        raise ValueError(f"adopt: expected outputs of shape {tuple(theirs.shape)}, ours are {tuple(own.shape)}")
    apart = (theirs.double() - own.double()).abs()
    size = max(theirs.double().abs().max().item(), 1e-30)
    if not apart.max().item() <= CLOSE * size:
        at = torch.unravel_index(apart.argmax(), apart.shape)
        place = tuple(int(i) for i in at)
        raise ValueError(
            f"adopt: {called or type(module).__name__} is not what its parts say: at {place} it gives "
            f"{theirs[place].item():.6g}, its weights in our bricks give {own[place].item():.6g}"
        )
    return ours.eval()
