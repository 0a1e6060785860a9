"""Confirms the cause of each finding by a further run that changes what its labelled call does (`--try`).

If the run gets past the failure, the finding is confirmed. If it fails as before, the cause is not the one that was
suspected: other causes that the trace knows are tried, and if none of them is confirmed either, the report has the
error without a cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics import report_on
from tensorlens.diagnostics.shared.proof import DIFFERS, UNPROVEN
from tensorlens.journal.child_config import Intervention
from tensorlens.records.model import Failure, Trace
from tensorlens.records.report import Diagnostic, Label, Report
from tensorlens.records.source import one_line
from tensorlens.runner.child_run import RunOptions
from tensorlens.runner.compared_runs import ComparedRuns, FinishedRun, FurtherRuns, compared_runs
from tensorlens.runner.launch import compare_with_copies, exact_lines
from tensorlens.runner.targets import Target, check_target
from tensorlens.trials.interventions import (
    Trial,
    alternatives,
    failing_line,
    passes_before,
    places,
    saves_of,
    trial_of,
    why_impossible,
    write_of,
)
from tensorlens.trials.kinds import CUTS, KEEP, RECORD, RETAIN, SKIP
from tensorlens.trials.outcomes import FirstRun, Outcome, undecided, unmade
from tensorlens.trials.silent_causes import differing_gradients, missing_gradients

MOST_RUNS = 12  # further runs of one report
_ROUNDS = 3  # runs with more and more copies, where several saved tensors were overwritten
_LONG = 160  # characters of a message
_FAILED = ("needed_here", "rejected_here", "observed_here")


def report_with_trials(target: Target, options: RunOptions, on_start: Callable[[], None]) -> Report:
    """Runs a program, and again for each cause that its findings name. A run that is stopped ends the trials.

    Raises:
        UsageError: there is no such program.
    """
    check_target(target)
    with compared_runs(target, options) as runs:
        return confirmed_report(runs, runs.first(on_start), options.reference)


def confirmed_report(runs: ComparedRuns, first: FinishedRun, wants_copies: bool) -> Report:
    """Returns the report of the first run after the trials of its findings. A run that is stopped ends the trials."""
    report = report_on(first.trace())
    if first.was_stopped:
        return report
    try:
        copies = None
        if wants_copies or any(UNPROVEN in each.notes for each in report.diagnostics):
            copies = compare_with_copies(runs, first)
        further = _UntilInterrupted(runs)
        report = report_on(exact_lines(further, first.trace()))
        stopped = copies is not None and copies.exited.interrupted
        return report if stopped else confirm(further, first, report, copies)
    except KeyboardInterrupt:
        return report


@dataclass(frozen=True, slots=True)
class _UntilInterrupted:
    """Makes further runs until Ctrl-C ends one of them."""

    runs: FurtherRuns

    def again(self, *, interventions: tuple[Intervention, ...]) -> FinishedRun:
        run = self.runs.again(interventions=interventions)
        if run.exited.interrupted:
            raise KeyboardInterrupt
        return run


def confirm(runs: FurtherRuns, first: FinishedRun, report: Report, copies: FinishedRun | None = None) -> Report:
    """Returns the report with each finding confirmed, corrected or withdrawn, as far as further runs decide it.

    `copies` is the run that kept copies of everything that autograd saved.
    """
    facts = TraceIndex(report.trace)
    trials = _Trials(runs, FirstRun(first, facts), copies)
    diagnostics = list(report.diagnostics)
    for position, diagnostic in enumerate(diagnostics):
        try:
            diagnostics[position] = trials.tried(diagnostic)
        except (KeyboardInterrupt, _SpentError):
            break
    return replace(report, diagnostics=tuple(diagnostics))


class _SpentError(Exception):
    """The report has had all the further runs that it gets."""


@dataclass(slots=True)
class _Trials:
    """Makes the further runs of one report, up to a limit."""

    runs: FurtherRuns
    first: FirstRun
    copies: FinishedRun | None
    left: int = MOST_RUNS

    @property
    def facts(self) -> TraceIndex:
        return self.first.facts

    @property
    def trace(self) -> Trace:
        return self.first.facts.trace

    def tried(self, diagnostic: Diagnostic) -> Diagnostic:
        """Returns a finding after its trial."""
        failure = self.first.failure
        trial = trial_of(self.facts, diagnostic)
        if trial is None:
            return diagnostic
        is_error = diagnostic.severity == "error" and failure is not None and _is_about(self.facts, failure, diagnostic)
        is_proven = any(note.startswith(DIFFERS) for note in diagnostic.notes)
        is_cut = diagnostic.severity == "warning" and trial.role in CUTS
        if not (is_error or is_proven or is_cut):
            return diagnostic
        if is_error and failure is not None and _is_failing_call(self.facts, failure, trial):
            return diagnostic
        reason = why_impossible(self.facts, trial)
        if reason:
            return replace(diagnostic, confirmation=f"not tried: {reason}")
        if is_error and failure is not None:
            return self._error(diagnostic, failure, trial)
        judge = differing_gradients if is_proven else missing_gradients
        return judge(self.first, self.copies, diagnostic, trial, self._again)

    # --- errors -------------------------------------------------------------------------------------------------

    def _error(self, diagnostic: Diagnostic, failure: Failure, trial: Trial) -> Diagnostic:
        trial, outcome = self._widened(diagnostic, failure, trial)
        other = write_of(self.facts, diagnostic)
        if outcome.result in ("not made", "earlier") and trial.kind == KEEP and other is not None:
            trial, outcome = self._widened(diagnostic, failure, other)
        trial = trial.only(outcome.made)
        words = trial.words(self.trace)
        if outcome.result == "not made":
            return replace(diagnostic, confirmation=unmade(self.trace, trial))
        if outcome.result == "passes":
            return replace(diagnostic, confirmed=True, confirmation=f"{words}, {outcome.text}")
        if outcome.result == "moved":
            ending = (
                outcome.text or f"{failing_line(self.facts, failure)} gets past it, and fails later in the same pass"
            )
            return replace(diagnostic, confirmed=True, confirmation=f"{words}, {ending}")
        if outcome.result == "same":
            return self._corrected(diagnostic, failure, trial)
        return replace(diagnostic, confirmation=undecided(words, outcome))

    def _widened(self, diagnostic: Diagnostic, failure: Failure, trial: Trial) -> tuple[Trial, Outcome]:
        """Makes a trial. Where the pass then fails at another saved tensor or node, tries these together."""
        outcome, facts = self._outcome(trial, diagnostic), self.facts
        for _ in range(_ROUNDS):
            if outcome.result != "moved" or outcome.text or trial.kind not in (KEEP, RETAIN):
                break
            number = facts.trace.script.failure
            at = failure if number is None else facts.trace.failures[number]
            more = saves_of(facts, at) if trial.kind == KEEP else passes_before(facts, at)
            wider = replace(trial, spans=tuple(dict.fromkeys((*trial.spans, *more))))
            if wider == trial:
                if facts is outcome.facts or outcome.facts is None:
                    break
                facts = outcome.facts
                continue
            after = self._outcome(wider, diagnostic)
            if after.result not in ("passes", "moved"):
                break
            trial, outcome, facts = wider, after, after.facts or facts
        return trial, outcome

    def _corrected(self, diagnostic: Diagnostic, failure: Failure, trial: Trial) -> Diagnostic:
        """Tries other causes. Returns the finding with the one that is confirmed, else without a cause."""
        suspected = places(self.trace, trial.spans)
        for other in alternatives(self.facts, failure, trial):
            outcome = self._outcome(other, diagnostic)
            if outcome.result in ("passes", "moved"):
                ending = outcome.text or f"{failing_line(self.facts, failure)} gets past it"
                own = write_of(self.facts, diagnostic)
                if own is not None and other.kind == SKIP and set(other.spans) <= set(own.spans):
                    return replace(diagnostic, confirmed=True, confirmation=f"{other.words(self.trace)}, {ending}")
                text = f"{other.words(self.trace)}, {ending}; {suspected}, suspected first, is not it"
                label = Label(other.role, other.spans[0], _LABELS[other.kind])
                return self._plain(diagnostic, failure, (label,), True, text)
        why = f"the cause that was suspected, {suspected}, is not it: {trial.words(self.trace)}, the run still fails"
        return self._plain(diagnostic, failure, (), False, why)

    def _plain(
        self, diagnostic: Diagnostic, failure: Failure, causes: tuple[Label, ...], confirmed: bool, why: str
    ) -> Diagnostic:
        """Returns a finding that names only the error, the line that raised it, and confirmed causes."""
        first = failure.message.strip().splitlines()[0] if failure.message.strip() else ""
        span = self.facts.span(failure.site)
        failed = () if span is None else (Label("needed_here", span, "raised here", failure.site),)
        return Diagnostic(
            diagnostic.code,
            diagnostic.severity,
            one_line(f"{failure.type}: {first}" if first else failure.type, _LONG),
            "",
            (*failed, *causes),
            evidence={"type": failure.type, "message": failure.message, "op": failure.op},
            confirmed=confirmed,
            confirmation=why,
        )

    def _outcome(self, trial: Trial, diagnostic: Diagnostic) -> Outcome:
        until = None
        if trial.kind == SKIP:
            events = [label.event for label in diagnostic.labels if label.role == "modified_here"]
            until = next((event for event in events if event is not None), 0)
        return self.first.outcome(self._again(trial), until)

    def _again(self, trial: Trial) -> FinishedRun:
        if not self.left:
            raise _SpentError
        self.left -= 1
        return self.runs.again(interventions=trial.interventions())


_LABELS = {
    KEEP: "backward needs what this line saved",
    RETAIN: "this backward released the graph",
    RECORD: "the graph is cut here",
    SKIP: "overwritten here",
}


def _is_about(facts: TraceIndex, failure: Failure, diagnostic: Diagnostic) -> bool:
    """Returns whether a finding is about the exception that ended the script."""
    spans = [facts.span(site) for site in (failure.site, *failure.stack)]
    lines = {(span.file, span.line) for span in spans if span is not None}
    return diagnostic.code == failure.kind or any((x.span.file, x.span.line) in lines for x in _failed(diagnostic))


def _is_failing_call(facts: TraceIndex, failure: Failure, trial: Trial) -> bool:
    """Returns whether a trial would change the call that raised: without it there is no error, whatever the cause."""
    return trial.kind in (RECORD, SKIP) and facts.span(failure.site) in trial.spans


def _failed(diagnostic: Diagnostic) -> Iterator[Label]:
    return (label for label in diagnostic.labels if label.role in _FAILED)
