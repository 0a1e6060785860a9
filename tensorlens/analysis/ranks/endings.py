"""Says how each rank of a distributed run ended, and which one failed first."""

from __future__ import annotations

import signal
from collections.abc import Mapping

from tensorlens.records.merged_report import Ending, RankEnding
from tensorlens.records.model import Failure, Gap, Span, Trace
from tensorlens.records.report import Report
from tensorlens.records.source import shown_path

GONE, TIMED_OUT = "peer-process-gone", "collective-timed-out"


def first_failed(reports: Mapping[int, Report]) -> int | None:
    """Returns the rank that failed first, by the clocks of the machines; None if none failed, or if it is not known.

    A rank that waited for the process of another one was not the first. A rank that SIGTERM ended was stopped by the
    launcher, unless no rank failed otherwise and another one waited for it. A time limit or Ctrl-C is no failure. If a
    rank waited for another one until the time limit of a collective, what the others did decides: then none is known
    unless one failed by itself.
    """
    failed = [number for number, each in reports.items() if has_failed(each.trace)]
    timed_out = {number for number in failed if has_timed_out(reports[number].trace)}
    waited = [number for number in failed if waited_for_gone(reports[number].trace)]
    others = [
        n
        for n in failed
        if n not in {*waited, *timed_out} and reports[n].trace.script.outcome not in ("timeout", "interrupted")
    ]
    own = [number for number in others if not _was_terminated(reports[number].trace)]
    world = max((rank.world for each in reports.values() if (rank := each.trace.script.rank) is not None), default=0)
    if not own and waited and not timed_out and len(reports) == world:
        own = others
    return min(own, key=lambda number: (ended_at(reports[number].trace), number), default=None)


def endings_of(reports: Mapping[int, Report], world: int, first: int | None) -> tuple[RankEnding, ...]:
    """Returns how each rank ended, by its number."""
    known = None if first is None else reports[first].trace
    endings = []
    for number in range(world):
        report = reports.get(number)
        if report is None:
            endings.append(RankEnding(number, "no trace", "no trace", None, None))
            continue
        trace = report.trace
        endings.append(RankEnding(number, _ending(trace, known), ended_text(trace), last_line(trace), report))
    return tuple(endings)


def has_failed(trace: Trace) -> bool:
    script = trace.script
    return script.outcome not in ("ok", "exit") or script.exit_code not in (0, None)


def waited_for_gone(trace: Trace) -> bool:
    """Returns whether the rank ended because the process of another rank was gone."""
    failure = _failure(trace)
    return failure is not None and failure.kind == GONE


def has_timed_out(trace: Trace) -> bool:
    """Returns whether the rank ended because another one did not enter a collective in time."""
    failure = _failure(trace)
    return failure is not None and failure.kind == TIMED_OUT


def ended_at(trace: Trace) -> float:
    """Returns when the rank's last statement ended or, if it was killed, its process."""
    rank = trace.script.rank
    noted = trace.inspection.ended_at
    return noted[-1].seconds if noted else 0.0 if rank is None else rank.ended


def ended_text(trace: Trace) -> str:
    """Returns `RuntimeError at line 7`, `exit code 3`, `killed by SIGKILL`."""
    script, failure = trace.script, _failure(trace)
    if failure is not None:
        place = "" if failure.site is None else f" at {place_of(trace, trace.sites[failure.site].span)}"
        return f"{failure.type}{place}"
    code = script.exit_code
    if script.outcome == "timeout":
        return "stopped at its time limit"
    if code is not None and code < 0:
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"
    return "interrupted" if script.outcome == "interrupted" else f"exit code {code}"


def last_line(trace: Trace) -> Span | None:
    """Returns the line of the last call that is known: a collective may not have returned."""
    failure = _failure(trace)
    if failure is not None and failure.site is not None:
        return trace.sites[failure.site].span
    located = (event for event in reversed(trace.events) if not isinstance(event, Gap) and event.site is not None)
    event = next((event for event in located if event.site is not None and event.site >= 0), None)
    started = [each for each in trace.inspection.collectives if each.site is not None]
    if started and (event is None or started[-1].index > event.index):
        site = started[-1].site
    else:
        site = None if event is None else event.site
    return None if site is None else trace.sites[site].span


def place_of(trace: Trace, span: Span) -> str:
    """Returns `line 7`, or `net.py:7` in another file than the script's own."""
    shown = shown_path(span.file, trace.script.folder)
    own = trace.script.path.replace("\\", "/").rpartition("/")[2]
    return f"line {span.line}" if shown == own else f"{shown}:{span.line}"


def _failure(trace: Trace) -> Failure | None:
    return None if trace.script.failure is None else trace.failures[trace.script.failure]


def _was_terminated(trace: Trace) -> bool:
    return trace.script.outcome == "killed" and trace.script.exit_code == -signal.SIGTERM


def _was_stopped(trace: Trace) -> bool:
    return trace.script.outcome == "killed" and trace.script.exit_code in (-signal.SIGTERM, -signal.SIGKILL)


def _ending(trace: Trace, first: Trace | None) -> Ending:
    if not has_failed(trace):
        return "ended"
    if waited_for_gone(trace):
        return "waited"
    if has_timed_out(trace):
        return "timed out"
    if trace is first:
        return "failed first"
    if _was_stopped(trace) or first is None or trace.script.outcome in ("timeout", "interrupted"):
        return "stopped"
    return "failed alike" if _what(trace) == _what(first) else "failed later"


def _what(trace: Trace) -> tuple[str, str, str, int]:
    failure, last = _failure(trace), last_line(trace)
    kind = ("", "") if failure is None else (failure.type, failure.kind)
    return (*kind, "", 0) if last is None else (*kind, shown_path(last.file, trace.script.folder), last.line)
