"""What a model costs, in words: parameters, those that one token uses, and what it remembers of each token."""

from __future__ import annotations

from oneblock.cost import active, cache_bytes, parameters
from oneblock.draw.describe import number
from oneblock.spec import Spec
from oneblock.words import label


def counted(spec: Spec, lang: str) -> str:
    """Parameters, and of a mixture of experts those that one token uses.

    >>> from oneblock.zoo import named
    >>> counted(named("vaswani"), "en")
    '63,082,496'
    """
    whole, used = parameters(spec), active(spec)
    return number(whole) + ("" if used == whole else f" ({label('active', lang, number(used))})")


def remembered(spec: Spec, lang: str) -> str:
    """What the cache holds of each token, in bfloat16.

    >>> from oneblock.zoo import named
    >>> remembered(named("vaswani"), "en")
    '12,288 bytes per token + 12,288 per source token'
    """
    cache = cache_bytes(spec)
    if not cache.per_token:
        return label("no cache", lang)
    said = label("bytes per token", lang, number(cache.per_token))
    for kept, size in cache.windows:
        said += f", {label('kept only', lang, number(size), number(kept))}"
    source = label("per source token", lang, number(cache.per_source_token))
    return f"{said} + {source}" if cache.per_source_token else said


def factor(before: int, after: int) -> str:
    """How many times as much, as " (× 64.5)"; nothing where it cannot be said.

    >>> factor(2, 5), factor(0, 5), factor(5, 5)
    (' (× 2.5)', '', '')
    """
    if not before or not after or before == after:
        return ""
    times = after / before
    return f" (× {times:,.0f})" if times >= 1000 else f" (× {times:.3g})"
