"""JSON that others wrote: with or without a byte order mark; whatever is wrong is one line with the file's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from oneblock.files import read_json


def test_a_byte_order_mark_is_no_part_of_the_json(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\xef\xbb\xbf" + '{"名": [1]}'.encode())
    assert read_json(tmp_path / "a.json") == {"名": [1]}


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b"", "a.json:1: expected JSON, got something else"),
        (b'{"a": 1,\n"b" 2}', "a.json:2: expected JSON, got something else"),
        (b"{'a': 1}", "a.json:1: expected JSON, got something else"),
        (b'"\xff"', "a.json: expected JSON in UTF-8, got a file that is not (byte 1)"),
        (b"[" * 100_000, "a.json: expected JSON, got one nested too deeply"),
        (b'{"a": [' * 60 + b"]}" * 60, "a.json: expected JSON, got one nested too deeply"),
        (b'[{"a": 1, "b": 2, "a": 1}]', "a.json: expected JSON, got one that cannot be meant (key 'a' stands twice"),
        (b"1" * 5_000, "a.json: expected JSON, got one that cannot be meant (Exceeds the limit"),
    ],
)
def test_what_is_no_json_is_one_line(tmp_path: Path, written: bytes, said: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(written)
    with pytest.raises(ValueError, match=r"a\.json") as caught:
        read_json(path)
    assert str(caught.value).startswith(str(tmp_path))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(ValueError, match="cannot be read: "):
            read_json(path)
