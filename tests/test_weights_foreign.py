"""Models of other projects without a config.json: recognised, sized by their shapes, and computing the same numbers."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.testing import assert_close

import oneblock
from foreign import shake
from oneblock.spec import Head, Rope, put
from oneblock.weights import read_foreign, unique
from oneblock.zoo.authors import HEADER
from oneblock.zoo.foreign import LAYOUTS

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6], [2, 7, 1, 8, 2, 8, 1, 8]])
NAMES = {
    "embedding.token": "tok_embeddings", "norm": "norm", "head.out": "output", "attention.q": "attention.wq",
    "attention.k": "attention.wk", "attention.v": "attention.wv", "attention.out": "attention.wo",
    "feedforward.gate": "feed_forward.w1", "feedforward.down": "feed_forward.w2", "feedforward.up": "feed_forward.w3",
    "norms.attention_pre": "attention_norm", "norms.feedforward_pre": "ffn_norm",
}  # fmt: skip


def authors(kv_heads: int | None = 2, **arguments: Any) -> tuple[nn.Module, dict[str, Tensor]]:
    """A model that turns neighbours, as the authors' code does, and its tensors under their names."""
    arguments = {"dim": 16, "depth": 2, "heads": 4, "hidden": 24, "vocab": 12, "eps": 1e-5, "length": None} | arguments
    spec = oneblock.named("llama", kv_heads=kv_heads, **arguments)
    model = oneblock.build(put(spec, "layers.*.attention.position", Rope(layout="interleaved"))).eval()
    shake(model)
    named = {}
    for name, x in unique(model).items():
        module = name.removesuffix(".weight")
        at = module.split(".")[:2] if module.startswith("layers.") else []
        named[".".join([*at, NAMES[".".join(module.split(".")[len(at) :])], "weight"])] = x
    return model, named


def logits(model: nn.Module) -> Tensor:
    with torch.no_grad():
        return model(IDS).logits


def params(folder: Path, **more: Any) -> None:
    sizes = {"dim": 16, "n_layers": 2, "n_heads": 4, "vocab_size": -1, "multiple_of": 8, "norm_eps": 1e-5} | more
    (folder / "params.json").write_text(json.dumps(sizes), encoding="utf-8")


@pytest.mark.parametrize("kv_heads", [None, 2, 1])
@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("files", [1, 2])
def test_the_authors_layout_that_turns_neighbours(tmp_path: Path, kv_heads: int | None, rows: int, files: int) -> None:
    model, tensors = authors(kv_heads)
    params(tmp_path)
    for part in range(files):
        held = {"rope.freqs": torch.ones(2)}
        for name, x in tensors.items():
            axis = rows if "tok_" in name else int(".wo." in name or ".w2." in name)
            held[name] = (x if x.ndim == 1 else x.chunk(files, axis)[part]).contiguous()
        save_file(held, tmp_path / f"consolidated.{part:02}.safetensors")
    again = oneblock.load(tmp_path)
    usual = {"dim": 16, "depth": 2, "heads": 4, "hidden": 24, "vocab": 12, "eps": 1e-5, "length": None}
    assert again.spec == oneblock.named("llama", kv_heads=kv_heads, **usual)
    assert_close(logits(again), logits(model), rtol=1e-5, atol=1e-6)


def test_the_authors_later_files_stretch_positions(tmp_path: Path) -> None:
    _, tensors = authors(vocab=128_256)
    save_file(tensors, tmp_path / "consolidated.00.safetensors")
    params(tmp_path, n_kv_heads=2, rope_theta=500_000.0, use_scaled_rope=True)
    spec = oneblock.load(tmp_path).spec
    usual = {"dim": 16, "depth": 2, "heads": 4, "kv_heads": 2, "hidden": 24, "length": None}
    assert spec == oneblock.named("llama3.1-8b", **usual)
    params(tmp_path, n_kv_heads=4)
    with pytest.raises(ValueError, match="kv_heads: the shapes show 2, got 4"):
        oneblock.load(tmp_path)
    params(tmp_path, window=4)
    with pytest.raises(ValueError, match="window: not understood"):
        oneblock.load(tmp_path)


