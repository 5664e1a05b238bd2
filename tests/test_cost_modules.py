"""The closed form counts exactly the parameters, names and shapes of the module that is built from the same spec."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from oneblock.cost import parameters, parts
from oneblock.spec import Spec
from specs import specs

torch = pytest.importorskip("torch")
build = pytest.importorskip("oneblock.bricks")


@settings(max_examples=60, deadline=None)
@given(specs)
def test_closed_form_is_the_modules_count(spec: Spec) -> None:
    with torch.device("meta"):
        module = build.build_model(spec)
    assert parameters(spec) == sum(parameter.numel() for parameter in module.parameters())


@settings(max_examples=60, deadline=None)
@given(specs)
def test_every_tensor_has_the_name_and_shape_that_its_part_says(spec: Spec) -> None:
    with torch.device("meta"):
        module = build.build_model(spec)
    ours = {
        f"{part.path}.{name}": shape
        for part in parts(spec)
        for name, shape in part.tensors.items()
        if name not in part.shared
    }
    assert ours == {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}
