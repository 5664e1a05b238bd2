"""What an error says, as one line: bad input gets no more than that."""

from __future__ import annotations


def first_line(error: BaseException) -> str:
    """The first line of what an error says; its kind, where it says nothing.

    >>> first_line(ValueError("no such file\\nand more")), first_line(KeyError())
    ('no such file', 'KeyError')
    """
    return (str(error).strip() or type(error).__name__).splitlines()[0]