def text_of(ids: list[int], pieces: list[bytes]) -> str:
    """Ids behind the first one as a flat file's own tokenizer writes them: no space at the start, bytes by number."""
    found = [pieces[at] for at in ids]
    found[0] = found[0].removeprefix(b" ")
    whole = [bytes([int(p[3:5], 16)]) if len(p) == 6 and p.startswith(b"<0x") else p for p in found]
    return b"".join(whole).decode("utf-8")


def pieces_of(path: Path) -> list[bytes]:
    """The vocabulary in a tokenizer file: after one integer, for each piece a score, a length and its bytes."""
    raw, at, found = path.read_bytes(), 4, []
    while at < len(raw):
        _, length = struct.unpack_from("<fi", raw, at)
        found.append(raw[at + 8 : at + 8 + length])
        at += 8 + length
    return found


def test_a_flat_file_writes_its_published_story_to_the_last_character(shared_data: Path) -> None:
    folder = shared_data / "weights-stories260K"
    model = oneblock.load(folder / "stories260K.bin")
    assert sum(p.numel() for p in model.parameters()) == oneblock.parameters(model.spec) == 260_032
    assert (model.spec.tokens.bos, model.spec.length, model.spec.head) == (1, 512, Head(tied=True))
    ids, step, cache = [], torch.tensor([[1]]), None
    with torch.no_grad():
        for _ in range(256):
            out = model(step, cache=cache, use_cache=True)
            cache, step = out.cache, out.logits[:, -1:].argmax(-1)
            ids.append(int(step))
    published = (folder / "stories260K.md").read_text(encoding="utf-8").split("-t 0.0\n")[1].split("\n```")[0]
    pieces = pieces_of(folder / "tok512.bin")
    assert text_of(ids, pieces) == published
    assert text_of(ids[:200], pieces) == published[:464]


@pytest.mark.parametrize("tied", [True, False])
def test_a_flat_file_is_read_whole_or_not_at_all(tmp_path: Path, tied: bool) -> None:
    model, named = authors(tied=tied, length=8)
    order = ["attention_norm", "attention.wq", "attention.wk", "attention.wv", "attention.wo", "ffn_norm"]
    order += ["feed_forward.w1", "feed_forward.w2", "feed_forward.w3"]
    layers = [named[f"layers.{i}.{name}.weight"] for name in order for i in range(2)]
    first, last = (
        [named["tok_embeddings.weight"], *layers, named["norm.weight"]],
        [] if tied else [named["output.weight"]],
    )
    head = struct.pack(f"<{len(HEADER)}i", 16, 24, 2, 4, 2, 12 if tied else -12, 8)
    angles = torch.zeros(8 * 4)
    whole = head + b"".join(x.numpy().tobytes() for x in (*first, angles, *last))
    path = tmp_path / "model.bin"
    path.write_bytes(whole)
    assert_close(logits(oneblock.load(path)), logits(model), rtol=1e-5, atol=1e-6)
    path.write_bytes(whole[:-4])
    with pytest.raises(ValueError, match=r"model\.bin"):
        oneblock.load(path)


class SmallNorm(nn.Module):
    def __init__(self, dim: int, bias: bool) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class SmallLayer(nn.Module):
    """A block as one-page projects write it: one matrix for q, k, v; (outputs, inputs)."""

    def __init__(self, dim: int, heads: int, bias: bool) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = SmallNorm(dim, bias), SmallNorm(dim, bias)
        shapes = {"c_attn": (dim, 3 * dim), "c_proj": (dim, dim)}
        self.attn = nn.ModuleDict({name: nn.Linear(*shape, bias=bias) for name, shape in shapes.items()})
        shapes = {"c_fc": (dim, 4 * dim), "c_proj": (4 * dim, dim)}
        self.mlp = nn.ModuleDict({name: nn.Linear(*shape, bias=bias) for name, shape in shapes.items()})

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.attn["c_attn"](self.ln_1(x)).chunk(3, -1)
        )
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        scores = (q @ k.mT / math.sqrt(k.shape[-1])).masked_fill(future, -math.inf)
        x = x + self.attn["c_proj"]((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x))))


