"""The training loop: step, log, look at held-out sentences, save; and go on after a crash as if nothing had been."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch

from oneblock.files import write_file
from oneblock.train.checkpoint import newest, prune, regular, restore, save_checkpoint, steps
from oneblock.train.config import Run
from oneblock.train.curve import curve
from oneblock.train.finish import finish, publish_best
from oneblock.train.interrupt import Interrupt
from oneblock.train.judge import judge
from oneblock.train.log import Log, Show, read_rows
from oneblock.train.optimizer import make_optimizer
from oneblock.train.same import check
from oneblock.train.schedule import rate
from oneblock.train.setup import Setup, open_folder, prepare, write_head
from oneblock.train.stream import Ahead
from oneblock.train.task import precision, reseed, update
from oneblock.weights.words import device_of

__all__ = ["Result", "State", "train"]


@dataclass(frozen=True)
class Result:
    """What came out: the folder, the last step, which weights were kept ("last", "best", "averaged"), their scores."""

    out: Path
    step: int
    kept: str
    scores: dict[str, Any]


@dataclass
class State:
    """Where a run stands; a checkpoint holds it."""

    step: int = 0
    best: tuple[float, float] | None = None  # mean BLEU and minus the validation loss, what is chosen by first
    best_step: int | None = None
    waited: int = 0  # evaluations since the best one
    stopped: bool = False
    loss: float = 0.0  # summed since the last log line
    tokens: int = 0
    steps: int = 0
    norm: float = 0.0


@dataclass
class Loop:
    """The parts that one training process works with."""

    setup: Setup
    optimizer: torch.optim.Optimizer
    state: State
    log: Log
    show: Show
    device: torch.device
    dtype: torch.dtype
    seconds: float = 0.0  # of training since the last log line
    pace: list[float] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """Where the checkpoints lie."""
        return self.setup.out / "checkpoints"


def train(
    run: Run,
    out: str | Path,
    *,
    resume: bool = False,
    progress: bool = True,
    device: str = "auto",
    dtype: str = "auto",
    threads: int | None = None,
) -> Result:
    """Train a translation model as `run` says, into the folder `out`; with `resume`, go on from its newest checkpoint.

    A resumed run is bit for bit the unbroken one (same machine, same threads, same versions). `device` "auto" is a GPU
    where there is one; `dtype` is that of the matrix products ("auto": see `precision`); `threads`
    of torch, default its own choice. Ctrl-C ends the step, saves, and raises KeyboardInterrupt; a second one at once.
    Raises ValueError, one line, for bad data or settings, a folder in use, a run that is not the one to resume, a loss
    that is not finite; OSError when a checkpoint cannot be written.
    """
    out = Path(out)
    if threads is not None:
        torch.set_num_threads(threads)
    where = device_of(device)
    kind = precision(dtype, where)
    open_folder(out, resume)
    setup = prepare(run, out, where)
    optimizer = make_optimizer(setup.model, run.optimizer)
    with Show(run.training.steps, 0, progress) as show:
        state, size = _resume(setup, optimizer, show) if resume else (State(), 0)
        write_head(setup, kind)
        show.begin(state.step)
        log = Log(out / "metrics.jsonl", size)
        loop = Loop(setup, optimizer, state, log, show, where, kind)
        if resume and not state.step:
            show.say(f"{out}: no checkpoint to resume from, so this is a new start")
        if setup.train.left_out:
            show.say(f"{setup.train.left_out} examples longer than {setup.train.longest} tokens left out")
        try:
            with Interrupt() as interrupt:
                _steps(loop, interrupt)
                kept, scores = _finish(loop, interrupt)
        finally:
            log.close()
    _draw(setup)
    return Result(out, state.step, kept, scores)


def _steps(loop: Loop, interrupt: Interrupt) -> None:
    """Run to the last step or an early stop; on the way, everything happens at multiples of its own interval."""
    part, state = loop.setup.run.training, loop.state
    ahead = Ahead(loop.setup.train, loop.device)
    loop.setup.model.train()
    try:
        while state.step < part.steps and not state.stopped:
            _step(loop, ahead)
            better = False
            if state.step % part.log_every == 0 or state.step == part.steps:
                _log(loop)
            if loop.setup.valid and (state.step % part.evaluate_every == 0 or state.step == part.steps):
                better = _evaluate(loop)
            due = state.step % part.save_every == 0 or state.step == part.steps
            if better or due or state.stopped or interrupt.asked:
                _save(loop, better)
            if interrupt.asked:
                loop.show.say(f"step {state.step}  interrupted and saved; --resume goes on")
                raise KeyboardInterrupt(f"step {state.step}")
    finally:
        ahead.close()


def _finish(loop: Loop, interrupt: Interrupt) -> tuple[str, dict[str, Any]]:
    """The final scoring; it reads checkpoints and writes nothing before its end, so that it may be stopped anywhere."""
    try:
        interrupt.at_once()
        return finish(loop.setup, loop.folder, loop.state.best_step, loop.log, loop.show, loop.device)
    except KeyboardInterrupt:
        loop.show.say("interrupted in the final scoring; every checkpoint is kept, --resume finishes")
        raise


def _step(loop: Loop, ahead: Ahead) -> None:
    run, state = loop.setup.run, loop.state
    begun = time.perf_counter()
    step = state.step + 1
    reseed(run.seed, step)
    cast = torch.autocast(loop.device.type, torch.bfloat16) if loop.dtype == torch.bfloat16 else nullcontext()
    try:
        done = update(
            loop.setup.model,
            loop.optimizer,
            ahead(step),
            lr=rate(step, run.optimizer, run.training.steps),
            smoothing=run.training.label_smoothing,
            clip=run.optimizer.clip,
            autocast=cast,
        )
    except ValueError as error:
        raise ValueError(f"step {step}: {error}; lower optimizer.lr or lengthen optimizer.warmup") from None
    state.step = step
    if done:
        state.loss, state.tokens = state.loss + done.loss, state.tokens + done.tokens
        state.norm, state.steps = state.norm + done.norm, state.steps + 1
    loop.seconds += time.perf_counter() - begun
    loop.show.step(step)


def _log(loop: Loop) -> None:
    run, state = loop.setup.run, loop.state
    seconds = max(loop.seconds, 1e-9)
    loop.pace = [*loop.pace[-9:], seconds / max(state.steps, 1)]
    row = {
        "kind": "train",
        "step": state.step,
        "epoch": loop.setup.train.batches.epoch(state.step * run.batch.accumulate - 1),
        "loss": state.loss / max(state.tokens, 1),
        "lr": rate(state.step, run.optimizer, run.training.steps),
        "norm": state.norm / max(state.steps, 1),
        "tokens": state.tokens,
        "tokens_per_second": round(state.tokens / seconds, 1),
        "seconds": round(seconds, 3),
    }
    loop.log(row)
    loop.show.train(row, sum(loop.pace) / len(loop.pace) * (run.training.steps - state.step))
    state.loss, state.tokens, state.norm, state.steps, loop.seconds = 0.0, 0, 0.0, 0, 0.0


def _evaluate(loop: Loop) -> bool:
    """Judge the weights as they are; True when they are the best so far."""
    part, state = loop.setup.run.training, loop.state
    verdict = judge(loop.setup, loop.device)
    loop.log({"kind": "valid", "step": state.step, **verdict.row})
    loop.show.say(f"step {state.step}  {verdict.line}")
    better = state.best is None or verdict.goodness > tuple(state.best)
    if better:
        state.best, state.best_step, state.waited = verdict.goodness, state.step, 0
    else:
        state.waited += 1
        if part.patience and state.waited >= part.patience:
            state.stopped = True
            loop.show.say(f"step {state.step}  stopped early: no better {part.choose} in {state.waited} evaluations")
    return better


def _save(loop: Loop, better: bool) -> None:
    """A checkpoint; only when it is on the disk are older ones removed and the best weights shown to the world.

    Until the first evaluation the best are the last: a run folder is of use from its first save on.
    """
    setup, part = loop.setup, loop.setup.run.training
    state = {**asdict(loop.state), "metrics_bytes": loop.log.size(), "identity": setup.identity, "parts": setup.parts}
    spec = (setup.out / "spec.json").read_bytes()
    save_checkpoint(loop.folder, loop.state.step, setup.model, loop.optimizer, state, {"spec.json": spec})
    past = [step for step in steps(loop.folder) if step <= loop.state.step]
    averaged = regular(past, part.save_every, part.average)
    prune(loop.folder, loop.state.step, part.keep, loop.state.best_step, *averaged)
    if better or not setup.valid or loop.state.best_step is None:
        publish_best(setup)
    _draw(setup)


def _resume(setup: Setup, optimizer: torch.optim.Optimizer, show: Show) -> tuple[State, int]:
    """The state of the newest valid checkpoint, its weights and moments loaded; a fresh state when there is none."""
    found = newest(setup.out / "checkpoints", show.warn)
    if found is None:
        return State(), 0
    path, saved = found
    check(path, saved, setup.identity, setup.parts, setup.spec, setup.run)
    restore(setup.model, optimizer, path)
    state = State(**{item.name: saved[item.name] for item in fields(State)})
    state.stopped = 0 < setup.run.training.patience <= state.waited
    return state, saved["metrics_bytes"]


def _draw(setup: Setup) -> None:
    rows = read_rows(setup.out / "metrics.jsonl")
    write_file(setup.out / "curve.svg", curve(rows, f"learning curve of {setup.out.name}").encode())
