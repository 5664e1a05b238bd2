"""Texts in, translations out: a model and its tokenizer, batches of like length, results in the order of the texts.

Shapes: batch = sentences translated together, length = tokens of the longest of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import nn

from oneblock import weights
from oneblock.bricks import EncoderDecoder, shift_right
from oneblock.generate.decode import Seq2SeqStepper
from oneblock.generate.hypothesis import Hypothesis
from oneblock.generate.mode import evaluating
from oneblock.generate.pieces import capacity, pieces
from oneblock.generate.search import EarlyStopping, beam_search
from oneblock.spec import Seq2Seq
from oneblock.text import Tokenizer, script

__all__ = ["Alternative", "Translation", "Translator", "translate"]

PACKAGED = Path(__file__).parent / "tatoeba"
"""The folder of the translator that comes with the package; its README.md says what it is."""

UNSPACED = ("zh", "ja", "th")
"""Languages whose sentences follow each other without a space."""


class Alternative(NamedTuple):
    """Another translation, worse by the search's score."""

    text: str
    score: float


@dataclass(frozen=True)
class Translation:
    """A `text`, which is also its `str`, and where it comes from.

    `score` is the sum of the log-probabilities of its tokens / number of tokens ** length_penalty. `to` is the target
    language, None where the tokenizer has no directions. `cut` is the part of `source` that was too long for the model
    and is missing, usually empty. `finished` is False where the translation stops at the length limit.

    >>> str(Translation("我爱你。", "I love you.", score=-0.1, to="en"))
    'I love you.'
    """

    source: str
    text: str
    score: float = 0.0
    to: str | None = None
    alternatives: tuple[Alternative, ...] = ()
    cut: str = ""
    finished: bool = True

    def __str__(self) -> str:
        return self.text


class _Job(NamedTuple):
    """What to do for one text: its target language, the token ids of its pieces, and what was cut."""

    to: str | None
    pieces: list[tuple[int, ...]]
    cut: str


