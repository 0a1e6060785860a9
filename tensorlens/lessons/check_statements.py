"""Runs the lessons that carry documented statements, and sums up what each statement comes to. Imports no torch."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tensorlens.errors import TensorLensError, UsageError
from tensorlens.lessons.article_statements import STATEMENTS, Statement
from tensorlens.lessons.bundled import Lesson, lessons
from tensorlens.records import claim_syntax
from tensorlens.records.claim import Claim, says_may
from tensorlens.runner import python_process

Verdict = Literal["holds", "holds only if", "refuted", "not reached"]

_BEGIN = "from tensorlens.tracer.entry.claims_process import main; main()"
_SECONDS = 300.0  # the lessons run for a few; what takes this long will not end


@dataclass(frozen=True, slots=True)
class Evidence:
    """One check of a statement: where it stands, what it saw, what it came to and what is recorded for it."""

    lesson: str
    line: int
    check: str
    verdict: Literal["holds", "refuted", "not reached"]
    recorded: Literal["holds", "refuted"]
    condition: str
    values: tuple[tuple[str, str], ...]
    error: str = ""
    changed: str = ""  # what the check changed in the lesson, which it must not

    @property
    def as_recorded(self) -> bool:
        return self.verdict == self.recorded and not self.changed


@dataclass(frozen=True, slots=True)
class Finding:
    """A statement and its verdict; `condition` says when it holds where the verdict is `holds only if`, and when it
    does what it "may" do where such a statement `holds`."""

    statement: Statement
    verdict: Verdict
    condition: str
    evidence: tuple[Evidence, ...]

    @property
    def as_recorded(self) -> bool:
        return bool(self.evidence) and all(each.as_recorded for each in self.evidence)


@dataclass(frozen=True, slots=True)
class Checked:
    """All that was asked for, under one version of torch. `problems` are checks without an id that came out wrong."""

    torch: str
    findings: tuple[Finding, ...]
    problems: tuple[Evidence, ...] = ()

    @property
    def as_recorded(self) -> bool:
        return not self.problems and all(finding.as_recorded for finding in self.findings)


def check_documented(article: str | None) -> Checked:
    """Run the lessons with checks of the statements of `article`, or of all five, and return the verdicts.

    Raises:
        UsageError: there is no such article.
        TensorLensError: the process that runs the lessons failed.
    """
    articles = sorted({statement.article for statement in STATEMENTS})
    if article is not None and article not in articles:
        raise UsageError(f"no article {article!r}; there are {', '.join(articles)}")
    wanted = [statement for statement in STATEMENTS if article in (None, statement.article)]
    ids = {statement.id for statement in wanted}
    chosen = [lesson for lesson in lessons() if ids & claimed(lesson)]
    torch, found = _run(chosen)
    return summed_up(wanted, list(zip([lesson.name for lesson in chosen], found, strict=True)), torch)


def claimed(lesson: Lesson) -> set[str]:
    """The ids of the statements that a lesson checks."""
    return {spec.id for spec in claim_syntax.parse(lesson.path.read_text(encoding="utf-8")) if spec.id}


def _run(chosen: Sequence[Lesson]) -> tuple[str, list[list[Claim]]]:
    """The version of torch, and the claims of each lesson, from a child process that ran them all."""
    command = python_process.command(_BEGIN)
    paths = json.dumps([str(lesson.path) for lesson in chosen])
    try:
        ran = subprocess.run(command, input=paths, capture_output=True, text=True, timeout=_SECONDS, check=True)
    except subprocess.TimeoutExpired:
        raise TensorLensError(f"the lessons did not end within {_SECONDS:g} seconds") from None
    except subprocess.CalledProcessError as error:
        last = (error.stderr.splitlines() or [f"exit code {error.returncode}"])[-1]
        raise TensorLensError(f"the lessons could not be run: {last}") from None
    answer = json.loads(ran.stdout)
    return answer["torch"], [[_claim(*fields) for fields in each] for each in answer["claims"]]


def _claim(*fields: Any) -> Claim:
    """A claim as the child's JSON gives it: with lists for tuples."""
    claim = Claim(*fields)
    return replace(claim, values=tuple((expression, value) for expression, value in claim.values))


def summed_up(wanted: Iterable[Statement], runs: Sequence[tuple[str, Sequence[Claim]]], torch: str) -> Checked:
    """The verdicts of the statements, from the claims of lessons by name, run under `torch`."""
    by_id: dict[str | None, list[Evidence]] = {}
    for name, found in runs:
        for claim in found:
            by_id.setdefault(claim.id, []).append(_evidence(name, claim))
    findings = tuple(_finding(statement, tuple(by_id.get(statement.id, ()))) for statement in wanted)
    problems = tuple(evidence for evidence in by_id.get(None, ()) if not evidence.as_recorded)
    return Checked(torch, findings, problems)


def _evidence(lesson: str, claim: Claim) -> Evidence:
    seen = (claim.values, claim.error, claim.changed)
    return Evidence(lesson, claim.line, claim.check, claim.verdict, claim.expected, claim.condition, *seen)


def _finding(statement: Statement, evidence: tuple[Evidence, ...]) -> Finding:
    """The verdict: what was seen unconditionally decides; else it depends, unless it came out one way in all cases.
    What "may" happen is not refuted by a run in which it didn't."""
    reached = [each for each in evidence if each.verdict != "not reached"]
    held = [each for each in reached if each.verdict == "holds"]
    refuted = [each for each in reached if each.verdict == "refuted"]
    verdict: Verdict
    may = says_may(statement.text) and bool(held)
    if not reached:
        verdict = "not reached"
    elif not refuted or may:
        verdict = "holds"
    elif not held or not all(each.condition for each in reached):
        verdict = "refuted"
    else:
        verdict = "holds only if"
    depends = may or verdict == "holds only if"
    conditions = dict.fromkeys(each.condition for each in held if each.condition) if depends else ()
    return Finding(statement, verdict, " or ".join(conditions), evidence)
