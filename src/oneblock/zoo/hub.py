"""Keys of a config.json that many families share: sizes, special tokens, activations, rotary positions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from oneblock.hint import nearest
from oneblock.spec import Head, Rope, Tokens, dims, get
from oneblock.zoo.family import Config, Key
from oneblock.zoo.stretched import scaling, written

WITHOUT_EFFECT = frozenset(
    """
    _name_or_path architectures model_type torch_dtype dtype transformers_version use_cache initializer_range
    initializer_factor init_std id2label label2id num_labels problem_type task_specific_params tokenizer_class prefix
    gradient_checkpointing auto_map _attn_implementation attn_implementation language generator
    max_length min_length do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature top_k top_p
    typical_p repetition_penalty length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids
    num_return_sequences output_scores return_dict_in_generate forced_bos_token_id forced_eos_token_id
    remove_invalid_values exponential_decay_length_penalty suppress_tokens begin_suppress_tokens sep_token_id
    chunk_size_feed_forward return_dict output_hidden_states output_attentions torchscript use_bfloat16
    cache_implementation tf_legacy_loss finetuning_task is_encoder_decoder transformers.js_config
    """.split()  # noqa: SIM905
)
"""Keys that change no logits."""

SHARED: dict[str, Any] = {
    "pruned_heads": {},
    "is_decoder": False,
    "cross_attention_hidden_size": None,
    "add_cross_attention": False,
    "tie_encoder_decoder": False,
    "quantization_config": None,
}
"""Keys that any config.json may hold, and the only value that is understood."""

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}
"""Their word -> ours. Three of theirs are one function to within rounding."""


def idle(value: Any) -> Key:
    """A key that changes no logits of its family: whatever it says is read, and `value` is written."""
    return Key(None, lambda spec: value, value)  # noqa: ARG005


def activation(place: str | Callable[[Any], Any], default: str, tanh: str = "gelu_new") -> Key:
    """The key of an activation; `tanh` is how the family spells GELU by tanh."""

    def read(value: Any, config: Config) -> Any:  # noqa: ARG001
        if value not in ACTIVATIONS:
            raise ValueError(f"activation: {value!r} is none of ours; {nearest(value, ACTIVATIONS)}")
        return ACTIVATIONS[value]

    def write(spec: Any) -> str:
        word: str = Key(None, place).written(spec)
        return tanh if word == "gelu_tanh" else word

    return Key("activation", write, default, read)


def gate(place: str, default: str) -> dict[str, Key]:
    """The keys of a feed-forward's activation and gate in one word: "gated-silu"; "gated-gelu" means the one by tanh.

    Newer files say the two in keys of their own as well, which then count.
    """
    act = activation(f"{place}.activation", default)

    def shape(spec: Any) -> str:
        word: str = act.written(spec)
        return "gated-" + word.replace("gelu_new", "gelu") if get(spec, f"{place}.gated") else word

    def word(value: str | None, config: Config) -> Any:
        said = config["feed_forward_proj"]
        return act.read(value or ("gelu_new" if said == "gated-gelu" else said.removeprefix("gated-")), config)

    def gated(value: bool | None, config: Config) -> bool:
        return config["feed_forward_proj"].startswith("gated-") if value is None else value

    return {
        "feed_forward_proj": Key(None, shape, default),
        "dense_act_fn": Key("activation", act.place, None, word),
        "is_gated_act": Key("gated", f"{place}.gated", None, gated),
    }


def tokens(
    path: str = "tokens", pad: Any = None, bos: Any = None, eos: Any = None, start: Any = None
) -> dict[str, Key]:
    """The keys of the special tokens; several ends of text are one `eos` and the rest."""

    def read(value: Any, config: Config) -> Tokens:
        first, *more = value if isinstance(value, list) and value else [value]
        begin = config.get("decoder_start_token_id")
        if begin is None and start is not None:
            begin = config["pad_token_id"]
        return Tokens(config["pad_token_id"], config["bos_token_id"], first, begin, tuple(more))

    def write(spec: Any) -> Any:
        said: Tokens = get(spec, path)
        return [said.eos, *said.stop] if said.stop else said.eos

    keys = {
        "eos_token_id": Key("tokens", write, eos, read),
        "pad_token_id": Key(None, f"{path}.pad", pad),
        "bos_token_id": Key(None, f"{path}.bos", bos),
    }
    return keys if start is None else keys | {"decoder_start_token_id": Key(None, f"{path}.start", start)}


def kv_heads(default: int | None, stack: str = "") -> Key:
    """The number of key heads; None in a spec where there are as many as query heads."""

    def read(value: Any, config: Config) -> Any:
        return None if value in (None, config["num_attention_heads"]) else value

    return Key("kv_heads", lambda spec: _dims(spec, stack)[0], default, read)


def head_dim(
    default: int | None, stack: str = "", words: tuple[str, str] = ("hidden_size", "num_attention_heads")
) -> Key:
    """The width of a head; None in a spec where it is dim / heads, for which `words` are the family's."""

    def read(value: Any, config: Config) -> Any:
        return None if value in (None, config[words[0]] / config[words[1]]) else value

    return Key("head_dim", lambda spec: _dims(spec, stack)[1], default, read)


