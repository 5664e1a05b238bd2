"""The page of a trace: nothing breaks out of it, nothing leaves it, its numbers are the exercise's."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from oneblock.explain import trace
from oneblock.explain.page import page, page_of_two
from oneblock.explain.page.formula import ATTRIBUTES, ELEMENTS, math
from oneblock.explain.page.picture import picture
from oneblock.explain.page.style import DAY, NIGHT
from oneblock.explain.worked import Exercise, exercise
from oneblock.explain.worked.number import shown
from oneblock.explain.worked.two import beside
from oneblock.words import ENTRIES, LANGUAGES, say
from shown import HOSTILE, Page, browse
from specs import exact, translator

HALF = len(HOSTILE) // 2


@lru_cache
def made_with(*names: str, text: str = "text", model: str = "model") -> Exercise:
    """An encoder-decoder whose tokens read like that: half of them on each side."""
    torch.manual_seed(0)
    half = len(names) // 2
    ids = {"input_ids": torch.full((1, half), 5), "decoder_input_ids": torch.full((1, len(names) - half), 6)}
    found = trace(exact(translator()), ids | {"labels": ids["decoder_input_ids"]})
    found = replace(found, tokens={"encoder.": names[:half], "decoder.": names[half:]})
    return exercise(found, token=1, text=text, model=model, name=lambda at: names[at % len(names)])


def call() -> dict[str, torch.Tensor]:
    target = torch.full((1, HALF), 6)
    return {"input_ids": torch.full((1, HALF), 5), "decoder_input_ids": target, "labels": target}


def harmless(*names: str) -> tuple[str, ...]:
    return tuple(f"w{at}" for at in range(len(names)))


def small() -> Exercise:
    return made_with("a", "b", "c", "d", "e")


def test_B89_hostile_strings_add_no_element_and_no_attribute() -> None:
    assert len(HOSTILE) >= 30
    plain = Page(page(made_with(*harmless(*HOSTILE)))).bones
    for text in (HOSTILE[0], HOSTILE[1], HOSTILE[24], HOSTILE[29]):
        assert Page(page(made_with(*HOSTILE, text=text, model=text))).bones == plain


def test_B89_two_texts_side_by_side_are_escaped_too() -> None:
    def both(*names: str, text: str) -> str:
        made = made_with(*names, text=text)
        torch.manual_seed(0)
        found = trace(exact(translator()), call())
        found = replace(found, tokens=made.tokens)
        return page_of_two(beside((found, found), (made, made)))

    assert Page(both(*HOSTILE, text=HOSTILE[1])).bones == Page(both(*harmless(*HOSTILE), text="x")).bones


def test_B89_a_browser_runs_no_script_of_a_hostile_string(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(page(made_with(*HOSTILE, text=HOSTILE[4], model=HOSTILE[3])).encode())
    seen, console = browse(path)
    assert console == []
    assert Page(seen).of("title")[0].said == f"Trace: {HOSTILE[4]}"
    path.write_bytes(page(made_with(*harmless(*HOSTILE))).encode())
    calm, _ = browse(path)
    assert [element.tag for element in Page(seen).elements] == [element.tag for element in Page(calm).elements]


def test_the_browser_would_tell_of_a_request_or_a_script(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    broken = page(small()).replace("<main>", "<main><img src='http://localhost/x.png'><script>1</script>")
    path.write_text(broken, encoding="utf-8")
    _, console = browse(path)
    assert len(console) == 2


@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_request_leaves_the_file_and_the_console_is_silent(lang: str, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(page(small(), lang), encoding="utf-8")
    assert browse(path)[1] == []


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_page_needs_no_script_and_names_nothing_outside(lang: str) -> None:
    html = page(small(), lang)
    read = Page(html)
    assert not read.of("script")
    assert not read.of("link")
    ids = [element.attributes["id"] for element in read.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in read.elements:
        assert not any(name.startswith("on") for name in element.attributes)
        assert element.attributes.get("src", "data:").startswith("data:")
        target = element.attributes.get("href")
        assert target is None or (target[0] == "#" and target[1:] in ids)
    assert not re.search(r"url\(|@import", html)
    assert set(re.findall(r"https?://[^\"'<]+", html)) == {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_page_can_be_read_by_keyboard_and_by_ear(lang: str) -> None:
    read = Page(page(small(), lang))
    assert read.of("html")[0].attributes["lang"].startswith(lang)
    assert read.of("title")[0].said
    levels = [int(element.tag[1]) for element in read.elements if re.fullmatch(r"h\d", element.tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(element.attributes["alt"] for element in read.of("img"))
    radios = {element.attributes["id"] for element in read.of("input")}
    assert radios == {element.attributes["for"] for element in read.of("label")}
    assert sum("checked" in element.attributes for element in read.of("input")) == len(
        {element.attributes["name"] for element in read.of("input")}
    )
    for element in read.elements:
        if element.attributes.get("role") == "region":
            assert element.attributes["aria-label"]
            assert element.attributes["tabindex"] == "0"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_numbers_of_the_page_are_those_of_the_exercise(lang: str) -> None:
    made = small()
    html = page(made, lang)
    read = Page(html)
    steps = {element.attributes["id"]: element for element in read.of("article")}
    for section in made.sections:
        for step in section.steps:
            said = steps[f"step{step.number}"].said
            words = say(step.kind, lang)
            assert all(part in said for part in (words.name, words.purpose, step.path))
            assert math(step.written.latex, step.written.formula, block=True) in html
            for number in (step.statistics.min, step.statistics.max, *step.row, *(line.value for line in step.lines)):
                assert shown(number) in said
            assert all(line.how in said for line in step.lines)
    cells = {
        element.attributes["id"]: element.said for element in read.elements if element.attributes.get("class") == "cell"
    }
    links = {
        element.attributes["href"][1:]: element.said
        for element in read.of("a")
        if element.attributes["href"][:2] == "#c" and "-" in element.attributes["href"]
    }
    assert links.keys() <= cells.keys()
    for number, section in enumerate(made.sections):
        for cell in section.maps.cells if section.maps else ():
            place = f"c{number}-{cell.head}-{cell.query}-{cell.key}"
            assert section.maps is not None
            assert links[place] == shown(section.maps.heads[cell.head].weights[cell.query][cell.key])
            assert all(f"{line.how} = {shown(line.value)}" in cells[place] for line in cell.lines)


@pytest.mark.parametrize("kind", [kind for kind, entry in ENTRIES.items() if entry.latex])
def test_every_formula_of_the_dictionary_is_drawn_as_mathml(kind: str) -> None:
    said = say(kind)
    elements = Page(math(said.latex, said.formula)).elements
    assert elements[0].attributes["alttext"] == said.formula
    assert {element.tag for element in elements} <= ELEMENTS
    assert {name for element in elements[1:] for name in element.attributes} <= ATTRIBUTES | {"width"}
    assert not re.search(r"[\\{}&$]", elements[0].said)
    assert elements[0].said.strip()
    assert all(element.tag not in ("msub", "msup", "mfrac") or len(element.said) > 1 for element in elements)


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("around", [r"\text{%s}", r"\mathrm{%s}", r"\href{%s}{x}", r"\class{%s}{x}", "%s"])
def test_B89_nothing_passes_a_formula_unescaped(hostile: str, around: str) -> None:
    elements: list[Any] = []
    with suppress(Exception):  # much of it is no LaTeX
        elements = Page(math(around % hostile, hostile)).elements
    assert {element.tag for element in elements} <= ELEMENTS
    assert {name for element in elements for name in element.attributes} <= ATTRIBUTES | {"width", "alttext"}


@pytest.mark.parametrize("length", [12, 22, 47, 120])
def test_the_page_of_one_block_is_under_2_MB(length: int) -> None:
    ids = torch.randint(5, 13, (1, length))
    found = trace(exact(translator()), {"input_ids": ids, "decoder_input_ids": ids, "labels": ids})
    assert len(page(exercise(found), "zh").encode()) < 2_000_000


@pytest.mark.parametrize("of", [DAY, NIGHT])
def test_letters_stand_out_by_day_and_by_night(of: dict[str, str]) -> None:
    def light(colour: str) -> float:
        hexes = [int(colour[at : at + 2], 16) for at in (1, 3, 5)] if colour[0] == "#" else map(int, colour.split())
        linear = [(x / 255 / 12.92) if x <= 10 else ((x / 255 + 0.055) / 1.055) ** 2.4 for x in hexes]
        return sum(part * share for part, share in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))

    def contrast(one: str, other: str) -> float:
        low, high = sorted((light(of[one]), light(of[other])))
        return (high + 0.05) / (low + 0.05)

    for letters in ("ink", "soft", "link", "mark"):
        assert min(contrast(letters, ground) for ground in ("paper", "card")) >= 4.5
    assert min(contrast("ink", ground) for ground in ("heat", "cold")) >= 4.5


def test_a_picture_is_a_whole_png(tmp_path: Path) -> None:
    from base64 import b64decode
    from struct import unpack
    from zlib import crc32, decompress

    raw = b64decode(picture([[0.0, 0.5, 1.0], [1.0, 0.25, 2.0]]).partition(",")[2])
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts = 8, {}
    while at < len(raw):
        (size,) = unpack(">I", raw[at : at + 4])
        name, inner = raw[at + 4 : at + 8], raw[at + 8 : at + 8 + size]
        assert unpack(">I", raw[at + 8 + size : at + 12 + size]) == (crc32(name + inner),)
        parts[name] = inner
        at += 12 + size
    assert unpack(">II", parts[b"IHDR"][:8]) == (3, 2)
    assert decompress(parts[b"IDAT"]) == bytes((0, 0, 128, 255, 0, 255, 64, 255))
    del tmp_path
