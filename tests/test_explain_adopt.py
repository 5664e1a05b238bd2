"""Modules of torch and transformers become our bricks with equal outputs, or are refused with the first difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks.agreement import FAMILIES_FILES  # noqa: F401 - they register their cases
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

from oneblock.bricks import Context, Memory
from oneblock.explain import adopt, trace
from oneblock.mask import places
from oneblock.spec import Causal, Full

quiet = pytest.mark.filterwarnings("ignore:enable_nested_tensor")
shapes = st.tuples(st.integers(1, 3), st.integers(1, 6))


def shaken(module: nn.Module, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    for weight in module.parameters():
        nn.init.normal_(weight, std=0.3)
    return module.eval()


@quiet
@settings(max_examples=20)
@given(
    shape=shapes, heads=st.sampled_from([1, 2, 4]), first=st.booleans(), bias=st.booleans(), batch_first=st.booleans(),
    activation=st.sampled_from(["relu", "gelu"]), causal=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_N20_a_layer_of_torch_is_a_block(
    shape: tuple[int, int], heads: int, first: bool, bias: bool, batch_first: bool, activation: str, causal: bool,
    seed: int,
) -> None:  # fmt: skip
    layer = nn.TransformerEncoderLayer(
        8, heads, 12, activation=activation, norm_first=first, bias=bias, batch_first=batch_first
    )
    block = adopt(shaken(layer, seed), causal)
    x = torch.randn(*shape, 8)
    side = x if batch_first else x.transpose(0, 1)
    mask = torch.ones(shape[1], shape[1], dtype=torch.bool).triu(1) if causal else None
    with torch.no_grad():
        theirs = layer(side, src_mask=mask)
        assert_close(block(x), theirs if batch_first else theirs.transpose(0, 1), rtol=1e-4, atol=1e-5)
    assert block.attention.spec.mask == (Causal() if causal else Full())  # type: ignore[union-attr]


@quiet
def test_N20_whole_stacks_with_and_without_a_last_norm() -> None:
    whole = shaken(nn.Transformer(8, 2, 2, 3, 12, batch_first=True, norm_first=True))
    ours: Any = adopt(whole)
    source, target = torch.randn(2, 4, 8), torch.randn(2, 5, 8)
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)
    with torch.no_grad():
        read = ours.encode(inputs_embeds=source)
        got = ours.decoder.stream(None, Context(places(5), read), vectors=target)[0]
        assert_close(got, whole(source, target, tgt_mask=future), rtol=1e-4, atol=1e-5)
    decoder = shaken(nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 12), 2))
    alone: Any = adopt(decoder)
    with torch.no_grad():
        got = alone.stream(None, Context(places(5), Memory(source, places(4))), vectors=target)[0]
        theirs = decoder(target.transpose(0, 1), source.transpose(0, 1), tgt_mask=future).transpose(0, 1)
        assert_close(got, theirs, rtol=1e-4, atol=1e-5)


@settings(max_examples=20)
@given(shape=shapes, heads=st.sampled_from([1, 2, 4]), bias=st.booleans(), causal=st.booleans(), first=st.booleans())
def test_N20_an_attention_of_torch_is_an_attention(
    shape: tuple[int, int], heads: int, bias: bool, causal: bool, first: bool
) -> None:
    theirs = shaken(nn.MultiheadAttention(8, heads, bias=bias, batch_first=first))
    ours, x = adopt(theirs, causal), torch.randn(*shape, 8)
    mask = torch.ones(shape[1], shape[1], dtype=torch.bool).triu(1) if causal else None
    side = x if first else x.transpose(0, 1)
    with torch.no_grad():
        expected = theirs(side, side, side, attn_mask=mask, need_weights=False)[0]
        assert_close(ours(x), expected if first else expected.transpose(0, 1), rtol=1e-4, atol=1e-5)


def test_models_of_transformers_are_read_from_what_they_save() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=31, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32,
    )  # fmt: skip
    theirs = shaken(transformers.LlamaForCausalLM(config))
    ours: Any = adopt(theirs)
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    with torch.no_grad():
        assert_close(ours(ids).logits, theirs(ids).logits, rtol=1e-4, atol=1e-4)
    assert max(trace(ours, ids).check().values()) < 1e-5
    bart = transformers.BartConfig(
        vocab_size=31, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, max_position_embeddings=32,
    )  # fmt: skip
    assert adopt(shaken(transformers.BartForConditionalGeneration(bart))).spec.decoder.dim == 16


class Louder(nn.TransformerEncoderLayer):
    """A layer that is not what its parts say."""

    def forward(self, src: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return 2 * super().forward(src, *args, **kwargs)


@quiet
def test_what_cannot_be_adopted_is_refused_with_the_first_difference(tmp_path: Path) -> None:  # noqa: ARG001
    with pytest.raises(ValueError, match=r"^adopt: Louder is not what its parts say: at \(\d, \d, \d\) it "):
        adopt(shaken(Louder(8, 2, 12, batch_first=True)))
    with pytest.raises(ValueError, match=r"^adopt: expected a Transformer of torch.nn .* got Linear; trace shows"):
        adopt(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="no add_bias_kv"):
        adopt(nn.MultiheadAttention(8, 2, add_bias_kv=True))
    with pytest.raises(ValueError, match="got kdim or vdim"):
        adopt(nn.MultiheadAttention(8, 2, kdim=4, vdim=4))
    with pytest.raises(ValueError, match="activation: expected relu or gelu, got silu"):
        adopt(nn.TransformerEncoderLayer(8, 2, 12, activation=nn.functional.silu))
    mixed = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12), 2, enable_nested_tensor=False)
    mixed.layers[1].norm_first = True
    with pytest.raises(ValueError, match="layer 1: expected wiring 'post' as in the first, got 'pre'"):
        adopt(mixed)
