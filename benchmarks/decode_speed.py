"""How fast does a language model write? `python -m benchmarks.decode_speed --shape gpt2 --batch 1`.

Ours, transformers' `generate` (a growing cache; with --compile also a static one, compiled) and ctranslate2 (float32,
int8) hold the same random weights and write after the same random prompts, taking turns. Reading the prompt is timed
apart. First it is checked that all who compute in float32 write the same tokens. Beside the figures stands the floor:
how often per second the weights that a step needs can be read from memory. Our weights are laid out for the batch, by
`oneblock.prepack`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from benchmarks.contest import Contender, ceilings, contest, fastest, machine, report, rows
from torch import Tensor

import oneblock

SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("gpt2", {}),
    "llama": ("llama", {"dim": 768, "depth": 12, "heads": 12, "hidden": 2048, "vocab": 32_000, "length": 1024}),
    "tiny": ("gpt2", {"dim": 64, "depth": 2, "heads": 4, "vocab": 1000}),
}
"""Shape -> (family, arguments): 124 M and 110 M parameters; the last one is for trying the script out."""
OURS, HALF, FOLLOWED = "oneblock", "oneblock bfloat16", "transformers"

Write = Callable[[Tensor, int], Tensor]
"""(prompts (batch, length), how many new tokens) -> new tokens (batch, new)."""


def parser() -> argparse.ArgumentParser:
    """What can be chosen."""
    found = argparse.ArgumentParser(prog="python -m benchmarks.decode_speed", description=__doc__)
    found.add_argument("--shape", choices=SHAPES, default="gpt2")
    found.add_argument("--batch", type=int, default=1)
    found.add_argument("--prompt", type=int, default=128, help="tokens of each prompt")
    found.add_argument("--new", type=int, default=32, help="tokens written after each")
    found.add_argument("--rounds", type=int, default=5)
    found.add_argument("--threads", type=int, default=torch.get_num_threads())
    found.add_argument("--prefill", action="store_true", help="time reading the prompts (and one new token) instead")
    found.add_argument("--compile", action="store_true", help="also compiled steps with static caches")
    found.add_argument("--json", metavar="FILE", help='also write the result as JSON; "-": print JSON only')
    return found


def ours(folder: Path, batch: int, dtype: torch.dtype = torch.float32, **options: Any) -> Write:
    """Our `generate`, as its documentation shows it."""
    bytes_ = dtype == torch.int8
    model = oneblock.load(folder, dtype=torch.float32 if bytes_ else dtype)
    oneblock.prepack(model, batch, dtype if bytes_ else None)

    def write(prompts: Tensor, new: int) -> Tensor:
        written: Tensor = oneblock.generate(model, prompts, max_new_tokens=new, eos_token_id=-1, **options)
        return written[:, prompts.shape[1] :]

    return write


def followed(folder: Path, dtype: torch.dtype = torch.float32, **options: Any) -> Write:
    """The `generate` of transformers."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
    model.generation_config.eos_token_id = None

    def write(prompts: Tensor, new: int) -> Tensor:
        mask = torch.ones_like(prompts)
        written = model.generate(
            prompts, attention_mask=mask, max_new_tokens=new, do_sample=False, pad_token_id=0, **options
        )
        return written[:, prompts.shape[1] :]

    return write


def translated(folder: Path, weights: str, threads: int) -> Write | None:
    """ctranslate2's generator, or None where it cannot read the model."""
    try:
        import ctranslate2

        made = str(folder.parent / f"ctranslate2-{weights}")
        ctranslate2.converters.TransformersConverter(str(folder)).convert(made, quantization=weights, force=True)
        generator = ctranslate2.Generator(made, device="cpu", compute_type=weights, intra_threads=threads)
    except Exception as error:
        print(f"ctranslate2 {weights}: left out ({type(error).__name__}: {str(error).splitlines()[0][:120]})")
        return None

    def write(prompts: Tensor, new: int) -> Tensor:
        words = [[f"w{token}" for token in row] for row in prompts.tolist()]
        found = generator.generate_batch(
            words, max_length=new, min_length=new, include_prompt_in_result=False, sampling_topk=1, end_token=[]
        )
        return torch.tensor([answer.sequences_ids[0] for answer in found])

    return write


