"""A training run as data: what to train, on what, for how long, read from one TOML file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from oneblock.train.toml import build, dump, parse_value, put_key

__all__ = ["BatchPart", "DataPart", "ModelPart", "OptimizerPart", "Run", "TokenizerPart", "TrainingPart"]


def bounded(default: Any, least: float | None = None, most: float | None = None) -> Any:
    """A dataclass field whose number must lie in [least, most]; the reader of run files checks it."""
    return field(default=default, metadata={"least": least, "most": most})


@dataclass(frozen=True)
class ModelPart:
    """`[model]`: a zoo function by name, every other key one of its arguments; or `spec`, the path of a spec.json.

    `vocab` may be left out: it is the size of the tokenizer.
    """

    name: str | None = None
    spec: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict, metadata={"rest": True})


@dataclass(frozen=True)
class DataPart:
    """`[data]`: sentence pairs, and which of them are held out. Paths are relative to the run file's folder."""

    pairs: str | None = None  # TSV or JSONL, may end in .gz
    source: str | None = None  # or two parallel files, one sentence per line
    target: str | None = None
    columns: tuple[str | int, ...] | None = None  # TSV columns, or JSON keys; None = 0, 1 or "source", "target"
    languages: tuple[str, ...] = ("en", "zh")  # of the first and the second column
    directions: Literal["both", "forward"] = "both"
    valid: int = bounded(500, 0)  # pairs held out for validation, ignored when a valid file is named
    test: int = bounded(0, 0)  # pairs held out for the end, never looked at in training
    split_seed: int = 0
    valid_pairs: str | None = None
    valid_source: str | None = None
    valid_target: str | None = None

    def __post_init__(self) -> None:
        for prefix in ("", "valid_"):
            one, first, second = (getattr(self, prefix + key) for key in ("pairs", "source", "target"))
            if (first is None) != (second is None) or (one is not None and first is not None):
                raise ValueError(f"{prefix}pairs: give either {prefix}pairs or both {prefix}source and {prefix}target")
        if len(self.languages) != 2 or len(set(self.languages)) != 2:
            raise ValueError(f"languages: expected two different names, got {list(self.languages)}")
        if self.columns is not None and len(self.columns) != 2:
            raise ValueError(f"columns: expected two columns, got {list(self.columns)}")

    def files(self, prefix: str = "") -> str | tuple[str, str] | None:
        """The pairs file, or two parallel files, or None when neither is named; prefix "valid_": the held-out ones."""
        one = getattr(self, prefix + "pairs")
        first, second = getattr(self, prefix + "source"), getattr(self, prefix + "target")
        return one if one is not None else (first, second) if first is not None else None


@dataclass(frozen=True)
class TokenizerPart:
    """`[tokenizer]`: a joint BPE trained on the training side, or an existing tokenizer.json.

    `dropout` skips each merge with that probability, anew in every epoch (Provilkov et al. 2020, arXiv:1910.13267).
    """

    vocab: int = bounded(6000, 300)
    dropout: float = bounded(0.0, 0.0, 1.0)
    path: str | None = None


@dataclass(frozen=True)
class BatchPart:
    """`[batch]`: how many tokens one step sees."""

    tokens: int = bounded(4096, 1)  # budget of one batch, as text.Batches counts it
    accumulate: int = bounded(1, 1)  # batches per optimizer step
    longest: int = bounded(256, 2)  # an example with a longer side is left out, and counted


@dataclass(frozen=True)
class OptimizerPart:
    """`[optimizer]`: AdamW (Loshchilov & Hutter 2019, arXiv:1711.05101) and the learning rate's course."""

    lr: float = bounded(1e-3, 0.0)  # the peak, reached at the end of the warm-up
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = bounded(1e-9, 0.0)
    weight_decay: float = bounded(0.01, 0.0)  # on matrices; never on embeddings, norms, biases
    schedule: Literal["inverse-sqrt", "cosine", "linear"] = "inverse-sqrt"
    warmup: int = bounded(1000, 0)  # steps
    clip: float = bounded(1.0, 0.0)  # global norm of the gradient; 0 = never clip

    def __post_init__(self) -> None:
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas: expected two numbers in [0, 1), got {list(self.betas)}")


@dataclass(frozen=True)
class TrainingPart:
    """`[training]`: how long, how often to look, what to keep."""

    steps: int = bounded(10_000, 1)
    label_smoothing: float = bounded(0.1, 0.0, 1.0)
    log_every: int = bounded(50, 1)
    evaluate_every: int = bounded(500, 1)
    save_every: int = bounded(500, 1)
    keep: int = bounded(3, 1)  # last checkpoints kept, beside the best one
    patience: int = bounded(0, 0)  # evaluations without a better score before stopping; 0 = never stop early
    choose: Literal["bleu", "loss"] = "bleu"  # what "better" means
    average: int = bounded(5, 0)  # checkpoints averaged at the end; 0 or 1 = none
    beam: int = bounded(1, 1)  # of the validation translations; 1 = greedy
    sample: int = bounded(200, 0)  # validation sentences translated per direction; 0 = all


@dataclass(frozen=True)
class Run:
    """One training run; `Run.load` reads it from TOML, `dump` writes it back with every default spelled out.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "run.toml"
    >>> _ = file.write_text('[data]\\npairs = "a.tsv"\\n[optimizer]\\nlr = 3e-4\\n')
    >>> run = Run.load(file, [("training.steps", "20")])
    >>> run.optimizer.lr, run.training.steps, run.batch.tokens
    (0.0003, 20, 4096)
    """

    seed: int = 0
    model: ModelPart = field(default_factory=ModelPart)
    data: DataPart = field(default_factory=DataPart)
    tokenizer: TokenizerPart = field(default_factory=TokenizerPart)
    batch: BatchPart = field(default_factory=BatchPart)
    optimizer: OptimizerPart = field(default_factory=OptimizerPart)
    training: TrainingPart = field(default_factory=TrainingPart)

    @classmethod
    def load(cls, path: str | Path, overrides: Iterable[tuple[str, str]] = ()) -> Run:
        """Read a run file; `overrides` are (dotted key, value) pairs, a value being TOML or else a string.

        Raises ValueError, one line, for a file that is not TOML, an unknown key, a wrong type, a number out of bounds.
        """
        path = Path(path)
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise ValueError(f"{path}: cannot read the run file: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8 at byte {error.start}") from None
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{path}: not TOML: {error}") from None
        try:
            for key, value in overrides:
                put_key(table, key, parse_value(value))
            run = build(cls, table)
            if run.data.files() is None:
                raise ValueError("data.pairs: no training data; give data.pairs, or data.source and data.target")
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        return run._moved(lambda name: str((path.parent / name).resolve()))

    def dump(self, folder: str | Path) -> str:
        """This run as TOML with every value written out, its paths relative to `folder` (where the text will lie).

        A path on another drive than `folder` stays absolute.
        """
        base = Path(folder).resolve()
        return dump(self._moved(lambda name: _relative(Path(name).resolve(), base)))

    def _moved(self, move: Any) -> Run:
        files = [item.name for item in fields(DataPart) if item.name.endswith(("pairs", "source", "target"))]
        paths = {"model": ["spec"], "tokenizer": ["path"], "data": files}
        parts = {}
        for part, names in paths.items():
            old = getattr(self, part)
            found = {name: move(getattr(old, name)) for name in names if getattr(old, name) is not None}
            parts[part] = replace(old, **found)
        return replace(self, **parts)


def _relative(path: Path, base: Path) -> str:
    try:
        return os.path.relpath(path, base)
    except ValueError:  # Windows: no relative path leads from drive to drive
        return str(path)
