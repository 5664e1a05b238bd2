"""What arguments are usually called: a first guess at what each is for, which trying confirms or refutes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn

from oneblock.check.calling.convention import Convention
from oneblock.check.calling.example import Example
from oneblock.check.calling.sizes import Sizes
from oneblock.words.phrase import Phrase

TOKENS = (
    "input_ids", "ids", "idx", "tokens", "token_ids", "x", "src", "input", "inputs", "source", "hidden_states",
    "hidden", "embeddings", "query",
)  # fmt: skip
TARGET = (
    "decoder_input_ids", "tgt", "target", "trg", "decoder_ids", "target_ids", "tgt_ids", "decoder_input", "y",
    "decoder_tokens", "tgt_tokens",
)  # fmt: skip
SOURCE = (
    "input_ids", "src", "source", "encoder_input_ids", "source_ids", "src_ids", "encoder_input", "memory",
    "context", "encoder_output", "encoder_outputs", "encoder_hidden_states", "enc", "enc_out", "enc_output",
    "src_tokens", "x",
)  # fmt: skip
LABELS = ("labels", "targets", "target", "label", "y", "target_ids")
POSITIONS = ("position_ids", "positions", "pos_ids", "position", "pos", "input_pos")
DOCUMENTS = ("document_ids", "documents", "doc_ids", "segment_mask_ids", "sequence_ids", "seq_ids", "document")
CACHE = ("past_key_values", "cache", "kv_cache", "past", "layer_past", "state", "caches")
PAST = ("start_pos", "start_position", "offset", "past_length")
"""Arguments for how many tokens a cache holds that the module holds itself, a whole number."""
USE_CACHE = ("use_cache", "return_cache", "use_kv_cache", "return_past")
THRICE = ("query", "key", "value", "q", "k", "v", "queries", "keys", "values", "x", "kv")
"""Arguments of an attention layer, all of which may be the same vectors."""
CAUSAL = ("tgt_mask", "attn_mask", "mask", "causal_mask", "src_mask")
REAL = (
    "attention_mask", "key_padding_mask", "src_key_padding_mask", "padding_mask", "pad_mask", "src_padding_mask",
    "input_mask", "real_mask", "real", "mask", "src_mask", "attn_mask", "x_mask", "token_mask",
)  # fmt: skip
REAL_OF_TARGET = (
    "decoder_attention_mask", "tgt_key_padding_mask", "tgt_padding_mask", "target_padding_mask", "trg_mask",
    "tgt_pad_mask", "target_mask", "tgt_real", "decoder_mask", "tgt_mask",
)  # fmt: skip
REAL_OF_SOURCE = (
    "src_key_padding_mask", "memory_key_padding_mask", "attention_mask", "src_padding_mask", "source_padding_mask",
    "source_mask", "src_pad_mask", "src_mask", "encoder_attention_mask", "memory_mask", "context_mask", "src_real",
    "enc_mask", "mask",
)  # fmt: skip
SEGMENTS = re.compile(r"segment|token_type|type_ids|seg_")
"""Names of arguments that say which sentence a token belongs to: all are given the same."""
SOURCE_LIKE = re.compile(r"^(src|source|enc)")
TARGET_LIKE = re.compile(r"^(trg|tgt|target|dec)")
PAD_ID = re.compile(r"pad(ding)?_?(idx|id|token_id|token|index)$")
HIDDEN = re.compile(r"padding_mask|pad_mask")
"""Names that usually mean True = hidden."""


def ways(parameters: Mapping[str, inspect.Parameter], sizes: Sizes, example: Example) -> Iterator[Convention]:
    """Conventions worth a try, the likeliest first."""
    fixed = held_past(parameters) | dict(example.fixed)
    free = {name: one for name, one in parameters.items() if name not in fixed}
    needed = [name for name, one in free.items() if one.default is inspect.Parameter.empty]
    segments = tuple(name for name in needed if SEGMENTS.search(name))
    required = [name for name in needed if name not in segments]
    both = pair(free, required)
    kinds = [example.ids] if example.ids is not None else [True, False] if sizes.embeds else [False, True]
    if both:
        source, target = both
        for ids in kinds:
            yield Convention(target, ids, source=source, source_ids=ids, segments=segments, fixed=fixed)
        yield Convention(target, True, source=source, source_ids=False, fixed=fixed)
    told = [example.tokens] if example.tokens in free else []
    single = told or [name for name in (*required, *TOKENS) if name in free][:3] or list(free)[:1]
    for name in dict.fromkeys(single):
        same = tuple(other for other in required if other != name)
        if set(same) <= set(THRICE):
            for ids in kinds if not same else [False]:
                yield Convention(name, ids, same=same, segments=segments, fixed=fixed)
    if both:
        for ids in kinds:
            yield Convention(both[1], ids, source=both[0], source_ids=ids, even=True, fixed=fixed)


def held_past(parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """The argument that a module which holds its cache wants to know the number of past tokens by: 0 at first."""
    if any(name in parameters for name in CACHE):
        return {}
    free = [name for name in PAST if name in parameters and parameters[name].default is inspect.Parameter.empty]
    return dict.fromkeys(free[:1], 0)


def pair(free: Mapping[str, Any], required: list[str]) -> tuple[str, str] | None:
    """(source, target) of a module that takes both, else None: an optional second text is labels, not a target."""
    if "decoder_input_ids" in free and "input_ids" in free:
        return "input_ids", "decoder_input_ids"
    target = next((name for name in TARGET if name in required), None)
    source = next((name for name in SOURCE if name in required and name != target), None)
    if target and source:
        return source, target
    if len(required) == 2 and SOURCE_LIKE.search(required[0]) and TARGET_LIKE.search(required[1]):
        return required[0], required[1]
    memory = next((name for name in SOURCE[7:-1] if name in required), None)
    first = next((name for name in (*TOKENS, *TARGET) if name in required and name != memory), None)
    return (memory, first) if memory and first else None


def padding_of_source(parameters: Mapping[str, Any], way: Convention) -> list[str]:
    """Arguments that may be masks over the source, the likeliest first; both of torch's where it has two."""
    found = [name for name in REAL_OF_SOURCE if name in parameters and name not in (way.tokens, way.source)]
    twins = [name for name in ("src_key_padding_mask", "memory_key_padding_mask") if name in found]
    return twins or found[:1]


