"""Rotary positions stretched beyond their trained length, in the words of `rope_parameters`, both ways."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from oneblock.hint import nearest
from oneblock.spec import DynamicBase, Interpolate, LongRope, Scaling, Smooth, Yarn
from oneblock.zoo.family import Config


def scaling(said: Mapping[str, Any], config: Config) -> Scaling | None:
    """The stretching that `rope_parameters` speaks of."""
    kind = said.get("rope_type", said.get("type", "default"))
    length = config.get("original_max_position_embeddings") or said.get("original_max_position_embeddings")
    whole = config.get("max_position_embeddings")
    factor = float(said.get("factor") or 1.0)
    if kind in ("default", None):
        return None
    if kind == "linear":
        return Interpolate(factor)
    if kind == "dynamic":
        return DynamicBase(factor, int(whole))  # type: ignore[arg-type]
    if kind == "llama3":
        return Smooth(factor, int(length), said["low_freq_factor"], said["high_freq_factor"])  # type: ignore[arg-type]
    if kind == "yarn":
        return _yarn(said, factor, int(length or whole))  # type: ignore[arg-type]
    if kind in ("longrope", "su"):
        return _longrope(said, int(length or whole), int(whole or 0))  # type: ignore[arg-type]
    known = ("default", "linear", "dynamic", "llama3", "yarn", "longrope")
    raise ValueError(f"rope_parameters.rope_type: {kind!r} is no scaling we know; {nearest(kind, known)}")


def _yarn(said: Mapping[str, Any], factor: float, length: int) -> Yarn:
    def size(mscale: float) -> float:
        return 0.1 * mscale * math.log(factor) + 1.0 if factor > 1 else 1.0

    attention = said.get("attention_factor")
    if attention is None and said.get("mscale") and said.get("mscale_all_dim"):
        attention = size(said["mscale"]) / size(said["mscale_all_dim"])
    fast, slow = float(said.get("beta_fast") or 32), float(said.get("beta_slow") or 1)
    return Yarn(factor, length, fast, slow, attention, said.get("truncate", True))


def _longrope(said: Mapping[str, Any], length: int, whole: int) -> LongRope:
    attention = said.get("attention_factor")
    if attention is None:
        factor = said.get("factor") or whole / length
        attention = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(length))
    return LongRope(tuple(said["short_factor"]), tuple(said["long_factor"]), length, attention)


def written(scaling: Scaling | None) -> dict[str, Any]:
    """A scaling in the words of `rope_parameters`."""
    match scaling:
        case None:
            return {"rope_type": "default"}
        case Interpolate(factor):
            return {"rope_type": "linear", "factor": factor}
        case DynamicBase(factor):
            return {"rope_type": "dynamic", "factor": factor}
        case Smooth(factor, length, low, high):
            bands = {"low_freq_factor": low, "high_freq_factor": high}
            return {"rope_type": "llama3", "factor": factor, "original_max_position_embeddings": length} | bands
        case Yarn(factor, length, fast, slow, attention, truncate):
            size = {} if attention is None else {"attention_factor": attention}
            ramp = {"beta_fast": fast, "beta_slow": slow, "truncate": truncate}
            known = {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": length}
            return known | ramp | size
        case LongRope(short, long, length, attention):
            lists = {"short_factor": list(short), "long_factor": list(long)}
            more = {"original_max_position_embeddings": length, "attention_factor": attention}
            return {"rope_type": "longrope"} | lists | more
