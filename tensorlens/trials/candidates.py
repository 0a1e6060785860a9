"""Makes the candidates of `--fix`: the program's own files with the edits of a fix, or of one fix after the other."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tensorlens.records.edits import by_file, edited, edits_between
from tensorlens.records.model import Trace
from tensorlens.records.report import Diagnostic, Fix
from tensorlens.records.source import one_line, tree_of

STDIN = "<stdin>"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to repair the program: the fix of `target`, and fixes of what appeared after it."""

    target: Diagnostic
    fixes: tuple[Fix, ...]
    texts: Mapping[str, str]  # of the files that it changes

    @property
    def fix(self) -> Fix:
        """The fix of the finding that this candidate is offered for."""
        return self.fixes[0]


def candidates_of(findings: Iterable[Diagnostic], trace: Trace, before: Candidate | None = None) -> Iterator[Candidate]:
    """Yields a candidate for each fix with edits; `before` has been applied to the run of `trace` already."""
    for finding in findings:
        for fix in finding.fixes:
            texts = applied(fix, trace)
            if texts is None:
                continue
            if before is None:
                yield Candidate(finding, (fix,), texts)
            else:
                yield Candidate(before.target, (*before.fixes, fix), {**before.texts, **texts})


def applied(fix: Fix, trace: Trace) -> dict[str, str] | None:
    """Returns the texts of the files that a fix changes; None if it can't be applied to files of the program."""
    texts: dict[str, str] = {}
    for file, edits in by_file(fix.edits).items():
        if file not in trace.sources or not is_programs(file, trace.script.folder):
            return None
        try:
            text = edited(trace.sources[file], edits)
        except ValueError:
            return None
        if text == trace.sources[file] or tree_of(text) is None:
            return None
        texts[file] = text
    return texts or None


def is_programs(file: str, folder: str) -> bool:
    """Returns whether a file is in the folder of the program, with symbolic links resolved, or the piped-in text."""
    if file == STDIN:
        return True
    real, root = os.path.realpath(file), os.path.realpath(folder)
    return Path(real).is_file() and real.startswith(root.rstrip(os.sep) + os.sep)


def combined(candidate: Candidate, sources: Mapping[str, str]) -> Fix:
    """Returns a candidate as one fix of the program as it is."""
    first, *more = candidate.fixes
    if not more:
        return first
    titles = [one_line(fix.title).removeprefix("or ") for fix in candidate.fixes]
    edits = [edits_between(file, sources.get(file, ""), text) for file, text in candidate.texts.items()]
    return replace(first, title="; then ".join(titles), edits=tuple(edit for each in edits for edit in each))
