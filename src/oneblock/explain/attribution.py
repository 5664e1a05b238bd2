"""Direct logit attribution: which part of the model wrote how much of a logit; the parts sum to it exactly.

x: (length, dim), the stream of one text; a part is what one sublayer, head or bias added to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from oneblock.explain.inputs import spelt
from oneblock.explain.step import Step
from oneblock.explain.table import Table
from oneblock.explain.trace import Trace
from oneblock.generate import Pipeline, Translator
from oneblock.spec import SLOTS, Block, Head, Model, Seq2Seq
from oneblock.words import label

Per = Literal["sublayer", "head"]
Parts = dict[str, Tensor]
"""What was added -> the vectors (length, dim), in the order in which it was."""
ROUNDING = 1e-3
"""How far the sum may be from the logit, relative to it: half precision, and nothing else."""


@dataclass(frozen=True, eq=False)
class Attribution:
    """`parts` sum to `logit`: of a token, or what it has more than another; before the head's cap, if there is one."""

    parts: dict[str, float]
    logit: float
    token: int
    against: int | None

    @property
    def rest(self) -> float:
        """What the parts miss: rounding."""
        return self.logit - sum(self.parts.values())


def attribute(
    trace: Trace,
    token: int | None = None,
    against: int | None = None,
    position: int = -1,
    *,
    row: int = 0,
    per: Per = "sublayer",
    reader: Pipeline | Translator | None = None,
    lang: str = "en",
) -> Table:
    """What each part of the model adds to the logit of `token`, in the order in which the stream meets them.

    Every norm on the way is kept at the scale it had in this trace, and is then linear: so the parts sum to the logit.
    Elhage et al. 2021, "A mathematical framework for Transformer circuits".

    Args:
        trace: of a model with a head for tokens; of an encoder-decoder the decoder is looked at.
        token: whose logit; by default the likeliest one.
        against: the logit of this one is subtracted, so that what lifts all tokens alike drops out.
        position: of which token's prediction, by default the last.
        row: of which text.
        per: "head" splits each attention into its heads and its bias.
        reader: whose tokenizer spells the tokens in the title; without it they are numbers.
        lang: "en" or "zh".

    Raises:
        ValueError: a head that is not for tokens, or bends the stream before its product; a token, position or text
            that is not there; an edited trace whose stream is no longer the sum of its parts.

    >>> import oneblock
    >>> model = oneblock.build(oneblock.named("gpt2", dim=8, depth=1, heads=2, vocab=9)).eval()
    >>> [name for name, _ in attribute(oneblock.trace(model, [1, 2, 3]), 4)][:4]
    ['embedding.token', 'embedding.position', 'layers.0.attention', 'layers.0.feedforward']
    """
    found = attribution(trace, token, against, position, row=row, per=per)
    name = " − ".join(spelt(reader, one) for one in (found.token, found.against) if one is not None)
    columns = (label("part", lang), label("contribution", lang))
    notes = (label("parts sum", lang, f"{sum(found.parts.values()):.4f}", f"{found.logit:.4f}"),)
    return Table(label("attribution of", lang, name), columns, tuple(found.parts.items()), notes)


@torch.no_grad()
def attribution(
    trace: Trace,
    token: int | None = None,
    against: int | None = None,
    position: int = -1,
    *,
    row: int = 0,
    per: Per = "sublayer",
) -> Attribution:
    """As `attribute`, the numbers. The sum is computed in float64."""
    stack, spec = _stream(trace)
    if per not in ("sublayer", "head"):
        raise ValueError(f"per: expected 'sublayer' or 'head', got {per!r}")
    last = trace[f"{stack}head.logits"]
    texts, length, vocab = last.shape
    if not 0 <= row < texts or not -length <= position < length:
        raise ValueError(f"position, row: expected one of {length} tokens and {texts} texts, got {position}, {row}")
    token = int(last.tensor[row, position].argmax()) if token is None else token
    if wrong := [one for one in (token, against) if one is not None and not 0 <= one < vocab]:
        raise ValueError(f"token: expected an id of the vocabulary of {vocab}, got {wrong[0]}")
    weight, bias, scale = (last.operands[name].value for name in ("weight", "bias", "scale"))
    direction, shift = weight[token].double(), 0.0 if bias is None else bias[token].item()
    if against is not None:
        direction = direction - weight[against].double()
        shift -= 0.0 if bias is None else bias[against].item()
    parts = {name: scale * (x[position] @ direction).item() for name, x in _parts(trace, stack, spec, row, per).items()}
    if bias is not None:
        parts["head.bias"] = scale * shift
    final = trace[f"{stack}final"].tensor[row, position].double()
    logit = scale * ((final @ direction).item() + shift)
    size = sum(abs(part) for part in parts.values())
    if abs(logit - sum(parts.values())) > ROUNDING * max(size, 1e-6):
        raise ValueError(f"attribution: the parts sum to {sum(parts.values()):.4g}, the logit is {logit:.4g}: was the "
                         "stream of this trace edited? edit what sublayers add instead")  # fmt: skip
    return Attribution(parts, logit, token, against)


