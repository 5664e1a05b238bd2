"""Models without planted faults, by hand and from libraries, and what is truly to be said of each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import transformers
from torch import nn

import oneblock
from check_corpus.plant import written

SMALL = {"vocab_size": 61, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 40}


@dataclass(frozen=True)
class Host:
    """How a model is made, the kind it must be found to be, and (fault, module) pairs that are true of it."""

    make: Callable[[], nn.Module]
    kind: str
    true: frozenset[tuple[str, str]] = frozenset()
    options: tuple[tuple[str, Any], ...] = ()


def ours(name: str, **sizes: Any) -> Callable[[], nn.Module]:
    """One of our families."""
    return lambda: oneblock.build(oneblock.named(name, **sizes))


def of(model: str, config: str, **sizes: Any) -> Callable[[], nn.Module]:
    """A model of the reference library."""
    return lambda: getattr(transformers, model)(getattr(transformers, config)(**sizes))


def encoder(batch_first: bool) -> nn.Module:
    """Torch's own encoder."""
    layer = nn.TransformerEncoderLayer(16, 2, 40, batch_first=batch_first)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def decoder() -> nn.Module:
    """Torch's own decoder."""
    return nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 2, 40, batch_first=True), 2)


PAIR = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
WIDE = {"encoder_ffn_dim": 40, "decoder_ffn_dim": 40, "d_model": 16, "max_position_embeddings": 32}


def by_hand(path: str, *more: str) -> frozenset[tuple[str, str]]:
    """What is true of attention that is written out."""
    return frozenset((name, path) for name in ("attention.unfused", *more))


EQUAL = frozenset({("layers.equal", "layers")})
"""Stacks of torch start with the same numbers in every layer: they are copies of the one that was given."""

HOSTS: dict[str, Host] = {
    "gpt": Host(lambda: written("gpt", "TinyGPT")(), "decoder", by_hand("blocks.0.attention", "mask.rebuilt")),
    "reader": Host(lambda: written("reader", "Reader")(), "encoder", by_hand("layers.0.attention")),
    "sorter": Host(lambda: written("reader", "Sorter")(), "encoder", by_hand("reader.layers.0.attention")),
    "translator": Host(lambda: written("translator", "TinyTranslator")(), "seq2seq"),
    "turner": Host(lambda: written("turner", "Turner")(), "decoder", frozenset({("loss.nothing", "")})),
    "packed": Host(lambda: written("packed", "PackedLM")(), "decoder"),
    "held": Host(lambda: written("held", "HeldLM")(), "decoder", by_hand("layers.0.attention")),
    "notes block": Host(
        lambda: written("notes_block", "TransformerBlock")(), "encoder", frozenset({("attention.weights_unused", "attn"), ("padding.unmasked", "")})),
    "torch encoder": Host(lambda: encoder(True), "encoder", EQUAL | {("nothing.nan", "")}),
    "torch encoder, length first": Host(lambda: encoder(False), "encoder", EQUAL),
    "torch decoder": Host(decoder, "seq2seq", EQUAL),
    "torch transformer": Host(lambda: nn.Transformer(16, 2, 2, 2, 40, batch_first=True), "seq2seq"),
    "our gpt2": Host(ours("gpt2", dim=16, depth=2, heads=2, vocab=53, length=32), "decoder"),
    "our llama": Host(ours("llama", dim=16, depth=2, heads=4, kv_heads=2, hidden=40, vocab=53), "decoder"),
    "our bert": Host(ours("bert", dim=16, depth=2, heads=2, hidden=40, vocab=53, length=32), "encoder"),
    "our vaswani": Host(ours("vaswani", dim=16, depth=2, heads=2, hidden=40, vocab=53), "seq2seq"),
    "hf gpt2": Host(
        of("GPT2LMHeadModel", "GPT2Config", vocab_size=61, n_embd=16, n_layer=2, n_head=2, n_positions=32,
           bos_token_id=0, eos_token_id=0), "decoder",
        frozenset({("loss.nothing", ""), ("positions.left.caller", "transformer")})),
    "hf bert": Host(
        of("BertModel", "BertConfig", hidden_size=16, max_position_embeddings=32, **SMALL), "encoder"),
    "hf bert sorter": Host(
        of("BertForSequenceClassification", "BertConfig", hidden_size=16, max_position_embeddings=32, num_labels=3,
           **SMALL), "encoder"),
    "hf llama": Host(
        of("LlamaForCausalLM", "LlamaConfig", hidden_size=16, num_key_value_heads=1, **SMALL), "decoder",
        frozenset({("loss.nothing", "")})),
    "hf mistral": Host(
        of("MistralForCausalLM", "MistralConfig", hidden_size=16, num_key_value_heads=1, sliding_window=4, **SMALL),
        "decoder", frozenset({("loss.nothing", "")})),
    "hf t5": Host(
        of("T5ForConditionalGeneration", "T5Config", vocab_size=61, d_model=16, d_kv=8, num_layers=2, num_heads=2,
           d_ff=40), "seq2seq", frozenset({("loss.nothing", "")})),
    "hf marian": Host(
        of("MarianMTModel", "MarianConfig", vocab_size=61, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0,
           forced_eos_token_id=1, **PAIR, **WIDE), "seq2seq", frozenset({("loss.nothing", "")})),
    "adapted": Host(lambda: written("adapted", "Adapted")(), "decoder"),
    "tuned": Host(lambda: written("adapted", "Tuned")(), "encoder",
        frozenset({("padding.unmasked", ""), ("positions.ignored", "")})),
    "experts": Host(lambda: written("experts", "Expertly")(), "decoder"),
    "our mixtral": Host(
        ours("mixtral", dim=16, depth=2, heads=2, kv_heads=2, hidden=24, vocab=53, experts=4), "decoder"),
    "hf mixtral": Host(
        of("MixtralForCausalLM", "MixtralConfig", hidden_size=16, num_key_value_heads=1, num_local_experts=4,
           output_router_logits=True, experts_implementation="eager", **SMALL), "decoder",
        frozenset({("loss.nothing", "")})),
    "hf qwen moe": Host(
        of("Qwen2MoeForCausalLM", "Qwen2MoeConfig", hidden_size=16, num_key_value_heads=1, num_experts=4,
           num_experts_per_tok=2, moe_intermediate_size=24, shared_expert_intermediate_size=24,
           experts_implementation="eager", **SMALL), "decoder", frozenset({("loss.nothing", "")})),
}  # fmt: skip
"""Name -> host."""