class Translator:
    """Translates with an encoder-decoder and its tokenizer; call it with a text or a list of texts.

    Sutskever et al. 2014 (arXiv:1409.3215), with the Transformer of Vaswani et al. 2017 (arXiv:1706.03762).
    ValueError: a model that is no encoder-decoder, a tokenizer larger than its vocabulary.

    >>> from oneblock.bricks import build_model
    >>> from oneblock.zoo import named
    >>> tokenizer = Tokenizer.train(["I love you.", "我爱你。"], vocab=300, languages=("en", "zh"))
    >>> model = build_model(named("vaswani", dim=8, depth=1, heads=2, hidden=16, vocab=len(tokenizer)))
    >>> found = Translator(model, tokenizer)(["我爱你。", "I love you.", ""])  # it has learnt nothing yet
    >>> [translation.to for translation in found], found[2].text
    (['en', 'zh', 'zh'], '')
    """

    def __init__(self, model: nn.Module, tokenizer: Tokenizer) -> None:
        spec = getattr(model, "spec", None)
        if not isinstance(spec, Seq2Seq):
            raise ValueError(f"translate: expected an encoder-decoder, got {type(model).__name__}; load a translator")
        vocab = spec.encoder.embedding.vocab
        if len(tokenizer) > vocab:
            raise ValueError(
                f"translate: expected a tokenizer of at most {vocab} tokens, got {len(tokenizer)}; "
                "take the tokenizer.json that lies beside the model"
            )
        self.model, self.spec, self.tokenizer = cast(EncoderDecoder, model), spec, tokenizer

    @classmethod
    def load(
        cls,
        directory: str | PathLike[str],
        device: str | torch.device = "cpu",
        dtype: torch.dtype | None = torch.float32,
    ) -> "Translator":
        """The translator in a folder: spec.json, model.safetensors, tokenizer.json. ValueError: what is missing."""
        return cls(weights.load(Path(directory), device=device, dtype=dtype), Tokenizer.load(directory))

    @staticmethod
    def default() -> "Translator":
        """The translator that comes with the package, English and Chinese; read once, always the same object."""
        return _loaded(PACKAGED)

    def __call__(
        self,
        texts: str | Sequence[str],
        *,
        to: str | None = None,
        beam: int = 5,
        n_best: int = 1,
        length_penalty: float = 1.0,
        early_stopping: EarlyStopping = "never",
        max_length: int | None = None,
        batch_tokens: int = 1024,
        progress: Callable[[int, int], object] | None = None,
    ) -> list[Translation]:
        """One `Translation` for each text, in order; a single text is a list of one.

        `to` is the target language; None goes by each text's script: Chinese becomes English, all else Chinese. An
        empty text stays empty. A text longer than the model was trained for is split after sentences, else after
        commas, and what then is still too long is cut and named. `beam`, `n_best`, `length_penalty` and
        `early_stopping` are those of `beam_search`. `max_length` is the most tokens of a translation (of a piece),
        None: twice the source's and 10. `batch_tokens` is how many source tokens, padding included, are translated
        together. `progress` is called with (pieces done, all pieces) after each batch.

        ValueError: an unknown language, a text that is no Unicode (with its number), options out of range.
        """
        texts = [texts] if isinstance(texts, str) else texts
        if batch_tokens < 1:
            raise ValueError(f"batch_tokens: expected at least 1, got {batch_tokens}")
        if to is not None:
            self.tokenizer.direction(to)
        jobs = [self._job(text, to, number) for number, text in enumerate(texts, 1)]
        todo = sorted({piece for job in jobs for piece in job.pieces}, key=lambda piece: (-len(piece), piece))
        search = {
            "beam": beam, "n_best": n_best, "length_penalty": length_penalty, "early_stopping": early_stopping
        }  # fmt: skip
        done = self._done(todo, batch_tokens, max_length, search, progress)
        return [
            self._translation(text, job, [done[piece] for piece in job.pieces], length_penalty)
            for text, job in zip(texts, jobs, strict=True)
        ]

    def _job(self, text: str, to: str | None, number: int) -> _Job:
        room = capacity(self.spec.encoder)
        try:
            if not isinstance(text, str):
                raise ValueError(f"expected a string, got {type(text).__name__}")
            to = self._language(text) if to is None else to
            if not self.tokenizer.normalise(text):
                return _Job(to, [], "")
            parts, cut = pieces(text, lambda part: room is None or len(self.tokenizer.encode(part, to)) <= room)
            return _Job(to, [tuple(self.tokenizer.encode(part, to)) for part in parts], cut)
        except ValueError as error:
            raise ValueError(f"text {number}: {error}") from None

    def _language(self, text: str) -> str | None:
        """The target language that the text's script suggests: the only one there is, or the other one of en and zh."""
        known = self.tokenizer.languages
        if len(known) < 2:
            return known[0] if known else None
        to = "en" if script(text) == "zh" else "zh"
        if to not in known:
            raise ValueError(f"to: expected one of {list(known)}, and the script of the text does not tell; name it")
        return to

    def _done(
        self,
        todo: list[tuple[int, ...]],
        batch_tokens: int,
        max_length: int | None,
        options: dict[str, Any],
        progress: Callable[[int, int], object] | None,
    ) -> dict[tuple[int, ...], list[Hypothesis]]:
        done: dict[tuple[int, ...], list[Hypothesis]] = {}
        with torch.inference_mode(), evaluating(self.model):
            for batch in _batches(todo, batch_tokens):
                done.update(zip(batch, self._search(batch, max_length, options), strict=True))
                if progress is not None:
                    progress(len(done), len(todo))
        return done

    def _search(
        self, batch: list[tuple[int, ...]], max_length: int | None, options: dict[str, Any]
    ) -> list[list[Hypothesis]]:
        device, decoder = next(self.model.parameters()).device, self.spec.decoder
        lengths = torch.tensor([len(ids) for ids in batch])
        ids = torch.full((len(batch), int(lengths.max())), self.tokenizer.pad)
        real = torch.arange(ids.shape[1]) < lengths[:, None]  # (batch, length)
        ids[real] = torch.tensor([token for sentence in batch for token in sentence])
        ids = ids.to(device)
        limit = 2 * lengths + 10 if max_length is None else torch.full_like(lengths, max_length)
        limit = limit.clamp(max=capacity(decoder) or limit.max())
        stepper = Seq2SeqStepper(self.model, self.model.encode(ids, real.to(device)))
        start = shift_right(ids[:, :1], decoder.tokens)[:, 0]
        return beam_search(stepper, len(batch), start=start, eos=self.tokenizer.eos, max_length=limit, **options)

    def _translation(self, text: str, job: _Job, found: list[list[Hypothesis]], length_penalty: float) -> Translation:
        """Put the pieces together again: the best of each, the second best of each, ..."""
        ranks = range(max((len(hypotheses) for hypotheses in found), default=0))
        answers = [
            self._joined([h[min(rank, len(h) - 1)] for h in found if h], job.to, length_penalty) for rank in ranks
        ]
        if not answers:
            return Translation(text, "", to=job.to, cut=job.cut)
        finished = all(hypotheses[0].finished for hypotheses in found if hypotheses)
        return Translation(text, *answers[0], job.to, tuple(answers[1:]), job.cut, finished)

    def _joined(self, parts: list[Hypothesis], to: str | None, length_penalty: float) -> Alternative:
        known = len(self.tokenizer)  # a model's vocabulary may be padded to a round number
        texts = [self.tokenizer.decode(token for token in part.tokens if token < known) for part in parts]
        tokens = sum(len(part.tokens) for part in parts)
        score = sum(part.logprob for part in parts) / max(1, tokens) ** length_penalty
        return Alternative(("" if to in UNSPACED else " ").join(texts), score)


def translate(
    text: str, model: Translator | str | PathLike[str] | None = None, *, to: str | None = None, **options: Any
) -> str:
    """The translation of one text, as a string.

    `model` is a `Translator` or the folder of one, read once; None is the one in the package. `to` and `options` are
    those of a `Translator`, which is what to call for many texts. ValueError: what `Translator` refuses.

    >>> translate("我爱你。", "no/such/folder")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ValueError: there is no model
    """
    if not isinstance(model, Translator):
        model = _loaded(PACKAGED if model is None else Path(model).resolve())
    return model(text, to=to, **options)[0].text


@lru_cache(maxsize=2)
def _loaded(directory: Path) -> Translator:
    return Translator.load(directory)


def _batches(sentences: Sequence[tuple[int, ...]], tokens: int) -> Iterator[list[tuple[int, ...]]]:
    """Neighbours together, the longest first, as long as the padded batch has at most `tokens`; one at least."""
    batch: list[tuple[int, ...]] = []
    for sentence in sentences:
        if batch and len(batch[0]) * (len(batch) + 1) > tokens:
            yield batch
            batch = []
        batch.append(sentence)
    if batch:
        yield batch
