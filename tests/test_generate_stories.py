"""A trained model of another project through the public functions: its published story, whatever the cache or batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import oneblock
from oneblock.weights import read_foreign
from test_weights_foreign import pieces_of, text_of

BOS, NEW = 1, 200
CACHES = (None, "growing", "static")


@pytest.fixture(scope="module")
def folder(shared_data: Path) -> Path:
    return shared_data / "weights-stories260K"


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return read_foreign(folder / "stories260K.bin")


@pytest.fixture(scope="module")
def story(model: Any) -> list[int]:
    found = oneblock.generate(model, [[BOS]], max_new_tokens=NEW)[0].tolist()
    assert found[0] == BOS
    return found


def test_the_published_story_is_written(story: list[int], folder: Path) -> None:
    published = (folder / "stories260K.md").read_text("utf-8").split("-t 0.0\n")[1].split("\n```")[0]
    text = text_of(story[1:], pieces_of(folder / "tok512.bin"))
    assert len(story) == 1 + NEW
    assert text == published[: len(text)]
    assert len(text) == 464


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("chunk", [None, 3])
def test_every_cache_and_every_way_to_read_a_prompt_give_it(
    model: Any, story: list[int], cache: Any, chunk: int | None
) -> None:
    for start in (1, 8):
        rest = len(story) - start if chunk is None else 40
        found = oneblock.generate(model, [story[:start]], max_new_tokens=rest, cache=cache, prefill_chunk=chunk)
        assert found[0].tolist() == story[: start + rest]
    assert found.dtype == torch.int64


def test_no_layer_has_a_window_so_none_can_roll(model: Any) -> None:
    with pytest.raises(ValueError, match='"rolling" is for windowed attention'):
        oneblock.generate(model, [[BOS]], cache="rolling")


@pytest.mark.parametrize("cache", CACHES)
def test_two_prompts_in_a_batch_are_each_alone(model: Any, story: list[int], cache: Any) -> None:
    other = [BOS, *story[40:52]]
    alone = [oneblock.generate(model, [prompt], max_new_tokens=NEW)[0, len(prompt) :] for prompt in ([BOS], other)]
    both = oneblock.generate(model, [[BOS], other], max_new_tokens=NEW, cache=cache)[:, len(other) :]
    for row, expected in zip(both, alone, strict=True):
        assert row[: len(expected)].tolist() == expected.tolist()
    assert both[0].tolist() == story[1:]


def test_one_beam_and_a_stream_are_the_story_too(model: Any, story: list[int]) -> None:
    assert list(oneblock.stream(model, [BOS], max_new_tokens=60)) == story[1:61]
    warm = oneblock.generate(model, [[BOS]], max_new_tokens=60, do_sample=True, temperature=0.0)
    assert warm[0].tolist() == story[:61]
