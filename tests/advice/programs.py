"""Reads the programs that the advice is tried on: their marked causes, and the versions in which the cause is repaired.

A folder has numbered programs (`02_sine_gan.py`), the helper modules that they import, and `truth.json`, with one entry
for each program:

    case            the name of its file
    kind            "error", "silent" (nothing is raised) or "correct"
    cause           the lines of the true cause, each with a reason: a finding has to label one of them
    also_acceptable further lines that belong to the cause: a finding may label them
    results         functions whose returned tensors have to be right too, where gradients do not show a dropped write

A repaired version is `02_sine_gan.fixed.py`, or the folder `02_sine_gan.fixed/` with the files that it changes. Where
different repairs are right there are more: `fixed2`, `fixed3`.

Other programs are those of `tests/programs`, the scripts of the catalogue, and the examples of the manual's pages, each
of which has its repaired version below *Fixed*.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from support.folders import PROGRAMS, TESTS
from support.pages import fence, untested

from tensorlens.records.error_messages import Entry, entries, entry

CASES = TESTS / "advice" / "cases"
FIRST_TRY = TESTS / "advice" / "first_try"
REPAIRED = TESTS / "advice" / "repaired"  # versions of the programs of `tests/programs`
CATALOGUE = TESTS / "catalogue" / "scripts"

Kind = Literal["error", "warning", "silent", "correct"]
Place = tuple[str, int]  # name of a file, line
Files = dict[str, str]  # name: text


@dataclass(frozen=True)
class Program:
    """A program with its truth: the files that it is made of, and, of each repaired version, those that it changes."""

    name: str
    kind: Kind
    files: Files = field(repr=False)
    topic: str = ""
    causes: frozenset[Place] = frozenset()
    acceptable: frozenset[Place] = frozenset()
    results: tuple[str, ...] = ()
    versions: tuple[Files, ...] = field(default=(), repr=False)
    is_example: bool = False  # its version is an example that need not do what it does

    def written(self, folder: Path, version: int | None = None) -> Path:
        """Writes the program, or one of its repaired versions, into a new folder. Returns its script."""
        folder.mkdir(parents=True)
        changed = {} if version is None else self.versions[version]
        for name, text in {**self.files, **changed}.items():
            (folder / name).write_text(text, encoding="utf-8")
        return folder / f"{self.name}.py"


def marked_programs(folder: Path) -> list[Program]:
    """Returns the programs of a folder with `truth.json`, in the order of their names."""
    truth = folder / "truth.json"
    marks = json.loads(truth.read_text(encoding="utf-8")) if truth.exists() else []
    return [_program(folder, mark) for mark in sorted(marks, key=lambda mark: str(mark["case"]))]


def _program(folder: Path, mark: dict[str, Any]) -> Program:
    name = str(mark["case"]).removesuffix(".py")
    script = folder / f"{name}.py"
    helpers = [file for file in folder.glob("*.py") if not re.match(r"\d", file.name)]
    return Program(
        name=name,
        kind=cast(Kind, mark["kind"]),
        files=_texts([script, *helpers]),
        topic=str(mark.get("topic", "")),
        causes=frozenset(_places(mark.get("cause"), script.name)),
        acceptable=frozenset(_places(mark.get("also_acceptable"), script.name)),
        results=tuple(mark.get("results", ())),
        versions=tuple(_versions(folder, name)),
    )


def _places(marked: Any, script: str) -> Iterator[Place]:
    """Yields the lines of a mark: `{"file", "line"}`, `{"line": [3, 4]}`, `"file.py:3"`, `3`, or a list of such."""
    if isinstance(marked, list):
        for each in marked:
            yield from _places(each, script)
    elif isinstance(marked, dict):
        file = Path(str(marked.get("file") or script)).name
        lines = marked.get("line") or marked.get("lines") or []
        yield from ((file, int(line)) for line in (lines if isinstance(lines, list | tuple) else [lines]))
    elif isinstance(marked, int):
        yield script, marked
    elif isinstance(marked, str):
        found = re.findall(r"([\w.-]+\.py)\D{0,8}(\d+)", marked)
        yield from (
            (file, int(line)) for file, line in found or [(script, n) for n in re.findall(r"line (\d+)", marked)]
        )


def _versions(folder: Path, name: str) -> Iterator[Files]:
    for path in sorted(folder.glob(f"{name}.fixed*")):
        yield {f"{name}.py": path.read_text(encoding="utf-8")} if path.is_file() else _texts(path.glob("*.py"))


def _texts(files: Iterable[Path]) -> Files:
    return {file.name: file.read_text(encoding="utf-8") for file in files}


def failing_programs() -> list[Program]:
    """Returns the programs of `tests/programs/failing`."""
    return [_plain(script, "error") for script in sorted((PROGRAMS / "failing").glob("[!_]*.py"))]


def silent_programs() -> list[Program]:
    """Returns the programs of `tests/programs/silent`."""
    return [_plain(script, "silent") for script in sorted((PROGRAMS / "silent").glob("[!_]*.py"))]


def _plain(script: Path, kind: Kind) -> Program:
    text = script.read_text(encoding="utf-8")
    expected = re.search(r"expect: ([a-z0-9-]+)", text)
    topic = script.stem.partition("--")[0] if expected is None else expected[1]
    files = _texts([script, *script.parent.glob("_*.py")])
    return Program(script.stem, kind, files, topic, versions=tuple(_versions(REPAIRED, script.stem)))


def page_examples() -> list[Program]:
    """Returns the failing examples of the pages of tiers 1 and 2, each with its fixed one.

    Those of distributed runs are not judged: a further run of one rank alone can't be made.
    """
    known = [page for page in entries() if page.tier in (1, 2) and page.code not in untested() and not page.ranks]
    return [_example(page) for page in sorted(known, key=lambda page: page.code)]


def _example(page: Entry) -> Program:
    fails, fixed = fence(page.code, "Fails"), fence(page.code, "Fixed")
    file = f"{page.code}.py"
    return Program(
        page.code, cast(Kind, page.kind), {file: fails}, page.code, versions=({file: fixed},), is_example=True
    )


def catalogue_scripts() -> list[Program]:
    """Returns the scripts of the catalogue of tiers 1 and 2."""
    found = []
    for script in sorted(CATALOGUE.glob("*.py")):
        page = entry(script.stem.partition("--")[0])
        if page is not None and page.tier in (1, 2):
            files = {script.name: _without_checks(script.read_text(encoding="utf-8"))}
            found.append(Program(script.stem, cast(Kind, page.kind), files, page.code))
    return found


def _without_checks(text: str) -> str:
    """Replaces the lines that check that a script is wrong: they fail when it is repaired."""
    return re.sub(r"^( *)assert .*$", r"\1pass", text, flags=re.M)
