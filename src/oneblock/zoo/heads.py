"""The classes of public models that many families share: what each makes of a spec, and the names of its head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from oneblock.spec import Classify, Head, Model, Pool, Pooling, Seq2Seq, Transform, get, put
from oneblock.zoo.family import Config, Key, Kind, Rows


def labels(config: Config, default: int = 2) -> int:
    """How many labels a classifier's config speaks of."""
    listed = config.get("id2label")
    return len(listed) if listed else int(config.get("num_labels") or default)


def head_dropout(default: Any, place: str = "head") -> Key:
    """The key of a classifier's own dropout."""
    return Key(None, lambda spec: getattr(get(spec, place), "dropout", default), default)


def headless(spec: Any, config: Config) -> Any:  # noqa: ARG001
    """The stack alone."""
    return replace(spec, head=None, balance=0.0)


def last_token(spec: Any, config: Config) -> Any:
    """A classifier over the last real token, as every decoder-only family has it."""
    return replace(spec, head=Classify(labels(config), "last", bias=False), balance=0.0)


def kinds(name: str, prefix: str = "model.", head: str = "lm_head", writes: str = "ForCausalLM") -> dict[str, Kind]:
    """The classes of a decoder-only family, by the name they begin with: it writes, it labels, the bare stack.

    prefix: in front of the stack's names. head: the name of the output layer. writes: the end of the first class.
    """
    return {
        f"{name}{writes}": Kind({"head.out": head}, prefix=prefix),
        f"{name}ForSequenceClassification": Kind({"head.out": "score"}, last_token, prefix),
        f"{name}Model": Kind(spec=headless),
    }


def headed(head: Any, at: str = "head") -> Callable[[Any, Config], Any]:
    """The spec with this head."""
    return lambda spec, config: put(spec, at, head)  # noqa: ARG005


POOLED = headed(Pool("first", Transform("tanh", None)))
"""The stack and one vector per text: tanh of a projection of the first token."""


def classifier(
    pool: Pooling, activation: Any, *dropout: str, at: str = "head", default: int = 2
) -> Callable[[Any, Config], Any]:
    """A classifier over one token, behind a projection; the first of these keys that is said is its dropout.

    default: how many labels there are where a config does not say.
    """

    def labelled(spec: Any, config: Config) -> Any:
        drop = next(config[key] for key in dropout if config[key] is not None)
        return put(spec, at, Classify(labels(config, default), pool, Transform(activation, None), dropout=drop))

    return labelled


def guess(prefix: str, dense: str, norm: str, bias: str, out: str) -> Kind:
    """The class that guesses hidden words. Tied, its bias has a name of its own; untied, it is its matrix's bias."""

    def rows(spec: Any) -> Rows:
        shared = {"head.out.weight": f"{out}.weight", "head.out.bias": bias}
        return {"head.transform.dense": dense, "head.transform.norm": norm} | (
            shared if spec.head.tied else {"head.out": out}
        )

    return Kind(rows, prefix=prefix)


OLD_NORMS = {r"\.gamma$": ".weight", r"\.beta$": ".bias"}
"""How the oldest files spell the tensors of a norm."""


def renamed(bias: str, out: str) -> Callable[[Any], dict[str, str]]:
    """Spellings in other files: the norms of old ones, and the second name of a tied head's bias."""

    def spellings(spec: Any) -> dict[str, str]:
        return OLD_NORMS | ({rf"^{out}\.bias$": bias} if isinstance(spec.head, Head) and spec.head.tied else {})

    return spellings


def _encoder(spec: Seq2Seq, config: Config) -> Model:  # noqa: ARG001
    return spec.encoder


def _both(spec: Model) -> Seq2Seq:
    return Seq2Seq(spec, replace(spec, head=Head(tied=True)))


READER = Kind(spec=_encoder, part="encoder.", whole=_both)
"""The encoder of an encoder-decoder, alone; whole, it has some decoder beside it."""