def _dims(spec: Any, stack: str) -> tuple[int, int, int]:
    return dims(get(spec, f"{stack}layers.0.attention"), get(spec, f"{stack}dim"))


def tied(default: bool, stack: str = "") -> Key:
    """Whether head and embedding share a matrix."""

    def write(spec: Any) -> bool:
        head = get(spec, f"{stack}head")
        return head.tied if isinstance(head, Head) else default

    return Key("tied", write, default)


def acts(default: str, stack: str = "") -> Key:
    """The activation of the first layer."""
    return activation(f"{stack}layers.0.feedforward.activation", default)


SHOWN = {
    "vocab": ("embedding.vocab", "vocab_size"),
    "segments": ("embedding.segments", "type_vocab_size"),
    "dim": ("dim", "hidden_size n_embd d_model dim"),
    "depth": ("layers.length", "num_hidden_layers n_layer n_layers num_layers"),
    "heads": ("layers.0.attention.heads", "num_attention_heads n_head n_heads num_heads encoder_attention_heads"),
    "hidden": ("layers.0.feedforward.hidden", "intermediate_size n_inner hidden_dim d_ff encoder_ffn_dim"),
    "eps": ("norm.eps", "rms_norm_eps layer_norm_eps layer_norm_epsilon"),
    "bias": ("layers.0.attention.bias", "attention_bias"),
    "wide_bias": ("layers.0.feedforward.bias", "mlp_bias"),
    "dropout": ("layers.0.dropout", "resid_pdrop hidden_dropout hidden_dropout_prob dropout_rate dropout"),
    "attention_dropout": ("layers.0.attention.dropout", "attention_dropout attn_pdrop attention_probs_dropout_prob"),
    "hidden_dropout": ("layers.0.feedforward.dropout", "activation_dropout"),
    "embedding_dropout": ("embedding.dropout", "embd_pdrop"),
    "length": ("length", "max_position_embeddings n_positions"),
}
"""Our argument -> (where a stack shows it, how families spell it)."""
WORDS = {word: (argument, place) for argument, (place, words) in SHOWN.items() for word in words.split()}
"""Their word -> (our argument, where a stack shows it)."""

MADE: dict[str, Callable[[Any, str], Key]] = {
    "num_key_value_heads": kv_heads,
    "head_dim": head_dim,
    "d_kv": partial(head_dim, words=("d_model", "num_heads")),
    "hidden_act": acts,
    "activation_function": acts,
    "activation": acts,
    "tie_word_embeddings": tied,
}
"""Words that need more than a place, and what makes their keys."""


def keys(stack: str = "", **defaults: Any) -> dict[str, Key]:
    """Keys that mean the same in every family that has them, with what each means where a file leaves it out.

    `stack` is the part of a spec ("encoder.") that shows them.

    >>> keys(n_embd=768)["n_embd"]  # doctest: +ELLIPSIS
    Key(argument='dim', place='dim', default=768, ...)
    """

    def key(word: str, default: Any) -> Key:
        if word in MADE:
            return MADE[word](default, stack)
        argument, place = WORDS[word]
        return Key(argument, f"{stack}{place}", default)

    return {word: key(word, default) for word, default in defaults.items()}


def unread(*names: str) -> dict[str, Key]:
    """Keys that files of a family hold and that change nothing in its models, whatever they say."""
    return dict.fromkeys(names, Key(None, lambda spec: None))  # noqa: ARG005


def rope(
    theta: float = 10_000.0,
    fraction: float = 1.0,
    place: str = "layers.0.attention.position",
    old: tuple[str, str | None] = ("rope_theta", None),
) -> dict[str, Key]:
    """The keys of a rotary position, in today's spelling and in the older ones.

    `old` are the keys that older files have beside the others for theta and for the turned share of a head.
    """

    def read(value: Any, config: Config) -> Rope:
        older = config.get("rope_scaling") or {}
        said = {"rope_theta": config.get(old[0]), "partial_rotary_factor": config.get(old[1] or "")}
        said = {key: word for key, word in said.items() if word is not None} | older | (value or {})
        part = float(said.get("partial_rotary_factor") or fraction)
        width = config.get("head_dim") or config.get("hidden_size", 0) // config.get("num_attention_heads", 1)
        if part < 1 and int(width * part) % 2:
            raise ValueError(f"partial_rotary_factor: {part} of {width} features is odd; features turn in pairs")
        return Rope(float(said.get("rope_theta") or theta), part, scaling=scaling(said, config))

    def write(spec: Any) -> dict[str, Any]:
        said: Rope = get(spec, place)
        share = {} if fraction == 1.0 and said.fraction == 1.0 else {"partial_rotary_factor": said.fraction}
        return {"rope_theta": said.theta} | share | written(said.scaling)

    def old_theta(spec: Any) -> float:
        return float(get(spec, f"{place}.theta"))

    share = {} if old[1] is None else {old[1]: Key(None, f"{place}.fraction", fraction)}
    return share | {
        "rope_parameters": Key("position", write, None, read),
        old[0]: Key(None, old_theta, None),
        "rope_scaling": Key(None, lambda spec: written(get(spec, place).scaling) if get(spec, place).scaling else None),
    }
