"""How a page looks: by day, by night and on paper."""

from __future__ import annotations

from oneblock.draw.style import FONTS

DAY = {
    "paper": "#ffffff", "ink": "#1f2328", "soft": "#59636e", "line": "#d5dae0", "card": "#f6f8fa", "link": "#0b57d0",
    "heat": "108 162 240", "cold": "243 176 104", "mark": "#b3261e",
}  # fmt: skip
NIGHT = {
    "paper": "#14171c", "ink": "#e6e8eb", "soft": "#a6afb9", "line": "#39414b", "card": "#1c2128", "link": "#8ab4f8",
    "heat": "44 98 184", "cold": "142 84 24", "mark": "#ffb4ab",
}  # fmt: skip


def colours(of: dict[str, str]) -> str:
    """Colours as custom properties."""
    return ":root{" + "".join(f"--{name}:{value};" for name, value in of.items()) + "}"


RULES = f"""
*{{box-sizing:border-box}}
html{{scroll-behavior:smooth;color-scheme:light dark}}
@media (prefers-reduced-motion:reduce){{html{{scroll-behavior:auto}}}}
body{{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 {FONTS}}}
main{{max-width:66rem;margin:0 auto;padding:1rem 1.25rem 12rem}}
h1{{font-size:1.6rem;line-height:1.3;margin:.5rem 0}}
h2{{font-size:1.25rem;margin:2.75rem 0 .5rem;padding-top:.75rem;border-top:2px solid var(--line)}}
h3{{font-size:1rem;margin:0}}
p{{margin:.3rem 0}}
a{{color:var(--link)}}
:focus-visible{{outline:3px solid var(--link);outline-offset:1px}}
[id]{{scroll-margin-top:.75rem}}
code,.f,.sum,td.n,.row{{font-family:ui-monospace,'Cascadia Mono','DejaVu Sans Mono',Consolas,Menlo,monospace,{FONTS}}}
.f{{color:var(--link);font-size:.92em}}
math{{color:var(--link)}}
th math,.soft math,.sizes math{{color:inherit}}
p.m{{margin:.45rem 0;overflow-x:auto;overflow-y:hidden;padding:.3rem 0 .15rem;
font-size:1.06em}}
p.m math[display=block]{{text-align:left;margin:0;width:max-content}}
.soft{{color:var(--soft);font-size:.86rem;overflow-wrap:anywhere}}
.skip{{position:absolute;left:-99rem}}.skip:focus{{left:1rem;top:1rem;background:var(--paper);padding:.5rem}}
nav ol{{columns:18rem;padding-left:1.3rem;margin:.3rem 0}}
.sizes{{display:flex;flex-wrap:wrap;gap:.35rem 1.1rem;margin:.6rem 0;padding:0;list-style:none;font-size:.9rem}}
.token{{display:inline-block;border:1px solid var(--line);border-radius:.3rem;padding:0 .35rem;margin:.1rem;
background:var(--card);white-space:pre}}
.step{{border:1px solid var(--line);border-radius:.5rem;padding:.7rem .9rem;margin:.7rem 0;background:var(--card)}}
.step header{{display:flex;flex-wrap:wrap;gap:.2rem .9rem;align-items:baseline}}
.no{{display:inline-block;min-width:1.7rem;color:var(--soft);font-weight:600}}
.shape{{font-weight:600;font-size:.9rem}}
.row{{white-space:pre-wrap}}
.row,.sum{{font-size:.87rem;overflow-wrap:anywhere;margin:.25rem 0}}
.sum b{{font-weight:700}}
.wide{{overflow-x:auto;margin:.5rem 0;padding:2px}}
table{{border-collapse:collapse;font-size:.85rem}}
caption{{text-align:left;font-weight:600;padding:.2rem 0;white-space:nowrap}}
ul.soft{{list-style:none;padding:0;margin:.3rem 0}}
[aria-current]{{outline:2px solid var(--mark);outline-offset:-1px}}
th,td{{padding:.15rem .45rem;text-align:right;border:1px solid var(--line)}}
th{{font-weight:600;white-space:pre}}
th[scope=row],td.w{{text-align:left}}
td.n{{min-width:3.6rem;background:rgb(var(--heat)/var(--a,0));white-space:nowrap}}
td.c{{background:rgb(var(--cold)/var(--a,0))}}
td.x{{background:repeating-linear-gradient(45deg,transparent 0 4px,var(--line) 4px 5px);color:var(--soft)}}
td.y{{outline:2px solid var(--mark);outline-offset:-2px}}
td.n .soft{{color:inherit}}
td.n a{{color:inherit;text-decoration:none;display:block}}
td.n a:hover{{text-decoration:underline}}
td.m{{text-align:center;min-width:1.9rem}}
.bar{{display:block;width:max(2px,calc(var(--w)*12rem));height:.8rem;border-radius:.15rem;background:rgb(var(--heat))}}
.tabs{{border:0;padding:0;margin:1rem 0;min-width:0}}
.tabs legend{{font-weight:600}}
.tabs>input{{position:absolute;opacity:0}}
.tabs>label{{display:inline-block;border:1px solid var(--line);border-radius:.35rem;padding:.1rem .6rem;
margin:.2rem .1rem;cursor:pointer}}
.tabs>input:checked+label{{background:rgb(var(--heat)/.45);font-weight:700}}
.tabs>input:focus-visible+label{{outline:3px solid var(--link)}}
.tabs>.tab{{display:none}}
.tab{{display:flex;flex-wrap:wrap;gap:.6rem 1.4rem;align-items:flex-start}}
.tab>.wide{{max-width:100%}}
.cell{{display:none}}
.cell:target{{display:block;position:fixed;z-index:9;left:0;right:0;bottom:0;max-height:42vh;overflow:auto;
background:var(--card);border-top:3px solid var(--link);padding:.7rem 1.25rem;box-shadow:0 -6px 24px rgb(0 0 0/.25)}}
.cell .back{{float:right}}
.grid{{display:flex;flex-wrap:wrap;gap:.7rem;margin:.2rem 0 1rem}}
figure{{margin:0}}
figcaption{{font-size:.78rem;color:var(--soft)}}
.grid img{{image-rendering:pixelated;border:1px solid var(--line);display:block}}
.flow{{text-align:center}}.flow svg{{max-width:100%;height:auto}}
.pair{{display:flex;flex-wrap:wrap;gap:1.5rem}}.pair>div{{min-width:0}}.pair .bar{{width:max(2px,calc(var(--w)*6rem))}}
main:has(.pair){{max-width:86rem}}
@media print{{main{{max-width:none;padding:0}}nav,.skip,.cell,.cell:target,.tabs>label{{display:none}}
.step,table,figure{{break-inside:avoid}}h2{{break-after:avoid}}
td.n,.bar,.grid img{{print-color-adjust:exact;-webkit-print-color-adjust:exact}}body{{font-size:12px}}
.wide{{overflow:visible}}}}
"""


def style(heads: int) -> str:
    """The style sheet of a page whose attentions have at most so many heads."""
    tabs = "".join(
        f".tabs>input:nth-of-type({at}):checked~.tab:nth-of-type({at}){{display:flex}}" for at in range(1, heads + 1)
    )
    night = f"@media screen and (prefers-color-scheme:dark){{{colours(NIGHT)}}}"
    return f"{colours(DAY)}{night}{RULES.replace(chr(10), '')}{tabs}"
