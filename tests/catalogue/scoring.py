"""Scores the scripts of the catalogue: how well the lens explains them.

A script is named after its code and, where there are several ways to it, its mechanism: `CODE--MECHANISM.py`. A
trailing `# role: NAME` marks a line that plays that part in the cause; a role may be marked on several lines, and a
label on one of them is right. A script is right if the lens gives its code, a label of every role, and none of them on
a line that is not marked with it. `observed_here` is the reader's own: the lens need not label it.

`right.txt` holds the scripts that are right, and can only grow; `misses.txt` says why others are not.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from support.warm import Warm

from tensorlens.diagnostics import diagnose
from tensorlens.records.error_messages import Entry, entry
from tensorlens.records.report import Diagnostic

FOLDER = Path(__file__).parent
SCRIPTS = sorted((FOLDER / "scripts").glob("*.py"))
RIGHT = FOLDER / "right.txt"
MISSES = FOLDER / "misses.txt"
_ROLES = re.compile(r"# role: (.+)$")


@dataclass(frozen=True)
class Score:
    """The score of one script. `missing`: the roles without a label, or with one on an unmarked line."""

    stem: str
    found: bool  # the lens gave the code
    missing: tuple[str, ...]

    @property
    def right(self) -> bool:
        return self.found and not self.missing

    @property
    def mechanism(self) -> str:
        return self.stem.partition("--")[2]

    @property
    def entry(self) -> Entry:
        known = entry(self.stem.partition("--")[0])
        assert known is not None, self.stem
        return known


def marks(script: Path) -> dict[str, set[int]]:
    """Returns the lines that are marked with each role."""
    found: dict[str, set[int]] = defaultdict(set)
    for number, line in enumerate(script.read_text().splitlines(), start=1):
        match = _ROLES.search(line)
        for role in match[1].split(", ") if match else ():
            if role != "observed_here":
                found[role].add(number)
    return dict(found)


def score(script: Path, warm: Warm) -> Score:
    """Runs a script under the lens and compares its labels with the marks."""
    _, trace = warm.traced(script)
    code = script.stem.partition("--")[0]
    wanted = marks(script)
    diagnostic = next((found for found in diagnose(trace) if found.code == code), None)
    return Score(script.stem, diagnostic is not None, _missing(wanted, diagnostic))


def _missing(wanted: dict[str, set[int]], diagnostic: Diagnostic | None) -> tuple[str, ...]:
    labelled: dict[str, set[int]] = defaultdict(set)
    for label in diagnostic.labels if diagnostic else ():
        labelled[label.role].add(label.span.line)
    return tuple(role for role, lines in wanted.items() if not labelled[role] or not labelled[role] <= lines)


def recorded() -> set[str]:
    """Returns the scripts that were right when the score was last recorded."""
    return set(RIGHT.read_text().split()) if RIGHT.exists() else set()


def reasons() -> dict[str, str]:
    """Returns the known reasons why scripts are not right, from lines of the form `script: reason`."""
    lines = MISSES.read_text().splitlines() if MISSES.exists() else []
    return dict(line.split(": ", 1) for line in lines if ": " in line)
