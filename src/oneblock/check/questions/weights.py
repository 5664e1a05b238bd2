"""Questions about what is stored: weights shared as they should be, found again after saving, under their own names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.copies import copied, shake, undisturbed
from oneblock.check.finding import Fault, Where
from oneblock.check.subject import Subject, fault, gap

WRAPPERS = ("OptimizedModule", "DataParallel", "DistributedDataParallel", "FullyShardedDataParallel")
PREFIXES = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")


def tables(module: nn.Module) -> tuple[list[tuple[str, Tensor]], list[tuple[str, Tensor]]]:
    """((name, weight) of every table of ids, (name, weight) of every head of the same shape as one)."""
    ids = [(f"{path}.weight", part.weight) for path, part in module.named_modules() if isinstance(part, nn.Embedding)]
    shapes = {weight.shape for _, weight in ids if weight.shape[0] > weight.shape[1]}
    heads = [
        (f"{path}.weight", weight)
        for path, part in module.named_modules()
        if not isinstance(part, nn.Embedding)
        and isinstance(weight := getattr(part, "weight", None), Tensor)
        and weight.shape in shapes
    ]
    return ids, heads


@asks("OB801", "saved")
def saved(subject: Subject) -> Iterator[Fault]:
    """A module that reads its own saved weights must answer as before; nothing that it needs may stay behind."""
    lost = list(unregistered(subject.module))
    yield from lost
    if lost:
        return
    twin = copied(subject.copy())
    held = {name: x.detach().clone() for name, x in twin.state_dict().items() if isinstance(x, Tensor)}
    ask = subject.ask()
    plain = subject.answer(ask, module=twin).y
    with undisturbed(subject.seed + 1):
        shake(twin)
    try:
        twin.load_state_dict(held, strict=True)
    except Exception as error:
        said = " ".join((str(error).strip() or type(error).__name__).split())[:160]
        yield fault("saved.refused", said=said)
        return
    moved = gap(subject.answer(ask, module=twin).y, plain)
    if moved > subject.floor():
        missing = [name for name, x in twin.named_parameters(remove_duplicate=False) if name not in held]
        where = Where(missing[0].rpartition(".")[0]) if missing else Where()
        yield fault("saved.incomplete", where=where, moved=moved, weight=missing[0] if missing else "?")


def unregistered(module: nn.Module) -> Iterator[Fault]:
    """Modules and weights in plain lists and dicts: they are not trained, not saved, not moved."""
    known = {id(x) for x in module.modules()} | {id(x) for x in module.parameters()}
    for path, part in module.named_modules():
        for name, value in vars(part).items():
            if name.startswith("_") or not isinstance(value, list | tuple | dict):
                continue
            held = value.values() if isinstance(value, dict) else value
            lost = [x for x in held if learns(x) and id(x) not in known]
            if lost:
                yield fault("saved.unregistered", where=Where(path), attribute=name, count=len(lost))


def learns(x: Any) -> bool:
    """Whether a thing is a weight, or holds one."""
    return isinstance(x, nn.Parameter) or (isinstance(x, nn.Module) and any(True for _ in x.parameters()))


@asks("OB802", "tied")
def tied(subject: Subject) -> Iterator[Fault]:
    """Table and head that are meant to be one must be one parameter, through copies, saving and training."""
    module = subject.module
    yield from shared_by_data(module)
    ids, heads = tables(module)
    for name, weight in heads:
        twins = [(other, table) for other, table in ids if table.shape == weight.shape]
        if any(one is weight or one.data_ptr() == weight.data_ptr() for _, one in twins):
            continue
        equal = [other for other, one in twins if torch.equal(one, weight) and bool((one != one.flatten()[0]).any())]
        if equal:
            yield fault("tied.copied", "warning", Where(name.rpartition(".")[0]), head=name, table=equal[0])


def shared_by_data(module: nn.Module) -> Iterator[Fault]:
    """Two parameters over one memory: copies, casts and optimizers take them for two."""
    seen: dict[tuple[int, int], tuple[str, Tensor]] = {}
    for name, x in module.named_parameters(remove_duplicate=False):
        if x.device.type == "meta" or not x.numel():
            continue
        other, first = seen.setdefault((x.data_ptr(), x.numel()), (name, x))
        if first is not x:
            yield fault("tied.by_data", where=Where(name.rpartition(".")[0]), weight=name, other=other)


@asks("OB803", "tied-config")
def tied_config(subject: Subject) -> Iterator[Fault]:
    """Where the configuration says that table and head are tied, they must be."""
    config = subject.config
    said = next(
        (name for name in ("tie_word_embeddings", "tie_weights", "weight_tying") if hasattr(config, name)), None
    )
    if said is None or getattr(config, said) is not True:
        raise CannotAskError("no configuration says that table and head are tied")
    ids, heads = tables(subject.module)
    if not heads:
        raise CannotAskError("the module has no head as large as a table of ids")
    for name, weight in heads:
        if not any(one is weight or one.data_ptr() == weight.data_ptr() for _, one in ids):
            table = next(other for other, one in ids if one.shape == weight.shape)
            yield fault("tied.lost", where=Where(name.rpartition(".")[0]), head=name, table=table, setting=said)


@asks("OB804", "prefixes")
def prefixes(subject: Subject) -> Iterator[Fault]:
    """Saved names must not tell how the module was wrapped when it was saved."""
    names = list(subject.module.state_dict())
    for path, part in subject.module.named_modules():
        wrapped = type(part).__name__ in WRAPPERS and len(part._modules) == 1
        inner = next((name for name in part._modules if name in PREFIXES), None) or (
            next(iter(part._modules)) if wrapped else None
        )
        if inner is not None:
            start = f"{path}.{inner}." if path else f"{inner}."
            count = sum(name.startswith(start) for name in names)
            if count:
                yield fault("saved.prefix", "warning", Where(path), prefix=f"{inner}.", count=count)
                return
