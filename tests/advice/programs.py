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
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from support.folders import TESTS

CASES = TESTS / "advice" / "cases"
FIRST_TRY = TESTS / "advice" / "first_try"

Kind = Literal["error", "silent", "correct"]
Place = tuple[str, int]  # name of a file, line


@dataclass(frozen=True)
class Program:
    """A program with its truth. A version of it is the files that it changes, by name."""

    script: Path
    kind: Kind
    topic: str
    causes: frozenset[Place]
    acceptable: frozenset[Place]
    results: tuple[str, ...]
    versions: tuple[dict[str, Path], ...]

    @property
    def name(self) -> str:
        return self.script.stem

    def copy_to(self, folder: Path, version: int | None = None) -> Path:
        """Copies the program, or one of its repaired versions, with its helper files. Returns the copied script."""
        folder.mkdir(parents=True, exist_ok=True)
        helpers = [file for file in self.script.parent.iterdir() if _is_helper(file)]
        for file in (self.script, *helpers):
            shutil.copy(file, folder / file.name)
        for name, file in ({} if version is None else self.versions[version]).items():
            shutil.copy(file, folder / name)
        return folder / self.script.name


def _is_helper(file: Path) -> bool:
    return file.is_file() and not re.match(r"\d", file.name) and ".fixed" not in file.name and file.name != "truth.json"


def programs(folder: Path) -> list[Program]:
    """Returns the programs of a folder, in the order of their names."""
    truth = folder / "truth.json"
    entries = json.loads(truth.read_text(encoding="utf-8")) if truth.exists() else []
    return [_program(folder, entry) for entry in sorted(entries, key=lambda entry: str(entry["case"]))]


def _program(folder: Path, entry: dict[str, Any]) -> Program:
    name = str(entry["case"]).removesuffix(".py")
    script = folder / f"{name}.py"
    return Program(
        script=script,
        kind=cast(Kind, entry["kind"]),
        topic=str(entry.get("topic", "")),
        causes=frozenset(_places(entry.get("cause"), script.name)),
        acceptable=frozenset(_places(entry.get("also_acceptable"), script.name)),
        results=tuple(entry.get("results", ())),
        versions=tuple(_versions(folder, name)),
    )


def _places(marked: Any, script: str) -> Iterable[Place]:
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
        yield from ((file, int(line)) for file, line in re.findall(r"([\w.-]+\.py)\D{0,6}(\d+)", marked))


def _versions(folder: Path, name: str) -> Iterable[dict[str, Path]]:
    for path in sorted(folder.glob(f"{name}.fixed*")):
        yield {f"{name}.py": path} if path.is_file() else {file.name: file for file in sorted(path.glob("*.py"))}
