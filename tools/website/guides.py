"""Writes the pages of the README and of the files in `docs/`, with the pictures and files that they refer to."""

from __future__ import annotations

import os
import re
from pathlib import Path

from support.folders import DOCS, ROOT

from tensorlens.lessons.bundled import lessons
from tensorlens.records.error_messages import entries
from tools.website.layout import Site
from tools.website.markdown_html import to_html

_COPIED = {".svg", ".png", ".csv", ".json", ".py"}  # what a guide may show or offer


def known_pages() -> frozenset[str]:
    """Returns the pages of all lessons and codes."""
    return frozenset(
        [*(f"lessons/{each.name}.html" for each in lessons()), *(f"errors/{each.code}.html" for each in entries())]
    )


def write(site: Site) -> None:
    """Writes the front page, the guides, and a list of these."""
    files = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
    titles = {}
    for file in files:
        text = file.read_text(encoding="utf-8")
        page = _page(file)
        title = re.sub(r"[`*]", "", text.partition("\n")[0].lstrip("# ").strip())
        titles[page] = title
        site.write(page, title, to_html(text, page, lambda link, file=file: _target(link, file, site), known_pages()))  # type: ignore[misc]
    listed = "\n".join(
        f'<li><a href="{page.removeprefix("docs/")}">{title}</a></li>'
        for page, title in titles.items()
        if page.startswith("docs/")
    )
    site.write("docs/index.html", "Guides", f"<h1>Guides</h1>\n<ul>\n{listed}\n</ul>")


def _page(file: Path) -> str:
    return "index.html" if file.name == "README.md" else f"docs/{file.stem}.html"


def _target(link: str, file: Path, site: Site) -> str | None:
    """Returns the page of a Markdown file, or the copy of a picture or example; None for the rest of the checkout."""
    return copied((file.parent / link).as_posix(), site)


def copied(link: str, site: Site) -> str | None:
    """Returns the place in the website of a file of the checkout, after copying it; None if it does not belong there.

    `link` is absolute, or relative to the checkout.
    """
    path = Path(os.path.normpath(ROOT / link))
    if not path.is_relative_to(ROOT) or not path.is_file():
        return None
    if path == ROOT / "README.md" or (path.suffix == ".md" and path.parent == DOCS):
        return _page(path)
    if path.suffix not in _COPIED or not path.is_relative_to(DOCS):
        return None
    place = path.relative_to(ROOT).as_posix()
    site.write_file(place, path.read_bytes())
    return place
