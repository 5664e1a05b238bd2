"""The ways in which one module can compute its attention: fused or written out, by whatever switch it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from oneblock.check.subject import Subject

BY_NAME = ("_attn_implementation", "attn_implementation", "attention_implementation", "attn_backend")
"""How a configuration names its kernel; each of these names is tried."""
KERNELS = ("eager", "sdpa")
BY_FLAG = (
    "flash",
    "use_flash",
    "use_sdpa",
    "fused",
    "fused_attn",
    "use_flash_attention",
    "flash_attention",
    "flash_attn",
)
"""How a part says that it uses the fused kernel."""
Switch = Callable[[], AbstractContextManager[None]]


def back_ends(subject: Subject) -> list[tuple[str, Switch]]:
    """(name, a context in which the eval copy uses it) of every other way than the one it uses unasked."""
    twin = subject.copy()
    found: list[tuple[str, Switch]] = []
    for name in BY_NAME:
        holders = {id(one): one for one in configs(twin) if type(getattr(one, name, None)) is str}
        if holders:
            own = {getattr(one, name) for one in holders.values()}
            found += [
                (kernel, lambda name=name, kernel=kernel, held=holders: put(list(held.values()), name, kernel))
                for kernel in KERNELS
                if own != {kernel} and getattr(twin, f"_supports_{kernel}", True)
            ]
            break
    for name in BY_FLAG:
        parts = [part for part in twin.modules() if type(getattr(part, name, None)) is bool]
        if parts:
            value = not getattr(parts[0], name)
            found.append((f"{name}={value}", lambda name=name, value=value, parts=parts: put(parts, name, value)))
    if "fused" not in subject.memo:
        subject.memo["fused"] = any(
            one.name.startswith("_scaled_dot_product") for one in subject.watched(subject.ask())[1]
        )
    if subject.memo["fused"]:
        found.append(("math kernel", lambda: sdpa_kernel([SDPBackend.MATH])))
    if any(isinstance(part, nn.MultiheadAttention) for part in twin.modules()):
        found.append(("slow path", slow_path))
    return found


def configs(module: nn.Module) -> list[Any]:
    """Every configuration that a part carries."""
    return [part.config for part in module.modules() if getattr(part, "config", None) is not None]


@contextmanager
def put(holders: list[Any], name: str, value: Any) -> Iterator[None]:
    """An attribute of several holders set inside the `with`."""
    was = [getattr(one, name) for one in holders]
    try:
        for one in holders:
            setattr(one, name, value)
        yield
    finally:
        for one, old in zip(holders, was, strict=True):
            setattr(one, name, old)


@contextmanager
def slow_path() -> Iterator[None]:
    """Torch's own attention layers without their fast path."""
    was = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(was)
