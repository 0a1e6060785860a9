"""Makes the findings of a run.

`FAMILY/CODE.md` is the page of a code. `CODE.py` beside it, the finder, searches for the cause where the page's front
matter cannot name it. `diagnose` runs the finders of the codes that failures and warnings have, and those of all silent
mistakes.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tensorlens.records.error_messages import classify, entries, entry, find

if TYPE_CHECKING:
    from tensorlens.analysis.trace_index import TraceIndex
    from tensorlens.records.model import Trace
    from tensorlens.records.report import Diagnostic, Report, StandingOut

_ORDER = {"error": 0, "warning": 1, "note": 2}


def diagnose(trace: Trace) -> tuple[Diagnostic, ...]:
    """Returns all findings of a run: errors first, then warnings and notes, each group in the order of the run."""
    from tensorlens.analysis.trace_index import index_of  # not above: `errors` needs this package, and no analysis

    facts = index_of(trace)
    if trace.inspection.switches and any(not switch.recording for switch in trace.inspection.switches):
        diagnostics = _findings_of_sample(facts)
    else:
        codes = dict.fromkeys(failure.kind for failure in trace.failures if failure.kind)
        codes.update(dict.fromkeys(filter(None, (classify(notice.message) for notice in facts.notices()))))
        diagnostics = _findings_of(codes, _silent_codes(), facts)
        diagnostics.extend(_unexplained_failure(facts, diagnostics))
    diagnostics.extend(_unreported_differences(facts, diagnostics))
    downgraded = map(_downgrade_unconfirmed, diagnostics)
    merged = [_with_callers(facts, each) for each in _merge_related(facts, _deduplicate(downgraded))]
    return tuple(sorted(merged, key=lambda diagnostic: _ORDER[diagnostic.severity]))


def report_on(trace: Trace) -> Report:
    """Returns the report of a run: its findings, and which of PyTorch's warnings they explain."""
    from tensorlens.analysis.ranks.sharding import with_kinds_of_sharded
    from tensorlens.diagnostics.ignored import without_commented
    from tensorlens.records.report import Report

    trace = with_kinds_of_sharded(trace)
    diagnostics = diagnose(trace)
    explained, sentences = explained_by(trace, diagnostics), _standing_out(trace, diagnostics)
    return without_commented(Report(trace, diagnostics, explained, standing_out=sentences))


def _standing_out(trace: Trace, diagnostics: tuple[Diagnostic, ...]) -> tuple[StandingOut, ...] | None:
    """Returns what stands out in the training; None if it was not measured."""
    if not trace.inspection.measured:
        return None
    from tensorlens.analysis.trace_index import index_of
    from tensorlens.diagnostics.standing_out import standing_out

    return standing_out(index_of(trace), diagnostics)


def explained_by(trace: Trace, diagnostics: tuple[Diagnostic, ...]) -> frozenset[int]:
    """Returns the indices of PyTorch's warnings that findings explain."""
    from tensorlens.diagnostics.shared.related import explained_notices

    return explained_notices(trace, diagnostics)


def load() -> None:
    """Imports the finders that every run needs."""
    from tensorlens.analysis import trace_index  # noqa: F401
    from tensorlens.diagnostics.numerics import gradient_differs_from_reference  # noqa: F401
    from tensorlens.diagnostics.shared import callers, one_thread, related, unexplained  # noqa: F401

    for code in _silent_codes():
        finder(code)


def finder(code: str) -> Callable[[TraceIndex], Iterable[Diagnostic]] | None:
    """Returns the function that makes the findings of a code.

    None if the code has no finder, or does not exist: a trace file may contain any text.
    """
    known = entry(code)
    if known is None:
        return None
    if known.finding is not None:
        from tensorlens.diagnostics.shared.rejected import find_rejected

        return partial(find_rejected, known=known)
    if not known.finder:
        return None
    module = importlib.import_module(f"{__name__}.{known.family}.{known.stem}")
    name = "find_in_rank" if known.compares_ranks else "find"
    return getattr(module, name, None)  # `gradient-differs-from-reference` has none: it runs after the others


def _silent_codes() -> list[str]:
    """Returns the codes of the silent mistakes that have a finder: it runs after every run of a script."""
    silent = [item for item in entries() if item.kind == "silent" and item.finder and not item.compares_ranks]
    return [item.code for item in sorted(silent, key=lambda item: item.order)]


