"""The same translator from torch's own parts: `python -m benchmarks.baseline --out DIR` trains it, then scores it.

Around `nn.Transformer` stands what its users write: one embedding table for source, target and output, times sqrt(dim),
plus sinusoids, dropout. Dim, depth, heads, hidden, wiring, vocabulary, split, tokenizer, batches and their order,
updates, schedule, optimizer, clipping, label smoothing, choice and averaging of checkpoints are those of the run file.
What is torch's, as it comes: dropout also on attention weights and inside the feed-forward; a last norm on either stack
also when norms come after the residual (1,024 parameters more at dim 256); every matrix drawn anew by Xavier's rule, q,
k and v as one, but the biases of the feed-forward random and equal in all layers, which are deep copies of one. At the
end the weights move into a spec of ours with equal logits, so that the same search translates. The same command again
goes on from the last checkpoint.

Shapes: batch = sentences, source, target = tokens, real = target tokens that are not padding, dim, vocab.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from benchmarks.quality import RECIPE, markdown, measure, to_stderr
from benchmarks.renames import converted, largest_difference
from torch import Tensor, nn

from oneblock import weights
from oneblock.files import write_file
from oneblock.generate import Translator
from oneblock.spec import Seq2Seq
from oneblock.train import Run
from oneblock.train.checkpoint import average, newest, prune, restore, save_checkpoint, write_weights
from oneblock.train.data import Batch
from oneblock.train.judge import Verdict, judge
from oneblock.train.log import Log, Show
from oneblock.train.optimizer import make_optimizer
from oneblock.train.schedule import rate
from oneblock.train.setup import Setup, environment, prepare
from oneblock.train.stream import Ahead
from oneblock.train.task import precision, reseed
from oneblock.zoo import named

TOLERANCE = 1e-4
STATE = ("loss", "tokens", "best", "best_step")


class TorchTranslator(nn.Module):
    """`nn.Transformer` between one shared table."""

    def __init__(self, spec: Seq2Seq, longest: int) -> None:
        super().__init__()
        dim, block = spec.encoder.dim, spec.encoder.layers[0]
        heads, hidden, depth = block.attention.heads, block.feedforward.hidden, len(spec.encoder.layers)
        self.embedding = nn.Embedding(spec.encoder.embedding.vocab, dim)
        nn.init.normal_(self.embedding.weight, std=dim**-0.5)  # torch's N(0, 1) makes tied logits far too large
        known = {"dropout": block.dropout, "batch_first": True, "norm_first": block.wiring == "pre"}
        with warnings.catch_warnings(action="ignore"):  # norm_first has no nested tensors: nothing that we asked for
            self.transformer = nn.Transformer(dim, heads, depth, depth, hidden, **known)
        self.dropout = nn.Dropout(block.dropout)
        self.register_buffer("positions", sinusoids(longest, dim), persistent=False)

    def forward(self, batch: Batch) -> Tensor:
        """The decoder's output at the real target tokens (real, dim)."""
        target = batch.inputs.shape[1]
        later = torch.ones(target, target, dtype=torch.bool, device=batch.inputs.device).triu(1)
        padding = None if batch.mask is None else batch.mask == 0  # (batch, source), True = hidden
        x = self.transformer(
            self.embedded(batch.source),
            self.embedded(batch.inputs),
            tgt_mask=later,
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        ).flatten(0, 1)  # (batch * target, dim)
        return x if batch.places is None else x[batch.places]

    def embedded(self, ids: Tensor) -> Tensor:
        """(batch, length) -> (batch, length, dim)."""
        scale = math.sqrt(self.embedding.embedding_dim)
        return self.dropout(self.embedding(ids) * scale + self.positions[: ids.shape[1]])

    def loss(self, batch: Batch, smoothing: float) -> Tensor:
        """The summed loss of a batch's real target tokens."""
        logits = F.linear(self(batch), self.embedding.weight)  # (real, vocab)
        return F.cross_entropy(logits.float(), batch.labels, reduction="sum", label_smoothing=smoothing)


def sinusoids(length: int, dim: int) -> Tensor:
    """Section 3.5 of Vaswani et al. 2017 (arXiv:1706.03762): (length, dim)."""
    angles = torch.arange(length)[:, None] * torch.exp(torch.arange(0, dim, 2) * (-math.log(10_000.0) / dim))
    table = torch.zeros(length, dim)
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()
    return table


