"""The house holds: arrows point down, files and functions stay small, no family's name outside the zoo."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import oneblock
import oneblock.zoo

SOURCE = Path(oneblock.__file__).parent
FLOORS = {
    "files": -2,
    "hint": -2,
    "tree": -1,
    "spec": 0,
    "words": 0,
    "tap": 0,
    "text": 0,
    "zoo": 1,
    "cost": 1,
    "mask": 1,
    "cache": 1,
    "check": 1,
    "draw": 2,
    "bricks": 2,
    "weights": 3,
    "generate": 4,
    "train": 5,
    "export": 5,
    "explain": 5,
    "testing": 7,
    "cli": 7,
}
BESIDE = {("cache", "mask")}
"""Rooms that may import one on their own floor; the picture in ARCHITECTURE.md draws them."""
NO_TORCH = ("files", "hint", "tree", "spec", "words", "text", "zoo", "cost", "draw")
CORE = ("spec", "tap", "mask", "cache", "bricks")
EQUATIONS = ("forward", "attend", "fused", "written", "rotate")
FAMILIES = re.compile(
    r"gpt|bert|llama|mistral|mixtral|qwen|gemma|neox|pythia|olmo|\bphi-?\d|\bt5\b|bart\b|marian|deepseek|whisper|vaswani",
    re.IGNORECASE,
)
PUBLIC = {
    "GenerationConfig",
    "Pipeline",
    "Run",
    "Tokenizer",
    "Translation",
    "Translator",
    "active",
    "adopt",
    "apply",
    "build",
    "cache_bytes",
    "check",
    "classify",
    "compare",
    "cost",
    "diff",
    "embed",
    "evaluate",
    "fill",
    "from_dict",
    "from_pretrained",
    "generate",
    "held_out",
    "listen",
    "load",
    "named",
    "parameters",
    "perplexity",
    "prepack",
    "probe",
    "save",
    "save_pretrained",
    "score",
    "stream",
    "svg",
    "to_dict",
    "train",
    "trace",
    "translate",
}
FILES = sorted(SOURCE.rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0]


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(node: ast.AST) -> list[str]:
    """The modules of ours that are imported anywhere below a node."""
    found = []
    for part in ast.walk(node):
        if isinstance(part, ast.ImportFrom) and (part.module or "").split(".")[0] == "oneblock":
            deeper = [f"{part.module}.{alias.name}" for alias in part.names]
            found += deeper if part.module == "oneblock" else [part.module]
        elif isinstance(part, ast.Import):
            found += [alias.name for alias in part.names if alias.name.split(".")[0] == "oneblock"]
    return found


def documented(node: ast.AST) -> bool:
    holds = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
    return holds and ast.get_docstring(node) is not None


def code_lines(node: ast.AST, text: str) -> int:
    """Lines that are neither blank, comment nor docstring."""
    first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", len(text.splitlines()))
    skipped: set[int] = set()
    for part in ast.walk(node):
        if documented(part):
            skipped |= set(range(part.body[0].lineno, part.body[0].end_lineno + 1))
    lines = enumerate(text.splitlines()[first - 1 : last], first)
    return sum(1 for number, line in lines if number not in skipped and line.strip() and line.strip()[0] != "#")


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_file_opens_with_a_sentence_and_is_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(tree(path)), "the first line says what the file is"
    assert len(text.splitlines()) <= 300
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef):
            assert code_lines(node, text) <= 40, f"{node.name} is too long"


def family(path: Path) -> bool:
    """Whether a file of the zoo says a family."""
    calls = (part.func for part in ast.walk(tree(path)) if isinstance(part, ast.Call))
    return room(path) == "zoo" and any(getattr(func, "id", "") == "Family" for func in calls)


@pytest.mark.parametrize("path", [path for path in FILES if family(path)], ids=name)
def test_a_family_is_at_most_80_lines_of_code(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert code_lines(tree(path), text) <= 80


def test_every_family_has_a_file_of_its_own() -> None:
    said = [one.make.__module__.rpartition(".")[2] for one in oneblock.zoo.FAMILIES.values()]
    assert sorted(said) == sorted(path.stem for path in FILES if family(path))


@pytest.mark.parametrize("path", [path for path in FILES if room(path) in FLOORS], ids=name)
def test_arrows_point_down(path: Path) -> None:
    here = room(path)
    for module in imports(tree(path)):
        there = module.partition(".")[2].split(".")[0]
        if there == here or (
            here in ("cli", "testing") and not there
        ):  # they may use the public names, loaded when it runs
            continue
        assert there in FLOORS, f"{module}: no such room in the picture"
        assert FLOORS[there] < FLOORS[here] or (here, there) in BESIDE, f"{here} may not import {there}"


def test_every_room_has_a_floor() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms == set(FLOORS)


@pytest.mark.parametrize("path", FILES, ids=name)
def test_no_import_of_ours_inside_a_function(path: Path) -> None:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef):
            assert not imports(node), f"{node.name} imports"


def cites(path: Path) -> bool:
    """Whether a file's words cite who fell for a fault: as in docstrings, such a citation may name anyone."""
    return room(path) == "words" and path.name.startswith("checks_")


@pytest.mark.parametrize("path", [path for path in FILES if room(path) != "zoo" and not cites(path)], ids=name)
def test_no_family_is_named_outside_the_zoo(path: Path) -> None:
    parsed = tree(path)
    skipped = {id(node.body[0].value) for node in ast.walk(parsed) if documented(node)}
    skipped |= {
        id(node.value)
        for node in parsed.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "EXAMPLE"
    }
    for node in ast.walk(parsed):
        words = [getattr(node, "id", ""), getattr(node, "name", "") or "", getattr(node, "attr", "")]
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            words.append(node.value)
        for word in words:
            assert not (isinstance(word, str) and FAMILIES.search(word)), f"line {node.lineno}: {word!r}"


def test_the_core_is_small() -> None:
    paths = [path for path in FILES if room(path) in CORE]
    assert sum(code_lines(tree(path), path.read_text(encoding="utf-8")) for path in paths) <= 1800


def test_equations_have_few_branches() -> None:
    total = 0
    for path in (path for path in FILES if room(path) == "bricks"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef) and node.name in EQUATIONS:
                branches = sum(isinstance(part, ast.If | ast.IfExp) for part in ast.walk(node))
                assert branches <= 2, f"{name(path)}: {node.name} has {branches} branches"
                body = sum(code_lines(part, text) for part in node.body if not isinstance(part, ast.Expr))
                assert body <= 20, f"{name(path)}: {node.name} has {body} lines"
                total += branches
    assert total <= 25


def test_public_names() -> None:
    assert set(oneblock.__all__) == PUBLIC
    assert len(PUBLIC) <= 40
    for public in PUBLIC:
        assert getattr(oneblock, public).__doc__, f"{public} has no docstring"


@pytest.mark.parametrize("module", [*(f"oneblock.{room}" for room in NO_TORCH), "oneblock.cli"])
def test_these_rooms_load_without_torch(module: str) -> None:
    code = f"import sys, {module}; print([m for m in ('torch', 'numpy', 'transformers') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_pickle_is_read_or_written() -> None:
    for path in FILES:
        assert not re.search(r"torch\.(load|save)\(|\bpickle\b.*import|import pickle", path.read_text(encoding="utf-8"))


def test_no_forbidden_rooms() -> None:
    names = {path.stem for path in SOURCE.rglob("*")}
    assert not names & {"utils", "util", "common", "core", "helpers", "misc"}
