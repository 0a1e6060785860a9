"""Knows the cells of a notebook: their prompt numbers, and which were run again or edited since.

A notebook compiles each cell under the name of a file that nobody has. In a trace from `named`, a cell's file is called
as its prompt is, `In [7]`, so that every report reads `In [7]:3`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tensorlens.records.model import Site, Trace
from tensorlens.records.report import Diagnostic

_LISTED = 5  # earlier runs of a cell
_FIRST_LINE = "# %%time"  # a comment, so that the text is Python


@dataclass(frozen=True, slots=True)
class Timed:
    """The part of a cell below `%%time`: the file of the cell, the text that is compiled, and the lines before it."""

    file: str
    text: str
    lines: int


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a cell. `place` is what the notebook calls the cell itself, which stays when its text is edited."""

    number: int
    file: str
    place: str | None
    start: int  # the index that the first event of the run has, if there is one


class Cells:
    """The runs of cells since the recording began."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._timed: dict[str, Timed] = {}  # by the name of the text
        self._before: dict[str, int] = {}  # the numbers when the latest run began
        self._files: dict[str, str] = {}  # the name in the last trace -> the file

    def begin(self, place: str | None, start: int, numbers: Mapping[str, int]) -> None:
        """Notes that a cell begins to run. The shell compiles it a little later: see `learn_file`.

        `numbers` has the prompt number of the last run of each cell so far, by file.
        """
        self.learn_file(numbers)
        self._before = dict(numbers)
        self.runs.append(Run(0, "", place, start))

    def learn_file(self, numbers: Mapping[str, int]) -> None:
        """Notes the file and the number of the latest run: those that are new in `numbers`."""
        if self.runs and not self.runs[-1].file:
            new = [(file, number) for file, number in numbers.items() if self._before.get(file) != number]
            if new:
                file, number = new[0]  # the others are those of cells that it runs itself
                self.runs[-1] = replace(self.runs[-1], file=file, number=number)

    def add_timed(self, cell: str, text: str) -> str:
        """Returns a name for what `%%time` compiles in the cell that is running: the same for the same text."""
        if not self.runs or not self.runs[-1].file:
            return ""
        body = cell.split("\n")
        blank = next((number for number, line in enumerate(body) if line.strip()), 0)
        name = f"<timed {text!r}>"
        self._timed[name] = Timed(self.runs[-1].file, text, 1 + blank)
        return name

    def named(self, trace: Trace, numbers: Mapping[str, int]) -> Trace:
        """Returns a trace in which the files of cells are called as the prompts are: `In [7]`.

        `numbers` has the prompt number of the last run of each cell, by file.
        """
        self.learn_file(numbers)
        names: dict[str, str] = {}
        files = set(trace.sources) | {site.span.file for site in trace.sites}
        files |= {self._timed[file].file for file in files if file in self._timed}
        for file in sorted(files):
            if file in numbers:
                names[file] = _free(f"In [{numbers[file]}]", set(names.values()))
        self._files = {name: file for file, name in names.items()}
        sources = {names.get(file, file): text for file, text in trace.sources.items() if file not in self._timed}
        for file in filter(self._timed.__contains__, trace.sources):
            timed = self._timed[file]
            names[file] = names[timed.file]
            sources[names[file]] = _FIRST_LINE + timed.lines * "\n" + timed.text
        return replace(trace, sources=sources, sites=tuple(self._renamed(site, names) for site in trace.sites))

    def _renamed(self, site: Site, names: Mapping[str, str]) -> Site:
        span = site.span
        if span.file not in names:
            return site
        timed = self._timed.get(span.file)
        if timed is not None:
            span = replace(span, line=span.line + timed.lines, end_line=span.end_line + timed.lines)
        elif any(each.file == span.file for each in self._timed.values()):
            span = replace(span, end_line=1, column=0, end_column=len(_FIRST_LINE))  # the call of the magic
        return replace(site, span=replace(span, file=names[site.span.file]))

    def name_of(self, file: str) -> str:
        """Returns the name that the last trace gave to a file."""
        return next((name for name, each in self._files.items() if each == file), file)

    def with_notes(self, diagnostic: Diagnostic) -> Diagnostic:
        """Adds to a finding which of its cells were run several times, or were edited since."""
        names = dict.fromkeys(label.span.file for label in diagnostic.labels)
        notes = [note for name in names if name in self._files for note in self._notes(name, diagnostic)]
        return replace(diagnostic, notes=(*diagnostic.notes, *notes)) if notes else diagnostic

    def _notes(self, name: str, diagnostic: Diagnostic) -> list[str]:
        runs = [run for run in self.runs if run.file == self._files[name]]
        if not runs:
            return []
        *earlier, last = runs
        events = [label.event for label in diagnostic.labels if label.span.file == name and label.event is not None]
        notes = []
        if earlier:
            numbers = ", ".join(f"In [{run.number}]" for run in earlier[-_LISTED:])
            text = f"{name} ran before, with the same text, as {numbers}"
            marked = dict.fromkeys(f"In [{run.number}]" for event in events if (run := _run_at(runs, event)) != last)
            where = ", ".join(marked)
            notes.append(f"{text}; what is marked in it happened in {where}" if marked else text)
        edited = next((r for r in reversed(self.runs) if last.place and r.place == last.place), last)
        if edited.file != last.file:
            notes.append(f"{name} was edited since, and ran again as In [{edited.number}]")
        return notes


def _run_at(runs: list[Run], event: int) -> Run:
    """Returns the run of a cell that an event belongs to: the last that began before it."""
    return next((run for run in reversed(runs) if run.start <= event), runs[0])


def _free(name: str, taken: set[str]) -> str:
    """Returns a name that is not taken. `get_ipython().run_cell()` runs several texts under one prompt number."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name} ({number})"
    return found
