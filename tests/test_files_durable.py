"""Files that appear whole: with the mode that any new file gets, and without what was left from before."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import oneblock
from oneblock.files import replacing
from oneblock.zoo import named

pytestmark = pytest.mark.skipif(os.name == "nt", reason="this system has no modes as POSIX knows them")


@pytest.fixture(params=[0o022, 0o027, 0o077, 0o002], ids=oct)
def mode(request: pytest.FixtureRequest) -> int:
    """What `open` gives a new file now."""
    before = os.umask(request.param)
    request.addfinalizer(lambda: os.umask(before))  # noqa: PT021
    return 0o666 & ~request.param


def bits(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("format", ["oneblock", "hf"])
def test_every_file_of_a_model_may_be_read_by_those_who_may_read_any(tmp_path: Path, mode: int, format: str) -> None:
    model = oneblock.build(named("gpt2", dim=8, depth=1, heads=2, hidden=16, vocab=9, length=4))
    oneblock.save(model, tmp_path, format=format)
    assert {path.name: bits(path) for path in tmp_path.iterdir()} == dict.fromkeys(os.listdir(tmp_path), mode)


def test_the_mode_is_not_that_of_the_writer_or_of_what_a_killed_process_left(tmp_path: Path, mode: int) -> None:
    left = tmp_path / ".tmp-note.txt"
    left.write_text("half")
    left.chmod(0o600)
    with replacing(tmp_path / "note.txt") as sibling:
        assert sibling.read_text() == ""
        sibling.write_text("whole")
        sibling.chmod(0o600)
    assert (bits(tmp_path / "note.txt"), os.listdir(tmp_path)) == (mode, ["note.txt"])
