"""Puts the moments of a run into the page's data: what happened, in runs of lines, and the tensors of each moment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tensorlens.analysis.moments.run_moments import Moments
from tensorlens.analysis.moments.state_changes import state_changes, touched
from tensorlens.analysis.run_numbers import run_number
from tensorlens.analysis.story.line_events import LineEvent
from tensorlens.analysis.story.phrases import Phrases, failure_event
from tensorlens.analysis.story.story import line_visits
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Backward, Call, Event, Failure, GradMode, Notice, Region
from tensorlens.records.observations import Overwrite
from tensorlens.records.report import Report
from tensorlens.records.source import line_at
from tensorlens.render.page.source_data import Sources
from tensorlens.render.page.strings import Strings, columns
from tensorlens.render.report.verdict import verdict

KINDS = ("call", "backward", "switch", "warning", "failure", "hidden write", "end")
_HIDDEN_WRITE = "memory was written, and no version counter moved"
_PATH = re.compile(r"(\w+)[\w.\[\]'\"]*")  # a variable, or a path that begins with one
_TONES = {"plain": 0, "passing": 0, "warning": 1, "error": 2}


class MomentData:
    """Makes the parts of the page's data that are about moments."""

    def __init__(self, report: Report, facts: TraceIndex, moments: Moments) -> None:
        self._report, self._facts, self._moments = report, facts, moments
        self._written: dict[tuple[str, str], bool] = {}  # whether a line contains a name

    def runs(self, strings: Strings, sources: Sources) -> tuple[dict[str, list[Any]], list[int]]:
        """Returns the runs of lines as columns, and the run of each moment."""
        moments = self._moments
        run_of = [-1] * len(moments.items)
        rows: list[tuple[Any, ...]] = []
        for places, facts in self._runs():
            for place in places:
                run_of[place] = len(rows)
            texts = [
                [strings.number(fact.name), strings.number(fact.text), strings.number(fact.storage), _TONES[fact.kind]]
                + [strings.number(text) for text in fact.more]
                for fact in facts
            ]
            turn = strings.number(self._turn(places))
            rows.append((sources.site(moments.items[places[0]].site), places[0], places[-1], turn, texts))
        return columns("place first last turn texts", rows), run_of

    def _turn(self, places: list[int]) -> str:
        """Returns which run of its line this is: "iteration 3"; "" if the line ran once, or if that is not known."""
        events = (self._moments.items[place].what for place in places)
        event = next((each for each in events if isinstance(each, Call | Backward)), None)
        number = None if event is None else run_number(self._facts.trace, event)
        if number is None:
            return ""
        return f"{number.kind} {number.number}" + (f" of {number.function}()" if number.function else "")

    def _runs(self) -> Iterator[tuple[list[int], list[LineEvent]]]:
        """Yields the moments of each run of a line, and what it did, in order."""
        found = [*self._line_runs(), *self._single_moments()]
        yield from sorted(found, key=lambda each: each[0])

    def _line_runs(self) -> Iterator[tuple[list[int], list[LineEvent]]]:
        trace, moments = self._facts.trace, self._moments
        phrases = Phrases(trace, self._facts.names)
        for visit in line_visits(trace, self._facts.names):
            shown = [place for event in visit.events if (place := moments.of_event(event.index)) is not None]
            if not shown:
                continue
            texts = phrases.line_events(visit.events)
            failed = [each for each in trace.failures if moments.of_failure(each) in shown]
            texts += [failure_event(each) for each in failed]
            yield shown, [text for text in texts if text.kind != "passing"] or texts

    def _single_moments(self) -> Iterator[tuple[list[int], list[LineEvent]]]:
        for place, moment in enumerate(self._moments.items):
            if isinstance(moment.what, Failure):
                yield [place], [failure_event(moment.what)]
            elif isinstance(moment.what, Overwrite):
                number = moment.what.tensor
                name = "" if number is None else self._facts.name(number, moment.index)
                mark = "" if number is None else self._facts.names.mark(number)
                yield [place], [LineEvent(name, _HIDDEN_WRITE, mark, "warning")]
            elif moment.what is None:
                yield [place], [LineEvent("", verdict(self._report))]

    def moments(self, strings: Strings, sources: Sources, run_of: list[int]) -> dict[str, list[Any]]:
        """Returns the moments as columns."""
        rows = (
            (moment.index, KINDS.index(kind_of(moment.what)), strings.number(op_of(moment.what)),
             sources.site(moment.site), run_of[place])
            for place, moment in enumerate(self._moments.items)
        )  # fmt: skip
        return columns("event kind op place run", rows)

    def uses(self, strings: Strings) -> dict[str, list[Any]]:
        """Returns the tensors that each moment reads or makes, by the names that its line has for them. A tensor is
        `written` in the line if the line contains its name."""
        rows = []
        for place, moment in enumerate(self._moments.items):
            line = self._line_of(moment.site)
            for tensor, version, made in touched(self._moments, place):
                name = self._facts.name(tensor, moment.index)
                is_written = self._is_written(name, line)
                rows.append((place, tensor, strings.number(name), version, made, is_written))
        return columns("moment tensor name version made written", rows)

    def _line_of(self, site: int | None) -> str:
        span = self._facts.span(site)
        return "" if span is None else line_at(self._facts.trace.sources.get(span.file, ""), span.line)

    def _is_written(self, name: str, line: str) -> bool:
        found = self._written.get((name, line))
        if found is None:
            path = _PATH.fullmatch(name)
            found = path is not None and re.search(rf"\b{path[1]}\b", line) is not None
            self._written[name, line] = found
        return found

    def changes(self, strings: Strings) -> dict[str, dict[str, list[Any]]]:
        """Returns the changes of states, versions and gradients."""
        found = state_changes(self._facts.trace, self._moments)
        states = (
            (each.at, each.tensor, each.requires_grad, each.is_leaf, strings.number(each.grad_fn or ""), each.storage)
            for each in found.states
        )
        gradients = (
            (at, tensor, None if text is None else strings.number(text)) for at, tensor, text in found.gradients
        )
        return {
            "states": columns("moment tensor requires_grad leaf grad_fn storage", states),
            "versions": columns("moment counter version", found.versions),
            "gradients": columns("moment tensor text", gradients),
        }


def kind_of(what: Event | Failure | Overwrite | None) -> str:
    """Returns which of `KINDS` a moment is."""
    if isinstance(what, Call):
        return "call"
    if isinstance(what, Backward):
        return "backward"
    if isinstance(what, GradMode | Region):
        return "switch"
    if isinstance(what, Notice):
        return "warning"
    if isinstance(what, Failure):
        return "failure"
    return "hidden write" if isinstance(what, Overwrite) else "end"


def op_of(what: Event | Failure | Overwrite | None) -> str:
    """Returns the operation of a moment: "Tensor.add_", "no_grad"."""
    if isinstance(what, Call | Backward | Failure):
        return what.op or ""
    if isinstance(what, GradMode):
        return what.cause
    return what.name if isinstance(what, Region) else ""
