"""An encoder that reads a text from both sides and guesses the words that were hidden; one vector per text."""

from __future__ import annotations

from typing import Any

from oneblock.spec import (
    Attention,
    Block,
    Embedding,
    FeedForward,
    Full,
    Head,
    LayerNorm,
    Learned,
    Model,
    Tokens,
    Transform,
)
from oneblock.zoo.family import Family, Key, Kind, Rows
from oneblock.zoo.heads import POOLED, classifier, guess, head_dropout, renamed
from oneblock.zoo.hub import keys, tokens, unread


def bert(
    dim: int = 768,
    depth: int = 12,
    heads: int = 12,
    hidden: int = 3072,
    vocab: int = 30_522,
    segments: int = 2,
    eps: float = 1e-12,
    activation: Any = "gelu",
    tied: bool = True,
    dropout: float = 0.1,
    attention_dropout: float = 0.1,
    length: int = 512,
    tokens: Tokens = Tokens(pad=0),
) -> Model:
    """Devlin et al. 2018 (arXiv:1810.04805): post-norm blocks without a causal mask, learned positions, segments.

    Positions are indices: padding on the left moves the text.
    """
    norm = LayerNorm(eps)
    attention = Attention(heads, mask=Full(), bias=True, dropout=attention_dropout)
    block = Block(attention, FeedForward(hidden, activation, bias=True), norm=norm, wiring="post", dropout=dropout)
    embedding = Embedding(vocab, Learned(length), segments, norm, dropout=dropout)
    head = Head(tied, bias=True, transform=Transform(activation, norm))
    return Model(dim, embedding, (block,) * depth, None, head, length, tokens, counted="all")


LARGE: dict[str, Any] = {"dim": 1024, "depth": 24, "heads": 16, "hidden": 4096}

ROWS: Rows = {
    "embedding.{token,position}": "embeddings.{word_embeddings,position_embeddings}",
    "embedding.segment": "embeddings.token_type_embeddings",
    "embedding.norm": "embeddings.LayerNorm",
    "layers.*.attention.{q,k,v}": "encoder.layer.*.attention.self.{query,key,value}",
    "layers.*.attention.out": "encoder.layer.*.attention.output.dense",
    "layers.*.norms.attention_post": "encoder.layer.*.attention.output.LayerNorm",
    "layers.*.feedforward.{up,down}": "encoder.layer.*.{intermediate,output}.dense",
    "layers.*.norms.feedforward_post": "encoder.layer.*.output.LayerNorm",
}

CONFIG = keys(
    vocab_size=30_522, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072,
    hidden_act="gelu", hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1, max_position_embeddings=512,
    type_vocab_size=2, tie_word_embeddings=True,
) | tokens(pad=0) | {
    "layer_norm_eps": Key("eps", "embedding.norm.eps", 1e-12),
    "classifier_dropout": head_dropout(None),
} | unread(
    "directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head",
    "pooler_type",
)  # fmt: skip

LABELS = classifier("first", "tanh", "classifier_dropout", "hidden_dropout_prob")
BIAS, OUT = "cls.predictions.bias", "cls.predictions.decoder"
GUESS = guess("bert.", "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", BIAS, OUT)

BERT = Family(
    bert, {"bert-base": {}, "bert-large": LARGE}, "bert", CONFIG, {"position_embedding_type": "absolute"}, ROWS,
    {
        "BertForMaskedLM": GUESS,
        "BertForPreTraining": GUESS,
        "BertForSequenceClassification": Kind(
            {"head.transform.dense": "bert.pooler.dense", "head.out": "classifier"}, LABELS, "bert."
        ),
        "BertModel": Kind({"head.transform.dense": "pooler.dense"}, POOLED),
    },
    ("embeddings.position_ids", "pooler.dense.*", "cls.seq_relationship.*", BIAS),
    renamed(BIAS, OUT), {f"{OUT}.bias": BIAS}, {BIAS: f"{OUT}.bias"},
)  # fmt: skip