def _findings_of(codes: Collection[str], silent: Iterable[str], facts: TraceIndex) -> list[Diagnostic]:
    """Returns the findings of `codes`, and those of other silent mistakes whose lines one thread ran."""
    found = [diagnostic for code in codes for diagnostic in _findings(code, facts)]
    others = (code for code in silent if code not in codes)
    return [*found, *(each for code in others for each in _findings(code, facts) if _ran_in_one_thread(facts, each))]


def _findings(code: str, facts: TraceIndex) -> list[Diagnostic]:
    """Runs the finder of a code. If a finder raises on a trace that it does not expect, it finds nothing."""
    try:
        find_in = finder(code)
        return [] if find_in is None else list(find_in(facts))
    except Exception:
        if os.environ.get("TENSORLENS_DEBUG"):
            raise
        return []


def _findings_of_sample(facts: TraceIndex) -> list[Diagnostic]:
    """Returns the findings of a run of which only some training steps were recorded."""
    from tensorlens.analysis.sampled_run import part_of, sampling_of
    from tensorlens.analysis.trace_index import TraceIndex
    from tensorlens.diagnostics.shared import sampled

    sampling, number = sampling_of(facts.trace), facts.trace.script.failure
    found: list[Diagnostic] = []
    explained = False
    for stretch in () if sampling is None else sampled.stretches_of(sampling):
        part = part_of(facts.trace, stretch)
        index = TraceIndex(part)
        kept = [each.kind if sampled.may_explain(index, each, stretch) else "" for each in part.failures]
        judged = tuple(replace(each, kind=kind) for each, kind in zip(part.failures, kept, strict=True))
        index = TraceIndex(replace(part, failures=judged))
        silent = filter(sampled.SILENT.__contains__, _silent_codes())
        found += _findings_of(dict.fromkeys(filter(None, kept)), silent, index)
        if number is not None and kept[number]:
            explained |= kept[number] in {each.code for each in found}
    if number is not None and sampling is not None and not explained:
        found += sampled.find_unrecorded(facts, sampling, facts.trace.failures[number])
    return found


def _unexplained_failure(facts: TraceIndex, diagnostics: list[Diagnostic]) -> Iterator[Diagnostic]:
    """Reports the exception that ended the script, if no error among the findings explains it."""
    from tensorlens.diagnostics.shared.unexplained import find_unexplained

    explained = {diagnostic.code for diagnostic in diagnostics if diagnostic.severity == "error"}
    number = facts.trace.script.failure
    if number is not None and not explained & set(find(facts.trace.failures[number].message)):
        yield from find_unexplained(facts, facts.trace.failures[number])


def _unreported_differences(facts: TraceIndex, diagnostics: list[Diagnostic]) -> Iterator[Diagnostic]:
    """Reports a gradient that differs in a second run, if no finding does."""
    from tensorlens.diagnostics.numerics.gradient_differs_from_reference import find_unreported
    from tensorlens.diagnostics.shared.proof import DIFFERS

    if not any(note.startswith(DIFFERS) for diagnostic in diagnostics for note in diagnostic.notes):
        yield from find_unreported(facts)


def _ran_in_one_thread(facts: TraceIndex, diagnostic: Diagnostic) -> bool:
    from tensorlens.diagnostics.shared.one_thread import ran_in_one_thread

    return ran_in_one_thread(facts, diagnostic)


def _downgrade_unconfirmed(diagnostic: Diagnostic) -> Diagnostic:
    from tensorlens.diagnostics.shared.proof import downgrade_unconfirmed

    return downgrade_unconfirmed(diagnostic)


def _merge_related(facts: TraceIndex, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    from tensorlens.diagnostics.shared.related import merge_related

    return merge_related(facts, diagnostics)


def _with_callers(facts: TraceIndex, diagnostic: Diagnostic) -> Diagnostic:
    from tensorlens.diagnostics.shared.callers import with_callers

    return with_callers(facts, diagnostic)


def _deduplicate(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Merges equal findings at the same lines into one, with a detail that says how often they were made."""
    groups: dict[object, list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        places = tuple((label.role, label.span) for label in diagnostic.labels)
        groups.setdefault((diagnostic.code, diagnostic.severity, diagnostic.title, places), []).append(diagnostic)
    for first, *repeated in groups.values():
        times = f"{len(repeated)} more times" if len(repeated) > 1 else "once more"
        more = (f"the same was recorded {times}, at the same lines",) if repeated else ()
        yield replace(first, detail=(*first.detail, *more))
