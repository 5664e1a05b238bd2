"""A family said as another one with changes: its arguments, its defaults, its keys."""

from __future__ import annotations

from inspect import signature

import pytest

from oneblock.zoo import named
from oneblock.zoo.family import table
from oneblock.zoo.hub import keys
from oneblock.zoo.like import changed, like, usual
from oneblock.zoo.llama import CONFIG, llama


def test_arguments_of_both_are_known_with_the_defaults_of_the_newer() -> None:
    @like(llama, heads=8)
    def newer(spec, cap=2.0):
        """A newer one."""
        return changed(spec, {"head.softcap": cap})

    known = signature(newer).parameters
    assert (known["heads"].default, known["dim"].default, known["cap"].default) == (8, 4096, 2.0)
    assert "spec" not in known
    assert newer.__name__ == "newer"
    assert newer(dim=64, depth=1).layers[0].attention.heads == 8
    assert newer(dim=64, depth=1, heads=4, cap=None) == llama(dim=64, depth=1, heads=4)


def test_a_usual_value_of_an_unknown_argument_is_refused() -> None:
    with pytest.raises(ValueError, match="like: llama has no argument 'head'"):
        like(llama, head=8)


def test_names_know_the_arguments_of_the_older_family() -> None:
    assert named("mistral", hidden=64).layers[0].feedforward.hidden == 64
    with pytest.raises(ValueError, match="mistral: no argument 'windw'; did you mean window"):
        named("mistral", windw=3)


def test_a_key_left_out_means_what_the_newer_family_says() -> None:
    newer = usual(CONFIG, rms_norm_eps=1e-5)
    assert (newer["rms_norm_eps"].default, CONFIG["rms_norm_eps"].default) == (1e-5, 1e-6)
    assert newer["hidden_size"] is CONFIG["hidden_size"]


def test_an_argument_that_the_newer_family_is_without_is_refused_and_keeps_its_usual_value() -> None:
    @like(llama, "tied", tied=True)
    def newer(spec):
        """A newer one."""
        return spec

    assert "tied" not in signature(newer).parameters
    assert newer(dim=64, depth=1, heads=4).head.tied
    with pytest.raises(TypeError, match="newer"):
        newer(tied=False)
    with pytest.raises(ValueError, match="like: llama has no argument 'head'"):
        like(llama, "tied head")


@pytest.mark.parametrize(("name", "kinds"), [("qwen2.5-7b", 1), ("gemma2-9b", 2), ("qwen3-30b-a3b", 1)])
def test_layers_that_are_equal_are_one_object(name: str, kinds: int) -> None:
    layers = named(name).layers
    assert len({id(block) for block in layers}) == len(set(layers)) == kinds


def test_a_table_needs_a_value_in_every_column() -> None:
    assert table("dim depth", {"a": (8, 2), "b": (16, 4)}, tied=True)["b"] == {"tied": True, "dim": 16, "depth": 4}
    with pytest.raises(ValueError, match="shorter"):
        table("dim depth", {"a": (8,)})


def test_a_shared_key_is_shown_where_the_stack_stands() -> None:
    spec = named("t5-3b")
    assert {word: key.written(spec) for word, key in keys("encoder.", d_model=1, d_kv=1, num_layers=1).items()} == {
        "d_model": 1024, "d_kv": 128, "num_layers": 24,
    }  # fmt: skip
    with pytest.raises(KeyError, match="hidden_sizes"):
        keys(hidden_sizes=4)
