"""FLOPs of a model as torch's counter counts them on meta tensors: no weights, no arithmetic, only shapes.

ids: (batch, length); on meta nothing has a value, so a count cannot depend on one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from oneblock.bricks import EncoderDecoder, build_model
from oneblock.cache import make
from oneblock.cost import Job
from oneblock.spec import Spec


def grouped(x: Any, weight: Any, *_: Any, **__: Any) -> int:
    """FLOPs of a grouped product: (rows, a) by one (a, b) of many, or (a, rows) by (rows, b), the rows cut in groups.

    Torch's counter has no formula for it. The arguments are shapes.

    >>> grouped((80, 32), (8, 32, 48)) == grouped((32, 80), (80, 48)) == 2 * 80 * 32 * 48
    True
    """
    return int(2 * x[0] * x[1] * weight[-1])


class Shapes(TorchDispatchMode):
    """Gives meta tensors what torch has not given them: how often each number comes, and those counts as a list.

    All then come for the first expert: however rows are cut among matrices of one size, their products cost the same.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.aten.bincount.default and args[0].is_meta:
            self.rows = args[0].numel()
            least = args[2] if len(args) > 2 else kwargs.get("minlength", 0)
            return torch.empty(least, dtype=torch.long, device="meta")
        if func is torch.ops.aten._to_copy.default and args[0].is_meta and kwargs.get("device") == torch.device("cpu"):
            return torch.tensor([self.rows] + [0] * (len(args[0]) - 1), device="cpu")
        return func(*args, **kwargs)


def flops(work: Callable[[], object]) -> dict[str, int]:
    """FLOPs of what `work` does, by module: "" for all of it, "layers.0.attention" for what happens inside that.

    >>> layer = nn.Linear(2, 3, device="meta")
    >>> flops(lambda: layer(torch.empty(5, 2, device="meta")))[""]
    60
    """
    formulas = {torch.ops.aten._grouped_mm: grouped}
    with Shapes(), FlopCounterMode(display=False, custom_mapping=formulas) as counter, torch.device("meta"):
        work()
    found: dict[str, int] = {"": counter.get_total_flops()}
    for name, by_operation in counter.get_flop_counts().items():
        inside = name.partition(".")[2]
        if inside:
            found[inside] = found.get(inside, 0) + sum(by_operation.values())
    return found


def on_meta(spec: Spec, dtype: torch.dtype = torch.bfloat16) -> nn.Module:
    """The module of a spec without weights."""
    with torch.device("meta"):
        return build_model(spec).to(dtype)


def ids(batch: int, length: int, device: str = "meta", vocab: int = 1) -> Tensor:
    """Token ids, random where they have a value."""
    return torch.randint(vocab, (batch, length), device=device)


def forward(model: Any, job: Job, device: str = "meta", vocab: int = 1) -> Callable[[], Any]:
    """What a job's forward pass is, to be called once; of a decode the cache is filled here, before."""

    def some(length: int) -> Tensor:
        return ids(job.batch, length, device, vocab)

    pair = isinstance(model, EncoderDecoder)
    if job.phase != "decode":
        read, written = some(job.read if pair else job.length), some(job.length)
        return lambda: model(read, decoder_input_ids=written) if pair else model(read)
    cache, past, new = make(model.spec.decoder if pair else model.spec), some(job.length), some(1)
    with Shapes():
        if not pair:
            model(past, cache=cache)
            return lambda: model(new, cache=cache)
        memory = model.encode(some(job.read))
        model(encoder_outputs=memory, decoder_input_ids=past, cache=cache)
        return lambda: model(encoder_outputs=memory, decoder_input_ids=new, cache=cache)


def answer(out: Any) -> Tensor:
    """The tensor that a model's output is about: logits, a vector per text, or the final stream."""
    found = (out.logits, out.pooled, None if out.encoder_outputs is None else out.encoder_outputs.x)
    tensor: Tensor = next(x for x in found if x is not None)
    return tensor
