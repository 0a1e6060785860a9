"""Compares a further run with the first: whether it gets past the failure, fails there again, or is another run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from tensorlens.analysis.contexts import failed_backward
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records import reference
from tensorlens.records.model import Call, Failure, Trace
from tensorlens.records.reference import Pass
from tensorlens.runner.compared_runs import FinishedRun
from tensorlens.trials.interventions import Trial, failing_line, places
from tensorlens.trials.kinds import RECORD

_NOT_REPEATED = "the program does not repeat itself: a further run computes other values before the failure"

Result = Literal["passes", "same", "moved", "earlier", "different", "stopped", "not made"]
"""passes: it gets past the failure. same: it fails there in the same way. moved: the same pass fails, at another saved
tensor or node. earlier: it fails before. different: it does not repeat the first run. stopped: a time limit or Ctrl-C
ended it. not made: no call was changed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Says how a further run ended. `text` has the words; `facts` are those of the further run.

    `made` are the positions of the interventions that it made.
    """

    result: Result
    text: str = ""
    facts: TraceIndex | None = None
    made: frozenset[int] = frozenset()


class FirstRun:
    """The first run, with which others are compared."""

    def __init__(self, run: FinishedRun, facts: TraceIndex) -> None:
        self.run, self.facts = run, facts
        number = facts.trace.script.failure
        self.failure = None if number is None else facts.trace.failures[number]

    def outcome(self, other: FinishedRun, until: int | None = None) -> Outcome:
        """Compares a run with this one, which failed.

        `until`: the index of the first event that the intervention may give other values.
        """
        facts = TraceIndex(other.trace())
        made = frozenset(fact.number for fact in facts.trace.inspection.intervened)
        return replace(self._compared(other, facts, until), made=made)

    def _compared(self, other: FinishedRun, facts: TraceIndex, until: int | None) -> Outcome:
        assert self.failure is not None
        if other.was_stopped:
            return Outcome("stopped", "was stopped before it ended")
        if not facts.trace.inspection.intervened:
            return Outcome("not made")
        failed = failed_backward(self.facts, self.failure)
        if failed is None:
            return self._outside_of_pass(other, facts, until)
        at = next((n for n, each in enumerate(self.run.reader.passes) if each.index == failed.index), None)
        if at is None:
            return Outcome("different", "is longer than what is compared")
        return self._in_pass(other, facts, at, until)

    def _in_pass(self, other: FinishedRun, facts: TraceIndex, at: int, until: int | None) -> Outcome:
        assert self.failure is not None
        passes = other.reader.passes
        if not self._repeats(passes, at + 1, until):
            return Outcome("different")
        if len(passes) <= at:
            return self._ended_before(facts)
        if not passes[at].failed:
            return Outcome("passes", self._ending(facts), facts)
        again = facts.trace.script.failure
        failure = None if again is None else facts.trace.failures[again]
        if failure is None or (failure.type, failure.kind) != (self.failure.type, self.failure.kind):
            what = "" if failure is None else f"; the next error is `{failure.kind or failure.type}`, in the same pass"
            return Outcome("moved", f"{failing_line(self.facts, self.failure)} gets past it{what}", facts)
        is_same = _problem(failure) == _problem(self.failure)
        return Outcome("same" if is_same else "moved", "", facts)

    def _outside_of_pass(self, other: FinishedRun, facts: TraceIndex, until: int | None) -> Outcome:
        """Compares with a failure that no backward pass raised: by the number of runs of its line."""
        first, number = self.failure, facts.trace.script.failure
        assert first is not None
        before = sum(each.index < first.index for each in self.run.reader.passes)
        if not self._repeats(other.reader.passes, before, until):
            return Outcome("different")
        failure = None if number is None else facts.trace.failures[number]
        if failure is None:
            return Outcome("passes", self._ending(facts), facts)
        if (failure.type, failure.kind, facts.span(failure.site)) == (
            first.type, first.kind, self.facts.span(first.site)
        ) and _runs(facts, failure) <= _runs(self.facts, first):  # fmt: skip
            return Outcome("same", "", facts)
        is_later = failure.index > first.index or len(other.reader.passes) > len(self.run.reader.passes)
        return Outcome("passes", self._ending(facts), facts) if is_later else self._ended_before(facts)

    def _repeats(self, passes: list[Pass], number: int, until: int | None) -> bool:
        """Returns whether the first passes of a run start from the same values as those of the first run."""
        pairs = [
            (one, other)
            for one, other in zip(self.run.reader.passes[:number], passes, strict=False)
            if until is None or one.index < until
        ]
        early = pairs[: number - 1]
        return all(reference.start_alike(*pair) for pair in pairs) and all(
            one.failed == other.failed for one, other in early
        )

    def _ended_before(self, facts: TraceIndex) -> Outcome:
        number = facts.trace.script.failure
        if number is None:
            return Outcome("different")
        return Outcome("earlier", f"it fails before, at {failing_line(facts, facts.trace.failures[number])}", facts)

    def _ending(self, facts: TraceIndex) -> str:
        """Says how a run ended that got past the failure."""
        assert self.failure is not None
        script = facts.trace.script
        if script.outcome == "ok":
            return "the run ends normally"
        passed = f"{failing_line(self.facts, self.failure)} runs"
        if script.failure is None:
            code = "" if script.exit_code is None else f" with exit code {script.exit_code}"
            return f"{passed}, and the script ends itself{code}" if script.outcome == "exit" else f"{passed}"
        failure = facts.trace.failures[script.failure]
        what, line = failure.kind or failure.type, failing_line(facts, failure)
        again = "again at " if line == failing_line(self.facts, self.failure) else "at "
        return f"{passed}; the next error is `{what}`, {again}{line}{', later' if again != 'at ' else ''}"


def _problem(failure: Failure) -> tuple[object, ...]:
    """Returns what a failed pass stopped at: the first saved tensor that was changed or freed."""
    first = next((saved for saved in failure.saved if saved.problem in ("version", "freed") and saved.message), None)
    first = first or next((saved for saved in failure.saved if saved.problem in ("version", "freed")), None)
    return () if first is None else (first.node, first.sequence, first.slot, first.expected)


def _runs(facts: TraceIndex, failure: Failure) -> int:
    """Counts the recorded calls of a failure's line before it."""
    span = facts.span(failure.site)
    return sum(isinstance(e, Call) and facts.span(e.site) == span for e in facts.events if e.index < failure.index)


def unmade(trace: Trace, trial: Trial) -> str:
    """Says that a further run had nothing to change at the labelled line."""
    where = places(trace, trial.spans)
    if trial.kind == RECORD:
        return f"not tried: no run can record a gradient at {where}"
    return f"not tried: a further run had nothing to change at {where}"


def undecided(words: str, outcome: Outcome) -> str:
    """Says why a further run neither confirms a cause nor rules it out."""
    if outcome.result == "different":
        return f"not decided: {outcome.text or _NOT_REPEATED}"
    if outcome.result == "stopped":
        return f"not decided: {words}, the run did not end in time"
    return f"not decided: {words}, {outcome.text}"
