"""Fold what is known into a brick's general source: branches that no use takes vanish, values take their places.

A source speaks of what is known as `spec.name` in `__init__` and in functions, as `self.spec.name` in other methods.
Comments and layout stay, because the text is edited, not written anew from its tree.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from oneblock.export.text import merged
from oneblock.export.values import Code, Use, hint, literal

FEW = 3
"""Parameters that every use may spell out; of more, those that most uses agree on have a default."""
NEEDLESS = {"bias=True", "dropout_p=0.0", "scale=None", "enable_gqa=False"}
"""Arguments that say what holds without them."""


@dataclass
class Fold:
    """One brick's source and all its uses in a model.

    What is alike in all uses becomes text by `named`, which turns (name, value) into a constant's name or a literal;
    what differs becomes a parameter of the class or function. `renamed` are other names to change; `signatures` the
    parameters of methods after `self`, `docs` docstrings of the class and its methods, where they are not those of the
    source. `aliases` are names that always have the value of another one.
    """

    source: str
    uses: Sequence[Use]
    named: Callable[[str, Any], str]
    renamed: Mapping[str, str] = field(default_factory=dict)
    signatures: Mapping[str, str] = field(default_factory=dict)
    docs: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.raw = self.source.encode()
        self.starts = [0]
        for line in self.raw.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.tree: Any = ast.parse(self.source).body[0]
        self.method = ""
        read = {part.attr for part in ast.walk(self.tree) if isinstance(part, ast.Attribute) and _known(part)}
        read = {self.aliases.get(name, name) for name in read}
        self.varying = [name for name in self.uses[0] if name in read and not self.alike(name)]
        self.usual = self._usual() if len(self.varying) > FEW else {}
        self.varying.sort(key=lambda name: name in self.usual)

    def _usual(self) -> dict[str, Any]:
        """What most uses say, where that is no module: a default."""
        values = {name: Counter(use[name] for use in self.uses).most_common(1)[0][0] for name in self.varying}
        return {name: value for name, value in values.items() if not isinstance(value, Code)}

    def alike(self, name: str) -> bool:
        """Whether all uses say the same."""
        first = self.uses[0][name]
        return all(use[name] == first and type(use[name]) is type(first) for use in self.uses)

    def text(self) -> str:
        """The source with everything known in its place."""
        folded = self.span(0, len(self.raw), [self.tree], list(self.uses))
        return merged(folded)

    def call(self, use: Use) -> Code:
        """How this use of the brick is made: its name, and what differs between uses."""
        said = [f"{name}={literal(use[name])}" for name in self.varying if use[name] != self.usual.get(name, use)]
        return Code(f"{self.title or self.tree.name}({', '.join(said)})")

    def parameters(self) -> str:
        """The parameters of what differs between uses."""
        said = [f"{name}: {hint([use[name] for use in self.uses])}" for name in self.varying]
        usual = [f" = {literal(self.usual[name])}" if name in self.usual else "" for name in self.varying]
        return ", ".join(one + value for one, value in zip(said, usual, strict=True))

    def span(self, start: int, end: int, nodes: Sequence[ast.AST], uses: list[Use]) -> str:
        """The text from `start` to `end` with the edits that its nodes ask for."""
        edits = sorted(edit for node in nodes for edit in self.edits(node, uses))
        found, at = [], start
        for first, last, new in edits:
            found.append(self.raw[at:first].decode() + new)
            at = last
        return "".join(found) + self.raw[at:end].decode()

    def edits(self, node: ast.AST, uses: list[Use]) -> Iterator[tuple[int, int, str]]:
        """(start, end, new text) of all that changes in a node."""
        for kind, edit in EDITS.items():
            if isinstance(node, kind):
                done = list(edit(self, node, uses))
                if done:
                    yield from done
                    return
        yield from self.below(node, uses)

    def below(self, node: ast.AST, uses: list[Use]) -> Iterator[tuple[int, int, str]]:
        """The edits of all children."""
        for child in ast.iter_child_nodes(node):
            yield from self.edits(child, uses)

    def place(self, node: Any) -> tuple[int, int]:
        """Where a node begins and ends, in bytes."""
        return (
            self.starts[node.lineno - 1] + node.col_offset,
            self.starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def lines(self, first: Any, last: Any) -> tuple[int, int]:
        """Where the lines of some statements begin and end."""
        return self.starts[first.lineno - 1], self.starts[last.end_lineno]

    def commented(self, body: Sequence[Any]) -> tuple[int, int]:
        """The same for the statements of a branch, with the comment above them."""
        at = body[0].lineno - 1
        while self.raw[self.starts[at - 1] : self.starts[at]].lstrip().startswith(b"#"):
            at -= 1
        return self.starts[at], self.starts[body[-1].end_lineno]

    def verdicts(self, test: ast.expr, uses: list[Use]) -> list[bool] | None:
        """What a test is in each use; None where it asks for more than what is known."""
        names = [part for part in ast.walk(test) if isinstance(part, ast.Name | ast.Attribute)]
        inner = {id(part.value) for part in names if isinstance(part, ast.Attribute)}
        if not all(_known(part) for part in names if id(part) not in inner):
            return None
        code = compile(ast.Expression(test), "test", "eval")
        known = [SimpleNamespace(**use) for use in uses]
        return [bool(eval(code, {"spec": one, "self": SimpleNamespace(spec=one)})) for one in known]

    def branch(self, node: ast.If, uses: list[Use]) -> Iterator[tuple[int, int, str]]:
        """A branch that all uses take alone, or none; else both, each folded for those that take it."""
        verdicts = self.verdicts(node.test, uses)
        start, end = self.lines(node, node)
        if verdicts is None:
            return
        if all(verdicts) or not any(verdicts):
            kept = node.body if all(verdicts) else node.orelse
            text = self.span(*self.commented(kept), kept, uses) if kept else ""
            yield start, end, re.sub(r"^    ", "", text, flags=re.MULTILINE)
            return
        yield from self.edits(node.test, uses)
        for body, taken in ((node.body, True), (node.orelse, False)):
            some = [use for use, verdict in zip(uses, verdicts, strict=True) if verdict == taken]
            for part in body:
                yield from self.edits(part, some)

    def choice(self, node: ast.IfExp, uses: list[Use]) -> Iterator[tuple[int, int, str]]:
        """The value that all uses choose."""
        verdicts = self.verdicts(node.test, uses)
        if verdicts is None or (any(verdicts) and not all(verdicts)):
            return
        kept = node.body if verdicts[0] else node.orelse
        start, end = self.place(node)
        atom = isinstance(kept, ast.Name | ast.Attribute | ast.Call | ast.Constant | ast.UnaryOp)
        if atom and re.search(rb"[^\w)\]]\($", self.raw[start - 3 : start]) and self.raw[end : end + 1] == b")":
            start, end = start - 1, end + 1
        yield start, end, self.span(*self.place(kept), [kept], uses)

    def known(self, node: ast.Attribute, uses: list[Use]) -> Iterator[tuple[int, int, str]]:  # noqa: ARG002
        """A value, or the parameter that holds it."""
        if not _known(node):
            return
        name = self.aliases.get(node.attr, node.attr)
        if name not in self.varying:
            text = self.named(name, self.uses[0][name])
        elif self.method in ("", "__init__"):
            text = name
        else:
            text = f"self.{name}"
            self.asked.append(name)
        yield *self.place(node), text

    def needless(self, node: ast.Call, uses: list[Use]) -> Iterator[tuple[int, int, str]]:
        """A call without the arguments that say what holds anyway, on one line."""
        parts = [self.span(*self.place(part), [part], uses) for part in (*node.args, *node.keywords)]
        if node.lineno == node.end_lineno and not NEEDLESS.union([""]).intersection(parts):
            return
        start, end = self.place(node)
        _, open_at = self.place(node.func)
        func = self.span(start, open_at, [node.func], uses)
        yield start, end, f"{func}({', '.join(part for part in parts if part and part not in NEEDLESS)})"

    def assigned(self, node: ast.Assign, uses: list[Use]) -> Iterator[tuple[int, int, str]]:  # noqa: ARG002
        """`self.name = spec.name` is nothing where the value is None in all uses; `self.spec = spec` never is."""
        value = node.value
        known = value.attr if isinstance(value, ast.Attribute) and _known(value) else None
        whole = isinstance(value, ast.Name) and value.id == "spec"
        if whole or (known is not None and self.alike(known) and self.uses[0][known] is None):
            yield *self.lines(node, node), ""

    def several(self, node: ast.Starred, uses: list[Use]) -> Iterator[tuple[int, int, str]]:  # noqa: ARG002
        """`*spec.names` as the names themselves."""
        if isinstance(node.value, ast.Attribute) and _known(node.value):
            yield *self.place(node), str(self.uses[0][node.value.attr])

    def name(self, node: ast.Name, uses: list[Use]) -> Iterator[tuple[int, int, str]]:  # noqa: ARG002
        """A name that is called otherwise."""
        if node.id in self.renamed:
            yield *self.place(node), self.renamed[node.id]

    def defined(self, node: ast.FunctionDef, uses: list[Use]) -> Iterator[tuple[int, int, str]]:
        """A function or method, with the parameters that are left; what its methods ask for is kept by `__init__`."""
        outer, self.method = self.method, node.name if isinstance(self.tree, ast.ClassDef) else ""
        if node.args.args:
            yield self._parameters(node)
        yield from self._documented(node, uses)
        self.method = outer

    def _documented(self, node: Any, uses: list[Use]) -> Iterator[tuple[int, int, str]]:
        """A body under the docstring it shall have."""
        rest = node.body
        if node.name in self.docs:
            yield *self.place(rest[0]), f'"""{self.docs[node.name]}"""'
            rest = rest[1:]
        for part in rest:
            yield from self.edits(part, uses)

    def _parameters(self, node: ast.FunctionDef) -> tuple[int, int, str]:
        args = node.args.args
        said = [self.raw[slice(*self.place(arg))].decode() for arg in args if arg.arg != "spec"]
        if node.name in self.signatures:
            said = ["self", self.signatures[node.name]]
        elif any(arg.arg == "spec" for arg in args):
            said += [self.parameters()] if self.varying else []
        start, _ = self.place(args[0])
        _, end = self.place((args + node.args.defaults)[-1] if node.args.defaults else args[-1])
        opened = self.raw.rindex(b"(", 0, start) + 1
        return opened, self.raw.index(b")", end), ", ".join(filter(None, said))

    def classed(self, node: ast.ClassDef, uses: list[Use]) -> Iterator[tuple[int, int, str]]:
        """A class under the name and the docstring it shall have."""
        if self.title:
            start = self.place(node)[0] + len("class ")
            yield start, start + len(node.name), self.title
        yield from self._documented(node, uses)
        inits = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"]
        for part in inits:  # after all others have said what they ask for
            lines = [line for line in ast.walk(part) if isinstance(line, ast.Assign)]
            own = {target.attr for line in lines for target in line.targets if isinstance(target, ast.Attribute)}
            kept = [name for name in dict.fromkeys(self.asked) if name not in own]
            _, at = self.lines(part.body[0], part.body[0])
            yield at, at, "".join(f"        self.{name} = {name}\n" for name in kept)


EDITS: dict[Any, Callable[..., Iterator[tuple[int, int, str]]]] = {
    ast.If: Fold.branch,
    ast.IfExp: Fold.choice,
    ast.Attribute: Fold.known,
    ast.Call: Fold.needless,
    ast.Assign: Fold.assigned,
    ast.Starred: Fold.several,
    ast.Name: Fold.name,
    ast.FunctionDef: Fold.defined,
    ast.ClassDef: Fold.classed,
}


def _known(node: ast.AST) -> bool:
    """Whether a node is spec.name or self.spec.name."""
    if not isinstance(node, ast.Attribute):
        return False
    inner = node.value
    if isinstance(inner, ast.Attribute):
        return inner.attr == "spec" and isinstance(inner.value, ast.Name) and inner.value.id == "self"
    return isinstance(inner, ast.Name) and inner.id == "spec"
