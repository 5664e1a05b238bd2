"""Parameter groups by role: what decays and what never does."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from oneblock.bricks import build_model
from oneblock.spec import LayerNorm, RMSNorm
from oneblock.train.config import OptimizerPart
from oneblock.train.optimizer import make_optimizer, parameter_groups
from oneblock.zoo import named


def model() -> nn.Module:
    return build_model(named("vaswani", dim=8, depth=1, heads=2, hidden=16, vocab=20))


def test_B86_every_parameter_is_in_exactly_one_group() -> None:
    whole = model()
    groups = parameter_groups(whole, 0.1)
    listed = [id(parameter) for group in groups for parameter in group["params"]]
    assert sorted(listed) == sorted(map(id, whole.parameters()))
    assert len(set(listed)) == len(listed)


def test_B86_only_matrices_that_are_no_embeddings_decay() -> None:
    whole = model()
    names = {id(parameter): name for name, parameter in whole.named_parameters()}
    decayed = {names[id(parameter)] for parameter in parameter_groups(whole, 0.1)[0]["params"]}
    assert all(name.endswith("weight") and "norm" not in name and "embedding" not in name for name in decayed)
    assert "decoder.layers.0.attention.q.weight" in decayed
    assert not any(
        whole.decoder.head.out.weight is parameter for parameter in parameter_groups(whole, 0.1)[0]["params"]
    )


@pytest.mark.parametrize("name", ["ln_f", "layer_norm", "norm", "input_layernorm", "whatever"])
def test_B86_norms_stay_bit_equal_whatever_they_are_called(name: str) -> None:
    made = nn.ModuleDict({name: build_model(RMSNorm(), 4), "b": build_model(LayerNorm(), 4), "m": nn.Linear(4, 4)})
    optimizer = make_optimizer(made, OptimizerPart(lr=0.5, weight_decay=0.1))
    before = {key: value.clone() for key, value in made.state_dict().items()}
    for parameter in made.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    after = made.state_dict()
    assert torch.allclose(after["m.weight"], before["m.weight"] * (1 - 0.5 * 0.1))
    assert all(torch.equal(after[key], before[key]) for key in before if key != "m.weight")