def words(folder: Path, vocab: int) -> None:
    """A tokenizer whose words are numbers, which ctranslate2 needs to name its vocabulary."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    tokenizer = Tokenizer(WordLevel({f"w{i}": i for i in range(vocab)}, unk_token="w0"))
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="w0", bos_token="w1", eos_token="w2"
    )
    fast.save_pretrained(folder)


def floor(step_bytes: int) -> float:
    """How often per second so many bytes can be read: a matrix of 512 MiB times a vector, the best of some times."""
    matrix, vector = torch.ones(1 << 14, 1 << 13), torch.ones(1 << 13)
    return matrix.nbytes / fastest(lambda: matrix @ vector) / step_bytes


def read_each_step(model: torch.nn.Module) -> int:
    """Bytes of the weights that one token needs: all but the tables of which it looks up a row."""
    modules = (module for module in model.modules() if not isinstance(module, torch.nn.Embedding))
    weights = {weight for module in modules for weight in module.parameters(recurse=False)}
    return sum(weight.nbytes for weight in weights)


@torch.inference_mode()
def main() -> None:
    """Make the model, check, time, report."""
    wanted = parser().parse_args()
    torch.set_num_threads(wanted.threads)
    torch.manual_seed(0)
    family, sizes = SHAPES[wanted.shape]
    spec = oneblock.named(family, **sizes)
    vocab = spec.embedding.vocab
    with tempfile.TemporaryDirectory() as there:
        folder, model = Path(there) / "model", oneblock.build(spec)
        oneblock.save(model, folder, format="hf")
        words(folder, vocab)
        writers: dict[str, Write | None] = {
            OURS: ours(folder, wanted.batch),
            HALF: ours(folder, wanted.batch, torch.bfloat16),
            "oneblock int8": ours(folder, wanted.batch, torch.int8),
            FOLLOWED: followed(folder),
            "transformers bfloat16": followed(folder, torch.bfloat16),
            "ctranslate2": translated(folder, "float32", wanted.threads),
            "ctranslate2 int8": translated(folder, "int8", wanted.threads),
        }
        if wanted.compile:
            compiled: dict[str, Any] = {"compile": True, "cache": "static"}
            writers["oneblock compiled"] = ours(folder, wanted.batch, **compiled)
            writers["oneblock bfloat16 compiled"] = ours(folder, wanted.batch, torch.bfloat16, **compiled)
            writers["transformers compiled"] = followed(folder, cache_implementation="static")
    prompts = torch.randint(3, vocab, (wanted.batch, wanted.prompt))
    known = {name: write for name, write in writers.items() if write is not None}
    check = {"parameters": oneblock.parameters(spec)}
    expected = known[OURS](prompts, wanted.new)
    for name in (name for name in known if name != OURS and "bfloat16" not in name and "int8" not in name):
        same = (known[name](prompts, wanted.new) == expected).float().mean().item()
        check[f"tokens of {name} that are ours"] = f"{same:.0%}"
    new = 1 if wanted.prefill else wanted.new
    counted = wanted.batch * (wanted.prompt if wanted.prefill else wanted.new)
    before = ceilings()
    reads = floor(read_each_step(model))

    def turn(write: Write) -> Callable[[int], int]:
        return lambda _: (write(prompts, new), counted)[1]

    found = contest([Contender(name, turn(write)) for name, write in known.items()], wanted.rounds)
    check["float32 floor, steps/s"] = f"{reads:.1f} before, {floor(read_each_step(model)):.1f} after"
    result = {
        "command": f"decode_speed --shape {wanted.shape} --batch {wanted.batch} --prompt {wanted.prompt}"
        + f" --new {new}" + " --prefill" * wanted.prefill + " --compile" * wanted.compile,
        "machine": machine(), "ceilings": {"before": before, "after": ceilings()}, "check": check,
        "base": FOLLOWED, "memory": False, "contenders": rows(found, FOLLOWED),
    }  # fmt: skip
    report(result, wanted.json)


if __name__ == "__main__":
    main()