@dataclass
class Training:
    """One process that trains: the parts, and where it stands."""

    setup: Setup
    model: TorchTranslator
    optimizer: torch.optim.Optimizer
    device: torch.device
    dtype: torch.dtype
    step: int = 0
    loss: float = 0.0  # summed since the last log line
    tokens: int = 0
    best: list[float] = field(default_factory=list)
    best_step: int | None = None

    @property
    def folder(self) -> Path:
        """Where the checkpoints lie."""
        return self.setup.out / "checkpoints"

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds beside tensors."""
        return {name: getattr(self, name) for name in STATE} | {"identity": self.setup.identity}


def begin(run: Run, out: Path, device: torch.device, dtype: torch.dtype) -> tuple[Training, int]:
    """Everything ready, from the newest checkpoint when there is one; and how much of metrics.jsonl it had seen."""
    out.mkdir(parents=True, exist_ok=True)
    setup = prepare(run, out, device)
    block = setup.spec.encoder.layers[0]
    sizes = {"dim": setup.spec.encoder.dim, "depth": len(setup.spec.encoder.layers), "heads": block.attention.heads}
    sizes |= {"hidden": block.feedforward.hidden, "vocab": setup.spec.encoder.embedding.vocab, "dropout": block.dropout}
    wiring = block.wiring if block.wiring in ("pre", "post") else "post"
    if setup.spec != named("vaswani", **sizes, wiring=wiring, length=setup.spec.encoder.length):
        raise ValueError("model: nn.Transformer can only be the vaswani of the zoo; take its other arguments away")
    torch.manual_seed(run.seed)
    model = TorchTranslator(setup.spec, run.batch.longest + 1).to(device)
    training = Training(setup, model, make_optimizer(model, run.optimizer), device, dtype)
    found = newest(training.folder)
    if found is None:
        write_file(out / "env.json", (json.dumps(environment(device, dtype), indent=1) + "\n").encode())
        write_file(out / "tokenizer.json", setup.tokenizer.to_json().encode())
        return training, 0
    path, saved = found
    if saved["identity"] != setup.identity:
        raise ValueError(f"{path}: made by another run; give another --out")
    restore(model, training.optimizer, path)
    for name in ("step", *STATE):
        setattr(training, name, saved[name])
    return training, saved["metrics_bytes"]


def update(training: Training, window: Sequence[Batch]) -> tuple[float, int]:
    """One step over a window of batches: (summed loss, target tokens)."""
    run, model = training.setup.run, training.model
    reseed(run.seed, training.step + 1)
    for group in training.optimizer.param_groups:
        group["lr"] = rate(training.step + 1, run.optimizer, run.training.steps)
    count, total = sum(batch.tokens for batch in window), 0.0
    cast = torch.autocast(training.device.type, torch.bfloat16) if training.dtype == torch.bfloat16 else nullcontext()
    for batch in window:
        with cast:
            loss = model.loss(batch, run.training.label_smoothing)
        (loss / count).backward()
        total += loss.item()
    nn.utils.clip_grad_norm_(model.parameters(), run.optimizer.clip or math.inf)
    training.optimizer.step()
    training.optimizer.zero_grad()
    training.step += 1
    return total, count


def steps(training: Training, log: Log, show: Show) -> None:
    """Train to the last step; log, judge and save at multiples of the run's intervals."""
    part, setup = training.setup.run.training, training.setup
    ahead = Ahead(setup.train, training.device)
    training.model.train()
    begun, counted, first = time.perf_counter(), training.tokens, training.step
    while training.step < part.steps:
        loss, tokens = update(training, ahead(training.step + 1))
        training.loss, training.tokens = training.loss + loss, training.tokens + tokens
        show.step(training.step)
        last, better = training.step == part.steps, False
        if training.step % part.log_every == 0 or last:
            seconds = time.perf_counter() - begun
            pace = round((training.tokens - counted) / seconds, 1)
            row = {"kind": "train", "step": training.step, "loss": training.loss / training.tokens}
            row |= {"lr": training.optimizer.param_groups[0]["lr"], "tokens": training.tokens}
            row |= {"tokens_per_second": pace, "seconds": round(seconds, 3)}
            log(row)
            show.train(row, seconds / (training.step - first) * (part.steps - training.step))
            training.loss, training.tokens = 0.0, 0
            begun, counted, first = time.perf_counter(), 0, training.step
        if training.step % part.evaluate_every == 0 or last:
            paused = time.perf_counter()
            better = evaluated(training, log, show)
            begun += time.perf_counter() - paused
        if better or last or training.step % part.save_every == 0:
            state = training.state() | {"metrics_bytes": log.size()}
            save_checkpoint(training.folder, training.step, training.model, training.optimizer, state, {})
            prune(training.folder, training.step, max(part.keep, part.average), training.best_step)
    ahead.close()


