"""Texts in, texts or judgements out: a model with its tokenizer, whatever the family and the job.

Shapes: batch = texts together, dim = width of the stream.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from os import PathLike
from typing import Any

import torch
from torch import Tensor

from oneblock import weights
from oneblock.bricks import EncoderDecoder, Transformer
from oneblock.generate.answers import Answer, Gap, Scored
from oneblock.generate.checks import shown
from oneblock.generate.config import GenerationConfig, chosen
from oneblock.generate.defaults import read_defaults
from oneblock.generate.kind import causal_or_pair, described, stream_of, writer_of
from oneblock.generate.prompts import within
from oneblock.generate.reading import Pooling, classify, embed, fill
from oneblock.generate.scoring import score
from oneblock.generate.writing import Generated, generate, stream
from oneblock.spec import Seq2Seq
from oneblock.text import ForeignTokenizer, Pieces, Tokenizer, read_tokenizer, script
from oneblock.weights.fetch import fetched
from oneblock.weights.labels import read_labels

__all__ = ["Pipeline"]


class Pipeline:
    """A model and its tokenizer. Each method says in one line if this model is for another job.

    >>> from oneblock.bricks import build_model
    >>> from oneblock.spec import Attention, Block, Embedding, FeedForward, Model
    >>> tokenizer = Tokenizer.train(["low lower lowest"] * 2, vocab=270)
    >>> spec = Model(8, Embedding(len(tokenizer)), (Block(Attention(2), FeedForward(16)),))
    >>> pipeline = Pipeline(build_model(spec), tokenizer)
    >>> answer = pipeline.generate("low", max_new_tokens=3)[0][0]  # it has learnt nothing yet
    >>> answer.prompt, len(answer.tokens)
    ('low', 3)
    """

    BATCH = 16
    """Texts read together."""

    def __init__(
        self,
        model: Transformer | EncoderDecoder,
        tokenizer: Tokenizer | ForeignTokenizer,
        labels: Sequence[str] = (),
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        """`labels` are the names of a classifier's labels; `defaults` are choices of `generate` where none is said."""
        self.model, self.tokenizer, self.labels, self.defaults = model, tokenizer, tuple(labels), dict(defaults or {})
        self.pair = isinstance(model.spec, Seq2Seq)
        vocab = (model.spec.encoder if self.pair else model.spec).embedding.vocab
        if len(tokenizer) > vocab:
            raise ValueError(
                f"tokenizer: expected at most the model's {vocab} tokens, got {len(tokenizer)}; "
                "take the one that lies beside the model"
            )

    @classmethod
    def load(cls, name: str | PathLike[str], device: str = "cpu", dtype: str = "float32") -> Pipeline:
        """From a model's folder or hub id, with the tokenizer and the labels' names in it.

        Of its generation_config.json, which tokens end an answer and which never come are the defaults of `generate`:
        eos_token_id, pad_token_id, bad_words_ids, suppress_tokens, stop_strings. A choice counts more, [] for none. Its
        temperature and other habits are not read: answers must not depend on a number that nobody sees.

        `device` "auto" is a GPU where there is one; `dtype` is one of float32, bfloat16, float16, or "auto", as stored.
        ValueError: no such device or dtype, whatever `oneblock.load` refuses, no tokenizer, a damaged file.
        """
        folder = fetched(str(name))
        model: Any = weights.load(folder, device, dtype)
        defaults = read_defaults(folder, writer_of(model).embedding.vocab)
        return cls(model, read_tokenizer(folder), read_labels(folder), defaults)

    def encode(self, text: str, to: str | None = None) -> list[int]:
        """Ids of a text to read or to write on. `to` is the target language, for a tokenizer with directions.

        ValueError: no text or an empty one, a language that the tokenizer does not have.
        """
        if not _text(text).strip():
            raise ValueError("text: expected some, got none (an empty prompt)")
        on = bool(getattr(self.model, "causal", False))  # written on, a text has no end token
        if to is not None and not (self.pair and isinstance(self.tokenizer, Tokenizer)):
            raise ValueError(f"to: expected a translator's tokenizer to ask for {to!r}, this one has no directions")
        if isinstance(self.tokenizer, ForeignTokenizer):
            return self.tokenizer.encode(text, end=not on)
        known = self.tokenizer.languages
        if self.pair and to is None and known:
            other = "en" if script(text) == "zh" else "zh"
            to = other if other in known else known[0]
        ids = self.tokenizer.encode(text, to)
        return ids[:-1] if on else ids

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids; special tokens and what no tokenizer knows are left out."""
        return self.tokenizer.decode([token for token in ids if 0 <= token < len(self.tokenizer)])

    def generate(
        self, texts: str | Sequence[str], config: GenerationConfig | None = None, to: str | None = None, **options: Any
    ) -> list[list[Answer]]:
        """The answers to each text, best first; `options` are those of `generate`, which see.

        16 texts are read together, in their order. With a `seed` the first batch draws by it and each further one by a
        number drawn from it.
        """
        return list(self.answers(texts, config, to, **options))

    def answers(
        self, texts: str | Sequence[str], config: GenerationConfig | None = None, to: str | None = None, **options: Any
    ) -> Iterator[list[Answer]]:
        """As `generate`, the answers to one text after the other, as soon as its batch is done.

        Texts and choices are checked before the first batch is read.
        """
        texts, reader = _listed(texts), stream_of(self.model)
        config, others = self._chosen(config, options)
        causal_or_pair(self.model, "generate")
        ids = [self.encode(text, to) for text in texts]
        for text, row in zip(texts, ids, strict=True):
            try:
                within(len(row), reader, 0 if self.pair else config.max_new_tokens - 1)
            except ValueError as error:
                raise ValueError(f"{shown(text)}: {error}") from None
        seeds = _seeds(config.seed)
        batches = (slice(i, i + self.BATCH) for i in range(0, len(texts), self.BATCH))
        return chain.from_iterable(
            self._answered(texts[part], ids[part], chosen(config, {"seed": next(seeds)}), others) for part in batches
        )

    def _answered(
        self, texts: list[str], ids: list[list[int]], config: GenerationConfig, others: dict[str, Any]
    ) -> list[list[Answer]]:
        """The answers to a batch of texts."""
        found = generate(self.model, ids, generation_config=config, tokenizer=self, return_scores=True, **others)
        assert isinstance(found, Generated)
        new, many = found.sequences[:, found.sequences.shape[1] - found.logprobs.shape[1] :], len(found.scores)
        many //= len(texts)
        rows = zip(
            new.tolist(), found.lengths.tolist(), found.scores.tolist(), found.logprobs.sum(1).tolist(),
            found.finished.tolist(), strict=True,
        )  # fmt: skip
        answers = [
            Answer(texts[i // many], self._behind(ids[i // many], row[:length]), tuple(row[:length]), *rest)
            for i, (row, length, *rest) in enumerate(rows)
        ]
        return [answers[i : i + many] for i in range(0, len(answers), many)]

    def stream(
        self, text: str, config: GenerationConfig | None = None, to: str | None = None, **options: Any
    ) -> Iterator[str]:
        """The answer to one text, piece by piece; `options` are those of `stream`."""
        config, others = self._chosen(config, options)
        return stream(self.model, self.encode(text, to), generation_config=config, tokenizer=self, **others)

    def score(self, text: str, target: str | None = None) -> Scored:
        """How likely a text is; of an encoder-decoder, how likely `target` is for it. ValueError: nothing to score."""
        ids = torch.tensor([self.encode(text)], device=self._device)
        if causal_or_pair(self.model, "score") == "causal":
            shown, found = ids, score(self.model, ids)
            if target is not None:
                raise ValueError("score: a causal model scores one text, got a target too; join them")
        elif target is None:
            raise ValueError("score: an encoder-decoder scores a target for a source, got no target")
        else:
            shown = torch.tensor([self._target(target)], device=self._device)
            found = score(self.model, ids, shown)
        first = int(target is None)  # nothing comes before the first token of a text
        pairs = list(zip(shown[0].tolist(), found[0].tolist(), strict=True))[first:]
        if not pairs:
            raise ValueError("score: expected at least two tokens, got one: nothing comes before it")
        total = sum(logprob for _, logprob in pairs)
        tokens = tuple((self._spelt(token), logprob) for token, logprob in pairs)
        return Scored(text if target is None else target, tokens, total, math.exp(-total / len(pairs)))

    def embed(self, texts: str | Sequence[str], pooling: Pooling | None = None, normalise: bool = True) -> Tensor:
        """A vector for each text (batch, dim), as `embed`."""
        nothing = torch.zeros(0, stream_of(self.model).dim, device=self._device)
        parts = [embed(self.model, ids, pooling=pooling, normalise=normalise) for ids in self._batches(texts)]
        return torch.cat(parts or [nothing])

    def fill(self, text: str, top_k: int = 5) -> list[Gap]:
        """What may stand in each gap of a text, which is written [MASK] or as the tokenizer spells it.

        Tokens that the tokenizer lacks, of a vocabulary padded to a round number, are left out: the probabilities are
        those among the tokens there are.
        """
        roles = self.tokenizer.roles if isinstance(self.tokenizer, ForeignTokenizer) else {}
        if "mask" not in roles:
            raise ValueError(
                f"fill: expected a tokenizer with a mask token, got one without and {described(self.model)}"
            )
        spelling = self._spelt(roles["mask"])
        ids = self.encode(_text(text).replace("[MASK]", spelling))
        found = fill(self.model, [ids], roles["mask"], top_k=top_k, vocab=len(self.tokenizer))
        words = ([self.decode([token]).strip() or self._spelt(token) for token in gap.tokens] for gap in found)
        return [Gap(tuple(zip(word, gap.probabilities, strict=True))) for word, gap in zip(words, found, strict=True)]

    def classify(self, texts: str | Sequence[str]) -> list[dict[str, float]]:
        """The probability of each label for each text; labels are called 0, 1, ... where no file names them."""
        rows = [row for ids in self._batches(texts) for row in classify(self.model, ids).tolist()]
        names = [self.labels[i] if i < len(self.labels) else str(i) for i in range(max(map(len, rows), default=0))]
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _batches(self, texts: str | Sequence[str]) -> Iterator[list[list[int]]]:
        """The ids of texts that are read together."""
        texts = _listed(texts)
        return ([self.encode(text) for text in texts[i : i + self.BATCH]] for i in range(0, len(texts), self.BATCH))

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _chosen(
        self, config: GenerationConfig | None, options: dict[str, Any]
    ) -> tuple[GenerationConfig, dict[str, Any]]:
        """(the choices, what else `generate` takes): ids that the tokenizer lacks never come, its end token ends."""
        others = {name: options.pop(name) for name in ("cache", "prefill_chunk", "compile") if name in options}
        config, spec = chosen(config, options), writer_of(self.model)
        config = chosen(config, {name: x for name, x in self.defaults.items() if getattr(config, name) is None})
        if config.vocab is None and len(self.tokenizer) < spec.embedding.vocab:
            config = chosen(config, {"vocab": len(self.tokenizer)})
        own = self.tokenizer.eos if isinstance(self.tokenizer, Tokenizer) else self.tokenizer.roles.get("eos")
        if config.eos_token_id is None and spec.tokens.eos is None and own is not None:
            config = chosen(config, {"eos_token_id": own})
        return config, others

    def _target(self, text: str) -> list[int]:
        """Ids of a translation, with its end token and without anything before it."""
        if isinstance(self.tokenizer, Tokenizer):
            return self.tokenizer.encode(text)
        return self.tokenizer.encode(text)[len(self.tokenizer.before) :]

    def _behind(self, prompt: list[int], tokens: list[int]) -> str:
        """An answer as it reads behind its prompt."""
        pieces = Pieces(self.decode, [] if self.pair else prompt)
        return "".join([*(pieces.add(token) for token in tokens), pieces.end()])

    def _spelt(self, token: int) -> str:
        return self.tokenizer.token(token) if isinstance(self.tokenizer, ForeignTokenizer) else self.decode([token])


def _text(text: object) -> str:
    """The text. ValueError: it is none."""
    if not isinstance(text, str):
        raise ValueError(f"text: expected a string, got {type(text).__name__}")
    return text


def _listed(texts: str | Sequence[str]) -> list[str]:
    """Texts, of which one may stand alone. ValueError: neither a text nor several."""
    if isinstance(texts, str):
        return [texts]
    if not isinstance(texts, Iterable):
        raise ValueError(f"texts: expected a string or a list of strings, got {type(texts).__name__}")
    return list(texts)


def _seeds(seed: int | None) -> Iterator[int | None]:
    """A seed for every batch: the first as it is, the others drawn from it, so that no two batches draw alike."""
    yield seed
    draw = None if seed is None else torch.Generator().manual_seed(seed)
    while True:
        yield None if draw is None else int(torch.randint(2**62, (), generator=draw))
