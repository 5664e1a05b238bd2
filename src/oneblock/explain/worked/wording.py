"""How a step is written: its symbol and its formula, with what this very step leaves out left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from oneblock.explain.step import Step
from oneblock.explain.worked.number import shown
from oneblock.words import say


@dataclass(frozen=True)
class Written:
    """A symbol, and a formula as plain text and as LaTeX."""

    symbol: str = ""
    formula: str = ""
    latex: str = ""


Rule = Callable[[Step, Written], tuple[str, str]]
RULES: dict[str, Rule] = {}
"""Kind of a step -> its formula here, plain and in LaTeX, from what the dictionary says of its kind."""

SYMBOLS = {"Embedding": "e", "Embedding.segment": "SE", "Learned": "PE"}
"""Where the dictionary's symbol is the table's, that of the row which the step takes from it."""
LETTERS = {"token": "e", "position": "PE", "segment": "SE"}
"""The parts of an embedding."""


def written(step: Step) -> Written:
    """How a step is written.

    >>> import oneblock
    >>> model = oneblock.build(oneblock.named("llama", dim=8, depth=1, heads=2, kv_heads=1, hidden=8, vocab=9)).eval()
    >>> found = oneblock.trace(model, [1, 2])
    >>> written(found["layers.0.attention.query"]).formula, written(found["layers.0.feedforward.up"]).formula
    ('q ← heads(q) R_p', 'u = x W_up')
    """
    said = step.say()
    found = Written(SYMBOLS.get(step.kind, said.symbol), said.formula, said.latex)
    if "bias" in step.operands and step.operands["bias"].value is None:
        found = Written(found.symbol, unbiased(found.formula), unbiased(found.latex))
    rule = RULES.get(step.kind)
    return found if rule is None else Written(found.symbol, *rule(step, found))


def unbiased(formula: str) -> str:
    """A formula without its bias, plain or in LaTeX."""
    return re.sub(r" \+ (b_(\w+|\{\\mathrm\{\w+\}\})|β|\\beta)$", "", formula)


def rule(*kinds: str) -> Callable[[Rule], Rule]:
    """Register how steps of these kinds are written."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, function))
        return function

    return register


@rule("Embedding")
def row(_step: Step, _said: Written) -> tuple[str, str]:
    """A row of the table."""
    return "e = E[id]", r"e = E_{\mathrm{id}}"


@rule("Embedding.segment")
def segment(_step: Step, _said: Written) -> tuple[str, str]:
    """A row of the table of segments."""
    return "SE = S[segment]", r"\mathrm{SE} = S_{\mathrm{segment}}"


@rule("Learned")
def learned(step: Step, _said: Written) -> tuple[str, str]:
    """A row of the table of positions."""
    offset = step.operands["offset"].value
    more = f" + {offset}" if offset else ""
    return f"PE = P[p{more}]", rf"\mathrm{{PE}} = P_{{p{more}}}"


@rule("Sinusoidal")
def waves(_step: Step, said: Written) -> tuple[str, str]:
    """The waves alone."""
    return said.formula.replace("x + ", "PE = "), said.latex.replace("x + ", r"\mathrm{PE} = ")


def say_of(kind: str) -> Written:
    """What the dictionary says of a kind."""
    said = say(kind)
    return Written(said.symbol, said.formula, said.latex)


@rule("step.embedded")
def embedded(step: Step, _said: Written) -> tuple[str, str]:
    """The sum of what there is; or its norm."""
    if "x" in step.operands:
        return "x = norm(e + …)", r"x = \mathrm{norm}(e + \ldots)"
    scaled = step.operands["scale"].value != 1
    names = [LETTERS[name] for name in LETTERS if name in step.operands]
    plain = " + ".join(names).replace("e", "√d e" if scaled else "e", 1)
    latex = " + ".join(name if name == "e" else rf"\mathrm{{{name}}}" for name in names)
    return f"x = {plain}", "x = " + latex.replace("e", r"\sqrt{d}\, e" if scaled else "e", 1)


