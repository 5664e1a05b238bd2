"""The closed choices of a spec, and the few checks that every spec makes on itself."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, get_args, get_type_hints

from oneblock.hint import nearest as nearest

Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "tanh"]
Layout = Literal["half", "interleaved"]
Wiring = Literal["pre", "post", "branch", "sandwich", "parallel", "parallel-shared", "bare"]
Slot = Literal["pre", "branch", "post"]

SLOTS: dict[Wiring, tuple[Slot, ...]] = {
    "pre": ("pre",),
    "post": ("post",),
    "branch": ("branch",),
    "sandwich": ("pre", "branch"),
    "parallel": ("pre",),
    "parallel-shared": ("pre",),
    "bare": (),
}
"""Where a wiring puts norms in x <- post(skip * x + branch(f(pre(x))))."""


def one_of(choice: object, **values: object) -> None:
    """Refuse a word that its `Literal` does not list."""
    for name, value in values.items():
        if value not in get_args(choice):
            raise ValueError(f"{name}: {value!r} is not one of its words; {nearest(value, get_args(choice))}")


def typed(spec: Any) -> None:
    """Refuse a field whose value is of none of the classes its hint names; Literals, tuples and floats are not seen."""
    for name, hint in _hints(type(spec)).items():  # type: ignore[arg-type]
        kinds = get_args(hint) or (hint,)
        plain = all(isinstance(kind, type) and kind is not float for kind in kinds)
        if plain and not isinstance(value := getattr(spec, name), kinds):
            known = " or ".join(kind.__name__ for kind in kinds).replace("NoneType", "None")
            raise ValueError(f"{type(spec).__name__}.{name}: expected {known}, got {value!r}")


_hints = cache(get_type_hints)


def dotted(values: dict[str, object]) -> list[tuple[str, object]]:
    """Values by the names of fields: `Head__softcap` is the keyword for Head.softcap."""
    return [(name.replace("__", "."), value) for name, value in values.items()]


def at_least(least: float, **values: object) -> None:
    """Refuse a number below `least`, or what is not a number."""
    for name, value in dotted(values):
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value or value < least:
            raise ValueError(f"{name}: expected at least {least}, got {value!r}")


def above_zero(**values: object) -> None:
    """Refuse what is neither None nor a number above 0."""
    for name, value in dotted(values):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (number and value > 0):  # type: ignore[operator]
            raise ValueError(f"{name}: expected a number above 0 or None, got {value!r}")


def whole(least: int, **values: object) -> None:
    """Refuse what is not a whole number of at least `least`."""
    for name, value in dotted(values):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name}: expected a whole number of at least {least}, got {value!r}")


def share(**values: object) -> None:
    """Refuse a probability outside [0, 1)."""
    for name, value in dotted(values):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            raise ValueError(f"{name}: expected a share of at least 0 and below 1, got {value!r}")
