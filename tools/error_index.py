"""`make index`: check the pages, and write `tensorlens/records/error_index.json` from their front matter."""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tensorlens.diagnostics.manual import first_sentence, sections
from tensorlens.diagnostics.shared.rejected import CONDITIONS, HARMLESS, SEARCHED_ROLES
from tensorlens.diagnostics.shared.rejected_edits import EDITS
from tensorlens.diagnostics.shared.role_names import ROLE_NAMES
from tensorlens.paths import PACKAGE
from tensorlens.records.error_messages import INDEX

PAGES = PACKAGE / "diagnostics"
_NO_FAMILIES = ("shared", "standing_out", "why")
FAMILIES = sorted(
    path.name for path in PAGES.iterdir() if (path / "__init__.py").exists() and path.name not in _NO_FAMILIES
)
KINDS = ("error", "warning", "silent")
SECTIONS = ["What happened", "Why", "Fails", "Fixed"]
_FORM = re.compile(r"<!--\n\+\+\+\n(.*?)^\+\+\+\n-->\n\n# (\S+)\n\n(?:```text\n([^\n]+)\n```\n\n)?(## .*)", re.S | re.M)
_TYPES: dict[str, type | tuple[type, ...]] = {
    "kind": str, "tier": int, "raises": str, "patterns": list, "also": list, "generic": bool, "when": str,
    "order": int, "roles": list, "see": list, "title": str, "why": str, "help": list, "help_at": list,
    "detail": str, "edits": list, "harmless": list, "untested": str, "ranks": int,
}  # fmt: skip


class PageError(ValueError):
    """A page that does not have the form of a page."""


def read_page(path: Path) -> dict[str, Any]:
    """Returns the index entry of a page.

    Raises:
        PageError: the page has an unknown key, kind or role, lacks a part, or has parts that do not go together.
    """
    form = _FORM.fullmatch(path.read_text(encoding="utf-8"))
    if form is None:
        raise PageError(f"{path}: not a front matter, a title and the sections")
    front, code, message = tomllib.loads(form[1]), form[2], form[3] or ""
    problems = [*_wrong_keys(front), *_wrong_values(front, path.with_suffix(".py").exists())]
    text = sections(form[4])
    if list(text) != SECTIONS:
        problems.append(f"the sections are {', '.join(text)}")
    if code.replace("-", "_") != path.stem:
        problems.append(f"the title {code} is not the name of the file")
    if path.parent.name not in FAMILIES:
        problems.append(f"no family {path.parent.name}")
    if bool(message) != (front.get("kind") != "silent"):
        problems.append("errors and warnings quote PyTorch's message, silent mistakes have none")
    if problems:
        raise PageError(f"{path}: {'; '.join(problems)}")
    front.pop("untested", None)
    known: dict[str, Any] = {"code": code, "family": path.parent.name, **front}
    if message:
        known["message"] = message
    known["summary"] = first_sentence(text["What happened"])
    if path.with_suffix(".py").exists():
        known["finder"] = True
    return known


def _wrong_keys(front: dict[str, Any]) -> Iterable[str]:
    for key, value in front.items():
        if key not in _TYPES:
            yield f"unknown key {key}"
        elif not isinstance(value, _TYPES[key]):
            yield f"{key} is a {type(value).__name__}"
        elif isinstance(value, list) and not all(isinstance(item, str) for item in value):
            yield f"{key} holds something other than text"
    for key in ("kind", "tier", "roles"):
        if not front.get(key):
            yield f"no {key}"


def _wrong_values(front: dict[str, Any], has_finder: bool) -> Iterable[str]:
    silent = front.get("kind") == "silent"
    if front.get("kind") not in KINDS:
        yield f"unknown kind {front.get('kind')}"
    if front.get("tier") not in (1, 2, 3):
        yield f"unknown tier {front.get('tier')}"
    if silent == ("patterns" in front) or silent == ("raises" in front):
        yield "errors and warnings have patterns and raises, silent mistakes have neither"
    texts = [key for key in ("title", "why", "help") if key in front]
    if texts and (len(texts) < 3 or has_finder):
        yield "title, why and help go together, and with no finder in Python"
    if (silent and has_finder) != ("order" in front):
        yield "order is for silent mistakes with a finder"
    yield from _wrong_places(front)
    if "when" in front and (front["when"] not in CONDITIONS or not texts):
        yield f"unknown condition {front['when']}, or a condition without a title"
    if "harmless" in front and (len(front["harmless"]) != 3 or front["harmless"][0] not in HARMLESS or not texts):
        yield "harmless has a known condition, a title and a reason, beside the title of the finding"
    for role in front.get("roles", ()):
        searched_for = texts or ":" in role
        if role.partition(":")[0] not in ROLE_NAMES or (searched_for and role not in SEARCHED_ROLES):
            yield f"unknown role {role}"
    for pattern in (*front.get("patterns", ()), *front.get("also", ())):
        try:
            re.compile(pattern)
        except re.error as error:
            yield f"{pattern!r}: {error}"


def _wrong_places(front: dict[str, Any]) -> Iterable[str]:
    """Yields what is wrong with the lines that the helps of a page change: `help_at` names their roles."""
    places = front.get("help_at", [])
    if not isinstance(places, list):
        return
    if "help_at" in front and len(places) != len(front.get("help", ())):
        yield "help_at names a role, or an empty text, for each help"
    own = {role.partition(":")[0] for role in front.get("roles", ())}
    for place in places:
        if place and place not in own:
            yield f"help_at names {place}, which is no role of the page"
    edits = front.get("edits", [])
    if edits and len(edits) != len(front.get("help", ())):
        yield "edits names a function, or an empty text, for each help"
    for edit in edits:
        if edit and edit not in EDITS:
            yield f"unknown edit {edit}"
    if "detail" in front and "title" not in front:
        yield "detail is for a page with a title"


def build() -> str:
    """Returns the text of the index: an entry for every page, sorted by family and code.

    Raises:
        PageError: a page is wrong, two pages have the same code, or two silent mistakes the same `order`.
    """
    found = [read_page(path) for path in sorted(PAGES.rglob("*.md"))]
    for key in ("code", "order"):
        values = [item[key] for item in found if key in item]
        if twice := sorted({value for value in values if values.count(value) > 1}):
            raise PageError(f"{key} occurs twice: {twice}")
    found.sort(key=lambda item: (item["family"], item["code"]))
    return "[\n" + ",\n".join(json.dumps(item, ensure_ascii=False) for item in found) + "\n]\n"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="write nothing; fail if the index is out of date")
    check = options.parse_args().check
    try:
        text = build()
    except PageError as error:
        print(error, file=sys.stderr)
        return 1
    if check and INDEX.read_text(encoding="utf-8") != text:
        print("the index is out of date: make index", file=sys.stderr)
        return 1
    if not check:
        INDEX.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