@rule("step.stream")
def stream(step: Step, said: Written) -> tuple[str, str]:
    """A sum, with its factors where they are not 1; or its norm."""
    if "branch_scale" not in step.operands:
        return "x ← norm(x + f(x))", r"x \leftarrow \mathrm{norm}(x + f(x))"
    skip, scale = (step.operands[name].value for name in ("skip", "branch_scale"))
    branch = "f(x)"
    if "branch" not in step.operands:
        branch = "(attention + ffn)" if scale != 1 else "attention + ffn"
    branch = branch if scale == 1 else f"{shown(scale)}·{branch}"
    formula = f"x ← {'' if skip == 0 else 'x + ' if skip == 1 else f'{shown(skip)}·x + '}{branch}"
    latex = formula.replace("←", r"\leftarrow").replace("·", r" \cdot ").replace("−", "-")
    latex = re.sub("(attention|ffn)", r"\\mathrm{\1}", latex)
    return (formula, latex) if formula != said.formula else (said.formula, said.latex)


@rule("step.query", "step.key", "step.value")
def turned(step: Step, said: Written) -> tuple[str, str]:
    """Split into heads, and turned where positions are rotary."""
    x = said.symbol
    there = step.operands["x"].value.ndim == 4  # normed head by head: it is split already
    plain, latex = (x, x) if there else (f"heads({x})", rf"\mathrm{{heads}}({x})")
    turn = "rope" in step.operands
    return f"{x} ← {plain}{' R_p' * turn}", rf"{x} \leftarrow {latex}" + r"\, R_p" * turn


@rule("step.scores")
def scores(step: Step, said: Written) -> tuple[str, str]:
    """Divided by √d_k, or as this model does."""
    scale, width = step.operands["scale"].value, step.operands["q"].shape[-1]
    if abs(scale * width**0.5 - 1) < 1e-6:
        return said.formula, said.latex
    front = "" if scale == 1 else f"{shown(scale)} "
    return f"s = {front}q kᵀ", rf"s = {front}q k^\top"


@rule("step.masked")
def masked(step: Step, _said: Written) -> tuple[str, str]:
    """Capped, with a bias, with a mask: each where it is."""
    cap = step.operands["softcap"].value
    plain = "s" if cap is None else f"{cap:g} tanh(s / {cap:g})"
    latex = plain.replace("tanh", r"\tanh")
    names = ["bias"] * ("rule" in step.operands) + ["mask"] * bool(step.operands["hidden"].value.any())
    return " + ".join([f"s' = {plain}", *names]), " + ".join([f"s' = {latex}", *(rf"\mathrm{{{n}}}" for n in names)])


@rule("step.pattern")
def shares(_step: Step, _said: Written) -> tuple[str, str]:
    """Of the masked scores, which are a step of their own."""
    return "a = softmax(s')", r"a = \mathrm{softmax}(s')"


@rule("step.hidden", "step.hidden.gated")
def activated(step: Step, said: Written) -> tuple[str, str]:
    """With the activation's name; of experts from what they read."""
    operand = step.operands.get("activation") or step.operands["act"]
    name = say(operand.value).symbol
    plain, latex = said.formula.replace("σ", name), said.latex.replace(r"\sigma", rf"\mathrm{{{name}}}")
    if "chosen" in step.operands:
        for letter, which in (("u", "up"), ("g", "gate")):
            plain = re.sub(rf"(?<=[( ]){letter}(?=$|\))", f"x W_{which}", plain)
            latex = re.sub(rf"(?<=[( ]){letter}(?=$|\))", rf"x W_{{\\mathrm{{{which}}}}}", latex)
    return plain, latex


