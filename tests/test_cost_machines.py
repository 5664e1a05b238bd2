"""Machines by name, the one that was probed, and files that hold something else."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from oneblock.cost.machines import HERE, MACHINES, machine, place, read
from oneblock.explain.probe import probe, write


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_every_known_machine_says_who_says_so() -> None:
    for name, known in MACHINES.items():
        assert machine(name) is known
        assert known.source
        assert known.rate("bfloat16") >= known.rate("float32") > 1e9
        assert known.memory > known.bandwidth / 1e3 > 0


def test_an_unknown_machine_or_type_of_number_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"machine: no machine 'nvidia-h20'; did you mean nvidia-h200\?"):
        machine("nvidia-h20")
    with pytest.raises(
        ValueError, match="machine nvidia-a100: no rate in int8; expected bfloat16 or float16 or float32"
    ):
        machine("nvidia-a100").rate("int8")
    with pytest.raises(ValueError, match="`oneblock probe` measures it"):
        machine(HERE)


def test_a_probe_is_kept_and_then_is_the_machine(caches: Path) -> None:
    assert machine().name == "cpu-2-cores"
    found = probe(0.05, "cpu")
    assert machine() == machine(HERE) == found
    assert [path.name for path in (caches / "oneblock").iterdir()] == ["machine.json"]
    assert min(found.rates.values()) > 1e6
    assert found.bandwidth > 1e8
    assert json.loads(place().read_text(encoding="utf-8")) == asdict(found)


def test_a_probe_that_is_not_kept_leaves_nothing(caches: Path) -> None:
    probe(0.05, "cpu", keep=False)
    assert list(caches.iterdir()) == []


@pytest.mark.parametrize(
    "written",
    ["[]", "{}", "{", '{"name": "here"}', '{"name": 1, "rates": {}, "bandwidth": 1, "memory": 1, "source": ""}',
     '{"name": "here", "rates": {"float32": 0}, "bandwidth": 1, "memory": 1, "source": ""}',
     '{"name": "here", "rates": {"float32": "fast"}, "bandwidth": 1, "memory": 1, "source": ""}'],
)  # fmt: skip
def test_a_file_that_no_probe_wrote_is_refused_in_one_line(tmp_path: Path, written: str) -> None:
    path = tmp_path / "machine.json"
    path.write_text(written, encoding="utf-8")
    with pytest.raises(ValueError, match=r"machine\.json:[^\n]* expected"):
        read(path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(OSError, match="file"):
        write(MACHINES["cpu-2-cores"], tmp_path / "file" / "machine.json")
