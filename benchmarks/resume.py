"""Does a run that is killed again and again end like one left alone? `python -m benchmarks.resume --kills 20`.

A tiny run of `oneblock train` is killed (SIGKILL) at random moments, some while it starts, some while it writes a
checkpoint, and resumed each time. In the end every file is compared with those of an unbroken run, bit for bit; of
metrics.jsonl all but the times. Prints a line per kill; exit code 1 when anything differs. For Linux and macOS.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import oneblock
from oneblock.train.checkpoint import read_state
from oneblock.train.log import read_rows
from oneblock.weights import read_tensors

COMMAND = [sys.executable, "-c", "from oneblock.cli import main; main()", "train"]
TIMES = ("seconds", "tokens_per_second")
PATIENCE = 900  # seconds without a sign of life before we give up

# Intervals without a common divisor, so that saves fall between log lines and evaluations.
RUN = """
seed = 7
[model]
name = "vaswani"
dim = 32
depth = 1
heads = 2
hidden = 64
[data]
pairs = "pairs.tsv"
valid = 12
[tokenizer]
vocab = 420
dropout = 0.1
[batch]
tokens = 300
accumulate = 2
[optimizer]
warmup = 10
[training]
steps = {steps}
log_every = 3
save_every = 5
evaluate_every = 17
keep = 2
average = 2
sample = 4
"""
WORDS = {
    "Tom": "汤姆", "Mary": "玛丽", "my friend": "我的朋友", "the teacher": "老师", "sees": "看见", "likes": "喜欢",
    "buys": "买", "a dog": "狗", "an apple": "苹果", "two books": "两本书", "the red car": "红色的车", "today": "今天",
    "every day": "每天", "at home": "在家",
}  # fmt: skip


@dataclass(frozen=True)
class Kill:
    """One kill: at which moment, and the step of the checkpoint that is gone on from (None: from the start)."""

    moment: str
    inside: bool
    goes_on: int | None


def write_run(folder: Path, steps: int) -> Path:
    """A corpus of made-up sentence pairs and a run file for it; returns the run file."""
    words = list(WORDS)
    parts = (words[:4], words[4:7], words[7:11], words[11:])
    rng = random.Random(1)
    lines = []
    for who, does, what, when in (map(rng.choice, parts) for _ in range(240)):
        chinese = "".join(WORDS[word] for word in (who, when, does, what))
        lines.append(f"{who} {does} {what} {when}.\t{chinese}。\n")
    (folder / "pairs.tsv").write_text("".join(dict.fromkeys(lines)), encoding="utf-8")
    (folder / "run.toml").write_text(RUN.format(steps=steps), encoding="utf-8")
    return folder / "run.toml"


@contextmanager
def training(file: Path, out: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`oneblock train` as a process, resuming when the folder is there; no process is left behind."""
    source = os.pathsep.join([str(Path(oneblock.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    known = os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    arguments = [str(file), "--out", str(out), "--device", "cpu", "--threads", "1"]
    arguments += ["--resume"] if out.exists() else []
    with (file.parent / "messages.txt").open("wb") as messages:
        process = subprocess.Popen([*COMMAND, *arguments], stdout=messages, stderr=messages, env=known)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def finished(file: Path, out: Path) -> float:
    """Train to the end; returns the seconds until the first line of metrics.jsonl. RuntimeError when training fails."""
    begun, first = time.monotonic(), 0.0
    with training(file, out) as process:
        while process.poll() is None:
            if not first and logged(out):
                first = time.monotonic() - begun
            time.sleep(0.01)
        alive(process, file)
    return first


def alive(process: subprocess.Popen[bytes], file: Path) -> bool:
    """Whether the process still runs; RuntimeError with its last line when it has failed."""
    if code := process.poll():
        lines = (file.parent / "messages.txt").read_text(encoding="utf-8").splitlines() or [""]
        raise RuntimeError(f"oneblock train ended with exit code {code}: {lines[-1]}")
    return code is None


def logged(out: Path) -> int:
    """The step of the last whole line of metrics.jsonl; 0 when there is none."""
    steps = [row["step"] for row in read_rows(out / "metrics.jsonl")]
    return steps[-1] if steps else 0


def kill(file: Path, out: Path, kind: str, step: int, startup: float, rng: random.Random) -> Kill | None:
    """Train, and kill: in the "start", a little after a `step`, or within a "save" after it. None: it ended first."""
    before = written(out)
    with training(file, out) as process:
        begun, wait = time.monotonic(), rng.uniform(0, startup)
        if kind == "start":
            while time.monotonic() - begun < wait and written(out) == before:
                time.sleep(0.01)
            moment = f"{time.monotonic() - begun:.1f} s after the start"
        else:
            while alive(process, file) and (written(out) == before or logged(out) < step):
                if time.monotonic() - begun > PATIENCE:
                    raise RuntimeError(f"oneblock train did not come to step {step} within {PATIENCE} s")
                time.sleep(0.001)
            moment = stopped_in_save(process, out, rng) if kind == "save" else after(out, rng)
        if not alive(process, file):
            return None
        process.send_signal(signal.SIGKILL)
        process.wait()
    return Kill(moment, kind == "save", whole(out))


def written(out: Path) -> int:
    """When metrics.jsonl was last written; what it held before that are steps of an earlier process, done again."""
    path = out / "metrics.jsonl"
    return path.stat().st_mtime_ns if path.exists() else 0


def after(out: Path, rng: random.Random) -> str:
    """Let a random part of the next steps pass."""
    time.sleep(rng.uniform(0, 0.1))
    return f"after step {logged(out)} or up to two more"


def stopped_in_save(process: subprocess.Popen[bytes], out: Path, rng: random.Random) -> str:
    """Wait until a checkpoint is half written and stop the process there; a save that is over by then is let go."""
    longest = 0.04  # seconds to let pass, so that other files of a save are half written too
    while process.poll() is None:
        if unfinished(out):
            time.sleep(rng.uniform(0, longest))
            process.send_signal(signal.SIGSTOP)
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                process.returncode = os.waitstatus_to_exitcode(status)
            elif found := unfinished(out):
                held = ", ".join(sorted(path.name for path in found[0].glob("*")))
                return f"inside a save: {found[0].name}{held and ' holds '}{held}"
            else:
                process.send_signal(signal.SIGCONT)
                longest /= 2
        time.sleep(0.0002)
    return "too late"


def unfinished(out: Path) -> list[Path]:
    """What a save is writing or taking away: checkpoints, and the files that follow them."""
    return [*(out / "checkpoints").glob(".tmp-*"), *out.glob(".tmp-*")]


def whole(out: Path) -> int | None:
    """The newest checkpoint's step, after making sure that every file under its final name is whole (ValueError)."""
    paths = sorted((out / "checkpoints").glob("step-*"))
    steps = [read_state(path)["step"] for path in paths]
    if (out / "model.safetensors").exists():
        read_tensors(out / "model.safetensors")
    return steps[-1] if steps else None


def differences(one: Path, two: Path) -> list[str]:
    """In what two run folders differ, times apart; empty when in nothing."""
    names = [{path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file()} for top in (one, two)]
    found = [f"{name}: only in one of the two" for name in sorted(names[0] ^ names[1])]
    for name in sorted(names[0] & names[1]):
        left, right = one / name, two / name
        if name == "metrics.jsonl":
            found += [f"{name}: {line}" for line in rows_that_differ(timeless(left), timeless(right))]
        elif name.endswith("state.json"):
            states = [json.loads(path.read_bytes()) | {"metrics_bytes": 0} for path in (left, right)]
            keys = [key for key in states[0] | states[1] if states[0].get(key) != states[1].get(key)]
            found += [f"{name}: {key} differs" for key in keys]
        elif left.read_bytes() != right.read_bytes():
            found.append(f"{name}: differs{tensors_that_differ(left, right)}")
    return found


def timeless(path: Path) -> list[dict[str, Any]]:
    """Rows of a metrics.jsonl without what a clock measured."""
    return [{key: value for key, value in row.items() if key not in TIMES} for row in read_rows(path)]


def rows_that_differ(left: Sequence[dict[str, Any]], right: Sequence[dict[str, Any]]) -> list[str]:
    """The first row that differs, and how many do; or how many rows there are when not as many."""
    found = [] if len(left) == len(right) else [f"{len(left)} and {len(right)} rows"]
    odd = [(at, a, b) for at, (a, b) in enumerate(zip(left, right, strict=False), 1) if a != b]
    return found + [f"{len(odd)} rows differ, the first is row {at}: {a} and {b}" for at, a, b in odd[:1]]


def tensors_that_differ(left: Path, right: Path) -> str:
    """The names of tensors that are not bit for bit equal, for safetensors files."""
    if left.suffix != ".safetensors":
        return ""
    one, two = read_tensors(left), read_tensors(right)
    names = [name for name in one if name not in two or one[name].numpy().tobytes() != two[name].numpy().tobytes()]
    return f" in {len(names)} of {len(one)} tensors: {', '.join(names[:3])}"


def say(line: str) -> None:
    """A line at once, also into a pipe."""
    print(line, flush=True)


def trial(
    folder: Path, kills: int, inside: int, seed: int = 1, say: Callable[[str], object] = say
) -> tuple[list[Kill], list[str]]:
    """An unbroken run, and one killed `kills` times, `inside` of them in a save: (the kills, what differs at last)."""
    if not 0 <= inside <= kills:
        raise ValueError(f"inside: expected 0 to {kills} (all kills), got {inside}")
    rng = random.Random(seed)
    steps = 80 + 10 * kills
    file = write_run(folder, steps)
    unbroken, broken = folder / "unbroken" / "run", folder / "broken" / "run"
    for run in (unbroken, broken):
        run.parent.mkdir()
    startup = finished(file, unbroken)
    say(f"unbroken run: {steps} steps, the first logged after {startup:.1f} s")
    starts = (kills - inside + 3) // 4
    kinds = ["save"] * inside + ["start"] * starts + ["step"] * (kills - inside - starts)
    rng.shuffle(kinds)
    done: list[Kill] = []
    for number, kind in enumerate(kinds):
        target = 1 + round((number + rng.random()) * 0.7 * steps / kills)
        found = kill(file, broken, kind, target, startup, rng)
        if found is None:
            say(f"kill {number + 1:>3}: too late, the run had ended")
            break
        done.append(found)
        onward = "from the start" if found.goes_on is None else f"from step {found.goes_on}"
        say(f"kill {number + 1:>3}: {found.moment}; all files whole; goes on {onward}")
    finished(file, broken)
    return done, differences(unbroken, broken)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, kill and compare."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resume", description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=20, help="how often the run is killed")
    parser.add_argument("--inside-a-save", type=int, default=5, help="how many of those while a checkpoint is written")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="oneblock-resume-"))
    try:
        done, found = trial(folder, options.kills, options.inside_a_save, options.seed)
    except (ValueError, RuntimeError) as error:
        sys.exit(f"{error}\nthe runs lie in {folder}")
    for line in found:
        print(f"differs: {line}")
    verdict = f"{len(found)} differences; the runs lie in {folder}" if found else "no difference from the unbroken run"
    print(f"{len(done)} of {options.kills} kills, {sum(kill.inside for kill in done)} inside a save: {verdict}")
    if found or len(done) < options.kills:
        sys.exit(1)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
