"""Makes the compared runs of a program in forks of a warm process (see `support/warm.py`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from support.warm import Warm
from tensorlens.diagnostics import report_on
from tensorlens.journal.child_config import ComparedRun, Intervention
from tensorlens.records.model import Span
from tensorlens.records.report import Diagnostic, Report
from tensorlens.records.source import text_of
from tensorlens.runner.child_run import Exited
from tensorlens.runner.compared_runs import ComparedRuns, FinishedRun
from tensorlens.runner.exact_writes import with_exact_lines
from tensorlens.runner.launch import compare_with_copies
from tensorlens.runner.printed_output import Printed
from tensorlens.trials.confirm import confirm
from tensorlens.trials.fixes import with_tried_fixes

Runs = Callable[[str], "WarmRuns"]


class WarmRuns(ComparedRuns):
    """The runs of one program. `count` says how many there were, and `made` has the kinds of the interventions of those
    with some; `stop_at` is the number of one that Ctrl-C ends."""

    def __init__(self, warm: Warm, script: Path, stop_at: int | None = None, training: bool = False) -> None:
        self._warm, self._script, self._stop_at, self._training = warm, script, stop_at, training
        self._run = ComparedRun(7, False, samples=not training)
        self.count = 0
        self.made: list[tuple[str, ...]] = []

    def first(self, on_start: Callable[[], None] = lambda: None) -> FinishedRun:
        return self._first

    @cached_property
    def _first(self) -> FinishedRun:
        return self._made(self._run)

    def _made(self, run: ComparedRun) -> FinishedRun:
        self.count += 1
        if run.interventions:
            self.made.append(tuple(each.kind for each in run.interventions))
        ran, reader = self._warm.read(self._script, run, self._training)
        stopped = self.count == self._stop_at
        return FinishedRun(reader, Exited(ran.returncode, False, stopped), Printed(ran.stdout.encode()))

    def repeats_input(self) -> bool:
        return True

    def copies(self) -> FinishedRun:
        """Makes the run that keeps copies. The first run gets the comparison."""
        run = compare_with_copies(self, self._first)
        assert run is not None, self._first.reader.reference
        return run

    def report(self) -> Report:
        return report_on(self._first.trace())

    def confirmed(self, report: Report | None = None) -> Diagnostic:
        """Returns the first finding of a program that fails, after its trial."""
        return confirm(self, self._first, report or self.report()).diagnostics[0]

    def silently_confirmed(self) -> Report:
        """Returns the report of a program that computes wrong gradients without an error, after the trials."""
        copies = self.copies()
        return confirm(self, self._first, report_on(with_exact_lines(self, self._first.trace())), copies)

    def tried(self) -> Report:
        """Returns the report of a program with the verdicts of its fixes, as `--fix` makes it."""
        if self._first.exited.returncode == 0:
            self.copies()
        return with_tried_fixes(self, self._first, self.report(), lambda done, needed: None)

    def span(self, code: str) -> Span:
        """Returns the place of the recorded call whose source text is `code`."""
        trace = self._first.trace()
        spans = (site.span for site in trace.sites)
        return next(span for span in spans if text_of(trace.sources.get(span.file, ""), span) == code)

    def intervening(self, kind: str, code: str) -> FinishedRun:
        """Makes a run with one intervention, at the call that the script writes as `code`."""
        return self._at(kind, self.span(code))

    def skipping(self, site: int) -> FinishedRun:
        """Makes a run that undoes a write at a site of the first run's trace."""
        return self._at("skip_write", self._first.trace().sites[site].span)

    def _at(self, kind: str, span: Span) -> FinishedRun:
        place = (span.file, span.line, span.column, span.end_line, span.end_column)
        return self.again(interventions=(Intervention(kind, *place),))  # type: ignore[arg-type]
