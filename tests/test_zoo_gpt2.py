"""The decoder alone: sizes, published configs and weights, matrices that lie on their side."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import oneblock
from oneblock.spec import get, put
from oneblock.zoo import FAMILIES, named
from oneblock.zoo.config import read_config, write_config
from published import counts, reads_as, same_in_the_reference

PUBLISHED = {
    "gpt2": 124_439_808, "gpt2-medium": 354_823_168, "gpt2-large": 774_030_080, "gpt2-xl": 1_557_611_200,
}  # fmt: skip
CONFIG = {
    "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256,
    "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
    "model_type": "gpt2", "n_ctx": 1024, "n_embd": 1600, "n_head": 25, "n_layer": 48, "n_positions": 1024,
    "output_past": True, "resid_pdrop": 0.1, "summary_activation": None, "summary_first_dropout": 0.1,
    "summary_proj_to_labels": True, "summary_type": "cls_index", "summary_use_proj": True,
    "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}}, "vocab_size": 50257,
}  # fmt: skip
TINY = {"dim": 16, "depth": 3, "heads": 4, "vocab": 53, "length": 32}


@pytest.mark.parametrize(("size", "published"), PUBLISHED.items())
def test_sizes_are_the_published_ones(size: str, published: int) -> None:
    counts(size, published)


def test_the_reference_counts_the_same() -> None:
    same_in_the_reference("gpt2")


def test_a_published_config_is_the_named_spec() -> None:
    reads_as(CONFIG, "gpt2-xl")


@pytest.mark.parametrize(("scaled", "falling"), [(True, False), (False, False), (True, True), (False, True)])
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("heads", [4, 16])
def test_what_scores_are_divided_by_is_written_and_read(scaled: bool, falling: bool, depth: int, heads: int) -> None:
    spec = named("gpt2", scaled=scaled, falling=falling, **(TINY | {"depth": depth, "heads": heads}))
    usual = (16 // heads) ** -0.5 if scaled else 1.0
    expected = [usual / (i + 1 if falling else 1) for i in range(depth)]
    if not scaled or falling:
        assert [block.attention.scale for block in spec.layers] == expected
    else:
        assert get(spec, "layers.0.attention.scale") is None
    assert read_config(write_config(spec, FAMILIES, "gpt2")[2], FAMILIES)[2] == spec


def test_a_model_with_other_scores_is_not_of_this_family() -> None:
    with pytest.raises(ValueError, match="spec: is not exactly a gpt2"):
        write_config(put(named("gpt2", **TINY), "layers.*.attention.scale", 0.3), FAMILIES, "gpt2")


def test_published_weights_are_read_and_agree_with_the_reference(shared_data: Path) -> None:
    folder = shared_data / "weights-tiny-gpt2"
    model = oneblock.load(folder)
    assert sum(p.numel() for p in model.parameters()) == oneblock.parameters(model.spec) == 102_714
    transformers = pytest.importorskip("transformers", reason="the reference library is not installed")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = torch.randint(0, 50_257, (2, 40))
    with torch.no_grad():
        assert (theirs(ids).logits - model(ids).logits).abs().max() < 1e-6


def tiny(folder: Path) -> torch.nn.Module:
    model = oneblock.build(named("gpt2", **TINY)).eval()
    oneblock.save(model, folder, format="hf", family="gpt2")
    return model


def test_matrices_lie_on_their_side_and_three_are_one(tmp_path: Path) -> None:
    model = tiny(tmp_path)
    theirs = load_file(tmp_path / "model.safetensors")
    attention = model.layers[1].attention
    assert theirs["transformer.h.1.mlp.c_fc.weight"].shape == (16, 64)
    assert torch.equal(theirs["transformer.h.1.attn.c_attn.weight"][:, 16:32], attention.k.weight.mT)
    assert torch.equal(theirs["transformer.h.1.attn.c_attn.bias"][32:], attention.v.bias)


def test_files_of_the_bare_model_and_masks_in_old_files_are_read(tmp_path: Path) -> None:
    """The published files leave "transformer." out, and hold the causal mask of each layer."""
    model = tiny(tmp_path / "new")
    tensors = load_file(tmp_path / "new" / "model.safetensors")
    old = {name.removeprefix("transformer."): x for name, x in tensors.items()}
    old |= {f"h.{i}.attn.{name}": torch.ones(1, 1, 32, 32).tril() for i in range(3) for name in ("bias", "masked_bias")}
    (tmp_path / "old").mkdir()
    save_file(old | {"lm_head.weight": old["wte.weight"].clone()}, tmp_path / "old" / "model.safetensors")
    shutil.copy(tmp_path / "new" / "config.json", tmp_path / "old")
    again = oneblock.load(tmp_path / "old").state_dict()
    assert all(torch.equal(x, again[name]) for name, x in model.state_dict().items())


def test_what_is_not_understood_is_refused(tmp_path: Path) -> None:
    tiny(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    for key, value, said in (
        ("add_cross_attention", True, "add_cross_attention: expected False"),
        ("n_inners", 3, "n_inners: not understood, .* did you mean n_inner"),
        ("activation_function", "gelu_nev", "did you mean gelu_new"),
        ("architectures", ["GPT2DoubleHeadsModel"], "architectures: 'GPT2DoubleHeadsModel' is no class of gpt2"),
    ):
        with pytest.raises(ValueError, match=said):
            read_config(config | {key: value}, FAMILIES)
