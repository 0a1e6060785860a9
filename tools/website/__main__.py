"""Builds the website: `python -m tools.website [FOLDER]`. Ends with 1 if a link between its pages leads nowhere."""

from __future__ import annotations

import sys
from pathlib import Path

from support.folders import ROOT
from support.warm import Warm

from tensorlens.lessons.bundled import lessons
from tensorlens.records.error_messages import entries
from tools.website import guides, lesson_pages, manual_pages, reference
from tools.website.layout import Site
from tools.website.links import broken_links


def build(folder: Path, lesson_names: set[str] | None = None, codes: set[str] | None = None) -> Site:
    """Builds the website in a folder. Of `lesson_names` and `codes`, if given, the reports come from new runs; the
    pages of the others have none."""
    site = Site(folder)
    guides.write(site)
    reference.write(site)
    with Warm() as warm:
        lesson_pages.write(site, warm, {each.name for each in lessons()} if lesson_names is None else lesson_names)
        manual_pages.write(site, warm, {each.code for each in entries()} if codes is None else codes)
    return site


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"
    build(folder)
    broken = broken_links(folder)
    pages = sum(1 for _ in folder.rglob("*.html"))
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{folder}: {pages} pages, {size / 1e6:.1f} MB, {len(broken)} broken links")
    for page, link in broken:
        print(f"  {page}: {link}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
