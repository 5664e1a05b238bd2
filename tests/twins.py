"""The same model twice, ours and another library's, with the same random weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from oneblock.bricks import build_model
from oneblock.spec import (
    Attention,
    Block,
    Embedding,
    FeedForward,
    Head,
    LayerNorm,
    Learned,
    Model,
    RMSNorm,
    Rope,
    Seq2Seq,
    Tokens,
)
from oneblock.zoo import named

VOCAB, PAD, BOS, EOS = 40, 3, 1, 2
TOKENS = Tokens(PAD, BOS, EOS)


def sharp(model: Any, seed: int = 0) -> Any:
    """Large random weights, so that different prompts get different answers."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=0.5)
            else:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model.double().eval()


def rotary(seed: int = 0) -> tuple[Any, Any]:
    """(ours, theirs): rotary positions, grouped heads, RMSNorm, gated feed-forward."""
    transformers = pytest.importorskip("transformers", reason="the other library is not installed")
    config = transformers.LlamaConfig(
        vocab_size=VOCAB, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=128, rms_norm_eps=1e-5, tie_word_embeddings=False,
        pad_token_id=PAD, bos_token_id=BOS, eos_token_id=EOS,
    )  # fmt: skip
    theirs = sharp(transformers.LlamaForCausalLM(config), seed)
    block = Block(Attention(4, 2, position=Rope()), FeedForward(24, "silu", gated=True), norm=RMSNorm(1e-5))
    ours = build_model(Model(16, Embedding(VOCAB), (block,) * 2, RMSNorm(1e-5), Head(), tokens=TOKENS))
    state = {"embedding.token": "model.embed_tokens", "norm": "model.norm", "head.out": "lm_head"}
    for i in range(2):
        state |= {f"layers.{i}.attention.{a}": f"model.layers.{i}.self_attn.{a}_proj" for a in "qkv"}
        state |= {f"layers.{i}.feedforward.{a}": f"model.layers.{i}.mlp.{a}_proj" for a in ("up", "gate", "down")}
        state[f"layers.{i}.attention.out"] = f"model.layers.{i}.self_attn.o_proj"
        state[f"layers.{i}.norms.attention_pre"] = f"model.layers.{i}.input_layernorm"
        state[f"layers.{i}.norms.feedforward_pre"] = f"model.layers.{i}.post_attention_layernorm"
    there = theirs.state_dict()
    ours.load_state_dict({f"{mine}.weight": there[f"{yours}.weight"] for mine, yours in state.items()})
    return ours.double().eval(), theirs


def learned(seed: int = 0) -> tuple[Any, Any]:
    """(ours, theirs): learned positions, LayerNorm, biases, fused projections on their side, a tied head."""
    transformers = pytest.importorskip("transformers", reason="the other library is not installed")
    config = transformers.GPT2Config(
        vocab_size=VOCAB, n_embd=16, n_layer=2, n_head=4, n_positions=64, pad_token_id=PAD, bos_token_id=BOS,
        eos_token_id=EOS, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    theirs = sharp(transformers.GPT2LMHeadModel(config), seed)
    block = Block(Attention(4, bias=True), FeedForward(64, "gelu_tanh", bias=True), norm=LayerNorm(1e-5))
    embedding = Embedding(VOCAB, Learned(64))
    ours = build_model(Model(16, embedding, (block,) * 2, LayerNorm(1e-5), Head(tied=True), tokens=TOKENS))
    there, state = theirs.state_dict(), {}
    for mine, yours in (("embedding.token", "wte"), ("embedding.position", "wpe"), ("head.out", "wte")):
        state[f"{mine}.weight"] = there[f"transformer.{yours}.weight"]
    for part in ("weight", "bias"):
        state[f"norm.{part}"] = there[f"transformer.ln_f.{part}"]
        for i in range(2):
            names = {
                "norms.attention_pre": "ln_1", "norms.feedforward_pre": "ln_2", "attention.out": "attn.c_proj",
                "feedforward.up": "mlp.c_fc", "feedforward.down": "mlp.c_proj",
            }  # fmt: skip
            for mine, yours in names.items():
                state[f"layers.{i}.{mine}.{part}"] = turned(there[f"transformer.h.{i}.{yours}.{part}"], mine)
            fused = turned(there[f"transformer.h.{i}.attn.c_attn.{part}"], "attention.q").chunk(3)
            state |= {f"layers.{i}.attention.{a}.{part}": piece for a, piece in zip("qkv", fused, strict=True)}
    ours.load_state_dict(state)
    return ours.double().eval(), theirs


def turned(x: Tensor, name: str) -> Tensor:
    """Their matrices are (inputs, outputs), ours (outputs, inputs)."""
    return x.T if x.ndim == 2 and "norms" not in name else x


def pair(seed: int = 0) -> Any:
    """Our encoder-decoder with sharp weights."""
    spec = named("vaswani", dim=16, depth=2, heads=2, hidden=32, vocab=VOCAB, dropout=0.0)
    assert isinstance(spec, Seq2Seq)
    return sharp(build_model(spec), seed)
