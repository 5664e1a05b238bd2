"""Planted faults of the loss: labels that are shifted wrongly, pads that count, means of means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from check_corpus.altered import called, labelled, rows_alone, with_loss
from check_corpus.padding import host
from check_corpus.plant import Mutant, written

GPT_LOSS = (
    "parts = F.cross_entropy(\n"
    '                logits[:, :-1].reshape(-1, logits.shape[-1]), goal, ignore_index=-100, reduction="sum"\n'
    "            )\n"
    "            loss = parts / count"
)


def gpt(*pairs: tuple[str, str]) -> nn.Module:
    """The small language model with other words in it."""
    return written("gpt", "TinyGPT", *pairs)()


def moved(labels: Tensor, by: int) -> Tensor:
    """Labels moved along their texts."""
    return labels.roll(by, 1)


def decoder_input(name: str, make: Callable[[Tensor], Tensor]) -> nn.Module:
    """A translator that makes its decoder's input in another way."""

    def call(forward: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
        if kwargs.get("labels") is not None and kwargs.get("decoder_input_ids") is None:
            kwargs["decoder_input_ids"] = make(kwargs["labels"])
        return forward(**kwargs)

    return called(host(name), call)


def begun(labels: Tensor, start: int, by: int = 1) -> Tensor:
    """The start, then the labels."""
    kept = labels[:, : labels.shape[1] - by]
    return torch.cat([torch.full_like(labels[:, :by], start), kept], 1)


def real(labels: Tensor) -> Tensor:
    """No -100."""
    return labels.clamp_min(0)


def unless_empty(forward: Any, kwargs: dict[str, Any], out: Any) -> Tensor:
    """The loss, nan where no label counts."""
    del forward
    return out.loss / (kwargs["labels"][:, 1:] >= 0).any().to(out.loss).where((kwargs["labels"] >= 0).any(), torch.nan)


def over_all(forward: Any, kwargs: dict[str, Any], out: Any) -> Tensor:
    """The sum divided by the number of places, counted or not."""
    del forward
    labels = kwargs["labels"]
    return out.loss * (labels >= 0).sum() / labels.numel()


LOSS = [
    Mutant(
        "shifted twice", "gpt", "label-shift", "labels.shift",
        lambda: gpt(("labels[:, 1:]", "labels[:, 2:]"), ("logits[:, :-1]", "logits[:, :-2]")),
    ),
    Mutant("not shifted", "gpt", "label-shift", "labels.unshifted",
           lambda: gpt(("labels[:, 1:]", "labels"), ("logits[:, :-1]", "logits"))),
    Mutant(
        "shifted across texts", "gpt", "label-shift", "labels.rows",
        lambda: gpt(("labels[:, 1:].reshape(-1)", "labels.reshape(-1)[1:]"),
                    ("logits[:, :-1].reshape(-1, logits.shape[-1])", "logits.reshape(-1, logits.shape[-1])[:-1]")),
    ),
    Mutant("shifted twice", "hf gpt2", "label-shift", "labels.shift",
           lambda: labelled(host("hf gpt2"), lambda x: moved(x, -1))),
    Mutant("shifted twice", "our llama", "label-shift", "labels.shift",
           lambda: labelled(host("our llama"), lambda x: moved(x, -1))),
    Mutant("shifted backwards", "hf marian", "label-shift", "labels.shift",
           lambda: labelled(host("hf marian"), lambda x: moved(x, 1))),
    Mutant("shifted in an encoder", "our bert", "label-shift", "labels.shift",
           lambda: labelled(host("our bert"), lambda x: moved(x, -1))),
    Mutant("ignored labels become a token", "gpt", "loss-padding", "loss.pads",
           lambda: gpt(("labels[:, 1:].reshape(-1)", "labels[:, 1:].reshape(-1).clamp_min(0)"))),
    Mutant("ignored labels become a token", "hf llama", "loss-padding", "loss.pads",
           lambda: labelled(host("hf llama"), real)),
    Mutant("ignored labels become a token", "hf t5", "loss-padding", "loss.pads",
           lambda: labelled(host("hf t5"), real)),
    Mutant("mean over ignored labels", "gpt", "loss-padding", "loss.diluted",
           lambda: gpt(("(goal != -100).sum().clamp_min(1)", "goal.numel()"))),
    Mutant("mean over ignored labels", "hf t5", "loss-padding", "loss.diluted",
           lambda: with_loss(host("hf t5"), over_all)),
    Mutant("mean over ignored labels", "our vaswani", "loss-padding", "loss.diluted",
           lambda: with_loss(host("our vaswani"), over_all)),
    Mutant("no label is ignored", "gpt", "loss-padding", "loss.noignore",
           lambda: gpt(("ignore_index=-100", "ignore_index=-7"),
                       ("(goal != -100)", "(goal != goal.clamp_min(0).neg())"),
                       ("goal = labels[:, 1:].reshape(-1)", "goal = labels[:, 1:].reshape(-1)\n"
                        "            assert int(goal.min()) > 0"))),
    Mutant(
        "mean of the texts' means", "gpt", "loss-mean", "loss.weighting",
        lambda: gpt((GPT_LOSS, GPT_LOSS.replace('"sum"', '"none"').replace(
            "parts / count", "(parts.view(len(labels), -1).sum(1) / "
            "(labels[:, 1:] != -100).sum(1).clamp_min(1)).mean()"))),
    ),
    Mutant("mean of the texts' means", "hf gpt2", "loss-mean", "loss.weighting",
           lambda: with_loss(host("hf gpt2"), rows_alone)),
    Mutant("mean of the texts' means", "our vaswani", "loss-mean", "loss.weighting",
           lambda: with_loss(host("our vaswani"), rows_alone)),
    Mutant("nan when nothing is labelled", "gpt", "loss-nothing", "loss.nothing",
           lambda: gpt(("(goal != -100).sum().clamp_min(1)", "(goal != -100).sum()"))),
    Mutant("nan when nothing is labelled", "our llama", "loss-nothing", "loss.nothing",
           lambda: with_loss(host("our llama"), unless_empty)),
    Mutant("nan when nothing is labelled", "our vaswani", "loss-nothing", "loss.nothing",
           lambda: with_loss(host("our vaswani"), unless_empty)),
    Mutant("the last label wraps round", "hf marian", "right-shift", "shift.wraps",
           lambda: decoder_input("hf marian", lambda x: real(moved(x, 1)))),
    Mutant("another start", "hf marian", "right-shift", "shift.start",
           lambda: decoder_input("hf marian", lambda x: begun(real(x), 7))),
    Mutant("labels fed as they are", "hf marian", "right-shift", "shift.leak",
           lambda: decoder_input("hf marian", real)),
    Mutant("labels fed as they are", "our vaswani", "right-shift", "shift.leak",
           lambda: decoder_input("our vaswani", real)),
    Mutant("shifted twice", "our vaswani", "right-shift", "shift.far",
           lambda: decoder_input("our vaswani", lambda x: begun(real(x), 1, 2))),
    Mutant("shifted twice", "hf t5", "right-shift", "shift.far",
           lambda: decoder_input("hf t5", lambda x: begun(real(x), 0, 2))),
    Mutant("-100 fed to the decoder", "hf marian", "right-shift", "shift.index",
           lambda: decoder_input("hf marian", lambda x: begun(x, 0))),
    Mutant("-100 fed to the decoder", "our vaswani", "right-shift", "shift.index",
           lambda: decoder_input("our vaswani", lambda x: begun(x, 1))),
    Mutant("the end ignored as padding", "hf gpt2", "loss-end", "labels.end",
           lambda: labelled(host("hf gpt2"), lambda x: x.masked_fill(x == 0, -100))),
    Mutant("the end ignored as padding", "hf llama", "loss-end", "labels.end",
           lambda: labelled(host("hf llama"), lambda x: x.masked_fill(x == 2, -100))),
]  # fmt: skip
