"""Runs the lessons that carry documented statements, and sums up what each statement comes to. Imports no torch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from tensorlens import claims
from tensorlens.errors import UsageError
from tensorlens.lessons import Lesson, lessons
from tensorlens.model import Claim, Trace
from tensorlens.runner import RunOptions, Target, run_script
from tensorlens.statements import STATEMENTS, Statement

Verdict = Literal["holds", "holds only if", "refuted", "not reached"]

_AT_ONCE = 2
_SECONDS = 120.0  # a lesson runs for two or three; one that takes this long will not end
_OBJECT = re.compile(r" object at 0x[0-9a-f]+")


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

    @property
    def as_recorded(self) -> bool:
        return self.verdict == self.recorded


@dataclass(frozen=True, slots=True)
class Finding:
    """A statement and its verdict; `condition` says when it holds where the verdict is `holds only if`."""

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
    """
    articles = sorted({statement.article for statement in STATEMENTS})
    if article is not None and article not in articles:
        raise UsageError(f"no article {article!r}; there are {', '.join(articles)}")
    wanted = [statement for statement in STATEMENTS if article in (None, statement.article)]
    ids = {statement.id for statement in wanted}
    chosen = [lesson for lesson in lessons() if ids & claimed(lesson)]
    return summed_up(wanted, [(lesson.name, trace) for lesson, trace in zip(chosen, _run(chosen), strict=True)])


def claimed(lesson: Lesson) -> set[str]:
    """The ids of the statements that a lesson checks."""
    return {spec.id for spec in claims.parse(lesson.path.read_text(encoding="utf-8")) if spec.id}


def _run(chosen: Sequence[Lesson]) -> list[Trace]:
    """The traces of the lessons in order; what the lessons print is dropped."""
    options = RunOptions(timeout=_SECONDS, claims=True, quiet=True)
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        return list(pool.map(lambda lesson: run_script(Target("file", str(lesson.path)), options), chosen))
    finally:
        pool.shutdown(cancel_futures=True)


def summed_up(wanted: Iterable[Statement], runs: Sequence[tuple[str, Trace]]) -> Checked:
    """The verdicts of the statements, from the traces of lessons by name."""
    seen = [_evidence(name, claim) for name, trace in runs for claim in trace.claims]
    by_id: dict[str | None, list[Evidence]] = {}
    for identity, evidence in seen:
        by_id.setdefault(identity, []).append(evidence)
    findings = tuple(_finding(statement, tuple(by_id.get(statement.id, ()))) for statement in wanted)
    problems = tuple(evidence for evidence in by_id.get(None, ()) if not evidence.as_recorded)
    torch = next((trace.versions.torch for _, trace in runs if trace.versions.torch), "")
    return Checked(torch, findings, problems)


def _evidence(lesson: str, claim: Claim) -> tuple[str | None, Evidence]:
    values, error = _told(claim.values), claim.error
    return claim.id, Evidence(
        lesson, claim.line, claim.check, claim.verdict, claim.expected, claim.condition, values, error
    )


def _told(values: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The values without what differs from run to run: an address is only the same as another or not."""
    addresses = list(dict.fromkeys(value for expression, value in values if _is_address(expression, value)))
    return tuple(
        (expression, f"address {addresses.index(value) + 1}" if value in addresses else _OBJECT.sub("", value))
        for expression, value in values
    )


def _is_address(expression: str, value: str) -> bool:
    return expression.endswith("data_ptr()") and value.isdecimal()


def _finding(statement: Statement, evidence: tuple[Evidence, ...]) -> Finding:
    """The verdict: what was seen unconditionally decides; else it depends, unless it came out one way in all cases."""
    reached = [each for each in evidence if each.verdict != "not reached"]
    held = [each for each in reached if each.verdict == "holds"]
    refuted = [each for each in reached if each.verdict == "refuted"]
    verdict: Verdict
    if not reached:
        verdict = "not reached"
    elif not refuted:
        verdict = "holds"
    elif not held or not all(each.condition for each in reached):
        verdict = "refuted"
    else:
        verdict = "holds only if"
    conditions = dict.fromkeys(each.condition for each in held) if verdict == "holds only if" else ()
    return Finding(statement, verdict, " or ".join(conditions), evidence)
