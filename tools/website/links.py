"""Finds links between the pages of a website that lead nowhere."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """Collects the links and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, _: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            if name == "id" and value:
                self.anchors.add(value)


def read(file: Path) -> tuple[list[str], set[str]]:
    """Returns the links and the anchors of an HTML file."""
    page = _Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page.links, page.anchors


def broken_links(folder: Path) -> list[tuple[str, str]]:
    """Returns (page, link) of each link to a file or an anchor that does not exist."""
    pages = {file.resolve(): read(file) for file in sorted(folder.rglob("*.html"))}
    broken = []
    for file, (links, anchors) in pages.items():
        for link in links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            there = pages[target][1] if target in pages else anchors if target == file else None
            if not target.is_file() or (parts.fragment and there is not None and parts.fragment not in there):
                broken.append((str(file.relative_to(folder.resolve())), link))
    return broken
