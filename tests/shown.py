"""What tests of shown traces share: hostile strings, a page read as elements, a browser without a screen."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest

HOSTILE = (
    "<script>document.title='pwned'</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg onload=alert(1)>",
    "</style><script>document.title='pwned'</script>",
    "</title><script>document.title='pwned'</script>",
    "</textarea><iframe src=https://example.com>",
    "javascript:alert(1)",
    "<a href=javascript:alert(1)>x</a>",
    "<img src=https://example.com/x.png>",
    "<link rel=stylesheet href=//example.com/x.css>",
    "<base href=https://example.com/>",
    "<meta http-equiv=refresh content='0;url=https://example.com'>",
    "<form action=https://example.com><button>x</button></form>",
    "<object data=https://example.com></object>",
    "<embed src=https://example.com>",
    "<video><source onerror=alert(1)></video>",
    "<details open ontoggle=alert(1)>",
    "<math><mtext></mtext></math>",
    "<style>@import url(https://example.com/x.css);</style>",
    "<!-- ",
    "--> <b>",
    "<![CDATA[ <b> ]]>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;b&#62;",
    '" onmouseover="alert(1)" x="',
    "' autofocus onfocus='alert(1)",
    "`${alert(1)}`",
    "{{7*7}}<%= 7 %>",
    "\x00<b>\x1b[2J\r\n",
    "\u202e<b>\u2066 \ud800",
    "}body{background:url(https://example.com/x.png)}",
    "\\3c b\\3e",
)


@dataclass
class Element:
    """A tag, its attributes, the text directly or anywhere inside it."""

    tag: str
    attributes: dict[str, str]
    text: list[str] = field(default_factory=list)

    @property
    def said(self) -> str:
        return "".join(self.text)


class Page(HTMLParser):
    """The elements of a page in order."""

    EMPTY = ("meta", "img", "input")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.open: list[Element] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))
        if tag not in self.EMPTY:
            self.open.append(self.elements[-1])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text.append(data)

    def of(self, tag: str) -> list[Element]:
        return [element for element in self.elements if element.tag == tag]

    @property
    def bones(self) -> list[tuple[str, tuple[str, ...]]]:
        """Tags with the names of their attributes."""
        return [(element.tag, tuple(element.attributes)) for element in self.elements]


def browse(path: Path, *options: str) -> tuple[str, list[str]]:
    """(the page as the browser has it after running, what its console said). Skips where there is no Chromium."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip(f"none of {', '.join(names)} is on this machine: this test looks at a page in a browser")
    call = [
        found,
        "--headless",
        "--disable-gpu",
        "--enable-logging=stderr",
        f"--user-data-dir={path.parent / 'profile'}",
    ]
    call += ["--no-sandbox"] if hasattr(os, "getuid") and os.getuid() == 0 else []
    done = subprocess.run([*call, *options, "--dump-dom", path.as_uri()], capture_output=True, check=True, timeout=120)
    console = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if ":CONSOLE" in line]
    return done.stdout.decode("utf-8", "replace"), console