def judged(training: Training) -> Verdict:
    """The weights as they are, moved into our spec, on the validation pairs."""
    ours = converted(training.model, training.setup.spec)
    return judge(replace(training.setup, model=ours), training.device)


def evaluated(training: Training, log: Log, show: Show) -> bool:
    """Judge and log; True when the weights are the best so far."""
    verdict = judged(training)
    log({"kind": "valid", "step": training.step, **verdict.row})
    show.say(f"step {training.step}  {verdict.line}")
    better = list(verdict.goodness) > training.best
    if better:
        training.best, training.best_step = list(verdict.goodness), training.step
    return better


def finish(training: Training, show: Show) -> str:
    """Keep the best of the last, the best and the averaged weights, as `oneblock train` does; returns which."""
    setup, paths = training.setup, sorted(training.folder.glob("step-*"))
    candidates = {"last": paths[-1:]}
    if training.best_step not in (None, training.step):
        candidates["best"] = [training.folder / f"step-{training.best_step:08d}"]
    if setup.run.training.average > 1:
        candidates["averaged"] = paths[-setup.run.training.average :]
    verdicts = {}
    for name, chosen in candidates.items():
        write_weights(training.model, average(chosen))
        verdicts[name] = judged(training)
        show.say(f"{name:>8}  {verdicts[name].line}")
    kept = max(verdicts, key=lambda name: verdicts[name].goodness)
    write_weights(training.model, average(candidates[kept]))
    return kept


def proven(training: Training) -> nn.Module:
    """The weights in our spec; ValueError when its logits are not those of nn.Transformer."""
    setup = training.setup
    ours = converted(training.model, setup.spec)
    batch = next(iter((setup.valid or setup.train).once())).to(training.device)
    training.model.eval()
    theirs = F.linear(training.model(batch), training.model.embedding.weight)
    difference = largest_difference(ours, batch, theirs)
    to_stderr(f"logits of nn.Transformer and of the same weights in our spec differ by at most {difference:.1e}")
    if not difference <= TOLERANCE:
        raise ValueError(f"logits differ by {difference:.1e}, expected at most {TOLERANCE:.0e}")
    return ours


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, train, convert, score."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baseline", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the run; one that exists is gone on with")
    parser.add_argument("--data", default=RECIPE, help="run file; default: the recipe of the translator")
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.json to use; by default trained as the run file says")
    parser.add_argument("--set", action="append", default=[], metavar="a.b=c", help="change a value of the run file")
    parser.add_argument("--dtype", default="auto", help="of matrix products: auto, float32, bfloat16")
    parser.add_argument("--threads", type=int, help="CPU threads; by default torch's choice")
    parser.add_argument("--limit", type=int, help="score only the first so many test pairs")
    options = parser.parse_args(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    changes = [tuple(change.split("=", 1)) for change in options.set]
    if options.tokenizer:
        changes.append(("tokenizer.path", json.dumps(str(options.tokenizer.resolve()))))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        run = Run.load(options.data, changes)
        training, size = begin(run, options.out, device, precision(options.dtype, device))
        count = sum(parameter.numel() for parameter in training.model.parameters())
        to_stderr(f"nn.Transformer, {count:,} parameters, {run.training.steps:,} steps from step {training.step:,}")
        proven(training)  # before the long part, and again at its end
        log = Log(options.out / "metrics.jsonl", size)
        with Show(run.training.steps, training.step, True) as show:
            steps(training, log, show)
            kept = finish(training, show)
        log.close()
        ours = proven(training)
        weights.save(ours, options.out)
        to_stderr(f"kept the {kept} weights in {options.out}")
        found = measure(Translator(ours, training.setup.tokenizer), run, limit=options.limit, say=to_stderr)
    except ValueError as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command goes on from the last checkpoint")
    print(f"nn.Transformer, {count:,} parameters, {run.training.steps:,} updates\n\n{markdown(found)}")


if __name__ == "__main__":
    main()
