"""The same encoder trained longer on more text: one segment, and positions that count real tokens only."""

from __future__ import annotations

from typing import Any

from oneblock.spec import Learned, Model, Tokens
from oneblock.zoo.bert import CONFIG as BERT_CONFIG
from oneblock.zoo.bert import LABELS, LARGE, ROWS, bert
from oneblock.zoo.family import Config, Family, Key, Kind
from oneblock.zoo.heads import POOLED, guess, renamed
from oneblock.zoo.hub import tokens
from oneblock.zoo.like import changed, like


@like(bert, vocab=50_265, segments=1, eps=1e-5, tokens=Tokens(pad=1, bos=0, eos=2))
def roberta(spec: Model) -> Model:
    """Liu et al. 2019 (arXiv:1907.11692): no next-sentence task, one segment; position p reads row p + pad + 1.

    Their classifier drops features before its first projection too, which no spec says: in training only.
    """
    offset = 1 + (spec.tokens.pad or 0)
    position = Learned(spec.length or 512, offset)
    own = {"embedding.position": position, "counted": "real", "head.transform.activation": "gelu"}
    return changed(spec, own)


def length(value: Any, config: Config) -> int:
    """Positions that are left of a table whose first rows are never read by text."""
    return int(value - config["pad_token_id"] - 1)


def table(spec: Any) -> int:
    """Rows of the table of positions."""
    return int(spec.embedding.position.length + spec.embedding.position.offset)


CONFIG = BERT_CONFIG | tokens(pad=1, bos=0, eos=2) | {"max_position_embeddings": Key("length", table, 512, length)}
BIAS, OUT = "lm_head.bias", "lm_head.decoder"

ROBERTA = Family(
    roberta,
    {"roberta-base": {}, "roberta-large": LARGE},
    "roberta", CONFIG, {"position_embedding_type": "absolute"}, ROWS,
    {
        "RobertaForMaskedLM": guess("roberta.", "lm_head.dense", "lm_head.layer_norm", BIAS, OUT),
        "RobertaForSequenceClassification": Kind(
            {"head.transform.dense": "classifier.dense", "head.out": "classifier.out_proj"}, LABELS, "roberta."
        ),
        "RobertaModel": Kind({"head.transform.dense": "pooler.dense"}, POOLED),
    },
    ("embeddings.position_ids", "pooler.dense.*", BIAS),
    renamed(BIAS, OUT), {f"{OUT}.bias": BIAS}, {BIAS: f"{OUT}.bias"},
)  # fmt: skip
