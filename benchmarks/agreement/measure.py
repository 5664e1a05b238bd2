"""One random model of the reference library against the same model in ours: the largest differences, and both saved.

ids: (batch, length); logits: (batch, length, vocab).
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers
from benchmarks.agreement.cases import VOCAB, Case, Draw
from torch import Tensor, nn

import oneblock
from oneblock.spec import MoE, walk

LENGTHS = (11, 6, 9)
"""Real tokens of each row."""
DEVIATION = 0.2
STEPS = 32
EARLY, PENALTIES = (False, True, "never"), (1.0, 0.0, 2.0, 0.6)
"""Rules of a beam search, one after the other over the configs."""
BATCHES = 16


def reference(case: Case, name: str, index: int) -> nn.Module:
    """A random model of the reference library, in eval mode, every parameter drawn anew."""
    torch.manual_seed(index)
    draw = Draw(index, case.family)
    config = getattr(transformers, case.config)(**case.draw(draw))
    config._attn_implementation = "eager"
    model = getattr(transformers, name)(config).eval()
    if case.after is not None:
        case.after(model, draw)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:  # fixed tables stay as they are
                parameter.normal_(std=DEVIATION)
    return model


def measure(case: Case, name: str, index: int, folder: Path) -> dict[str, float]:
    """Check -> largest difference (0 or 1 where tokens are equal or not; a ratio for bfloat16)."""
    kind = case.classes[name]
    theirs = reference(case, name, index)
    theirs.save_pretrained(folder / "theirs")
    ours = oneblock.load(folder / "theirs")
    found = plain(case, kind, theirs, ours)
    oneblock.save(ours, folder / "ours", format="hf", family=case.family)
    again, info = type(theirs).from_pretrained(folder / "ours", attn_implementation="eager", output_loading_info=True)
    found["keys missing or left over"] = float(sum(len(info[key]) for key in ("missing_keys", "unexpected_keys")))
    inputs = batch(case, kind, "right", theirs)
    with torch.no_grad():
        found["saved and opened"] = apart(answer(theirs, inputs), answer(again.eval(), inputs))
    found["same spec"] = float(oneblock.load(folder / "ours").spec != ours.spec)
    if kind in ("causal", "seq2seq"):
        found["greedy tokens"] = written(theirs, ours, max_new_tokens=STEPS, min_new_tokens=STEPS)
        rule = {"early_stopping": EARLY[index % 3], "length_penalty": PENALTIES[index % 4]}
        found["beam tokens"] = written(theirs, ours, max_new_tokens=STEPS // 2, num_beams=4, **rule)
    found["bfloat16 ratio"] = halves(case, kind, theirs, ours)
    return found


def plain(case: Case, kind: str, theirs: nn.Module, ours: nn.Module) -> dict[str, float]:
    """Logits without and with padding, loss and gradients."""
    found = {}
    for side in ("none", "right", "left"):
        if side == "left" and not leftward(case, kind):
            continue
        inputs = batch(case, kind, side, theirs)
        with torch.no_grad():
            a, b = answer(theirs, inputs), answer(ours, without(inputs, "position_ids"))
        found[f"logits, padding {side}"] = apart(a, b, real_of(kind, inputs, a, side))
    if kind in ("base", "encoder", "decoded"):
        return found
    inputs = batch(case, kind, "right", theirs)
    labels = labelled(kind, inputs)
    one = theirs(**inputs, labels=labels).loss
    two = ours(**without(inputs, "position_ids"), labels=labels).loss
    found["loss"] = abs(one.item() - two.item())
    one.backward()
    two.backward()
    found["gradients"] = gradients(theirs, ours)
    return found


def leftward(case: Case, kind: str) -> bool:
    """Whether padding on the left is compared: not where the reference takes what stands first, padding or not."""
    return case.positions != "none" and not (case.positions == "own" and kind == "classify")


def batch(case: Case, kind: str, side: str, theirs: nn.Module, seed: int = 7) -> dict[str, Tensor]:
    """Random ids and their mask, padded on a side; the reference is given positions where it does not count itself."""
    generator = torch.Generator().manual_seed(seed)
    lengths = LENGTHS if side != "none" else (max(LENGTHS),) * 3
    pad, width = theirs.config.pad_token_id or 0, max(lengths)
    ids, mask = torch.full((3, width), pad), torch.zeros(3, width, dtype=torch.long)
    for row, length in enumerate(lengths):
        at = slice(width - length, width) if side == "left" else slice(0, length)
        ids[row, at] = torch.randint(5, VOCAB, (length,), generator=generator)
        mask[row, at] = 1
        if kind == "classify" and theirs.config.is_encoder_decoder:
            ids[row, at.stop - 1] = theirs.config.eos_token_id  # whose place speaks for the text
    found = {"input_ids": ids, "attention_mask": mask}
    if side == "left" and case.positions == "given":
        found["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)
    if kind in ("seq2seq", "decoded"):
        found["decoder_input_ids"] = torch.randint(5, VOCAB, (3, 7), generator=generator)
    return found


def without(inputs: dict[str, Tensor], *names: str) -> dict[str, Tensor]:
    """The inputs without some."""
    return {name: x for name, x in inputs.items() if name not in names}


def answer(model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
    """What a model gives: logits, else the final stream with the pooled vector behind it.

    A bare decoder of the reference has no head; ours is its embedding.
    """
    out = model(**inputs)
    if out.get("logits") is not None if hasattr(out, "get") else out.logits is not None:
        return out.logits
    theirs = hasattr(out, "last_hidden_state")
    x = out.last_hidden_state if theirs else out.encoder_outputs.x
    if theirs and "decoder_input_ids" in inputs:
        return x @ model.shared.weight.mT
    pooled = getattr(out, "pooler_output", None) if theirs else out.pooled
    return x if pooled is None else torch.cat([x, pooled[:, None]], 1)


def real_of(kind: str, inputs: dict[str, Tensor], x: Tensor, side: str = "right") -> Tensor | None:
    """Which positions of an answer are to be compared: real tokens, and a pooled vector behind them.

    That vector is not compared under padding on the left: the reference takes the padding for the first token.
    """
    if kind in ("classify", "seq2seq", "decoded"):
        return None
    mask = inputs["attention_mask"].bool()
    return torch.cat([mask, mask.new_full((len(mask), x.shape[1] - mask.shape[1]), side != "left")], 1)


def apart(a: Tensor, b: Tensor, real: Tensor | None = None) -> float:
    """The largest difference, at real tokens."""
    return distances(a, b, real).max().item()


def distances(a: Tensor, b: Tensor, real: Tensor | None = None) -> Tensor:
    """All differences at real tokens, in a row."""
    far = (a.float() - b.float()).abs()
    return (far if real is None else far[real]).flatten()


def labelled(kind: str, inputs: dict[str, Tensor]) -> Tensor:
    """Labels for a loss, in the reference library's convention."""
    generator = torch.Generator().manual_seed(8)
    if kind == "classify":
        return torch.randint(0, 2, (3,), generator=generator)
    if kind == "seq2seq":
        return torch.randint(5, VOCAB, (3, 7), generator=generator)
    return inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)


