"""HTML that cannot be broken out of: text and attributes are escaped where an element is made, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable

from oneblock.draw.pen import clean

EMPTY = ("meta", "img", "input")
"""Elements without an end."""


class Html(str):
    """A piece of a page that was made here: what is not one, is text and will be escaped."""

    __slots__ = ()


Inner = str | Iterable["Inner"]


def tag(kind: str, /, *inner: Inner, **attributes: object) -> Html:
    """An element; `class_` and `for_` are class and for, `_` in a name is `-`; None leaves an attribute out.

    >>> tag("td", "<b>", title='"x"', class_="cell")
    '<td title="&quot;x&quot;" class="cell">&lt;b&gt;</td>'
    """
    said = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{clean(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{kind}{said}>" if kind in EMPTY else f"<{kind}{said}>{joined(inner)}</{kind}>")


def joined(inner: Inner) -> Html:
    """Pieces one after the other, texts escaped.

    >>> joined(["a&b", tag("b")])
    'a&amp;b<b></b>'
    """
    if isinstance(inner, Html):
        return inner
    return Html(clean(inner)) if isinstance(inner, str) else Html("".join(map(joined, inner)))


def heading(level: int, *inner: Inner, **attributes: object) -> Html:
    """A heading."""
    return tag(f"h{level}", *inner, **attributes)


def scrolling(said: str, *inner: Inner) -> Html:
    """What may be wider than the page: it scrolls by itself, also by keyboard."""
    return tag("div", *inner, class_="wide", tabindex="0", role="region", aria_label=said)
