"""Questions about routers: how much each chosen expert counts, whether all of it learns, and who is counted.

scores, shares (tokens, experts); weights (tokens, active), spread out in any way the module likes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.calling.reply import parts
from oneblock.check.copies import copied
from oneblock.check.finding import Fault, Where
from oneblock.check.questions.dead import gradients, moved
from oneblock.check.seeing.made import PRODUCTS, projection
from oneblock.check.seeing.watch import Operation, users
from oneblock.check.subject import Subject, fault, gap

AUXILIARY = ("aux", "balanc", "router", "z_loss", "load")
MOST_EXPERTS = 512
ABOVE = 1 + 1e-5


@dataclass
class Router:
    """One choice of experts: the `topk`, what it chose from, the weights that multiply what the experts give."""

    top: Operation
    experts: int
    active: int
    weights: list[tuple[Operation, Tensor]]
    scores: Operation | None

    @property
    def where(self) -> Where:
        """Where experts are chosen."""
        return self.top.where


def routers(subject: Subject) -> list[Router]:
    """Every choice of experts in one run. CannotAskError: there is none."""
    if "routers" not in subject.memo:
        operations = subject.watched(subject.ask(batch=4))[1]
        used = users(operations)
        tokens = 4 * subject.length
        subject.memo["routers"] = [
            router
            for one in operations
            if one.name in ("topk", "max", "argmax") and (router := chosen(one, tokens, operations, used))
        ]
    found: list[Router] = subject.memo["routers"]
    if not found:
        raise CannotAskError("no router that chooses among experts was found")
    return found


def chosen(
    one: Operation, tokens: int, operations: Sequence[Operation], used: dict[int, list[Operation]]
) -> Router | None:
    """A router, if an operation chooses a few of many for every token and experts' answers are multiplied with it."""
    x = one.operands[0]
    experts, active = x.shape[-1] if x.ndim else 0, one.result.shape[-1] if one.name == "topk" else 1
    if x.numel() != tokens * experts or not 1 < experts <= MOST_EXPERTS or active >= experts or not one.path:
        return None
    weights = multiplied(one, tokens * experts, used)
    scores = projection(one.sources[0], operations)
    return Router(one, experts, active, weights, scores) if weights else None


def multiplied(one: Operation, most: int, used: dict[int, list[Operation]]) -> list[tuple[Operation, Tensor]]:
    """(product, factor): what comes of a choice and multiplies something wider than itself."""
    front, seen, found = [one], {one.number}, []
    while front:
        at = front.pop(0)
        for user in used.get(at.number, []):
            for source, operand in zip(user.sources, user.operands, strict=False):
                if source != at.number or not operand.is_floating_point():
                    continue
                wide = user.result.numel() > operand.numel() and user.result.shape[-1] > 1
                product = user.name in PRODUCTS and wide and not any(user.weights)
                if product or (user.name == "mul" and wide and operand.shape[-1] == 1):
                    found.append((user, operand))
            if user.number not in seen and user.result.numel() <= most and user.name not in PRODUCTS:
                seen.add(user.number)
                front.append(user)
    return found


@asks("OB814", "router-weights")
def router_weights(subject: Subject) -> Iterator[Fault]:
    """What experts give is weighed by shares: none below 0, none above 1, together no more than 1 (or one constant)."""
    for router in routers(subject):
        numbers = torch.cat([x.flatten() for _, x in router.weights]).double()
        low, high = float(numbers.min()), float(numbers.max())
        if low < -1e-6:
            yield fault("router.raw", where=router.where, low=low, high=high)
            return
        if high > ABOVE and not constant_sum(router):
            yield fault("router.above", where=router.where, high=high, active=router.active)
            return


def constant_sum(router: Router) -> bool:
    """Whether the weights of every token have one sum, which scales all experts alike."""
    sums = [x.sum(-1) for _, x in router.weights if x.shape[-1] == router.active and router.active > 1]
    flat = torch.cat([x.flatten() for _, x in router.weights])
    if not sums and flat.numel() % router.active == 0 and router.active == 1:
        sums = [flat]
    return any(gap(x, x.flatten()[0].expand_as(x)) < 1e-5 for x in sums)