def gradients(theirs: nn.Module, ours: nn.Module) -> float:
    """The largest difference of a gradient; theirs are written and read like weights, so that they have our names.

    What we train and they only keep (a buffer) is not compared.
    """
    slopes = deepcopy(theirs)
    with torch.no_grad():
        for copy, parameter in zip(slopes.parameters(), theirs.parameters(), strict=True):
            copy.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
        for kept in slopes.buffers():
            kept.copy_(torch.full_like(kept, torch.nan if kept.is_floating_point() else 0))
    with TemporaryDirectory() as folder:
        slopes.save_pretrained(folder)
        read = oneblock.load(folder)
    own = {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in ours.named_parameters()}
    return max(apart(slope, own[name]) for name, slope in read.named_parameters() if not slope.isnan().all())


@torch.no_grad()
def written(theirs: nn.Module, ours: nn.Module, **options: Any) -> float:
    """0 where both `generate` the same tokens for prompts of equal length, given the same choices."""
    ids = torch.randint(5, VOCAB, (2, 5), generator=torch.Generator().manual_seed(9))
    options |= {"do_sample": False, "pad_token_id": 0}
    theirs.generation_config.forced_eos_token_id = None
    expected = theirs.generate(ids, attention_mask=torch.ones_like(ids), **options)
    found = oneblock.generate(ours, ids, torch.ones_like(ids), **options)
    ends = theirs.generation_config.eos_token_id
    ends = set(ends if isinstance(ends, list) else [ends])
    return float(ended(found, ends) != ended(expected, ends))


def ended(rows: Tensor, ends: set[int]) -> list[list[int]]:
    """Rows up to their first end token behind the start; what fills them up is a matter of taste."""
    at = [next((i for i, token in enumerate(row) if i and token in ends), len(row)) for row in rows.tolist()]
    return [row[:stop] for row, stop in zip(rows.tolist(), at, strict=True)]


@torch.no_grad()
def halves(case: Case, kind: str, theirs: nn.Module, ours: nn.Module) -> float:
    """Our bfloat16 error against float32, as a multiple of the reference's own; over several batches.

    The largest of a few numbers, such as three texts' labels, would be a matter of luck; so would be the largest of
    all where experts that are nearly tied change places for a few tokens, in either library: there, nine in ten count.
    """
    inputs = [batch(case, kind, "right", theirs, seed) for seed in range(BATCHES * (6 if kind == "classify" else 1))]
    whole = [answer(theirs, one) for one in inputs]
    counted = 0.9 if any(isinstance(part, MoE) for _, part in walk(ours.spec)) else 1.0
    far = []
    for model in (ours.bfloat16(), theirs.bfloat16()):
        pairs = [distances(answer(model, one), x, real_of(kind, one, x)) for one, x in zip(inputs, whole, strict=True)]
        far.append(torch.cat(pairs).quantile(counted).item())
    return far[0] / max(far[1], 1e-6)
