"""Every task as text to text: relative distances instead of positions, one table of them for a whole stack."""

from __future__ import annotations

from oneblock.spec import Head, Relative, RMSNorm, Seq2Seq, Tokens, get
from oneblock.zoo.family import Config, Family, Key, Kind, Rows, both, table
from oneblock.zoo.heads import READER
from oneblock.zoo.hub import gate, keys, tokens, unread
from oneblock.zoo.like import changed, like
from oneblock.zoo.vaswani import vaswani


@like(
    vaswani, "bias value_dim position wiring", bias=False, wiring="pre", vocab=32_128, length=512,
    tokens=Tokens(pad=0, eos=1, start=0),
)  # fmt: skip
def t5(
    spec: Seq2Seq,
    gated: bool = False,
    tied: bool = True,
    buckets: int = 32,
    distance: int = 128,
    eps: float = 1e-6,
) -> Seq2Seq:
    """Raffel et al. 2019 (arXiv:1910.10683): pre-RMS-norm, scores without 1 / sqrt(head_dim), no biases, tied logits
    times dim^-0.5. Version 1.1 gates its feed-forward (Shazeer 2020, arXiv:2002.05202) and unties the head.
    """
    drop, head = spec.encoder.embedding.dropout, Head(tied, scale=spec.decoder.dim**-0.5 if tied else None)
    wide = changed(spec.encoder.layers[0].feedforward, {"gated": gated, "bias": False, "dropout": drop})
    return changed(spec, {
        "*.embedding.position": None, "*.embedding.scale": None, "*.counted": "all", "decoder.head": head,
        "*.norm": RMSNorm(eps), "*.layers.*.norm": RMSNorm(eps), "*.dropout": drop, "*.layers.*.feedforward": wide,
        "*.layers.*.attention.scale": 1.0, "*.layers.*.attention.dropout": drop,
        "decoder.layers.*.cross.scale": 1.0, "decoder.layers.*.cross.dropout": drop,
        "encoder.position_bias": Relative(buckets, distance, both_ways=True),
        "decoder.position_bias": Relative(buckets, distance, both_ways=False),
    })  # fmt: skip


COLUMNS = "dim depth heads head_dim hidden"
FIRST = table(COLUMNS, {
    "t5-small": (512, 6, 8, None, 2048),
    "t5-base": (768, 12, 12, None, 3072),
    "t5-large": (1024, 24, 16, None, 4096),
    "t5-3b": (1024, 24, 32, 128, 16_384),
    "t5-11b": (1024, 24, 128, 128, 65_536),
})  # fmt: skip
SECOND = table(COLUMNS, {
    "small": (512, 8, 6, 64, 1024),
    "base": (768, 12, 12, None, 2048),
    "large": (1024, 24, 16, None, 2816),
    "xl": (2048, 24, 32, None, 5120),
    "xxl": (4096, 24, 64, None, 10_240),
}, activation="gelu_tanh", gated=True, tied=False)  # fmt: skip
SIZES = FIRST | {f"{name}-{size}": said for name in ("t5-v1.1", "flan-t5") for size, said in SECOND.items()}


STACKS: Rows = {
    "encoder.embedding.token": "shared",
    "decoder.embedding.token": "decoder.embed_tokens",
    "encoder.layers.*.norms.{attention_pre,feedforward_pre}": "encoder.block.*.layer.{0,1}.layer_norm",
    "decoder.layers.*.norms.{attention_pre,cross_pre,feedforward_pre}": "decoder.block.*.layer.{0,1,2}.layer_norm",
} | both({
    "position_bias": "block.0.layer.0.SelfAttention.relative_attention_bias",
    "layers.*.attention.{q,k,v,out}": "block.*.layer.0.SelfAttention.{q,k,v,o}",
    "layers.*.cross.{q,k,v,out}": "block.*.layer.1.EncDecAttention.{q,k,v,o}",
    "norm": "final_layer_norm",
})  # fmt: skip


def rows(spec: Seq2Seq) -> Rows:
    """A gate has a matrix of its own, and the one beside it another name."""
    gated = get(spec, "encoder.layers.0.feedforward.gated")
    ours, theirs = ("{gate,up,down}", "{wi_0,wi_1,wo}") if gated else ("{up,down}", "{wi,wo}")
    at = {"encoder.layers.*": "encoder.block.*.layer.1", "decoder.layers.*": "decoder.block.*.layer.2"}
    return {**STACKS, **{f"{own}.feedforward.{ours}": f"{at[own]}.DenseReluDense.{theirs}" for own in at}}


def scaled(value: bool, config: Config) -> bool:
    """Whether head and embedding are one: as many newer files say it, whether logits are scaled."""
    return config["scale_decoder_outputs"] if config["scale_decoder_outputs"] is not None else value


CONFIG = keys(
    "encoder.", vocab_size=32_128, d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8, dropout_rate=0.1,
    layer_norm_epsilon=1e-6, n_positions=512,
) | gate("encoder.layers.0.feedforward", "relu") | tokens("encoder.tokens", pad=0, eos=1, start=0) | {
    "decoder_start_token_id": Key(None, "encoder.tokens.start"),
    "num_decoder_layers": Key("decoder_depth", "decoder.layers.length"),
    "relative_attention_num_buckets": Key("buckets", "encoder.position_bias.buckets", 32),
    "relative_attention_max_distance": Key("distance", "encoder.position_bias.distance", 128),
    "tie_word_embeddings": Key("tied", "decoder.head.tied", True, scaled),
} | unread("scale_decoder_outputs", "classifier_dropout", "output_past")  # fmt: skip

WRITE = Kind({"decoder.head.out": "lm_head"})
T5 = Family(
    t5, SIZES, "t5", CONFIG, {}, rows,
    {"T5ForConditionalGeneration": WRITE, "T5WithLMHeadModel": WRITE, "T5EncoderModel": READER},
    ("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",),
    {r"^encoder\.embed_tokens\.": "shared."}, {"lm_head.weight": "shared.weight"},
)  # fmt: skip
