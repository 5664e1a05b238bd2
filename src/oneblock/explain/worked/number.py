"""Numbers as they are written in a worked exercise, the same on a screen and on a page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

MINUS = "−"
TERMS = 3
"""Products of a long sum that are written out."""


def shown(x: float, digits: int = 3) -> str:
    """A number with so many digits behind the point; 0 is exactly zero, what would round to it has an exponent.

    >>> shown(-0.25), shown(0.0), shown(0.00002), shown(float("-inf")), shown(12345.6)
    ('−0.250', '0', '2.0e−05', '−∞', '12,346')
    """
    if math.isnan(x):
        return "NaN"
    if math.isinf(x):
        return "∞" if x > 0 else f"{MINUS}∞"
    if x == 0:
        return "0"
    small = f"{x:.{digits}f}" if round(abs(x), digits) else f"{x:.1e}"
    return (f"{x:,.0f}" if abs(x) >= 10_000 else small).replace("-", MINUS)


def factor(x: float) -> str:
    """A number behind a sign: a negative one in parentheses.

    >>> factor(-2.0)
    '(−2.000)'
    """
    said = shown(x)
    return f"({said})" if said.startswith(MINUS) else said


def product(*factors: float) -> str:
    """Factors with dots between them.

    >>> product(2.0, -0.5)
    '2.000·(−0.500)'
    """
    return "·".join(map(factor, factors))


def total(terms: Sequence[str], many: int) -> str:
    """Terms of a sum, of which there are `many` in all.

    >>> total(["1", "2"], 5)
    '1 + 2 + … (5)'
    """
    return " + ".join([*terms, f"… ({many})"] if many > len(terms) else terms)


def dot(a: Iterable[float], b: Iterable[float], most: int = TERMS) -> str:
    """The dot product of two rows, its first terms written out; of a long one the first that are not 0.

    >>> dot([1.0, 2.0], [3.0, -4.0])
    '1.000·3.000 + 2.000·(−4.000)'
    """
    pairs = list(zip(a, b, strict=True))
    kept = pairs if len(pairs) <= most + 1 else ([(x, y) for x, y in pairs if x * y] or pairs)[:most]
    return total([product(x, y) for x, y in kept], len(pairs))


def plus(said: str, x: float | None) -> str:
    """A sum and one term more, if there is one.

    >>> plus("1", -2.0), plus("1", None)
    ('1 + (−2.000)', '1')
    """
    return said if x is None else f"{said} + {factor(x)}"


def indexed(symbol: str, index: Sequence[object]) -> str:
    """A number by its place.

    >>> indexed("q", (2, 0))
    'q[2, 0]'
    """
    return f"{symbol}[{', '.join(map(str, index))}]"


def shape(dims: Sequence[str], sizes: Sequence[int]) -> str:
    """A shape in letters and in numbers.

    >>> shape(("h", "L", "d_k"), (4, 7, 16))
    '(h, L, d_k) = (4, 7, 16)'
    """
    return f"({', '.join(dims)}) = ({', '.join(map(str, sizes))})" if dims else "()"
