"""Reads what a finished run shows to a judge: how it ended, its findings, its gradients and what it printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from tensorlens.analysis.naming.assignments import receiver
from tensorlens.analysis.naming.names import names_of
from tensorlens.diagnostics import diagnose
from tensorlens.diagnostics.shared.main_finding import main_finding
from tensorlens.records.model import Span, Trace
from tensorlens.records.reference import Pass, StepSample
from tensorlens.records.report import Diagnostic, Report
from tensorlens.runner.compared_runs import FinishedRun

_COUNTED = ("error", "warning")


class ObservedRun:
    """A finished run. What is asked of it is found out once. `report` is its report, if there is one already."""

    def __init__(self, finished: FinishedRun, report: Report | None = None) -> None:
        self.finished = finished
        self.printed = finished.printed
        if report is not None:
            self.trace, self.findings = report.trace, report.diagnostics

    @cached_property
    def trace(self) -> Trace:
        return self.finished.trace()

    @cached_property
    def findings(self) -> tuple[Diagnostic, ...]:
        return diagnose(self.trace)

    @property
    def main(self) -> Diagnostic | None:
        """The finding that comes first."""
        return main_finding(Report(self.trace, self.findings))

    @property
    def steps(self) -> Sequence[StepSample]:
        """The gradients that optimizer steps used, with the numbers of the trace."""
        return self.finished.reader.stepped if self.trace.events else ()

    @property
    def passes(self) -> Sequence[Pass]:
        return self.finished.reader.passes

    @property
    def is_sampled(self) -> bool:
        """Returns whether the gradients of the run could be read."""
        return not self.finished.reader.unchecked

    @property
    def ending(self) -> tuple[str, int | None]:
        return self.trace.script.outcome, self.trace.script.exit_code

    @property
    def ended_well(self) -> bool:
        return self.ending in (("ok", 0), ("exit", 0))

    def counts(self) -> Counter[str]:
        """Counts the errors and warnings among the findings, by code."""
        return Counter(each.code for each in self.findings if each.severity in _COUNTED)

    def by_optimizer(self) -> dict[int, list[StepSample]]:
        """Returns the steps of each optimizer."""
        steps: dict[int, list[StepSample]] = {}
        for step in self.steps:
            steps.setdefault(step.optimizer, []).append(step)
        return steps

    def parameter(self, step: StepSample, position: int) -> str:
        """Returns the name of a parameter of a step, in backticks if the program has one for it."""
        return names_of(self.trace).quoted(step.parameters[position], step.index)

    def optimizer(self, step: StepSample) -> str:
        """Returns how the program calls the optimizer of a step: "`opt_d`"; "" if that is not known."""
        fact = next((each for each in self.trace.inspection.steps if each.index == step.index + 1), None)
        span: Span | None = None if fact is None or fact.site is None else self.trace.sites[fact.site].span
        name = None if span is None else receiver(self.trace.sources.get(span.file, ""), span)
        return f"`{name}`" if name else ""
