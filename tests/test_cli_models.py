"""The verb `models`: every published size with its bricks, its numbers and its paper, without torch."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from oneblock.cli.models import BRICKS, cited, run
from oneblock.cost import active, cache_bytes, parameters
from oneblock.zoo import FAMILIES, named, names

app = typer.Typer()
app.command()(run)


def output(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    return result.output


def test_every_published_size_is_a_line() -> None:
    lines = output("--lang", "en").splitlines()
    listed = [line.split()[0] for line in lines[1:]]
    assert listed == [size for name, family in FAMILIES.items() for size in family.sizes or [name]]
    assert set(names()) - set(listed) <= set(FAMILIES)
    base = next(line for line in lines if line.startswith("vaswani-base "))
    for said in ("full / causal", "Sinusoidal position", "Post-norm", "Layer norm", "ReLU", "63,082,496", "12,288"):
        assert said in base
    assert base.endswith("Vaswani et al. 2017, arXiv:1706.03762")


def test_json_holds_the_numbers_that_cost_gives() -> None:
    for model in json.loads(output("--json", "--lang", "en")):
        spec = named(model["name"])
        assert (model["parameters"], model["active"]) == (parameters(spec), active(spec))
        assert model["cache_per_token"] == cache_bytes(spec).per_token
        assert set(model["bricks"]) == set(BRICKS)
        assert all(model["bricks"].values())
        assert re.search(r" \d{4}(, arXiv:[\d.]+)?$", model["paper"])


def test_the_language_is_the_one_asked_for() -> None:
    assert "后置归一化" in output("--lang", "zh")
    assert "Post-norm" in output("--lang", "en")


@pytest.mark.parametrize(
    ("doc", "expected"),
    [
        ("Su et al. 2021 (arXiv:2104.09864): rotary.", "Su et al. 2021, arXiv:2104.09864"),
        ("One line. Zhang and Sennrich 2019 (arXiv:1910.07467)", "Zhang and Sennrich 2019, arXiv:1910.07467"),
        ('Radford et al. 2019, "Language Models": pre-norm (arXiv:2104.09864).', "Radford et al. 2019"),
        ("The team 2025 (arXiv:2501.00656)", "The team 2025, arXiv:2501.00656"),
        ("Nothing is cited.", ""),
    ],
)
def test_a_paper_is_read_from_a_docstring(doc: str, expected: str) -> None:
    assert cited(doc) == expected


def test_listing_needs_no_tensor_library() -> None:
    code = "import sys, oneblock.cli.models as m; m.run(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False).returncode == 0
