"""Records what the cells of a notebook do, from one `begin` to `end`, and reports on it while it goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tensorlens.analysis.naming.names import names_of
from tensorlens.diagnostics import report_on
from tensorlens.diagnostics.shared.main_finding import is_about_failure, main_finding
from tensorlens.diagnostics.shared.named_tensors import named_tensors
from tensorlens.notebook.cells import Cells
from tensorlens.notebook.shell import Shell
from tensorlens.records.model import Script, Trace
from tensorlens.records.report import Diagnostic, Report
from tensorlens.records.source import line_at
from tensorlens.session import Progress, Session

MOST_SITES = 20_000  # places in the source
MOST_RUNS = 2_000  # of cells
_Key = tuple[object, ...]
_TIMED = ("<timed exec>", "<timed eval>")
_OF_SHELL = ("In", "Out", "exit", "quit", "get_ipython", "open")


@dataclass(frozen=True, slots=True)
class CellFindings:
    """Holds what there is to say about one run of a cell. `about` is the finding that explains why it raised, `others`
    are more findings of the report."""

    report: Report
    about: Diagnostic | None
    others: tuple[Diagnostic, ...]


class KernelRecording:
    """A recording of a notebook's kernel. `since` says what began it: "`%load_ext tensorlens`".

    Each cell with a new text has new places in the source, which a recording keeps. It begins anew when there are many.
    """

    def __init__(self, shell: Shell, since: str) -> None:
        self._shell = shell
        self._since = since
        self._shown: set[_Key] = set()
        self._begin()

    def _begin(self) -> None:
        self.cells = Cells()
        self._session = Session()
        self._ended: dict[int, None] = {}  # failures that ended a cell
        self._analysed = 0  # events that the last report has seen
        self._failures = 0  # when the last cell began
        self._session.begin(Script("notebook", (), os.getcwd(), "ok", None, None), self._names())

    def end(self) -> None:
        """Ends the recording. Torch is as before."""
        self._session.end({})

    @contextmanager
    def paused(self, reason: str) -> Iterator[None]:
        """Records nothing of this thread in a `with` block, and says so in the report."""
        with self._session.paused(reason):
            yield

    def begin_cell(self, place: str | None) -> None:
        """Notes that a cell begins to run. `place` is what the notebook calls it, whatever its text is."""
        self._session.follow_edits()
        progress = self._session.catch_up()
        if progress.sites > MOST_SITES or len(self.cells.runs) >= MOST_RUNS:
            progress = self._begin_anew()
        self._failures = progress.failures
        self.cells.begin(place, progress.events, self._numbers())

    def _begin_anew(self) -> Progress:
        """Forgets what is recorded, to bound the memory of a long day."""
        last = next((f"In [{run.number}]" for run in reversed(self.cells.runs) if run.number), "this cell")
        self._session.end({})
        self._since = f"the recording began anew after {last}"
        self._begin()
        self._session.note_gap(f"what ran up to {last}: the recording began anew after it, to bound its memory")
        return self._session.catch_up()

    def begin_timed(self, cell: str | None) -> None:
        """Notes that `%%time` compiles the rest of a cell, under a name that all such cells have. None: it is `%time`,
        whose statement is in the cell itself."""
        name, text = "", ""
        if cell is not None:
            self.cells.learn_file(self._numbers())
            text = self._shell.transform_cell(cell)
            name = self.cells.add_timed(cell, text)
        for file in _TIMED:
            self._session.name_text(file, name, text)

    def has_news(self) -> bool:
        """Returns whether anything was recorded since the last report."""
        return self._session.catch_up().events > self._analysed

    def trace(self, failure: int | None = None) -> Trace:
        """Returns what is recorded so far; `failure` is the one that ended the cell that was run last."""
        trace = self._session.snapshot(self._names())
        self._analysed = self._session.catch_up().events
        failures = tuple(
            replace(each, caught=False) if n in self._ended else each for n, each in enumerate(trace.failures)
        )
        outcome: Any = "recording" if failure is None else "error"
        script = replace(trace.script, outcome=outcome, failure=failure)
        return self.cells.named(replace(trace, failures=failures, script=script), self._numbers())

    def report(self) -> Report:
        """Returns the findings of everything so far."""
        return self._noted(report_on(self.trace()))

    def report_on_cell(self) -> tuple[str, CellFindings]:
        """Returns the name of the cell that was run last, and the findings that mark a line of it."""
        report = self.report()
        name = self.cells.name_of(self.cells.runs[-1].file) if self.cells.runs else ""
        marked = [each for each in report.diagnostics if any(label.span.file == name for label in each.labels)]
        return name, CellFindings(report, None, tuple(marked))

    def after_cell(self, error: BaseException | None) -> CellFindings:
        """Returns what there is to say about the cell that was run last. Each silent mistake is said once."""
        failure = self._session.note_failure(error) if error is not None else None
        if failure is not None:
            self._ended[failure] = None
        trace = self.trace(failure)
        report = report_on(_failures_from(trace, self._failures))
        about = main_finding(report) if failure is not None else None
        if about is not None and not (is_about_failure(report.trace, about) and _says_more(report, about)):
            about = None
        news = []
        for each in report.diagnostics:
            key = _key(report.trace, each)
            if each is not about and each.severity == "warning" and key not in self._shown:
                self._shown.add(key)
                news.append(each)
        noted = self._noted(replace(report, diagnostics=(*filter(None, [about]), *news)))
        first, rest = (noted.diagnostics[0], noted.diagnostics[1:]) if about else (None, noted.diagnostics)
        return CellFindings(noted, first, rest)

    def _noted(self, report: Report) -> Report:
        """Adds notes about the cells, and about tensors that are older than the recording."""
        older = self._session.older()
        names = names_of(report.trace)
        found = []
        for each in map(self.cells.with_notes, report.diagnostics):
            old = sorted(named_tensors(each, report.trace) & older)
            called = ", ".join(dict.fromkeys(f"`{name}`" for n in old if (name := names.script_name(n))))
            verb = "was" if len(old) == 1 else "were"
            note = (f"{called} {verb} made before {self._since}",) if called else ()
            found.append(replace(each, notes=(*each.notes, *note)))
        return replace(report, diagnostics=tuple(found))

    def _numbers(self) -> dict[str, int]:
        """Returns the prompt number of the last run of each cell, by the file that the shell compiles it as."""
        return dict(getattr(self._shell.compile, "_filename_map", {}))

    def _names(self) -> dict[str, Any]:
        """Returns the user's variables, without those of the shell: `In`, `Out`, `_`, `_7`."""
        names = self._shell.user_ns
        return {name: value for name, value in list(names.items()) if name[:1] != "_" and name not in _OF_SHELL}


def _failures_from(trace: Trace, first: int) -> Trace:
    """Leaves out the exceptions of earlier cells, which have been explained."""
    failure = trace.script.failure
    script = replace(trace.script, failure=None if failure is None else failure - first)
    return replace(trace, failures=trace.failures[first:], script=script)


def _says_more(report: Report, diagnostic: Diagnostic) -> bool:
    """Returns whether a finding says more than the traceback above it: not for a `NameError` of plain Python."""
    number = report.trace.script.failure
    return diagnostic.code != "uncaught-exception" or (number is not None and bool(report.trace.failures[number].op))


def _key(trace: Trace, diagnostic: Diagnostic) -> _Key:
    """Returns what makes two findings the same, also if a cell was run again and has another number now."""
    spans = [(label.role, label.span) for label in diagnostic.labels]
    places = [(role, span.line, line_at(trace.sources.get(span.file, ""), span.line)) for role, span in spans]
    return diagnostic.code, *places
