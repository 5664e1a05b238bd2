"""Read sentence pairs from files, one pair at a time, and say exactly which line is wrong when one is."""

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

Name = str | os.PathLike[str]
_SURROGATE = re.compile("[\ud800-\udfff]")  # half a character: JSON can spell it, UTF-8 cannot


class Pair(NamedTuple):
    """A sentence, its translation, and the line (from 1) they came from."""

    source: str
    target: str
    line: int


def read_pairs(
    path: Name | tuple[Name, Name] | list[Name], *, columns: Sequence[int | str] | None = None
) -> Iterator[Pair]:
    """Pairs of a corpus, streamed. Three formats, each also as .gz; UTF-8, with or without a BOM, LF or CRLF.

    Two paths: parallel files, line n of one with line n of the other, whatever `columns`. A name in .jsonl: one object
    per line, `columns` its two keys (default "source", "target"; "translation.en" looks into an inner object). Anything
    else: tab-separated, `columns` the two columns counted from 0 (default 0, 1), further columns ignored. Spaces at the
    ends of a text are removed.
    ValueError, one line "file:line: what; expected; got; what to do": missing file, invalid UTF-8, empty line or field,
    missing tab, bad JSON, missing key, parallel files of unequal length.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "pairs.tsv"
    >>> _ = file.write_text("Hi.\\t嗨。\\tnote\\n", "utf-8")
    >>> list(read_pairs(file)), list(read_pairs(file, columns=(1, 0)))
    ([Pair(source='Hi.', target='嗨。', line=1)], [Pair(source='嗨。', target='Hi.', line=1)])
    """
    if isinstance(path, (tuple, list)):
        if len(path) != 2:
            raise ValueError(f"path: expected one file or two parallel ones; got {len(path)}; name source and target")
        return _parallel(Path(path[0]), Path(path[1]))
    path = Path(path)
    if path.name.removesuffix(".gz").endswith(".jsonl"):
        return _objects(path, *_two(columns or ("source", "target")))
    return _table(path, *map(_number, _two(columns or (0, 1))))


def _parallel(source: Path, target: Path) -> Iterator[Pair]:
    lefts, rights = _lines(source), _lines(target)
    for at, (left, right) in enumerate(zip_longest(lefts, rights), 1):
        if left is None or right is None:
            short, more = (source, rights) if left is None else (target, lefts)
            expected, got = f"{at + sum(1 for _ in more)} lines, as in the other", f"{at - 1}"
            raise _bad(short, at, "files of unequal length", expected, got, "find the line where they part")
        yield Pair(_field(source, at, left), _field(target, at, right), at)


def _table(path: Path, source: int, target: int) -> Iterator[Pair]:
    least = max(source, target) + 1
    for at, line in enumerate(_lines(path), 1):
        fields = line.split("\t")
        if not line.strip():
            _field(path, at, line)
        if len(fields) < least:
            got = f"{len(fields)} in {_short(repr(line.rstrip()))}"
            raise _bad(path, at, "missing tab", f"at least {least} columns", got, "add the tab or name columns=")
        yield Pair(_field(path, at, fields[source]), _field(path, at, fields[target]), at)


def _objects(path: Path, source: int | str, target: int | str) -> Iterator[Pair]:
    for at, line in enumerate(_lines(path), 1):
        try:
            found = json.loads(_field(path, at, line))
        except (json.JSONDecodeError, RecursionError) as error:
            raise _bad(path, at, "bad JSON", "one object per line", f"{error}", "mend or remove the line") from None
        yield Pair(_value(path, at, found, str(source)), _value(path, at, found, str(target)), at)


def _value(path: Path, at: int, found: Any, key: str) -> str:
    for step in key.split("."):
        if not isinstance(found, dict) or step not in found:
            got = f"keys {_short(str(list(found)))}" if isinstance(found, dict) else _short(repr(found))
            raise _bad(path, at, f"no key {key!r}", "an object that has it", got, "name the two keys with columns=")
        found = found[step]
    if not isinstance(found, str) or _SURROGATE.search(found):
        raise _bad(path, at, f"key {key!r}", "text", _short(repr(found)), "name the two keys with columns=")
    return _field(path, at, found)


def _lines(path: Path) -> Iterator[str]:
    """Lines with their ends; only LF ends a line, because text may hold U+2028 or U+0085."""
    at = 0
    try:
        with _open(path) as file:
            for at, raw in enumerate(file, 1):
                if at == 1:
                    raw = raw.removeprefix(b"\xef\xbb\xbf")
                yield raw.decode("utf-8")
    except UnicodeDecodeError as error:
        got = f"byte 0x{error.object[error.start]:02x} at byte {error.start + 1}"
        raise _bad(path, at, "invalid UTF-8", "UTF-8 text", got, "convert the file, e.g. with iconv") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _bad(path, at + 1, "broken gzip", "a whole .gz file", f"{error}", "fetch or make it again") from None
    except OSError as error:
        raise _bad(path, at + 1, "unreadable", "a text file", f"{error.strerror or error}", "check the path") from None
    if not at:
        raise _bad(path, 1, "no lines", "at least one pair", "an empty file", "check the path")


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def _field(path: Path, at: int, text: str) -> str:
    text = text.strip()
    if not text:
        raise _bad(path, at, "empty line or field", "text on both sides", "none", "remove the pair or fill it in")
    return text


def _two(columns: Sequence[int | str]) -> tuple[int | str, int | str]:
    if isinstance(columns, str) or len(columns) != 2:
        raise ValueError(f"columns: expected two, source and target; got {columns!r}; e.g. columns=(0, 1)")
    return columns[0], columns[1]


def _number(column: int | str) -> int:
    if not str(column).isdecimal():
        raise ValueError(
            f"columns: expected numbers from 0 for a tab-separated file; got {column!r}; e.g. columns=(0, 1)"
        )
    return int(column)


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def _bad(path: Path, at: int, what: str, expected: str, got: str, remedy: str) -> ValueError:
    return ValueError(f"{path}:{at}: {what}; expected {expected}; got {got}; {remedy}")
