"""Which block, head and token an exercise works by hand; what is beyond all there is, is refused with what there is."""

from __future__ import annotations

from collections.abc import Mapping

from oneblock.explain.trace import Trace
from oneblock.hint import nearest
from oneblock.spec import Attention, Model, Seq2Seq, Spec, atoms
from oneblock.spec.masks import Causal

WORD = "▁"
"""How tokenizers write the space before a word."""


def stacks(spec: Spec) -> dict[str, Model]:
    """The stacks of a model: "" alone, or "encoder." and "decoder."."""
    return {"encoder.": spec.encoder, "decoder.": spec.decoder} if isinstance(spec, Seq2Seq) else {"": spec}


def layers(spec: Spec, layer: int) -> dict[str, int]:
    """The block that is shown of each stack: number `layer`, of a stack with fewer its last. ValueError: beyond all."""
    depths = {stack: len(model.layers) for stack, model in stacks(spec).items()}
    if not 0 <= layer < max(depths.values()):
        said = " and ".join(f"{stack.rstrip('.') or 'model'} {depth}" for stack, depth in depths.items())
        raise ValueError(f"layer: expected 0 to {max(depths.values()) - 1} (layers: {said}), got {layer}")
    return {stack: min(layer, depth - 1) for stack, depth in depths.items()}


def attentions(spec: Spec, shown: Mapping[str, int]) -> dict[str, Attention]:
    """The attentions of the shown blocks by path."""
    found = {}
    for stack, model in stacks(spec).items():
        block = model.layers[shown[stack]] if model.layers else None
        for name in ("attention", "cross"):
            brick = getattr(block, name, None)
            if brick is not None:
                found[f"{stack}layers.{shown[stack]}.{name}"] = brick
    return found


def head_of(found: Mapping[str, Attention], head: int) -> int:
    """The head, if every attention that is shown has it. ValueError: it has not."""
    fewest = min((brick.heads for brick in found.values()), default=1)
    if not 0 <= head < fewest:
        raise ValueError(f"head: expected 0 to {fewest - 1} (the block has {fewest} heads), got {head}")
    return head


def tokens(trace: Trace, spec: Spec, token: int | str | None) -> dict[str, int]:
    """The token of each stack: by place or by how it reads; where a stack has none such, one that shows much.

    ValueError: no stack has it; the message lists the tokens.
    """
    found = {stack: place(names, token) for stack, names in trace.tokens.items()}
    if token is not None and all(at is None for at in found.values()):
        known = [name for names in trace.tokens.values() for name in names]
        there = ", or ".join(f"0 to {len(names) - 1} of {listed(names)}" for names in trace.tokens.values())
        hint = f"; {nearest(token, known)}" if isinstance(token, str) else ""
        hint = hint if hint.startswith("; did you mean") else ""
        raise ValueError(f"token: expected {there}, got {token!r:.60}{hint}")
    return {
        stack: default(trace.tokens[stack], causal(stacks(spec)[stack])) if at is None else at
        for stack, at in found.items()
    }


def listed(names: tuple[str, ...], most: int = 12) -> str:
    """Tokens on one line, the first of them."""
    return " ".join(names[:most]) + (" …" if len(names) > most else "")


def place(names: tuple[str, ...], token: int | str | None) -> int | None:
    """Where a token is, by its index or by how it reads, with or without the mark of a space."""
    if isinstance(token, int):
        return token if 0 <= token < len(names) else None
    plain = [name.replace(WORD, "").strip() for name in names]
    for known in (list(names), plain):
        if token is not None and token in known:
            return known.index(token)
    return None


def causal(model: Model) -> bool:
    """Whether the self-attention of a stack hides the future."""
    bricks = [block.attention for block in model.layers if block.attention is not None]
    return any(Causal() in atoms(brick.mask) for brick in bricks)


def default(names: tuple[str, ...], hides: bool) -> int:
    """The last token that is a word; where the mask is causal the one before it, so that something is hidden."""
    words = [at for at, name in enumerate(names) if not (name[:1] in "<[" and name[-1:] in ">]" and len(name) > 2)]
    if not words:
        return len(names) - 1
    return words[-2] if hides and len(words) > 1 else words[-1]
