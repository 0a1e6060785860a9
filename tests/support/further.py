"""Further runs of a program in forks of a warm process, as `ComparedRuns` makes them for the command."""

from __future__ import annotations

from pathlib import Path

from support.warm import Warm
from tensorlens.diagnostics import report_on
from tensorlens.journal.child_config import ComparedRun, Intervention
from tensorlens.records.model import Span
from tensorlens.records.reference import attach
from tensorlens.records.report import Diagnostic, Report
from tensorlens.records.source import text_of
from tensorlens.runner.child_run import Exited
from tensorlens.runner.compared_runs import FinishedRun
from tensorlens.runner.exact_writes import with_exact_lines
from tensorlens.runner.printed_output import Printed
from tensorlens.trials.confirm import confirm

Kinds = tuple[str, ...]


class WarmRuns:
    """The runs of one script. `made` has the kinds of the interventions of each further run."""

    def __init__(self, warm: Warm, script: Path) -> None:
        self._warm, self._script = warm, script
        self.made: list[Kinds] = []
        self.first = self._run(ComparedRun(7, False))

    def _run(self, compared: ComparedRun) -> FinishedRun:
        ran, reader = self._warm.read(self._script, compared)
        return FinishedRun(reader, Exited(ran.returncode, False, False), Printed(ran.stdout.encode()))

    def copies(self) -> FinishedRun:
        """Makes the run that keeps copies. The first run gets the comparison."""
        run = self._run(ComparedRun(7, False, copy_saved_tensors=True))
        attach(self.first.reader, run.reader)
        return run

    def again(self, *, interventions: tuple[Intervention, ...]) -> FinishedRun:
        self.made.append(tuple(each.kind for each in interventions))
        return self._run(ComparedRun(7, False, interventions=interventions))

    def report(self) -> Report:
        return report_on(self.first.trace())

    def confirmed(self, report: Report | None = None) -> Diagnostic:
        """Returns the first finding of a program that fails, after its trial."""
        return confirm(self, self.first, report or self.report()).diagnostics[0]

    def silently_confirmed(self) -> Report:
        """Returns the report of a program that computes wrong gradients without an error, after the trials."""
        copies = self.copies()
        return confirm(self, self.first, report_on(with_exact_lines(self, self.first.trace())), copies)

    def span(self, code: str) -> Span:
        """Returns the place of the recorded call whose source text is `code`."""
        trace = self.first.trace()
        spans = (site.span for site in trace.sites)
        return next(span for span in spans if text_of(trace.sources.get(span.file, ""), span) == code)

    def intervening(self, kind: str, code: str) -> FinishedRun:
        """Makes a run with one intervention, at the call that the script writes as `code`."""
        return self._at(kind, self.span(code))

    def skipping(self, site: int) -> FinishedRun:
        """Makes a run that undoes a write at a site of the first run's trace."""
        return self._at("skip_write", self.first.trace().sites[site].span)

    def _at(self, kind: str, span: Span) -> FinishedRun:
        place = (span.file, span.line, span.column, span.end_line, span.end_column)
        return self.again(interventions=(Intervention(kind, *place),))  # type: ignore[arg-type]
