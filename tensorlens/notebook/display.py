"""Shows reports and findings in a notebook or an IPython shell."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable

from rich.console import Group, RenderableType
from rich.text import Text

from tensorlens.analysis.naming.names import names_of
from tensorlens.analysis.story.story import story
from tensorlens.diagnostics.shared.main_finding import main_finding
from tensorlens.notebook.kernel_recording import CellFindings
from tensorlens.notebook.shell import Shell
from tensorlens.records.report import Report
from tensorlens.render import RenderOptions
from tensorlens.render.html_text import boxed, colored, folded, preformatted
from tensorlens.render.notebook import frame, framed_page
from tensorlens.render.report import headline
from tensorlens.render.report.clean_run import no_problem_found
from tensorlens.render.report.findings import Finding
from tensorlens.render.report.story_table import story_parts
from tensorlens.render.report.terminal import headline_text
from tensorlens.render.safe_text import safe
from tensorlens.render.tables import printed

_WIDTH = 88  # cells of a line in a notebook
_MOST_EVENTS = 2_000  # of a recording whose page is below each finding; `%tensorlens` shows that of a longer one
_PAGE = "the page of this recording: source, memory and graph at each moment"
_HINT = "`%tensorlens` reports on everything so far, `%tensorlens help` lists what else there is"


class Display:
    """Writes below the cell that is running. The first explanation of a kernel ends in a hint."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._hinted = False

    def cell(self, findings: CellFindings) -> None:
        """Shows what there is to say about a cell after it has run."""
        shown = [*filter(None, [findings.about]), *findings.others]
        parts: list[RenderableType] = [Finding(each, findings.report.trace) for each in shown]
        if parts and not self._hinted:
            self._hinted = True
            parts.append(Text(_HINT, "quiet"))
        if parts:
            self._show(parts, lambda: self._with_page(parts, findings.report))

    def report(self, report: Report) -> None:
        """Shows a report: as a page where one can be made, and as text."""
        self._show(_parts(report), lambda: framed_page(report))

    def cell_report(self, name: str, findings: CellFindings) -> None:
        """Shows what one cell did, and the findings that mark a line of it."""
        trace = findings.report.trace
        sections = [section for section in story(trace, names_of(trace)) if section.file == name]
        parts: list[RenderableType] = [Group(*story_parts(trace, sections, RenderOptions(width=self.width)))]
        if not sections:
            parts = [Text.assemble((safe(name), "heading"), ": no call of torch was recorded")]
        parts += [Finding(each, trace) for each in findings.others]
        if not findings.others:
            parts.append(Text("no finding marks a line of this cell", "quiet"))
        self._show(parts, lambda: self._with_page(parts, findings.report))

    def text(self, text: str) -> None:
        """Shows plain text."""
        self._publish(text, lambda: boxed(preformatted(text)))

    @property
    def width(self) -> int:
        """The cells of a line."""
        return _WIDTH if self._is_kernel else min(shutil.get_terminal_size().columns, 2 * _WIDTH)

    @property
    def _is_kernel(self) -> bool:
        return hasattr(self._shell, "kernel")

    @property
    def _has_color(self) -> bool:
        return str(self._shell.colors).lower() != "nocolor" and (self._is_kernel or sys.stdout.isatty())

    def _with_page(self, parts: list[RenderableType], report: Report) -> str:
        """Returns the parts as HTML, and the page of a report that is short enough, folded."""
        shown = colored(parts, self.width)
        if len(report.trace.events) > _MOST_EVENTS:
            return boxed(shown)
        return boxed(shown, folded(_PAGE, frame(report)))

    def _show(self, parts: list[RenderableType], as_html: Callable[[], str]) -> None:
        self._publish(printed(parts, self.width, self._has_color).rstrip("\n"), as_html)

    def _publish(self, text: str, as_html: Callable[[], str]) -> None:
        """Shows text and, in a kernel, whose front end may be a browser, HTML."""
        data = {"text/plain": text}
        if self._is_kernel:
            data["text/html"] = as_html()
        self._shell.display_pub.publish(data)


def _parts(report: Report) -> list[RenderableType]:
    """Returns the text of a report: the findings, what PyTorch warned of, and what was not seen."""
    trace, main = report.trace, main_finding(report)
    parts: list[RenderableType] = [headline_text(trace)]
    found = [*filter(None, [main]), *(each for each in report.diagnostics if each is not main)]
    parts += [Finding(each, trace) for each in found]
    if not found:
        parts.append(Text(safe(no_problem_found(report)), "good"))
    for heading, rows in (("warning", headline.warnings_noticed(report)), ("not seen", headline.gaps(trace))):
        parts += [Text(safe(f"{heading}: {place}{' ' if place else ''}{text}"), "quiet") for place, text, _ in rows]
    return parts
