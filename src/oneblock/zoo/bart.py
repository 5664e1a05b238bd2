"""An encoder that reads a damaged text and a decoder that writes it whole again."""

from __future__ import annotations

from typing import Any

from oneblock.spec import Head, LayerNorm, Learned, Seq2Seq, Tokens
from oneblock.zoo.family import Config, Family, Flat, Key, Kind, Rows, both
from oneblock.zoo.heads import classifier, head_dropout, headed
from oneblock.zoo.hub import keys, tokens, unread
from oneblock.zoo.like import changed, like
from oneblock.zoo.vaswani import vaswani


@like(
    vaswani, "bias head_dim value_dim position wiring", dim=1024, depth=12, decoder_depth=12, heads=16, hidden=4096,
    activation="gelu", vocab=50_265, length=1024, tokens=Tokens(pad=1, bos=0, eos=2, start=2),
)  # fmt: skip
def bart(
    spec: Seq2Seq,
    decoder_heads: int = 16,
    decoder_hidden: int = 4096,
    scaled: bool = False,
    attention_dropout: float = 0.1,
    hidden_dropout: float = 0.1,
) -> Seq2Seq:
    """Lewis et al. 2019 (arXiv:1910.13461): post-norm, GELU, embeddings normed, positions from row 2 of their table.

    The decoder starts from the end token. Their classifier drops features before its first projection too, which no
    spec says; their `final_logits_bias` is no parameter, ours is learned. Both in training only.
    """
    return changed(spec, {
        "*.counted": "all", "*.embedding.position": Learned(spec.encoder.length or 1024, 2),
        "*.embedding.norm": LayerNorm(), "*.embedding.scale": "sqrt_dim" if scaled else None,
        "*.layers.*.attention.dropout": attention_dropout, "decoder.layers.*.cross.dropout": attention_dropout,
        "*.layers.*.feedforward.dropout": hidden_dropout, "decoder.layers.*.feedforward.hidden": decoder_hidden,
        "decoder.layers.*.attention.heads": decoder_heads, "decoder.layers.*.cross.heads": decoder_heads,
    })  # fmt: skip


BASE: dict[str, Any] = {
    "dim": 768, "depth": 6, "decoder_depth": 6, "heads": 12, "decoder_heads": 12,
    "hidden": 3072, "decoder_hidden": 3072,
}  # fmt: skip

STACKS: Rows = both({
    "layers.*.attention.{q,k,v,out}": "layers.*.self_attn.{q,k,v,out}_proj",
    "layers.*.cross.{q,k,v,out}": "layers.*.encoder_attn.{q,k,v,out}_proj",
    "layers.*.feedforward.{up,down}": "layers.*.{fc1,fc2}",
    "layers.*.norms.{attention_post,feedforward_post}": "layers.*.{self_attn_layer_norm,final_layer_norm}",
    "layers.*.norms.cross_post": "layers.*.encoder_attn_layer_norm",
}) | {"encoder.embedding.token": "shared", "decoder.embedding.token": "decoder.embed_tokens"}  # fmt: skip
ROWS: Rows = {**STACKS, **both({"embedding.position": "embed_positions", "embedding.norm": "layernorm_embedding"})}


def layers(value: int, config: Config) -> int:
    """How many layers the encoder has, which may be said twice."""
    if config["num_hidden_layers"] not in (None, value):
        raise ValueError(f"num_hidden_layers: expected encoder_layers={value}, got {config['num_hidden_layers']}")
    return value


CONFIG = keys(
    "encoder.", vocab_size=50_265, d_model=1024, encoder_attention_heads=16, encoder_ffn_dim=4096, dropout=0.1,
    activation_function="gelu", attention_dropout=0.0, activation_dropout=0.0, max_position_embeddings=1024,
) | {
    "encoder_layers": Key("depth", "encoder.layers.length", 12, layers),
    "decoder_layers": Key("decoder_depth", "decoder.layers.length", 12),
    "decoder_attention_heads": Key("decoder_heads", "decoder.layers.0.attention.heads", 16),
    "decoder_ffn_dim": Key("decoder_hidden", "decoder.layers.0.feedforward.hidden", 4096),
    "scale_embedding": Key("scaled", lambda spec: spec.encoder.embedding.scale is not None, False),
    "classifier_dropout": head_dropout(0.0, "decoder.head"),
} | unread(
    "num_hidden_layers", "classif_dropout", "extra_pos_embeddings", "force_bos_token_to_be_generated", "output_past",
    "_num_labels", "save_step",
)  # fmt: skip
FIXED = {
    "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "normalize_before": False, "add_final_layer_norm": False,
    "add_bias_logits": False, "do_blenderbot_90_layernorm": False, "tie_word_embeddings": True,
}  # fmt: skip

LABELS = classifier("last", "tanh", "classifier_dropout", at="decoder.head", default=3)
WRITE: Rows = {"decoder.head.out.weight": "lm_head.weight", "decoder.head.out.bias": Flat("final_logits_bias")}
SHARED = {r"^(model\.)?encoder\.embed_tokens\.": r"\1shared."}

BART = Family(
    bart,
    {"bart-base": BASE, "bart-large": {}},
    "bart", CONFIG | tokens("encoder.tokens", pad=1, bos=0, eos=2, start=2),
    FIXED | {"normalize_embedding": True, "static_position_embeddings": False}, ROWS,
    {
        "BartForConditionalGeneration": Kind(WRITE, headed(Head(tied=True, bias=True), "decoder.head"), "model."),
        "BartForSequenceClassification": Kind(
            {"decoder.head.transform.dense": "classification_head.dense",
             "decoder.head.out": "classification_head.out_proj"}, LABELS, "model."
        ),
        "BartModel": Kind({"decoder.head.out": "lm_head"}),
    },
    ("encoder.version", "decoder.version"), SHARED,
)  # fmt: skip
