"""Torch's own encoders and decoders in files without a config.json: read, and computing the same numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.testing import assert_close

from foreign import Translator, shake
from oneblock.bricks import Context, Memory
from oneblock.mask import places
from oneblock.spec import Causal, Full
from oneblock.weights import read_foreign

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6], [2, 7, 1, 8, 2, 8, 1, 8]])


def file_of(module: nn.Module, path: Path) -> Path:
    save_file({name: x.detach().clone() for name, x in module.state_dict().items()}, path)
    return path


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_torchs_transformer_with_what_is_around_it(tmp_path: Path, first: bool, bias: bool) -> None:
    options = {"d_model": 16, "nhead": 4, "num_encoder_layers": 2, "num_decoder_layers": 3, "dim_feedforward": 24}
    theirs = Translator(11, **options, norm_first=first, bias=bias, activation="gelu")
    shake(theirs)
    path = file_of(theirs, tmp_path / "model.safetensors")
    around = {"source": "source", "target": "target", "head": "head"}
    ours = read_foreign(path, heads=4, activation="gelu", wiring="pre" if first else "post", **around)
    hidden = torch.arange(8) >= torch.tensor([[8], [5]])
    with torch.no_grad():
        expected = theirs(IDS, IDS.flip(1), hidden, None)
        got = ours(IDS, attention_mask=~hidden, decoder_input_ids=IDS.flip(1)).logits
    assert_close(got, expected, rtol=1e-5, atol=1e-5)
    assert (ours.spec.share, len(ours.spec.decoder.layers)) == (False, 3)


@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize("causal", [True, False])
def test_torchs_encoder_alone_reads_vectors(tmp_path: Path, final: bool, causal: bool) -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 24, batch_first=True)
    norm = nn.LayerNorm(16) if final else None
    theirs = nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False).eval()
    shake(theirs)
    ours = read_foreign(file_of(theirs, tmp_path / "a.safetensors"), "torch", heads=4, causal=causal)
    x = torch.randn(2, 7, 16)
    future = torch.ones(7, 7, dtype=torch.bool).triu(1) if causal else None
    with torch.no_grad():
        assert_close(ours(inputs_embeds=x).encoder_outputs.x, theirs(x, mask=future), rtol=1e-5, atol=1e-5)
    assert ours.spec.layers[0].attention.mask == (Causal() if causal else Full())


def test_torchs_decoder_alone_looks_back_at_a_memory(tmp_path: Path) -> None:
    theirs = nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4, 24, batch_first=True), 2).eval()
    shake(theirs)
    ours = read_foreign(file_of(theirs, tmp_path / "a.safetensors"), heads=4)
    x, memory = torch.randn(2, 7, 16), torch.randn(2, 5, 16)
    ctx = Context(places(7), Memory(memory, places(5)))
    with torch.no_grad():
        expected = theirs(x, memory, tgt_mask=torch.ones(7, 7, dtype=torch.bool).triu(1))
        assert_close(ours.stream(None, ctx, vectors=x)[0], expected, rtol=1e-5, atol=1e-5)