def _stream(trace: Trace) -> tuple[str, Model]:
    """(the stack that writes the logits, its spec). ValueError: none does, or not as a product with the stream."""
    spec: Any = trace.spec
    if spec is None:
        raise ValueError("attribution: expected a trace of a model of ours; `adopt` makes one of some modules")
    pair = isinstance(spec, Seq2Seq)
    own: Model = spec.decoder if pair else spec
    if not isinstance(own.head, Head):
        raise ValueError(f"attribution: expected a head for tokens, got {type(own.head).__name__}")
    if own.head.transform is not None:
        raise ValueError("attribution: the head bends the stream before its product: no sum of parts; use ablation")
    return ("decoder." if pair else ""), own


def _parts(trace: Trace, stack: str, spec: Model, row: int, per: Per) -> Parts:
    """What the final stream is the sum of."""
    at = {step.path.removeprefix(stack): step for step in trace if step.path.startswith(stack)}
    parts = _embedded(at, spec, row)
    for number, block in enumerate(spec.layers):
        parts = _through(at, block, f"layers.{number}", parts, row, per)
    return _frozen(at["norm.norm"], "norm", parts) if "norm.norm" in at else parts


def _embedded(at: dict[str, Step], spec: Model, row: int) -> Parts:
    """Token, position and segment."""
    parts = {}
    for name in ("token", "position", "segment"):
        step = at.get(f"embedding.{name}")
        if step is not None:
            factor = spec.dim**0.5 if name == "token" and spec.embedding.scale else 1.0
            parts[f"embedding.{name}"] = factor * step.tensor[row if len(step.tensor) > 1 else 0].double()
    normed = at.get("embedding.norm.norm")
    return parts if normed is None else _frozen(normed, "embedding.norm", parts)


def _through(at: dict[str, Step], block: Block, path: str, parts: Parts, row: int, per: Per) -> Parts:
    """The parts after a block."""
    names = [name for name in ("attention", "cross", "feedforward") if getattr(block, name) is not None]
    together = [names] if block.wiring.startswith("parallel") else [[name] for name in names]
    for group in together:
        added: Parts = {}
        for name in group:
            new = _added(at, f"{path}.{name}", row, per)
            if "branch" in SLOTS[block.wiring]:
                new = _frozen(at[f"{path}.norms.{name}_branch.norm"], f"{path}.norms.{name}_branch", new)
            added |= new
        parts = {name: block.skip * x for name, x in parts.items()}
        parts |= {name: block.branch_scale * x for name, x in added.items()}
        if "post" in SLOTS[block.wiring]:
            parts = _frozen(at[f"{path}.norms.{group[0]}_post.norm"], f"{path}.norms.{group[0]}_post", parts)
    return parts


def _added(at: dict[str, Step], path: str, row: int, per: Per) -> Parts:
    """What a sublayer adds, of an attention head by head where that is asked for."""
    out = at[f"{path}.out"]
    if per == "sublayer" or f"{path}.z" not in at:
        return {path: out.tensor[row].double()}
    z = at[f"{path}.z"].tensor[row].double()  # (heads, length, value_dim)
    weight, bias = out.operands["weight"].value.double(), out.operands["bias"].value
    slices = weight.split(z.shape[-1], 1)  # for each head (dim, value_dim)
    parts = {f"{path}.{head}": z[head] @ piece.mT for head, piece in enumerate(slices)}
    return parts if bias is None else parts | {f"{path}.bias": bias.double().expand(z.shape[1], -1)}


def _frozen(step: Step, name: str, parts: Parts) -> Parts:
    """Each part through a norm that divides by what it divides their sum by; the norm's bias is a part of its own."""
    values = {key: operand.value for key, operand in step.operands.items()}
    whole = torch.stack(list(parts.values())).sum(0)
    middle = step.kind != "RMSNorm"
    centred = whole - whole.mean(-1, keepdim=True) if middle else whole
    correction = int(values.get("unbiased", False))
    square = centred.square().sum(-1, keepdim=True) / (whole.shape[-1] - correction)
    size = square.sqrt() + values["eps"] if step.kind == "SigmaNorm" else (square + values["eps"]).sqrt()
    weight = values["weight"]
    gain = (1.0 if weight is None else weight.double()) + values.get("centre", 0.0)
    found = {key: (x - x.mean(-1, keepdim=True) if middle else x) / size * gain for key, x in parts.items()}
    bias = values.get("bias")
    return found if bias is None else found | {f"{name}.bias": bias.double().expand(whole.shape)}
