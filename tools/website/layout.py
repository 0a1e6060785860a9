"""Puts the body of a page into the frame that all pages of the website share, and writes it."""

from __future__ import annotations

import html
import os
from dataclasses import dataclass, field
from pathlib import Path

_STYLE = Path(__file__).with_name("site.css")
SECTIONS = {
    "index.html": "TensorLens",
    "lessons/index.html": "Lessons",
    "errors/index.html": "Manual",
    "docs/hardest.html": "Ten hard errors",
    "docs/index.html": "Guides",
    "reference.html": "Reference",
}
"""The pages in the navigation, with their titles."""


@dataclass
class Site:
    """A folder that takes the pages."""

    folder: Path
    written: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "site.css").write_text(_STYLE.read_text(encoding="utf-8"), encoding="utf-8")

    def write(self, path: str, title: str, body: str) -> None:
        """Writes a page; `path` is relative to the folder, `body` is HTML."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(framed(path, title, body), encoding="utf-8")
        self.written.append(path)

    def write_file(self, path: str, data: bytes) -> None:
        """Writes a file that pages refer to: a picture, or a report that is a page of its own."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def relative(path: str, page: str) -> str:
    """Returns the link to `path` from `page`."""
    return os.path.relpath(path, os.path.dirname(page) or ".").replace(os.sep, "/")


def framed(path: str, title: str, body: str) -> str:
    """Returns the whole page."""
    links = "\n".join(_link(target, text, path) for target, text in SECTIONS.items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{html.escape(title)} · TensorLens</title>
<link rel="stylesheet" href="{relative("site.css", path)}">
</head>
<body>
<a class="skip" href="#content">to the content</a>
<nav aria-label="Sections">
{links}
</nav>
<main id="content">
{body}
</main>
</body>
</html>
"""


def _link(target: str, text: str, page: str) -> str:
    folder = os.path.dirname(target)
    here = target == page or (folder and folder != "docs" and os.path.dirname(page) == folder)
    current = ' aria-current="page"' if target == page else ' aria-current="true"' if here else ""
    return f'<a href="{relative(target, page)}"{current}>{html.escape(text)}</a>'