def padding_of_tokens(parameters: Mapping[str, Any], way: Convention) -> list[str]:
    """Arguments that may be masks over the tokens, the likeliest first."""
    names = REAL_OF_TARGET if way.source else REAL
    taken = {way.tokens, way.source, *(name for name, _ in (*way.source_real, *way.causal))}
    return [name for name in names if name in parameters and name not in taken]


def forms_of(name: str) -> list[str]:
    """Forms of a mask to try, the one that its name promises first."""
    real, hidden = ["true real", "one real"], ["true hidden", "one hidden", "float hidden"]
    if name in ("attention_mask", "decoder_attention_mask"):
        real = ["one real", "true real"]
    wide = ["wide true real", "wide true hidden", "wide additive", "square keys real", "square keys hidden"]
    return [*hidden, *real, *wide] if HIDDEN.search(name) else [*real, *hidden, *wide]


def means_causal(module: nn.Module) -> Phrase | None:
    """A sign in the names that no token must see later ones, or None if there is none."""
    config = getattr(module, "config", None)
    if getattr(config, "is_decoder", False) is True:
        return Phrase("its config says is_decoder")
    for part in module.modules():
        name = type(part).__name__
        if re.search(r"causal|(?<!seq2seq)decoder(?!.*encoder)|autoregress", name, re.IGNORECASE):
            return Phrase("it holds a {}", name)
    if re.search(r"LanguageModel|LM$", type(module).__name__) and not re.search("Masked", type(module).__name__):
        return Phrase("it is called {}", type(module).__name__)
    return None
