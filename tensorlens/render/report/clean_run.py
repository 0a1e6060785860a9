"""Writes the summary of a run without findings: one sentence, and a table with one row per module."""

from __future__ import annotations

from rich.console import RenderableType

from tensorlens.analysis.naming.names import Names
from tensorlens.analysis.sampled_run import has_break
from tensorlens.analysis.training.module_rows import ModuleRow, module_rows
from tensorlens.analysis.training.run_summary import RunSummary, run_summary
from tensorlens.records.model import Trace
from tensorlens.records.report import Report
from tensorlens.render.report.headline import count, passes
from tensorlens.render.tables import HouseTable

_NAMED = 3  # parameters that were not trained
MODULE_HEADINGS = ("module", "parameters", "require grad", "had a gradient", "changed by an optimizer")
_UNKNOWN = "?"  # the trace does not establish the number


def no_problem_found(report: Report) -> str:
    """Says that no problem was found, in how many calls, and which parameters were trained.

    Sentences about the training may describe a problem, and so may findings that are ignored.
    """
    trace = report.trace
    summary = run_summary(trace)
    if not summary.calls:
        return "no call of torch was recorded"
    ran = [count(summary.calls, "call")]
    ran += [passes(summary.backward_passes)] if summary.backward_passes else []
    trained = _trained(summary)
    where = "the recorded steps: " if has_break(trace) else ""
    found = "no other problem found" if report.standing_out else "no problem found"
    if report.ignored:
        found = "no other finding"
    return f"{found} in {where}{' and '.join(ran)}{f'; {trained}' if trained else ''}"


def _trained(summary: RunSummary) -> str:
    """Says how many parameters of the optimizers had a gradient at a step; "" if that is not known."""
    held = summary.parameters
    if not held or summary.trained is None:
        return ""
    if held == 1:
        got = "got a gradient" if summary.trained else f"got none: `{summary.untrained[0]}`"
        return f"the parameter that an optimizer holds {got}"
    if summary.trained == held:
        return f"all {held} parameters that an optimizer holds got gradients"
    missing = [f"`{name}`" for name in summary.untrained[:_NAMED]]
    more = len(summary.untrained) - len(missing)
    names = ", ".join(missing) + (f" and {more} more" if more else "")
    frozen = f" ({summary.frozen} of them frozen)" if summary.frozen else ""
    return f"{summary.trained} of {held} parameters that an optimizer holds got gradients, but not {names}{frozen}"


def module_table(trace: Trace, names: Names) -> list[RenderableType]:
    """Returns a table with one row per module; nothing if there are no parameters."""
    rows = module_cells(trace, names)
    if not rows:
        return []
    headings = ["\n".join(heading.rsplit(" ", 1)) for heading in MODULE_HEADINGS]
    table = HouseTable(headings, ["name"], right=range(1, len(headings)))
    for row in rows:
        table.add(*row)
    return [table]


def module_cells(trace: Trace, names: Names) -> list[list[str]]:
    """Returns the cells of the table with one row per module."""
    return [_cells(row) for row in module_rows(trace, names)]


def _cells(row: ModuleRow) -> list[str]:
    numbers = (row.parameters, row.require_grad, row.with_gradient, row.changed)
    return [row.name, *(_UNKNOWN if number is None else str(number) for number in numbers)]
