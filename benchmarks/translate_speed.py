"""How fast is beam search? `python -m benchmarks.translate_speed --size tiny`.

Our beam search and the `generate` of transformers' Marian, both with beam 4 and the same random weights, translate the
same random sentences, taking turns: all in one batch, and, as a first attempt often does, one call per sentence. A
translation can end only at its longest length, so everyone writes the same number of tokens. First it is checked that
both compute the same logits, and counted how many translations are the same.
"""

from __future__ import annotations

import argparse
import copy
import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from benchmarks import peers
from benchmarks.contest import Contender, ceilings, contest, machine, report, rows
from torch import Tensor, nn
from transformers import MarianMTModel

from oneblock.generate import Seq2SeqStepper, beam_search

ROUNDS = {"small": 3, "tiny": 7, "base": 3}
TOLERANCE = 1e-4
OURS, HALF, MARIAN = "oneblock", "oneblock bfloat16", "Marian"

Sentences = tuple[Tensor, Tensor]
"""Source ids and attention mask, both (batch, length)."""
Search = Callable[[Sentences], list[tuple[int, ...]]]


def parser() -> argparse.ArgumentParser:
    """What can be chosen."""
    found = argparse.ArgumentParser(prog="python -m benchmarks.translate_speed", description=__doc__)
    found.add_argument("--size", choices=peers.SIZES, default="tiny")
    found.add_argument("--rounds", type=int, help="turns of each contender (default: 7 for tiny, 3 for base)")
    found.add_argument("--sentences", type=int, default=32, help="in the batch")
    found.add_argument("--alone", type=int, default=6, help="of these, how many in calls of their own")
    found.add_argument("--length", type=int, default=20, help="tokens of each translation")
    found.add_argument("--beam", type=int, default=4)
    found.add_argument("--vocab", type=int, default=6000)
    found.add_argument("--threads", type=int, default=1)
    found.add_argument("--json", metavar="FILE", help='also write the result as JSON; "-": print JSON only')
    return found


def sources(count: int, vocab: int) -> Sentences:
    """Random sentences of 5 to 25 tokens, padded."""
    rng = random.Random(0)
    found = [[*rng.choices(range(3, vocab), k=rng.randint(4, 24)), peers.EOS] for _ in range(count)]
    longest = max(map(len, found))
    ids = torch.tensor([row + [peers.PAD] * (longest - len(row)) for row in found])
    return ids, torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in found])


def our_search(model: nn.Module, beam: int, length: int) -> Search:
    """What `Translator` does once the text is tokens."""

    @torch.inference_mode()
    def search(sentences: Sentences) -> list[tuple[int, ...]]:
        stepper = Seq2SeqStepper(model, model.encode(*sentences))
        found = beam_search(stepper, len(sentences[0]), start=peers.PAD, eos=peers.EOS, beam=beam, max_length=length)
        return [best[0].tokens for best in found]

    return search


def marian_search(model: MarianMTModel, beam: int, length: int) -> Search:
    """What its documentation shows."""

    @torch.inference_mode()
    def search(sentences: Sentences) -> list[tuple[int, ...]]:
        found = model.generate(
            sentences[0], attention_mask=sentences[1], num_beams=beam, max_new_tokens=length, min_new_tokens=length,
            do_sample=False,
        )  # fmt: skip
        return [tuple(row) for row in found[:, 1:].tolist()]

    return search


def one_by_one(search: Search) -> Search:
    """A call of its own for each sentence, without its padding."""

    def searches(sentences: Sentences) -> list[tuple[int, ...]]:
        lengths = sentences[1].sum(1).tolist()
        alone = [tuple(part[i : i + 1, :length] for part in sentences) for i, length in enumerate(lengths)]
        return [search(sentence)[0] for sentence in alone]

    return searches


def turn(search: Search, sentences: Sentences) -> Callable[[int], int]:
    """Translate, and count tokens."""
    return lambda _: sum(map(len, search(sentences)))


@torch.no_grad()
def check(ours: nn.Module, marian: MarianMTModel, searches: dict[str, Search], sentences: Sentences) -> dict[str, Any]:
    """The largest difference of logits, and how many translations are the same. Raises if they do not compute alike."""
    target = torch.randint(3, marian.config.vocab_size, (len(sentences[0]), 12))
    theirs = marian(input_ids=sentences[0], attention_mask=sentences[1], decoder_input_ids=target).logits
    apart = ours(*sentences, decoder_input_ids=target).logits - theirs
    difference = apart[..., peers.EOS + 1 :].abs().max().item()  # what must not be written has logits of -10,000
    if difference > TOLERANCE:
        raise RuntimeError(f"the contenders do not compute the same: logits differ by {difference}")
    mine, others = (searches[name](sentences) for name in (OURS, MARIAN))
    same = sum(a == b for a, b in zip(mine, others, strict=True))
    if {len(row) for row in mine + others} != {len(mine[0])}:
        raise RuntimeError("the contenders do not write the same number of tokens")
    return {"logits of Marian": difference, "same translations": f"{same} of {len(mine)}"}


def run(options: argparse.Namespace) -> dict[str, Any]:
    """The whole contest."""
    torch.manual_seed(0)
    size, together = peers.SIZES[options.size], sources(options.sentences, options.vocab)
    marian = peers.marian(size, options.vocab).eval()
    ours = peers.as_ours(marian, size, no_end=True).eval()
    searches = {
        OURS: our_search(ours, options.beam, options.length),
        HALF: our_search(copy.deepcopy(ours).bfloat16(), options.beam, options.length),
        MARIAN: marian_search(marian, options.beam, options.length),
    }
    checked = check(ours, marian, searches, together)
    few = tuple(part[: options.alone] for part in together)
    contenders = [Contender(name, turn(search, together)) for name, search in searches.items()]
    contenders += [
        Contender(f"{name}, one call per line", turn(one_by_one(searches[name]), few)) for name in (OURS, MARIAN)
    ]
    before = ceilings()
    found = contest(contenders, options.rounds or ROUNDS[options.size])
    return {
        "benchmark": "translate_speed",
        "machine": machine(),
        "size": {"name": options.size, **vars(size), "vocab": options.vocab},
        "work": {name: getattr(options, name) for name in ("sentences", "alone", "length", "beam")},
        "ceilings": {"before": before, "after": ceilings()},
        "check": checked,
        "base": MARIAN,
        "memory": False,
        "contenders": rows(found, MARIAN),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, print, write."""
    options = parser().parse_args(arguments)
    torch.set_num_threads(options.threads)
    report(run(options), options.json)


if __name__ == "__main__":
    main()