@rule("step.weights")
def routed(step: Step, said: Written) -> tuple[str, str]:
    """Of all experts, or of the chosen ones alone."""
    if step.operands["whole"].value:
        return said.formula, said.latex
    return "w = softmax(r[top])", r"w = \mathrm{softmax}(r_{\mathrm{top}})"


@rule("step.mix")
def mixed(_step: Step, _said: Written) -> tuple[str, str]:
    """From the experts' hidden features."""
    return "y = Σ_e w_e h_e W_down", r"y = \sum_e w_e\, h_e W_{\mathrm{down}}"


@rule("step.logits")
def logits(step: Step, said: Written) -> tuple[str, str]:
    """Scaled and capped where they are."""
    scale, cap = (step.operands[name].value if name in step.operands else None for name in ("scale", "softcap"))
    plain, latex = said.formula, said.latex
    if scale not in (None, 1):
        plain, latex = f"{shown(scale)} ({plain})", f"{shown(scale)} ({latex})"
    if cap is not None:
        plain, latex = f"{cap:g} tanh({plain} / {cap:g})", rf"{cap:g} \tanh({latex} / {cap:g})"
    return f"y = {plain}", f"y = {latex}"


@rule("LayerNorm", "SigmaNorm", "RMSNorm")
def norm(step: Step, said: Written) -> tuple[str, str]:
    """Without γ where there is none; with 1 + γ where that is stored."""
    plain, latex = said.formula, said.latex
    if step.operands["weight"].value is None:
        plain, latex = plain.replace(" ⊙ γ", ""), latex.replace(r" \odot \gamma", "")
    if step.operands.get("centre") is not None and step.operands["centre"].value:
        plain, latex = plain.replace("γ", "(1 + γ)"), latex.replace(r"\gamma", r"(1 + \gamma)")
    inner = None
    if "token" in step.operands:
        inner = embedded(step, said)
    elif "branch_scale" in step.operands:
        inner = stream(step, say_of("step.stream"))
    elif "activation" in step.operands:
        name = say(step.operands["activation"].value).symbol
        inner = f"x = {name}(t)", rf"x = \mathrm{{{name}}}(t)"
    if inner is None:
        return plain, latex
    return f"{inner[0]};  {plain}", rf"{inner[1]};\quad {latex}"


OPERANDS = {
    "weight": "W", "bias": "b", "pattern": "a", "scores": "s", "branch": "f(x)", "up": "u", "gate": "g",
    "hidden": "mask", "position": "p", "real": "mask", "chosen": "top", "feedforward": "ffn",
}  # fmt: skip
"""What an operand is called in formulas."""
SPECIAL = {
    "step.embedded": LETTERS,
    **dict.fromkeys(("LayerNorm", "SigmaNorm", "RMSNorm"), LETTERS | {"weight": "γ", "bias": "β", "up": "t"}),
    "Embedding": {"table": "E", "ids": "id"}, "Embedding.segment": {"table": "S", "ids": "segment"},
    "Learned": {"table": "P"}, "step.query": {"x": "q"}, "step.key": {"x": "k"}, "step.value": {"x": "v"},
    "step.pattern": {"scores": "s'"}, "step.weights": {"scores": "r"}, "step.down": {"x": "h"},
    "step.mix": {"weight": "w", "hidden": "h"},
}  # fmt: skip
"""Kind of a step -> what its operands are called there."""


def letter(step: Step, name: str) -> str:
    """What an operand of a step is called in its formula.

    >>> import oneblock
    >>> model = oneblock.build(oneblock.named("gpt2", dim=8, depth=1, heads=2, vocab=9)).eval()
    >>> step = oneblock.trace(model, [1, 2])["layers.0.attention.pattern"]
    >>> step.operands.keys(), letter(step, "scores")
    (dict_keys(['scores']), "s'")
    """
    if step.operands[name].source == "weight" and name in ("up", "gate", "down"):
        return f"W_{name}"
    return SPECIAL.get(step.kind, {}).get(name, OPERANDS.get(name, name))
