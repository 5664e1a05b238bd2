"""python -m benchmarks.agreement: every family and head type over many random configs; goes on where it stopped.

Each comparison is one line of JSON in the record; the table of the worst figures is written from all of them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import transformers
from benchmarks.agreement import FAMILIES_FILES  # noqa: F401 - they register their cases
from benchmarks.agreement.cases import CASES, passed
from benchmarks.agreement.measure import measure

RECORDS = Path(__file__).resolve().parent.parent / "records"


def main() -> None:
    """Measure what is not in the record yet, then write the table; exit code 1 where a bound is passed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agreement", description=__doc__)
    parser.add_argument("--configs", type=int, default=20, help="random configs of each class")
    parser.add_argument("--family", choices=[*CASES], help="this family only")
    parser.add_argument("--record", type=Path, default=RECORDS / "agreement.jsonl")
    wanted = parser.parse_args()
    torch.set_num_threads(1)
    lines = wanted.record.read_text(encoding="utf-8").splitlines() if wanted.record.exists() else []
    done = {(row["family"], row["class"], row["config"]): row for row in map(json.loads, lines)}
    families = [wanted.family] if wanted.family else [*CASES]
    todo = [(f, name, i) for f in families for name in CASES[f].classes for i in range(wanted.configs)]
    for family, name, index in todo:
        if (family, name, index) in done:
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = measure(CASES[family], name, index, Path(folder))
        row = {"family": family, "class": name, "config": index, "found": found}
        done[family, name, index] = row
        with wanted.record.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{family} {name} {index + 1}/{wanted.configs}", file=sys.stderr)
    print(table(list(done.values())))
    sys.exit(any(passed(row["found"]) for row in done.values()))


def table(rows: list[dict[str, Any]]) -> str:
    """The worst figure of each check, for each class."""
    said = [
        f"transformers {transformers.__version__}, torch {torch.__version__}, float32 on a CPU\n",
        "| class | configs | logits | loss | gradients | greedy | beam 4 | saved and opened | bfloat16 ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["class"] for row in rows):
        found = [row["found"] for row in rows if row["class"] == name]

        def worst(part: str, found: list[dict[str, float]] = found) -> str:
            values = [far for one in found for check, far in one.items() if part in check]
            return "" if not values else "equal" if "tokens" in part and not max(values) else f"{max(values):.1e}"

        parts = ("logits", "loss", "gradients", "greedy tokens", "beam tokens", "saved and opened", "bfloat16 ratio")
        said.append(f"| {name} | {len(found)} | {' | '.join(map(worst, parts))} |")
    return "\n".join(said)


if __name__ == "__main__":
    main()
