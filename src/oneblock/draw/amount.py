"""Large and small amounts as people read them: three digits and a letter."""

from __future__ import annotations

PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def short(value: float) -> str:
    """A count in three digits.

    >>> [short(value) for value in (0, 768, 1536, 291_648_307_200)]
    ['0', '768', '1.54 k', '292 G']
    """
    for size, letter in PREFIXES:
        if abs(value) >= size * 0.9995:
            return f"{_three(value / size)} {letter}"
    return _three(value) if value % 1 else f"{value:.0f}"


def seconds(value: float) -> str:
    """A duration in three digits.

    >>> [seconds(value) for value in (0.0, 2.5e-8, 3.14159e-3, 75.0)]
    ['0 s', '0.025 µs', '3.14 ms', '75.0 s']
    """
    if value == 0:
        return "0 s"
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if value >= size:
            return f"{_three(value / size)} {unit}"
    return f"{_three(value / 1e-6)} µs"


def share(part: float, whole: float) -> str:
    """A share in percent; of nothing, a dash.

    >>> share(1, 3), share(1, 0)
    ('33.3 %', '–')
    """
    return f"{100 * part / whole:.1f} %" if whole else "–"


def change(value: float) -> str:
    """A difference with its sign.

    >>> change(-1536), change(0), change(2.0)
    ('−1.54 k', '0', '+2')
    """
    return "0" if value == 0 else ("+" if value > 0 else "−") + short(abs(value))


def _three(value: float) -> str:
    """Three significant digits without an exponent."""
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{digits}f}" if abs(value) >= 0.9995 or value == 0 else f"{value:.2g}"
