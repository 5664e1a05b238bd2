"""Half of the layers of an encoder, taught by the whole one: no segments, no pooled vector."""

from __future__ import annotations

from oneblock.spec import Model
from oneblock.zoo.bert import bert
from oneblock.zoo.family import Family, Kind, Rows
from oneblock.zoo.heads import OLD_NORMS, classifier, head_dropout, headless
from oneblock.zoo.hub import keys, tokens, unread
from oneblock.zoo.like import like


@like(bert, depth=6, segments=0)
def distilbert(spec: Model) -> Model:
    """Sanh et al. 2019 (arXiv:1910.01108): six of twelve layers, distilled.

    They drop nothing of what attention adds to the stream; a spec drops there as well as behind the feed-forward.
    """
    return spec


ROWS: Rows = {
    "embedding.{token,position}": "embeddings.{word_embeddings,position_embeddings}",
    "embedding.norm": "embeddings.LayerNorm",
    "layers.*.attention.{q,k,v,out}": "transformer.layer.*.attention.{q,k,v,out}_lin",
    "layers.*.feedforward.{up,down}": "transformer.layer.*.ffn.{lin1,lin2}",
    "layers.*.norms.{attention_post,feedforward_post}": "transformer.layer.*.{sa_layer_norm,output_layer_norm}",
}

CONFIG = keys(
    vocab_size=30_522, dim=768, n_layers=6, n_heads=12, hidden_dim=3072, activation="gelu", dropout=0.1,
    attention_dropout=0.1, max_position_embeddings=512, tie_word_embeddings=True,
) | tokens(pad=0) | {"seq_classif_dropout": head_dropout(0.2)} | unread(
    "sinusoidal_pos_embds", "qa_dropout", "output_past"
)  # fmt: skip

LABELS = classifier("first", "relu", "seq_classif_dropout")

DISTILBERT = Family(
    distilbert,
    {"distilbert-base": {}},
    "distilbert", CONFIG, {"tie_weights_": True}, ROWS,
    {
        "DistilBertForMaskedLM": Kind(
            {"head.transform.dense": "vocab_transform", "head.transform.norm": "vocab_layer_norm",
             "head.out": "vocab_projector"}, prefix="distilbert."
        ),
        "DistilBertForSequenceClassification": Kind(
            {"head.transform.dense": "pre_classifier", "head.out": "classifier"}, LABELS, "distilbert."
        ),
        "DistilBertModel": Kind(spec=headless),
    },
    ("embeddings.position_ids",), OLD_NORMS,
)  # fmt: skip
