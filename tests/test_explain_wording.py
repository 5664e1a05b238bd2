"""How a step is written: its formula leaves out what the step leaves out, and names what it has."""

from __future__ import annotations

import pytest

from oneblock.explain import trace
from oneblock.explain.step import Step
from oneblock.explain.worked.wording import letter, written
from oneblock.spec import put
from oneblock.zoo import FAMILIES
from specs import exact, language_model
from test_explain_shown import made_of


def has(step: Step, name: str) -> bool:
    return name in step.operands and step.operands[name].value is not None


@pytest.mark.parametrize("name", FAMILIES)
def test_a_formula_has_a_bias_where_the_step_has_one(name: str) -> None:
    for step in made_of(name)[0]:
        formula = written(step).formula
        if "weight" in step.operands and step.operands["weight"].source == "weight":
            assert ("b_" in formula or "β" in formula) == has(step, "bias"), (step.path, formula)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_formula_names_what_its_step_has(name: str) -> None:
    for step in made_of(name)[0]:
        formula, latex = written(step).formula, written(step).latex
        assert ("R_p" in formula) == ("R_p" in latex) == has(step, "rope")
        if step.kind == "step.masked":
            assert ("bias" in formula) == has(step, "rule")
            assert ("tanh" in formula) == has(step, "softcap")
            assert ("mask" in formula) == bool(step.operands["hidden"].value.any())
        if step.kind == "step.scores":
            rooted = step.operands["scale"].value == pytest.approx(step.operands["q"].shape[-1] ** -0.5)
            assert ("√d_k" in formula) == ("sqrt" in latex) == rooted
        if step.kind in ("step.embedded", "LayerNorm", "RMSNorm") and has(step, "token"):
            assert ("PE" in formula) == has(step, "position")
            assert ("SE" in formula) == has(step, "segment")
            assert ("√d" in formula) == (step.operands["scale"].value != 1)
        if step.kind.startswith("step.hidden"):
            assert "σ" not in formula


def test_a_scaled_residual_shows_its_factors() -> None:
    spec = put(put(language_model(), "layers.*.skip", 2.0), "layers.*.branch_scale", 0.5)
    found = trace(exact(spec), [4, 5, 6])["layers.0.stream"]
    assert written(found).formula == "x ← 2.000·x + 0.500·f(x)"
    assert written(trace(exact(language_model()), [4, 5])["layers.0.stream"]).formula == "x ← x + f(x)"


SPELT = {
    "W": ("W_",), "b": ("b_",), "W_down": ("FFN",), "W_up": ("W_up", "FFN"), "W_gate": ("W_gate", "FFN"),
    "f(x)": ("f(x)", "norm("), "table": ("bias",), "logits": ("y",), "x": ("x", "h", "norm"),
}  # fmt: skip
"""What stands in a formula for an operand whose own letter does not."""


@pytest.mark.parametrize("name", FAMILIES)
def test_an_operand_is_called_what_its_formula_calls_it(name: str) -> None:
    for step in made_of(name)[0]:
        for operand, value in step.operands.items():
            called = letter(step, operand)
            if value.source in ("step", "weight") and value.value is not None and called not in ("mask", "top"):
                formula = written(step).formula
                assert any(one in formula for one in (called, *SPELT.get(called, ()))), (step.path, operand, formula)