@asks("OB815", "router-config")
def router_config(subject: Subject) -> Iterator[Fault]:
    """Weights must be renormalised over the chosen experts exactly where the configuration says so."""
    said = getattr(subject.config, "norm_topk_prob", None)
    if not isinstance(said, bool):
        raise CannotAskError("no configuration says whether the weights are renormalised")
    for router in routers(subject):
        total = sum(float(x.double().sum()) for _, x in router.weights)
        tokens = router.top.operands[0].numel() // router.experts
        mean = total / tokens
        if said and abs(mean - 1) > 1e-4 and router.active > 1 and not constant_sum(router):
            yield fault("router.config", where=router.where, mean=mean, said="True")
            return
        if not said and abs(mean - 1) < 1e-6 and router.active > 1:
            yield fault("router.config", where=router.where, mean=mean, said="False")
            return


@asks("OB816", "experts-learn")
def experts_learn(subject: Subject) -> Iterator[Fault]:
    """Every expert, and the router itself, must get a gradient from enough tokens."""
    found = routers(subject)
    twin = copied(subject.copy())
    taught = [gradients(subject, twin, seed=seed) for seed in range(3)]
    names = {x.untyped_storage().data_ptr(): name for name, x in subject.copy().named_parameters()}
    for router in found:
        if router.scores is None:
            continue
        held = [x for x, weight in zip(router.scores.operands, router.scores.weights, strict=True) if weight]
        for x in held:
            name = names.get(x.untyped_storage().data_ptr())
            if name in taught[0] and x.ndim == 2 and not any(moved(one[name]) for one in taught):
                yield fault("router.untaught", where=Where(name.rpartition(".")[0]), weight=name)
                return
    for router in found:
        owner = router.where.module
        lost = lost_experts(twin, owner, router.experts, taught)
        if lost:
            path, missing = lost
            yield fault("experts.untaught", "warning", Where(path), missing=missing, experts=router.experts)
            return


def lost_experts(
    twin: nn.Module, owner: str, experts: int, taught: list[dict[str, Tensor | None]]
) -> tuple[str, int] | None:
    """(path, number) of experts that no token taught: elements of a list, or slices of stacked weights."""
    while True:
        part = twin.get_submodule(owner)
        for path, inner in part.named_modules(prefix=owner):
            if isinstance(inner, nn.ModuleList) and len(inner) == experts:
                dead = [n for n in range(experts) if not any_taught(f"{path}.{n}.", taught)]
                if dead:
                    return f"{path}.{dead[0]}", len(dead)
                return None
        stacked = [name for name in taught[0] if name.startswith(f"{owner}.") and stacks(taught, name, experts)]
        if stacked:
            total = sum(x.abs().flatten(1).sum(1) for one in taught if (x := one[stacked[0]]) is not None)
            count = int((total == 0).sum()) if isinstance(total, Tensor) else experts
            return (stacked[0].rpartition(".")[0], count) if count else None
        if not owner:
            return None
        owner = owner.rpartition(".")[0]


def any_taught(start: str, taught: list[dict[str, Tensor | None]]) -> bool:
    """Whether any weight below a path gets a gradient; parts that do not learn count as taught."""
    held = [name for name in taught[0] if name.startswith(start)]
    return not held or any(moved(one[name]) for one in taught for name in held)


def stacks(taught: list[dict[str, Tensor | None]], name: str, experts: int) -> bool:
    """Whether a weight holds one matrix per expert."""
    return any((x := one[name]) is not None and x.ndim == 3 and x.shape[0] == experts for one in taught)


@asks("OB817", "balance-padding")
def balance_padding(subject: Subject) -> Iterator[Fault]:
    """The loss that balances experts must not count padding."""
    routers(subject)
    subject.needs("real")
    ask = subject.ask()
    real = torch.ones(ask.tokens.shape[:2], dtype=torch.bool)
    real[1, ask.length // 2 :] = False
    tokens = ask.tokens.clone()
    if tokens.is_floating_point():
        tokens[~real] = 3.0 + tokens[~real]
    else:
        tokens[~real] = subject.others(tokens)[~real]
    asked = [ask.but(real=real), ask.but(real=real, tokens=tokens)]
    if "labels" in subject.adapter.takes:
        asked = [one.but(labels=ask.tokens.masked_fill(~real, -100)) for one in asked]
    plain, other = (balance(subject.answer(one).raw) for one in asked)
    if plain is None or other is None:
        raise CannotAskError("the module answers with no loss for the balance of experts")
    change = gap(other[1], plain[1])
    if change > max(subject.floor(), 1e-6):
        yield fault("balance.padding", where=routers(subject)[0].where, loss=plain[0], moved=change)


def balance(raw: object) -> tuple[str, Tensor] | None:
    """(name, value) of the loss that balances experts, in an answer."""
    for name, x in parts(raw):
        if isinstance(x, Tensor) and x.numel() == 1 and any(sign in name.lower() for sign in AUXILIARY):
            return name, x
    return None
