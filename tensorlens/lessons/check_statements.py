"""Runs the lessons that check documented statements, and decides a verdict for each statement. Imports no torch."""

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
from tensorlens.runner.python_process import python_child

Verdict = Literal["holds", "holds only if", "refuted", "not reached"]

_RUN_LESSONS = "from tensorlens.tracer.entry.claims_process import main; main()"
_TIMEOUT = 300.0  # seconds; the lessons take a few


@dataclass(frozen=True, slots=True)
class Evidence:
    """One check of a statement: its place in a lesson, the values it saw, its verdict and the recorded verdict."""

    lesson: str
    line: int
    check: str
    verdict: Literal["holds", "refuted", "not reached"]
    recorded: Literal["holds", "refuted"]
    condition: str
    values: tuple[tuple[str, str], ...]
    error: str = ""
    changed: str = ""  # the state of the lesson that the check changed, which it must not

    @property
    def as_recorded(self) -> bool:
        return self.verdict == self.recorded and not self.changed


@dataclass(frozen=True, slots=True)
class StatementVerdict:
    """A statement and its verdict.

    For the verdict `holds only if`, `condition` says when the statement holds. For a statement that something "may"
    happen, which `holds`, it says when that happens.
    """

    statement: Statement
    verdict: Verdict
    condition: str
    evidence: tuple[Evidence, ...]

    @property
    def as_recorded(self) -> bool:
        return bool(self.evidence) and all(each.as_recorded for each in self.evidence)


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdicts of the requested statements under one torch version. `problems` are failed checks without an id."""

    torch: str
    findings: tuple[StatementVerdict, ...]
    problems: tuple[Evidence, ...] = ()

    @property
    def as_recorded(self) -> bool:
        return not self.problems and all(finding.as_recorded for finding in self.findings)


def check_documented(article: str | None) -> Checked:
    """Runs the lessons that check the statements of `article`, or of all five, and returns the verdicts.

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
    torch, claims = _run(chosen)
    return summed_up(wanted, list(zip([lesson.name for lesson in chosen], claims, strict=True)), torch)


def claimed(lesson: Lesson) -> set[str]:
    """Returns the ids of the statements that a lesson checks."""
    return {spec.id for spec in claim_syntax.parse(lesson.path.read_text(encoding="utf-8")) if spec.id}


def _run(chosen: Sequence[Lesson]) -> tuple[str, list[list[Claim]]]:
    """Runs all lessons in one child process. Returns the version of torch and the claims of each lesson."""
    paths = json.dumps([str(lesson.path) for lesson in chosen])
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with python_child(_RUN_LESSONS, text=True, **pipes) as child:
        try:
            output, errors = child.communicate(paths, _TIMEOUT)
        except BaseException as error:
            child.kill()
            if isinstance(error, subprocess.TimeoutExpired):
                raise TensorLensError(f"the lessons did not end within {_TIMEOUT:g} seconds") from None
            raise
    if child.returncode:
        last = (errors.splitlines() or [f"exit code {child.returncode}"])[-1]
        raise TensorLensError(f"the lessons could not be run: {last}")
    answer = json.loads(output)
    return answer["torch"], [[_claim(*fields) for fields in each] for each in answer["claims"]]


def _claim(*fields: Any) -> Claim:
    """Makes a claim from the child's JSON, which has lists for tuples."""
    claim = Claim(*fields)
    return replace(claim, values=tuple((expression, value) for expression, value in claim.values))


def summed_up(wanted: Iterable[Statement], runs: Sequence[tuple[str, Sequence[Claim]]], torch: str) -> Checked:
    """Decides the verdicts of the statements from the claims of lessons that ran under the version `torch`."""
    by_id: dict[str | None, list[Evidence]] = {}
    for name, claims in runs:
        for claim in claims:
            by_id.setdefault(claim.id, []).append(_evidence(name, claim))
    findings = tuple(_finding(statement, tuple(by_id.get(statement.id, ()))) for statement in wanted)
    problems = tuple(evidence for evidence in by_id.get(None, ()) if not evidence.as_recorded)
    return Checked(torch, findings, problems)


def _evidence(lesson: str, claim: Claim) -> Evidence:
    seen = (claim.values, claim.error, claim.changed)
    return Evidence(lesson, claim.line, claim.check, claim.verdict, claim.expected, claim.condition, *seen)


def _finding(statement: Statement, evidence: tuple[Evidence, ...]) -> StatementVerdict:
    """Decides the verdict of one statement from its checks.

    A statement that a check refutes is refuted, unless other checks hold and every check has a condition: then it
    `holds only if`. A statement that something "may" happen holds if one check shows that it happens.
    """
    reached = [each for each in evidence if each.verdict != "not reached"]
    holding = [each for each in reached if each.verdict == "holds"]
    refuted = [each for each in reached if each.verdict == "refuted"]
    verdict: Verdict
    may = says_may(statement.text) and bool(holding)
    if not reached:
        verdict = "not reached"
    elif not refuted or may:
        verdict = "holds"
    elif not holding or not all(each.condition for each in reached):
        verdict = "refuted"
    else:
        verdict = "holds only if"
    depends = may or verdict == "holds only if"
    conditions = dict.fromkeys(each.condition for each in holding if each.condition) if depends else ()
    return StatementVerdict(statement, verdict, " or ".join(conditions), evidence)
