"""Merges the findings about one event: the most specific stays, and names the others in `also`.

Two findings are about one event only if recorded facts show it: a failure and PyTorch's warning of the same call, a
value that is None because a warning's tensor keeps no gradient, a cut inside the checkpoint that a warning is about.
Independent mistakes stay two findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tensorlens.analysis.naming.assignments import receiver
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.error_messages import find
from tensorlens.records.model import Call, Notice, Region, Span, Trace
from tensorlens.records.report import Diagnostic, Label, Severity

_RANK: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}
_CHECKPOINT, _NONLEAF = "checkpoint-no-input-requires-grad", "nonleaf-grad-access"
_LOST_VALUES = {"scalar-conversion-of-requires-grad", "copy-construct-from-tensor"}
_NONE_GRADIENT = {"none-grad-attribute", "none-grad-arithmetic"}


def merge_related(facts: TraceIndex, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Merges each finding that is about the same event as another into that one."""
    kept = list(diagnostics)
    while pair := next(((s, g) for s in kept for g in kept if s is not g and _is_same_event(facts, s, g)), None):
        special, general = pair
        kept = [_merged(special, general) if each is special else each for each in kept if each is not general]
    return kept


def explained_notices(trace: Trace, diagnostics: Iterable[Diagnostic]) -> frozenset[int]:
    """Returns the indices of PyTorch's warnings that a finding explains: it has their code and labels their line."""
    lines: dict[str, set[tuple[str, int]]] = {}
    for diagnostic in diagnostics:
        places = {(label.span.file, label.span.line) for label in diagnostic.labels}
        same_read = [_NONLEAF] if diagnostic.code in _NONE_GRADIENT else []
        for code in (diagnostic.code, *merged_codes(diagnostic), *same_read):
            lines.setdefault(code, set()).update(places)
    explained = set()
    for event in trace.events:
        if isinstance(event, Notice) and event.site is not None:
            span = trace.sites[event.site].span
            if any((span.file, span.line) in lines.get(code, ()) for code in find(event.message)):
                explained.add(event.index)
    return frozenset(explained)


def merged_codes(diagnostic: Diagnostic) -> tuple[str, ...]:
    """Returns the codes of the findings that were merged into this one."""
    return tuple(text.rpartition("[")[2].removesuffix("]") for text in diagnostic.also)


def _merged(special: Diagnostic, general: Diagnostic) -> Diagnostic:
    """Returns the specific finding, as severe as the other, with the line that failed."""
    failed = [label for label in general.labels if label.role in ("needed_here", "rejected_here")][:1]
    known = {(label.span.file, label.span.line) for label in special.labels}
    labels = (*special.labels, *(label for label in failed if (label.span.file, label.span.line) not in known))
    also = f"{general.title} [{general.code}]"
    severity = min(special.severity, general.severity, key=lambda severity: _RANK[severity])
    return replace(special, severity=severity, labels=labels, also=(*special.also, also, *general.also))


def _is_same_event(facts: TraceIndex, special: Diagnostic, general: Diagnostic) -> bool:
    """Returns whether `special` explains what `general` reports."""
    if general.code == "element-does-not-require-grad":
        return special.code == _CHECKPOINT and _is_cut_by(facts, special, general)
    if general.code in _LOST_VALUES:
        return special.code == "element-does-not-require-grad" and bool(
            _spans(special, "graph_cut_here") & _spans(general, "graph_cut_here")
        )
    if general.code == _NONLEAF:
        return special.code in _NONE_GRADIENT and bool(
            _spans(special, "nonleaf_made_here") & _spans(general, "nonleaf_made_here")
            and _lines(special, "needed_here") & _lines(general, "observed_here")
        )
    if general.code == "autograd-kernel-not-registered":
        return special.code == "collective-without-gradient" and bool(
            _lines(special, "needed_here") & _lines(general, "needed_here")
        )
    if general.code == "clip-grad-empty-generator":
        return special.code == "parameters-iterator-used-up" and bool(
            _lines(special, "rejected_here") & _lines(general, "rejected_here")
        )
    if general.code == "uncaught-exception":
        return special.code == _NONLEAF and _is_of_missing_gradient(facts, special)
    is_weaker = _RANK[special.severity] < _RANK[general.severity] and general.severity == "warning"
    failed = _spans(special, "rejected_here") | _spans(special, "needed_here")
    return is_weaker and bool(failed & _spans(general)) and _spans(general) <= _spans(special)


def _is_cut_by(facts: TraceIndex, checkpoint: Diagnostic, failed: Diagnostic) -> bool:
    """Returns whether the call that lost the history was made inside the checkpoint of a warning."""
    called = {label.site for label in checkpoint.labels if label.role == "called_here"}
    cuts = {label.site for label in failed.labels if label.role == "graph_cut_here"}
    return any(call.site in cuts for call in _inside(facts, called))


def _inside(facts: TraceIndex, sites: set[int | None]) -> Iterator[Call]:
    """Yields the calls inside the checkpoints that were called at some sites."""
    depth = 0
    for event in facts.events:
        if isinstance(event, Region) and event.name == "checkpoint" and event.site in sites:
            depth += 1 if event.entering else -1
        elif depth > 0 and isinstance(event, Call):
            yield event


def _is_of_missing_gradient(facts: TraceIndex, warning: Diagnostic) -> bool:
    """Returns whether the exception that ended the script is about the None that the warned-of `.grad` gave."""
    number = facts.trace.script.failure
    failure = None if number is None else facts.trace.failures[number]
    span = None if failure is None else facts.span(failure.site)
    if failure is None or span is None or not failure.message.startswith("'NoneType' object has no attribute"):
        return False
    read = [label.span for label in warning.labels if label.role == "observed_here"]
    source = facts.trace.sources.get(span.file, "")
    return any(_begins_with(span, each) and receiver(source, span) == _text(facts, each) for each in read)


def _begins_with(span: Span, part: Span) -> bool:
    return (span.file, span.line, span.column) == (part.file, part.line, part.column)


def _text(facts: TraceIndex, span: Span) -> str:
    return facts.names.syntax.text(span, 1000)


def _spans(diagnostic: Diagnostic, role: str = "") -> set[Span]:
    return {label.span for label in _labels(diagnostic, role)}


def _lines(diagnostic: Diagnostic, role: str) -> set[tuple[str, int]]:
    return {(label.span.file, label.span.line) for label in _labels(diagnostic, role)}


def _labels(diagnostic: Diagnostic, role: str) -> Iterator[Label]:
    return (label for label in diagnostic.labels if role in ("", label.role))
