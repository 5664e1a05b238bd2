"""Corpora are read faithfully, and a bad line is named by file and number."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oneblock.text import Pair, read_pairs

TWO = [Pair("Hi.", "嗨。", 1), Pair("Run!", "跑。", 2)]
TSV = "Hi.\t嗨。\tby A\nRun!\t跑。\tby B\n".encode()


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def refused(path: Any, message: str, **options: Any) -> None:
    with pytest.raises(ValueError, match=message) as error:
        list(read_pairs(path, **options))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.txt", "pairs.tsv.gz", "pairs"])
@pytest.mark.parametrize("data", [TSV, b"\xef\xbb\xbf" + TSV, TSV.replace(b"\n", b"\r\n"), TSV[:-1]])
def test_tab_separated(tmp_path: Path, name: str, data: bytes) -> None:
    assert list(read_pairs(write(tmp_path / name, data))) == TWO


@pytest.mark.parametrize("columns", [(2, 0), ("2", "0"), ["2", 0]])
def test_columns_by_number(tmp_path: Path, columns: Any) -> None:
    pairs = list(read_pairs(write(tmp_path / "a.tsv", TSV), columns=columns))
    assert pairs == [Pair("by A", "Hi.", 1), Pair("by B", "Run!", 2)]


@pytest.mark.parametrize("end", ["", ".gz"])
def test_parallel_files(tmp_path: Path, end: str) -> None:
    source = write(tmp_path / f"a.en{end}", b"\xef\xbb\xbfHi.\nRun!\n")
    target = write(tmp_path / f"a.zh{end}", "嗨。\r\n跑。".encode())
    assert list(read_pairs((source, target))) == list(read_pairs([source, str(target)])) == TWO


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_json_lines(tmp_path: Path, name: str) -> None:
    rows = [{"source": pair.source, "target": pair.target, "id": 7} for pair in TWO]
    path = write(tmp_path / name, "\n".join(map(json.dumps, rows)).encode())
    assert list(read_pairs(path)) == TWO
    assert [pair.source for pair in read_pairs(path, columns=("target", "source"))] == ["嗨。", "跑。"]


def test_json_keys_inside_an_inner_object(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b'{"translation": {"en": "Hi.", "zh": "\\u55e8\\u3002"}}')
    assert list(read_pairs(path, columns=("translation.en", "translation.zh"))) == TWO[:1]


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    odd = "a\u2028b\x85c\x0bd\re"
    assert list(read_pairs(write(tmp_path / "a.tsv", f"{odd}\tx\n".encode()))) == [Pair(odd, "x", 1)]


def test_a_corpus_is_streamed(tmp_path: Path) -> None:
    pairs = read_pairs(write(tmp_path / "a.tsv", TSV + b"\xff"))
    assert [next(pairs), next(pairs)] == TWO
    with pytest.raises(ValueError, match=r"a\.tsv:3: invalid UTF-8"):
        next(pairs)


LINES = st.text(st.characters(codec="utf-8", exclude_characters="\n\t")).map(str.strip).filter(bool)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(LINES, LINES), min_size=1, max_size=5))
def test_all_formats_say_the_same(tmp_path: Path, sides: list[tuple[str, str]]) -> None:
    wanted = [Pair(source, target, line) for line, (source, target) in enumerate(sides, 1)]
    mark = b"\xef\xbb\xbf"  # else a first character U+FEFF would be taken for it
    table = mark + "\n".join("\t".join(pair) for pair in sides).encode()
    rows = [json.dumps({"source": source, "target": target}) for source, target in sides]
    columns = [mark + "\n".join(column).encode() for column in zip(*sides, strict=True)]
    files = [write(tmp_path / f"column{n}", column) for n, column in enumerate(columns)]
    assert list(read_pairs(write(tmp_path / "a.tsv", table))) == wanted
    assert list(read_pairs(write(tmp_path / "a.jsonl.gz", "\n".join(rows).encode()))) == wanted
    assert list(read_pairs((files[0], files[1]))) == wanted


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a.tsv:1: no lines; expected at least one pair; got an empty file"),
        (b"a\tb\n\nc\td\n", "a.tsv:2: empty line or field; expected text on both sides; got none; "),
        (b"a\tb\n\n", "a.tsv:2: empty line"),
        (b"\xef\xbb\xbf", "a.tsv:1: empty line"),
        (b"a\tb\nc\t  \n", "a.tsv:2: empty line or field"),
        (
            b"a\tb\nno tab\n",
            "a.tsv:2: missing tab; expected at least 2 columns; got 1 in 'no tab'; add",
        ),
        (b"a\tb\nok\xff\tx\n", "a.tsv:2: invalid UTF-8; expected UTF-8 text; got byte 0xff at byte 3; convert"),
        ("a\tb".encode("utf-16"), "a.tsv:1: invalid UTF-8; expected UTF-8 text; got byte 0xff at byte 1"),
    ],
)
def test_bad_tables(tmp_path: Path, data: bytes, message: str) -> None:
    refused(write(tmp_path / "a.tsv", data), message)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "a.jsonl:2: bad JSON; expected one object per line; got Expecting"),
        (b"[" * 100_000, "a.jsonl:2: bad JSON"),
        (b"", "a.jsonl:2: empty line"),
        (b"[1]", r"a.jsonl:2: no key 'source'; expected an object that has it; got \[1\];"),
        (
            b'{"source": "a", "en": "b"}',
            r"a.jsonl:2: no key 'target'; .*; got keys \['source', 'en'\]; name the two keys",
        ),
        (b'{"source": "a", "target": 3}', "a.jsonl:2: key 'target'; expected text; got 3;"),
        (b'{"source": "a", "target": "\\ud800"}', r"a.jsonl:2: key 'target'; expected text; got '\\ud800';"),
        (b'{"source": " ", "target": "b"}', "a.jsonl:2: empty line or field"),
    ],
)
def test_bad_json_lines(tmp_path: Path, line: bytes, message: str) -> None:
    refused(write(tmp_path / "a.jsonl", b'{"source": "a", "target": "b"}\n' + line + b"\n"), message)


def test_parallel_files_of_unequal_length(tmp_path: Path) -> None:
    two, five = write(tmp_path / "two", b"a\nb\n"), write(tmp_path / "five", b"a\nb\nc\nd\ne\n")
    message = "two:3: files of unequal length; expected 5 lines, as in the other; got 2; find the line"
    refused((two, five), message)
    refused((five, two), message)


def test_an_empty_line_in_the_second_parallel_file(tmp_path: Path) -> None:
    refused((write(tmp_path / "a", b"a\nb\n"), write(tmp_path / "b", b"a\n \n")), "/b:2: empty line")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    refused(tmp_path / "absent.tsv", r"absent\.tsv:1: unreadable; expected a text file; got No such file")
    refused(tmp_path, ":1: unreadable; expected a text file; got Is a directory")
    whole = gzip.compress("".join(f"{n * 7919}\t{n * 104729}\n" for n in range(999)).encode())
    for name, data in [("plain.gz", TSV), ("cut.gz", whole[:-20]), ("hurt.gz", whole[:40] + b"\xff" * 9 + whole[49:])]:
        path = tmp_path / name
        path.write_bytes(data)
        refused(path, rf"{name}:\d+: broken gzip; expected a whole")


@pytest.mark.parametrize("columns", [(0,), (0, 1, 2), "01", ("en", "zh"), (-1, 0)])
def test_bad_columns(tmp_path: Path, columns: Any) -> None:
    refused(write(tmp_path / "a.tsv", TSV), "columns: expected", columns=columns)


def test_three_paths() -> None:
    refused(("a", "b", "c"), "path: expected one file or two parallel ones; got 3")


def test_tatoeba(shared_data: Path) -> None:
    pairs = list(read_pairs(shared_data / "tatoeba-cmn-eng" / "cmn.txt"))
    assert len(pairs) == 29_155
    assert len({pair.source for pair in pairs}) == 27_661
    assert len({pair.target for pair in pairs}) == 25_543
