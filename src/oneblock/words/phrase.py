"""A sentence that knows its template, so that it can be said in another language."""

from __future__ import annotations


class Phrase(str):
    """English text made of a template and what fills its gaps; it is the text, wherever one is read.

    >>> said = Phrase("the longest text has {} tokens", 4)
    >>> said, said.template, said.fills
    ('the longest text has 4 tokens', 'the longest text has {} tokens', (4,))
    """

    template: str
    fills: tuple[object, ...]

    def __new__(cls, template: str, *fills: object) -> Phrase:
        self = super().__new__(cls, template.format(*fills) if fills else template)
        self.template, self.fills = template, fills
        return self
