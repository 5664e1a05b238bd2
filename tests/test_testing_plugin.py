"""Checks in pytest: one test per check, faults fail it, what does not apply is skipped with the reason."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from torch import nn

import oneblock
from oneblock.check import assert_transformer
from oneblock.words.checks import CHECKS

TEST = """
import pytest
from torch import nn


@pytest.fixture
def transformer():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)


@pytest.fixture
def transformer_options():
    return {"kind": KIND}


def test_mine(transformer_check):
    transformer_check()
"""


@pytest.mark.parametrize("kind", [None, "decoder"])
def test_one_test_per_check(tmp_path: Path, kind: str | None) -> None:
    (tmp_path / "test_it.py").write_text(TEST.replace("KIND", repr(kind)), encoding="utf-8")
    installed = [one.name for one in entry_points(group="pytest11") if one.name == "oneblock"]
    plugin = [] if installed else ["-p", "oneblock.testing"]
    words = ["-m", "pytest", *plugin, "-p", "no:cacheprovider", "-rA", "-k", "OB101 or OB102"]
    environment = os.environ | {"PYTHONPATH": str(Path(oneblock.__file__).parents[1])}
    run = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False, env=environment
    )
    assert "test_it.py::test_mine[OB102]" in run.stdout
    if kind is None:
        assert "1 passed, 1 skipped" in run.stdout
        assert "an encoder may see the future" in run.stdout
    else:
        assert "1 failed, 1 passed" in run.stdout
        assert "layers.0.self_attn: The future leaks" in run.stdout


def test_pytest_loads_the_plugin_without_torch() -> None:
    code = "import sys, oneblock.testing; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_module_is_asserted_in_one_line() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32), 1, enable_nested_tensor=False)
    assert assert_transformer(encoder, only=["causal", "batch"]).passed == ("batch",)
    with pytest.raises(AssertionError, match=r"error OB101 \[causal\] The future leaks"):
        assert_transformer(encoder, only=["causal"], kind="decoder")
    assert set(CHECKS) >= {"OB101", "OB102"}