class Small(nn.Module):
    """The one-page model."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(11, 16), "wpe": nn.Embedding(9, 16),
                "h": nn.ModuleList(SmallLayer(16, 4, bias) for _ in range(2)), "ln_f": SmallNorm(16, bias),
            }
        )  # fmt: skip
        self.lm_head = nn.Linear(16, 11, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.transformer["wte"](ids) + self.transformer["wpe"](torch.arange(ids.shape[1]))
        for layer in self.transformer["h"]:
            x = layer(x)
        return self.lm_head(self.transformer["ln_f"](x))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("prefix", ["", "_orig_mod.", "module._orig_mod."])
def test_the_one_page_layout(tmp_path: Path, bias: bool, prefix: str) -> None:
    theirs = Small(bias)
    shake(theirs)
    held = {prefix + name: x.detach().clone() for name, x in theirs.state_dict().items()}
    held[f"{prefix}transformer.h.0.attn.bias"] = torch.ones(1, 1, 9, 9).tril()  # a mask in old files, no bias
    path = tmp_path / "ckpt.safetensors"
    save_file(held, path)
    ours = read_foreign(path, heads=4)
    assert (ours.spec.length, len(ours.spec.layers), ours.spec.embedding.vocab) == (9, 2, 11)
    assert_close(logits(ours), theirs(IDS).detach(), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="heads: no shape shows it; give heads="):
        oneblock.load(path)
    said = {"n_layer": 2, "n_head": 4, "n_embd": 16, "block_size": 9, "bias": bias, "vocab_size": 11, "dropout": 0.1}
    path.with_suffix(".json").write_text(json.dumps(said), encoding="utf-8")
    again = oneblock.load(path)
    assert again.spec.layers[0].dropout == again.spec.embedding.dropout == 0.1
    assert torch.equal(logits(again), logits(ours))
    oneblock.save(again, tmp_path / "ours")
    assert torch.equal(logits(oneblock.load(tmp_path / "ours")), logits(ours))


def test_a_head_that_is_not_the_embedding_is_refused(tmp_path: Path) -> None:
    held = {name: x.detach().clone() for name, x in Small(True).state_dict().items()}
    held["lm_head.weight"] += 1
    save_file(held, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"lm_head\.weight differs"):
        read_foreign(tmp_path, heads=4)


def test_what_is_not_understood_is_said_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"weight": torch.ones(2, 2)}, path)
    with pytest.raises(ValueError, match=r"no tensors named as in a layout we know \(meta, nano, torch\)"):
        read_foreign(path)
    with pytest.raises(ValueError, match=r"layout: 'nanno' is none we know; did you mean nano\?"):
        read_foreign(path, "nanno")
    with pytest.raises(ValueError, match="expected a file or a folder of tensors, found nothing there"):
        read_foreign(tmp_path / "b.safetensors", "nano")
    save_file({name: x.clone() for name, x in authors()[1].items()}, path)
    with pytest.raises(ValueError, match=r"head is no size of layout 'meta'; did you mean heads\?"):
        read_foreign(path, head=4)
    held = {name: x.clone() for name, x in authors()[1].items()}
    del held["layers.1.attention.wo.weight"]
    save_file(held, path)
    with pytest.raises(ValueError, match=r"layers\.1\.attention\.wo\.weight is missing"):
        read_foreign(path, heads=4)
    save_file(authors()[1] | {"layers.0.attention.extra.weight": torch.ones(1)}, path)
    with pytest.raises(ValueError, match=r"layers\.0\.attention\.extra\.weight is not read by anything"):
        read_foreign(path, heads=4)


def test_every_layout_says_what_may_be_given() -> None:
    for layout in LAYOUTS.values():
        assert "heads" in layout.sizes
        assert set(layout.words.values()) <= set(layout.sizes)
