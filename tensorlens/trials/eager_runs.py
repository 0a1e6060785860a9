"""`explain --reference=eager`: runs a program again with nothing compiled, and compares the gradients.

Two runs that differ prove nothing yet. A difference is reported if the eager run and the compiled run each repeat
themselves, if the compiled run still differs with the random numbers of the eager one, and if double precision (or a
bound where it is not known) says that it is more than rounding. Further runs then find the compiled function, and the
hooks that compiled code does not call.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tensorlens.diagnostics import report_on
from tensorlens.diagnostics.shared.main_finding import main_finding
from tensorlens.records.eager import EagerComparison, agree_in, agreeing, compare_with_eager, labelled_as
from tensorlens.records.model import Trace
from tensorlens.records.reference import PASSES, Pass
from tensorlens.records.report import Diagnostic, Report
from tensorlens.records.source import shown_path
from tensorlens.runner.child_run import RunOptions
from tensorlens.runner.compared_runs import FinishedRun, compared_runs
from tensorlens.runner.targets import Target, check_target

MOST = 8  # compiled functions, or hooks, that are tried one by one
OWN_RANDOM = "the program does not repeat itself: two {} runs have different gradients"
ENDED_EARLY = "a further compiled run ended before this pass"
NOTHING = "nothing that `torch.compile` compiled was called"


class CompiledRuns(Protocol):
    """Runs a program once more, with some of its compiled functions."""

    def compiling(
        self,
        compiled: tuple[int, ...] | None,
        *,
        eager_random: bool = False,
        in_double: bool = False,
        unhooked: tuple[int, ...] = (),
    ) -> FinishedRun: ...


def report_with_eager(target: Target, options: RunOptions, on_start: Callable[[], None]) -> Report:
    """Runs a program, and again with nothing compiled. Returns its report with the comparison.

    Raises:
        UsageError: there is no such program.
    """
    check_target(target)
    with compared_runs(target, options) as runs:
        return eager_report(runs, runs.first(on_start))


def eager_report(runs: CompiledRuns, first: FinishedRun) -> Report:
    """Makes the further runs of `--reference=eager`. Returns the report of the first run, with the comparison."""
    reader, second = first.reader, None
    try:
        if first.was_stopped:
            reader.eager = EagerComparison(reason="the first run was stopped")
        elif not reader.facts["compiled"]:
            reader.eager = EagerComparison(reason=NOTHING)
        else:
            second = _ended(runs.compiling(()))
            reader.eager = _Comparison(runs, first, second).result()
    except (KeyboardInterrupt, _StoppedError):
        reader.eager = EagerComparison(reason="a further run was stopped")
    except Exception as error:  # an internal error: the report of the first run is still good
        if os.environ.get("TENSORLENS_DEBUG"):
            raise
        reader.eager = EagerComparison(reason=f"the check itself failed ({type(error).__name__}: {error})")
    if second is not None and _raised(first):
        return _explained(first, second)
    return report_on(first.trace())


class _StoppedError(Exception):
    """A time limit or Ctrl-C ended a further run."""


def _ended(run: FinishedRun) -> FinishedRun:
    """Returns a run that has ended by itself.

    Raises:
        _StoppedError: it was stopped.
    """
    if run.was_stopped:
        raise _StoppedError
    return run


@dataclass(slots=True)
class _Comparison:
    """Compares the first run with the eager one. Makes further runs where they differ."""

    runs: CompiledRuns
    first: FinishedRun
    eager: FinishedRun
    random: bool = False  # the compiled run that is compared draws the eager run's random numbers

    def result(self) -> EagerComparison:
        """Returns the comparison, with what further runs have found about its differences."""
        for run in (self.first, self.eager):
            if PASSES in run.reader.unchecked:
                return EagerComparison(reason=run.reader.unchecked[PASSES])
        compiled, eager = self._passes(self.first), self._passes(self.eager)
        found = compare_with_eager(compiled, eager)
        if not found.differences:
            return found
        again = _ended(self.runs.compiling((), in_double=True))
        repeated = agreeing(self._passes(again), eager)
        if self._place(found, compiled) >= repeated:
            return EagerComparison(found.compared[:-1], reason=OWN_RANDOM.format("eager"))
        exact = [replace(one, exact=other.exact) for one, other in zip(eager, self._passes(again), strict=False)]
        eager = [*exact[:repeated], *eager[repeated:]]
        found = compare_with_eager(compiled, eager)
        if not found.differences:
            return found
        if self._place(found, compiled) >= repeated:
            return EagerComparison(found.compared[:-1], reason=OWN_RANDOM.format("eager"), rounding=found.rounding)
        return self._with_eager_random(found, eager)

    def _with_eager_random(self, found: EagerComparison, eager: Sequence[Pass]) -> EagerComparison:
        """Compares again with the random numbers of the eager run, if compiled code draws others."""
        compiled = self._passes(self.first)
        other = labelled_as(self._passes(_ended(self.runs.compiling(None, eager_random=True))), compiled)
        place = self._place(found, compiled)
        if not agree_in(place, other, compiled):
            own = self._passes(_ended(self.runs.compiling(None)))
            if min(len(own), len(other)) <= place:
                return EagerComparison(found.compared[:-1], reason=ENDED_EARLY, rounding=found.rounding)
            if not agree_in(place, own, compiled):
                return EagerComparison(found.compared[:-1], reason=OWN_RANDOM.format("compiled"))
            self.random = True
            found = replace(compare_with_eager(other, eager), random=True)
            if not found.differences:
                return found
            compiled, place = other, self._place(found, other)
        return replace(found, functions=self._functions(place), hooks=self._hooks(place, compiled))

    def _functions(self, place: int) -> tuple[int, ...]:
        """Finds a compiled function that brings the differences of a pass when no other is compiled."""
        facts: list[Any] = self.first.reader.facts["compiled"]
        index = self._passes(self.first)[place].index
        numbers = [fact.number for fact in facts if fact.index <= index]
        if len(numbers) < 2:
            return tuple(numbers)
        eager = self._passes(self.eager)
        for number in numbers[:MOST]:
            alone = self._passes(_ended(self.runs.compiling((number,), eager_random=self.random)))
            if len(alone) > place and not agree_in(place, alone, eager):
                return (number,)
        return ()

    def _hooks(self, place: int, compiled: Sequence[Pass]) -> tuple[int, ...]:
        """Finds the late hooks without which the eager run has the gradients of the compiled one."""
        facts: list[Any] = self.first.reader.facts["late"]
        index = self._passes(self.first)[place].index
        late = tuple(fact.number for fact in facts if fact.index <= index)
        if not late or not self._agrees_without(late, place, compiled):
            return ()
        if len(late) == 1 or len(late) > MOST:
            return late
        return tuple(
            number
            for number in late
            if not self._agrees_without(tuple(each for each in late if each != number), place, compiled)
        )

    def _agrees_without(self, hooks: tuple[int, ...], place: int, compiled: Sequence[Pass]) -> bool:
        run = _ended(self.runs.compiling((), unhooked=hooks))
        return agree_in(place, labelled_as(self._passes(run), compiled), compiled)

    def _place(self, found: EagerComparison, compiled: Sequence[Pass]) -> int:
        """Returns the position of the pass that differs."""
        return next(place for place, one in enumerate(compiled) if one.index == found.compared[-1])

    def _passes(self, run: FinishedRun) -> list[Pass]:
        return run.reader.passes


# --- a program that raises ------------------------------------------------------------------------------------------


def _raised(run: FinishedRun) -> bool:
    return run.reader.script.outcome == "error"


def _explained(first: FinishedRun, second: FinishedRun) -> Report:
    """Returns the report of a run that raised, with what the eager run found about its own error."""
    eager = report_on(second.trace())
    comparison = first.reader.eager or EagerComparison()
    found = [each for each in eager.diagnostics if each.severity == "error" and each.code != "uncaught-exception"]
    if not found or not _raised(second):
        first.reader.eager = replace(comparison, raised=_other_ending(second))
        return report_on(first.trace())
    main = main_finding(eager)
    ending = _ending(eager.trace)
    first.reader.eager = replace(comparison, raised=f"it raises too, {ending}: the finding is of that run")
    report = report_on(first.trace())
    note = f"found in a second run that compiles nothing, which raises {ending}"
    own = [_moved(each, note if each is main else "") for each in found]
    rest = [each for each in report.diagnostics if each.severity != "error"]
    sources = {**eager.trace.sources, **report.trace.sources}
    return replace(report, trace=replace(report.trace, sources=sources), diagnostics=(*own, *rest))


def _moved(diagnostic: Diagnostic, note: str) -> Diagnostic:
    """Returns a finding of the eager run for the report of the first run, which numbers sites and events otherwise."""
    labels = tuple(replace(label, site=None, event=None) for label in diagnostic.labels)
    notes = (note, *diagnostic.notes) if note else diagnostic.notes
    return replace(diagnostic, labels=labels, notes=notes)


def _other_ending(second: FinishedRun) -> str:
    """Says how the eager run of a program that raised has ended."""
    trace = second.trace()
    if trace.script.outcome == "error":
        return f"it raises too, {_ending(trace)}"
    ended = {"ok": "it runs to its end", "exit": f"it ends itself, exit code {second.exited.returncode}"}
    return ended.get(trace.script.outcome, "it was killed")


def _ending(trace: Trace) -> str:
    """Names the exception that ended a run, and its line."""
    number = trace.script.failure
    if number is None:
        return "an exception"
    failure = trace.failures[number]
    if failure.site is None:
        return failure.type
    span = trace.sites[failure.site].span
    return f"{failure.type} at {shown_path(span.file, trace.script.folder)}:{span.line}"
