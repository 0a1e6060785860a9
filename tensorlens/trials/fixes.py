"""Tries the fixes of a report in further runs of the program, and gives each its verdict."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.report import Diagnostic, Fix, Report, Tried, Verdict
from tensorlens.records.source import shown_path
from tensorlens.runner.compared_runs import ComparedRuns, FinishedRun
from tensorlens.trials.candidates import STDIN, Candidate, candidates_of, combined
from tensorlens.trials.interventions import Trial, trial_of, why_impossible
from tensorlens.trials.judgement import NO_REPEAT, Judge, Judgement
from tensorlens.trials.kinds import RECORD
from tensorlens.trials.observed_run import ObservedRun

MAX_CANDIDATES = 8  # that are run
MAX_ROUNDS = 4  # fixes that one candidate applies, one after the other
_RANKS = {"verified": 0, "runs": 1}
_UNTRIED, _FAILED = 2, 3
INTERRUPTED_TRIALS = Tried(note="interrupted: not every help was tried", interrupted=True)

Progress = Callable[[int, int], None]
"""Takes the number of runs that are done, and of those that are known to be needed."""


class Stopped(Exception):  # noqa: N818 - nothing went wrong
    """Ctrl-C ended a further run."""


@dataclass(slots=True)
class _Trials:
    """The further runs of one program, and what they showed."""

    runs: ComparedRuns
    sources: dict[str, str]  # that every run gets: the text of a script from standard input
    progress: Progress
    done: int = 0
    needed: int = 0
    judged: list[tuple[Candidate, Judgement]] = field(default_factory=list)
    left_out: int = 0

    def run(
        self, texts: Mapping[str, str], *, copies: bool = False, graphs: bool = False, trial: Trial | None = None
    ) -> ObservedRun:
        """Runs the program with other texts of its files, or with the interventions of a trial.

        Raises:
            Stopped: the user pressed Ctrl-C.
        """
        self.progress(self.done, max(self.needed, self.done + 1))
        finished = self.runs.again(
            copy_saved_tensors=copies,
            keep_graphs=graphs,
            interventions=() if trial is None else trial.interventions(),
            sources={**self.sources, **texts} or None,
        )
        if finished.exited.interrupted:
            raise Stopped
        self.done += 1
        run = ObservedRun(finished)
        _ = run.trace  # its steps get their numbers
        return run


def with_tried_fixes(runs: ComparedRuns, first: FinishedRun, report: Report, progress: Progress) -> Report:
    """Returns a report in which each fix that was tried has a verdict, the best fixes first."""
    if first.was_stopped:
        return replace(report, tried=Tried(note="nothing was tried: the first run was stopped"))
    trace, observed = report.trace, ObservedRun(first, report)
    stdin = {STDIN: trace.sources[STDIN]} if STDIN in trace.sources else {}
    trials = _Trials(runs, stdin, progress)
    main = observed.main
    findings = sorted(report.diagnostics, key=lambda each: each is not main)
    level = _distinct(list(candidates_of(findings, trace)))
    if not findings:
        return replace(report, tried=Tried(note="nothing was tried: there is no finding"))
    if not level:
        return replace(report, tried=Tried(note=f"nothing was tried: {_why_none(report)}"))
    try:
        trials.needed = len(level[:MAX_CANDIDATES]) + 1
        fails = not observed.ended_well
        oracle = trials.run({}, copies=True, graphs=fails)
        repeated = partial(trials.run, {}, copies=True, graphs=fails)
        judge = Judge(observed, oracle, repeated, partial(_recorded, trials, TraceIndex(trace)))
        _try_all(trials, judge, level)
    except (Stopped, KeyboardInterrupt):
        return _judged(report, trials, INTERRUPTED_TRIALS)
    repeats = all(judgement.differs != NO_REPEAT for _, judgement in trials.judged)
    return _judged(report, trials, Tried(note="" if repeats else NO_REPEAT))


def _why_none(report: Report) -> str:
    """Says why no fix of a report can be tried."""
    edits = (edit for each in report.diagnostics for fix in each.fixes for edit in fix.edits)
    gone = next(
        (edit.span.file for edit in edits if edit.span.file != STDIN and not os.path.exists(edit.span.file)), ""
    )
    return f"{shown_path(gone, report.trace.script.folder)} is gone" if gone else "no help can be applied as an edit"


def _try_all(trials: _Trials, judge: Judge, level: list[Candidate]) -> None:
    """Tries all candidates of one fix; then, as long as nothing is verified, fixes of what these uncover."""
    for _ in range(MAX_ROUNDS):
        found: list[Candidate] = []
        for candidate in level:
            if len(trials.judged) >= MAX_CANDIDATES:
                trials.left_out += 1
                continue
            run = trials.run(candidate.texts)
            judgement = judge.judge(candidate.target, run, partial(trials.run, candidate.texts, copies=True))
            trials.judged.append((candidate, judgement))
            if judgement.uncovers and run.main is not None:
                found += candidates_of([run.main], run.trace, candidate)
        if any(judgement.result == "verified" for _, judgement in trials.judged):
            return
        known = [candidate.texts for candidate, _ in trials.judged]
        level = [candidate for candidate in _distinct(found) if candidate.texts not in known]
        trials.needed = trials.done + len(level)


def _recorded(trials: _Trials, facts: TraceIndex, finding: Diagnostic) -> ObservedRun | None:
    """Runs the program with gradients recorded where a finding says that the graph is cut; None if no run can."""
    trial = trial_of(facts, finding)
    if trial is None or trial.kind != RECORD or why_impossible(facts, trial):
        return None
    run = trials.run({}, copies=True, graphs=True, trial=trial)
    return run if run.trace.inspection.intervened else None


def _distinct(candidates: list[Candidate]) -> list[Candidate]:
    """Leaves out candidates that change the program as an earlier one does."""
    found: list[Candidate] = []
    for candidate in candidates:
        if not any(other.texts == candidate.texts for other in found):
            found.append(candidate)
    return found


def _judged(report: Report, trials: _Trials, tried: Tried) -> Report:
    diagnostics = tuple(_with_verdicts(each, trials, report.trace.sources) for each in report.diagnostics)
    failed = sum(judgement.result in ("fails", "harms") for _, judgement in trials.judged)
    tried = replace(tried, tried=len(trials.judged), failed=failed, left_out=trials.left_out)
    return replace(report, diagnostics=diagnostics, tried=tried)


def _with_verdicts(finding: Diagnostic, trials: _Trials, sources: dict[str, str]) -> Diagnostic:
    """Orders the fixes of a finding: verified, running, untried, failed. One that does harm is left out."""
    ranked: list[tuple[int, bool, Fix]] = []
    for fix in finding.fixes:
        results = [(c, j) for c, j in trials.judged if c.target is finding and c.fix is fix]
        good = sorted((pair for pair in results if pair[1].result in _RANKS), key=lambda pair: _RANKS[pair[1].result])
        if good:
            candidate, judgement = good[0]
            whole = combined(candidate, sources)
            verdict: Verdict = "verified" if judgement.result == "verified" else "runs"
            tried = replace(whole, verdict=verdict, differs=judgement.differs)
            ranked.append((_RANKS[judgement.result], judgement.is_worse, tried))
        elif not any(judgement.result == "harms" for _, judgement in results):
            failed = any(judgement.result == "fails" for _, judgement in results)
            ranked.append((_FAILED if failed else _UNTRIED, False, fix))
    fixes = [fix for *_, fix in sorted(ranked, key=lambda each: each[:2])]
    if fixes:
        fixes[0] = replace(fixes[0], title=fixes[0].title.removeprefix("or "))  # it was not the first before
    return replace(finding, fixes=tuple(fixes))
