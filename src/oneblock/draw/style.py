"""The colours of a figure, by day, by night and on paper."""

from __future__ import annotations

FONTS = (
    "'Source Sans 3','Noto Sans','Helvetica Neue',Helvetica,Arial,"
    "'PingFang SC','Hiragino Sans GB','Noto Sans CJK SC','Source Han Sans SC','Microsoft YaHei',sans-serif"
)

INK = {
    "ink": ("#1f2328", "#e6e8eb"),
    "soft": ("#555d66", "#c0c7cf"),
    "paper": ("#ffffff", "#15181d"),
    "frame": ("#f4f5f6", "#1d2127"),
    "rim": ("#8b939c", "#5d6670"),
}
"""name -> (by day, by night)."""

FILLS = {
    "embedding": ("#f9dcdc", "#5c3239"),
    "position": ("#f9dcdc", "#5c3239"),
    "attention": ("#fee3bd", "#6a4a1c"),
    "norm": ("#f2f4c3", "#4b4e1a"),
    "feedforward": ("#c5e7f6", "#1d4d63"),
    "linear": ("#dfe1f3", "#3d4270"),
    "softmax": ("#cfe9d3", "#24532f"),
}
"""The role of a box -> (by day, by night); the hues are those of the figure of 2017."""


def _colours(night: bool) -> str:
    ink, soft, paper, frame, rim = (INK[name][night] for name in ("ink", "soft", "paper", "frame", "rim"))
    rules = {
        ".paper": f"fill:{paper}",
        ".frame": f"fill:{frame};stroke:{rim}",
        ".bracket": f"fill:none;stroke:{rim};stroke-dasharray:4 3",
        ".wire,.stroke": f"fill:none;stroke:{ink}",
        ".thin": f"fill:none;stroke:{rim}",
        ".arrow,.dot,.name,.letter,.label,.times": f"fill:{ink}",
        ".detail,.note,.caption": f"fill:{soft}",
        ".plus,.knob,.badge,.glyph": f"fill:{paper};stroke:{ink}",
        ".seen": f"fill:{ink}",
    } | {f".{role}": f"fill:{fill[night]};stroke:{ink}" for role, fill in FILLS.items()}
    return "".join(f"{_inside(names)}{{{style}}}" for names, style in rules.items())


def _inside(names: str) -> str:
    """The selectors, made to hold only inside our figure, so that a page around it keeps its own colours."""
    return ",".join(f".oneblock {name}" for name in names.split(","))


STYLE = (
    f".oneblock{{font-family:{FONTS}}}"
    ".oneblock rect,.oneblock circle{stroke-width:1}"
    ".oneblock .wire,.oneblock .stroke{stroke-width:1.2;stroke-linecap:round;stroke-linejoin:round}"
    ".oneblock .thin{stroke-width:.8}.oneblock .glyph{stroke-width:.7}"
    ".oneblock .seen,.oneblock .paper{stroke:none}"
    ".oneblock .letter{font-family:'STIX Two Text','Times New Roman',Times,serif;font-style:italic}"
    f"{_colours(night=False)}"
    f"@media screen and (prefers-color-scheme:dark){{{_colours(night=True)}}}"
)
"""The style sheet that every figure carries; it names nothing outside the figure."""
