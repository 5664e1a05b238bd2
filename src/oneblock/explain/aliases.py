"""Names of steps: those that users of TransformerLens know, as ours; and a hint for one that names no step."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from oneblock.explain.step import Step
from oneblock.hint import nearest

ALIASES = {
    "hook_embed": ("embedding.token",),
    "hook_pos_embed": ("embedding.position",),
    "blocks.N.hook_resid_mid": ("layers.N.stream",),
    "blocks.N.hook_resid_post": ("layers.N.stream#2", "layers.N.stream"),
    "blocks.N.hook_attn_out": ("layers.N.attention.out",),
    "blocks.N.hook_mlp_out": ("layers.N.feedforward.out",),
    "blocks.N.ln1.hook_normalized": ("layers.N.norms.attention_pre.norm",),
    "blocks.N.ln2.hook_normalized": ("layers.N.norms.feedforward_pre.norm",),
    "blocks.N.attn.hook_q": ("layers.N.attention.query",),
    "blocks.N.attn.hook_k": ("layers.N.attention.key",),
    "blocks.N.attn.hook_v": ("layers.N.attention.value",),
    "blocks.N.attn.hook_rot_q": ("layers.N.attention.query",),
    "blocks.N.attn.hook_rot_k": ("layers.N.attention.key",),
    "blocks.N.attn.hook_attn_scores": ("layers.N.attention.masked",),
    "blocks.N.attn.hook_pattern": ("layers.N.attention.pattern",),
    "blocks.N.attn.hook_z": ("layers.N.attention.z",),
    "blocks.N.mlp.hook_pre": ("layers.N.feedforward.gate", "layers.N.feedforward.up"),
    "blocks.N.mlp.hook_pre_linear": ("layers.N.feedforward.up",),
    "blocks.N.mlp.hook_post": ("layers.N.feedforward.hidden",),
    "ln_final.hook_normalized": ("norm.norm",),
}
"""TransformerLens's names, N for a layer, and ours; of several the first that there is."""
PLAIN = {"attn.hook_q": "attention.q", "attn.hook_k": "attention.k"}
"""In a rotary model the names of what is not turned yet; ours has the heads side by side there."""


def ours_of(name: str, known: Mapping[str, Step]) -> str:
    """Our name for a step that TransformerLens names; any other name as it is. The layer may be a *."""
    found = re.match(r"blocks\.(\d+|\*)\.(.+)$", name)
    layer, rest = found.groups() if found else ("", name)
    if found and rest == "hook_resid_pre":
        return before(layer, known)
    here = [one.replace("N", layer, 1) for one in ALIASES.get(f"blocks.N.{rest}" if found else rest, ())]
    if rest in PLAIN and turned(known):
        here = [f"layers.{layer}.{PLAIN[rest]}"]
    some = [one for one in here if one.replace("*", "0") in known]
    return (some or here or [name])[0]


def before(layer: str, known: Mapping[str, Step]) -> str:
    """The stream before a block: after the one below it."""
    if layer == "0":
        return "embedding.embedded"
    return ours_of(f"blocks.{int(layer) - 1}.hook_resid_post", known) if layer != "*" else "hook_resid_pre"


def turned(known: Mapping[str, Step]) -> bool:
    """Whether queries are turned by positions."""
    return any("rope" in step.operands for step in known.values() if step.kind == "step.query")


def hint(name: str, known: Collection[str]) -> str:
    """The nearest name of a step; what names are like, where none is near.

    >>> hint("x", ["embedding.token", "layers.0.attention.pattern"])
    'names are like layers.0.attention.pattern, * matches anything'
    """
    said = nearest(name, known)
    if said.startswith("did you mean"):
        return said
    some = next((path for path in known if path.endswith(".pattern")), next(iter(known), ""))
    return f"names are like {some}, * matches anything" if some else "there are no steps"
