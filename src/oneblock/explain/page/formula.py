"""Formulas as MathML, which a browser draws by itself; it is built anew from our elements, so nothing passes unescaped.

latex2mathml reads the LaTeX. Its own text form undoes the escaping of `<` and `&`; its tree is what is used here.
"""

from __future__ import annotations

from functools import lru_cache
from html import unescape
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert_to_element

from oneblock.explain.page.marks import Html, tag

ELEMENTS = frozenset(
    {"math", "mi", "mn", "mo", "mtext", "mspace", "mrow", "mfrac", "msqrt", "msub", "msup", "msubsup", "munder",
     "mover", "munderover", "mstyle"}
)  # fmt: skip
"""Elements that a formula may be made of; any other falls away, and what it holds remains."""
ATTRIBUTES = frozenset(
    {"display", "mathvariant", "stretchy", "fence", "form", "minsize", "maxsize", "displaystyle", "scriptlevel"}
)
"""Attributes they may have, besides the width of a space."""
PRIME = "&#x02032;"


@lru_cache(maxsize=512)
def math(latex: str, said: str = "", block: bool = False) -> Html:
    """A formula from LaTeX; `said` is how it is read aloud or copied. Empty where there is none.

    >>> math("x^2", "x²")
    '<math display="inline" alttext="x²"><msup><mi>x</mi><mn>2</mn></msup></math>'
    """
    if not latex:
        return Html("")
    tree = convert_to_element(latex, display="block" if block else "inline")
    return tag("math", *(made(one) for one in tree), display=tree.get("display"), alttext=said or None)


def made(one: Element) -> Html:
    """An element anew; a row of upright letters is one word, a row of one is that one."""
    inner = list(one)
    if one.tag == "mrow" and len(inner) > 1 and all(letter.get("mathvariant") == "normal" for letter in inner):
        return tag("mi", unescape("".join(letter.text or "" for letter in inner)))
    if one.tag == "msup" and inner[1].text == PRIME:  # as a superscript, many fonts raise it too far
        return tag("mrow", made(inner[0]), tag("mo", unescape(PRIME)))
    said = [unescape(one.text or ""), *map(made, inner)]
    if one.tag not in ELEMENTS or (one.tag == "mrow" and len(inner) == 1):
        return Html("".join(map(str, (tag("mtext", said[0]) if said[0].strip() else "", *said[1:]))))
    wide = one.get("width", "")
    if one.tag == "mspace" and not wide.endswith("em"):
        return Html("")
    kept = {name: value for name, value in one.attrib.items() if name in ATTRIBUTES}
    return tag(one.tag, *said, **kept, width=wide or None)
