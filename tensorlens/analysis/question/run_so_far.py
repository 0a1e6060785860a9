"""Cuts a trace off after the last run of a line."""

from __future__ import annotations

import ast
import os
from collections.abc import Container
from dataclasses import fields, replace
from itertools import pairwise, takewhile

from tensorlens.analysis.naming.line_parts import span_of
from tensorlens.records.answer import SourceLine
from tensorlens.records.model import End, Event, Span, Trace
from tensorlens.records.observations import Observations
from tensorlens.records.source import shown_path, tree_of

_OF_RUN = ("overwrites", "sighted", "reached", "chosen", "switches", "threads")  # facts that others refer to, names


def is_main(trace: Trace, file: str) -> bool:
    """Returns whether a file is the script itself."""
    path = trace.script.path
    return file == path or shown_path(file, trace.script.folder) == os.path.basename(path)


def shown_line(trace: Trace, span: Span) -> SourceLine:
    """Returns the line of a span, with its file as reports name it."""
    return SourceLine(shown_path(span.file, trace.script.folder), span.line)


def last_event_of(trace: Trace, file: str, line: int) -> int | None:
    """Returns the index of the last event of a line: the last call that it made itself, or else the last event before
    the next statement ran last; None if neither is known.

    `file` is a path, or the end of one; "" means the script.
    """
    fits = [name for name in trace.sources if (is_main(trace, name) if not file else _fits(trace, name, file))]
    sites = {site.id for site in trace.sites if site.span.file in fits and _covers(site.span, line)}
    direct = next((event.index for event in reversed(trace.events) if event.site in sites), None)
    return direct if direct is not None else _before_next_statement(trace, fits, line)


def _before_next_statement(trace: Trace, files: list[str], line: int) -> int | None:
    """Returns the last event before the last run of the statement after a line, if the line makes no call itself.

    The statement runs right after the line, in the same block. All that it calls must be recorded there.
    """
    if trace.script.failure is not None or not trace.events or trace.events[-1].index + 1 != len(trace.events):
        return None
    for file in files:
        after = _next_statement(trace.sources[file], line)
        if after is None:
            continue
        text = trace.sources[file]
        sites = {site.id: site.span for site in trace.sites if site.span.file == file and _is_in(site.span, after)}
        calls = {span_of(node, text, file) for node in ast.walk(after) if isinstance(node, ast.Call)}
        last = next((event.index for event in reversed(trace.events) if event.site in sites), None)
        if last is None or not calls <= set(sites.values()):
            continue
        run = _events_in_a_row(trace.events[: last + 1], sites.keys())
        is_once = len({event.site for event in run}) == len(run)  # else these may be several runs of the statement
        return run[-1].index - 1 if is_once and run[-1].index > 0 else None
    return None


def _events_in_a_row(events: tuple[Event, ...], sites: Container[int | None]) -> list[Event]:
    """Returns the last events, as far back as they are at one of the sites, the last first."""
    return list(takewhile(lambda event: event.site in sites, reversed(events)))


def _next_statement(text: str, line: int) -> ast.stmt | None:
    """Returns the statement after the innermost one on a line, if both are simple ones of the same block."""
    simple = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
    for node in ast.walk(tree_of(text) or ast.Module([], [])):
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            for one, other in pairwise(block if isinstance(block, list) else ()):
                if isinstance(one, simple) and isinstance(other, simple):
                    if one.lineno <= line <= (one.end_lineno or one.lineno):
                        return other
    return None


def _is_in(span: Span, statement: ast.stmt) -> bool:
    return statement.lineno <= span.line and span.end_line <= (statement.end_lineno or statement.lineno)


def _fits(trace: Trace, name: str, file: str) -> bool:
    shown = shown_path(name, trace.script.folder)
    return file in (name, shown) or shown.endswith("/" + file.removeprefix("./"))


def _covers(span: Span, line: int) -> bool:
    return span.line <= line <= span.end_line


def run_up_to(trace: Trace, index: int) -> Trace:
    """Returns the trace as if the run had ended after an event. The names are those of the whole run."""
    tables = {
        each.name: tuple(fact for fact in getattr(trace.inspection, each.name) if fact.index <= index)
        for each in fields(Observations)
        if each.name not in _OF_RUN
    }
    return replace(
        trace,
        events=trace.events[: trace.position(index) + 1],
        failures=tuple(each if each.index <= index else replace(each, kind="", saved=()) for each in trace.failures),
        end=End((), trace.end.bindings),
        inspection=replace(trace.inspection, **tables),
    )
