"""Lines of Python as the formatter leaves them: too long ones opened up, values that are returned at once."""

from __future__ import annotations

import re

LONGEST = 120
CODE = re.compile(r"^(?P<indent> *)(?P<code>.*?)(?P<comment>  # .*)?$")
RETURNED = re.compile(r"^( +)(\w+) = (.*?)(  # .*)?\n\1return \2(  # .*)?$", re.MULTILINE)
BARE_INIT = "    def __init__(self) -> None:\n        super().__init__()\n\n"


def merged(text: str) -> str:
    """`x = f(x)` and then `return x` as one line; no `__init__` that does nothing.

    >>> print(merged("    x = f(x)  # wide\\n    return x"))
        return f(x)  # wide
    """

    def one(found: re.Match[str]) -> str:
        indent, _, value, first, second = found.groups()
        return f"{indent}return {value}{second or first or ''}"

    text = RETURNED.sub(one, text.replace("  # fmt: skip", "")).replace(BARE_INIT, "")
    return re.sub(r": ([A-Z_]+)\]", r":\1]", re.sub(r"([A-Z_]+) :\]", r"\1:]", text))


def opened(line: str) -> list[str]:
    """A line, or where it is too long the lines of its last bracket opened up; one argument each if needed.

    >>> print("\\n".join(opened("    x = f(" + "one, " * 25 + "two)")[:3]))
        x = f(
            one,
            one,
    """
    found = CODE.match(line)
    if found is None or len(line) <= LONGEST:
        return [line]
    indent, code, comment = found["indent"], found["code"], found["comment"] or ""
    end = code.index(") ->") if code.startswith("def ") else len(code.rstrip(",")) - 1
    start = opening(code, end)
    if start is None:
        return [line]
    inner = [f"{indent}    {code[start + 1 : end]}"]
    if len(inner[0]) > LONGEST or not re.search(r"\w$", code[:start]):  # a tuple is opened up in full
        inner = [part for piece in pieces(code[start + 1 : end]) for part in opened(f"{indent}    {piece},")]
    return [f"{indent}{code[: start + 1]}{comment}", *inner, f"{indent}{code[end:]}"]


def opening(code: str, end: int) -> int | None:
    """Where the bracket opens that closes at `end`."""
    depth = 0
    for at in range(end, -1, -1):
        depth += (code[at] in ")]}") - (code[at] in "([{")
        if depth == 0:
            return at if code[at] in "([{" else None
    return None


def pieces(inner: str) -> list[str]:
    """What stands between the commas of a bracket.

    >>> pieces("a, f(b, c), [d, e]")
    ['a', 'f(b, c)', '[d, e]']
    """
    found, depth, at = [], 0, 0
    for i, letter in enumerate(inner):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            found.append(inner[at:i].strip())
            at = i + 1
    return [*found, inner[at:].strip()] if inner[at:].strip() else found
