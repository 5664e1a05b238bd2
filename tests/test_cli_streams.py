"""Where output goes: a reader that leaves early is no error, a full disk is one line."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import oneblock


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="this system has no broken pipes as POSIX knows them")
@pytest.mark.parametrize("arguments", [["show", "vaswani"], ["show", "vaswani", "--json"], ["--help"]])
def test_a_reader_that_leaves_early_is_no_error(arguments: list[str]) -> None:
    code = "import sys; from oneblock.cli import main; main(sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no file that is always full")
@pytest.mark.parametrize("arguments", [["--version"], ["show", "vaswani", "--lang", "en"]])
def test_output_that_cannot_be_written_is_one_line(arguments: list[str]) -> None:
    code = "import sys; from oneblock.cli import main; main(sys.argv[1:])"
    with open("/dev/full", "w") as full:
        line = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("oneblock: ")
    assert done.stderr.endswith("No space left on device\n")
    assert done.stderr.count("\n") == 1


def test_the_package_runs_as_a_module() -> None:
    found = subprocess.run([sys.executable, "-m", "oneblock", "--version"], capture_output=True, text=True, check=True)
    assert found.stdout == f"{oneblock.__version__}\n"
