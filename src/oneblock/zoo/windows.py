"""Layers that look back only so far: all of them or some, and how a config.json says which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from oneblock.hint import nearest
from oneblock.spec import Causal, Mask, Model, Window, atoms, put
from oneblock.zoo.family import Config, Key

Windows = tuple[int | None, ...]
"""How many tokens each layer sees, itself among them; None: all before it. Repeated over the depth."""

FULL, LOCAL = "full_attention", "sliding_attention"


def behind(window: int | None) -> Mask:
    """The mask of a layer that sees the last `window` tokens, or everything before it.

    >>> behind(None)
    Causal()
    """
    return Causal() if window is None else Causal() & Window(window)


def windowed(spec: Model, windows: Windows) -> Model:
    """A spec whose layers see so far back, by turns; what was one object and sees as far stays one."""
    turns = [(block, windows[i % len(windows)]) for i, block in enumerate(spec.layers)]
    known = {(id(block), back): block for block, back in turns}
    made = {key: put(block, "attention.mask", behind(key[1])) for key, block in known.items()}
    return replace(spec, layers=tuple(made[id(block), back] for block, back in turns))


def windows(spec: Model) -> Windows:
    """How far back each layer of a spec sees."""
    rules = [atoms(block.attention.mask) if block.attention else () for block in spec.layers]
    return tuple(next((rule.back for rule in one if isinstance(rule, Window)), None) for one in rules)


def one_window(default: int | None) -> dict[str, Key]:
    """The key of a window that all layers have."""
    return {"sliding_window": Key("window", lambda spec: windows(spec)[0], default)}


def by_layer(default: int | None, local: Callable[[Config, int], bool]) -> dict[str, Key]:
    """The keys of a window that some layers have; `local` says whether layer i has it where no list is given."""

    def read(value: Any, config: Config) -> Windows:
        depth = config["num_hidden_layers"]
        kinds = value or [LOCAL if local(config, i) else FULL for i in range(depth)]
        for word in kinds:
            if word not in (FULL, LOCAL):
                raise ValueError(f"layer_types: {word!r} is no kind we know; {nearest(word, (FULL, LOCAL))}")
        if len(kinds) != depth:
            raise ValueError(f"layer_types: expected one for each of {depth} layers, got {len(kinds)}")
        window = config["sliding_window"] if config.get("use_sliding_window", True) else None
        if LOCAL in kinds and window is None:
            raise ValueError(f"layer_types: {LOCAL!r} needs a sliding_window, there is none")
        return tuple(window if word == LOCAL else None for word in kinds)

    def words(spec: Model) -> list[str]:
        return [FULL if window is None else LOCAL for window in windows(spec)]

    return {
        "layer_types": Key("windows", words, None, read),
        "sliding_window": Key(None, lambda spec: max((one for one in windows(spec) if one), default=default), default),
    }


def switched() -> dict[str, Key]:
    """The keys of a window that is off unless switched on, and then for the layers from some number on."""

    def local(config: Config, layer: int) -> bool:
        on = config["use_sliding_window"] and config["sliding_window"] is not None
        return bool(on and layer >= config["max_window_layers"])

    def first(spec: Model) -> int:
        return [*(one is not None for one in windows(spec)), True].index(True)

    return by_layer(4096, local) | {
        "use_sliding_window": Key(None, lambda spec: any(windows(spec)), False),
        "max_window_layers": Key(None, first, 28),
    }
