"""Named models as specs: one file per family, all of it data."""

from __future__ import annotations

from inspect import signature
from typing import Any

from oneblock.hint import nearest
from oneblock.spec import Spec
from oneblock.zoo.bart import BART
from oneblock.zoo.bert import BERT
from oneblock.zoo.distilbert import DISTILBERT
from oneblock.zoo.family import Family
from oneblock.zoo.gemma import GEMMA
from oneblock.zoo.gemma2 import GEMMA2
from oneblock.zoo.gpt2 import GPT2
from oneblock.zoo.gptj import GPTJ
from oneblock.zoo.llama import LLAMA
from oneblock.zoo.marian import MARIAN
from oneblock.zoo.mistral import MISTRAL
from oneblock.zoo.mixtral import MIXTRAL
from oneblock.zoo.neox import NEOX
from oneblock.zoo.olmo2 import OLMO2
from oneblock.zoo.phi import PHI
from oneblock.zoo.phi3 import PHI3
from oneblock.zoo.qwen2 import QWEN2
from oneblock.zoo.qwen3 import QWEN3
from oneblock.zoo.qwen3_moe import QWEN3_MOE
from oneblock.zoo.roberta import ROBERTA
from oneblock.zoo.t5 import T5
from oneblock.zoo.vaswani import VASWANI

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        VASWANI, BERT, ROBERTA, DISTILBERT, GPT2, GPTJ, NEOX, LLAMA, MISTRAL, MIXTRAL, QWEN2, QWEN3, QWEN3_MOE, GEMMA,
        GEMMA2, OLMO2, PHI, PHI3, T5, BART, MARIAN,
    )
}  # fmt: skip
"""Every family by name, in the order of their stories."""

SIZES = {size: (family, arguments) for family in FAMILIES.values() for size, arguments in family.sizes.items()}
"""Published name -> (family, arguments of its spec function)."""


def names() -> list[str]:
    """Every name that `named` knows: families, and their published sizes.

    >>> "vaswani-big" in names()
    True
    """
    return list(FAMILIES | SIZES)


def named(name: str, **arguments: Any) -> Spec:
    """The spec of a family ("vaswani") or of a published size ("vaswani-big"), with some arguments replaced.

    >>> named("vaswani-big", vocab=1000).encoder.dim
    1024
    >>> named("vaswany")
    Traceback (most recent call last):
    ValueError: 'vaswany' is no model we know; did you mean vaswani?
    """
    if name not in FAMILIES and name not in SIZES:
        raise ValueError(f"{name!r} is no model we know; {nearest(name, names())}")
    family, fixed = SIZES[name] if name in SIZES else (FAMILIES[name], {})
    known = list(signature(family.make).parameters)
    for key in arguments:
        if key not in known:
            raise ValueError(f"{name}: no argument {key!r}; {nearest(key, known)}")
    return family.make(**(dict(fixed) | arguments))
