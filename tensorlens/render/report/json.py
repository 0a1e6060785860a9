"""Renders the report as one JSON object, as `docs/report.schema.json` describes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from math import isfinite
from typing import Any

from tensorlens.analysis.naming.names import Names, names_of
from tensorlens.analysis.ranks.endings import last_line
from tensorlens.analysis.sampled_run import sampling_of, sampling_text
from tensorlens.analysis.states import last_states
from tensorlens.records.claim import Claim
from tensorlens.records.eager import EagerComparison
from tensorlens.records.model import Backward, Call, Change, Event, Gap, GradMode, Notice, Region, Span, State, Trace
from tensorlens.records.reference import Difference, Reference
from tensorlens.records.report import Diagnostic, Ignored, Report
from tensorlens.records.source import shown_path
from tensorlens.render.options import RenderOptions
from tensorlens.render.report.headline import final_failure
from tensorlens.render.safe_text import written

FORMAT = "tensorlens.report"
VERSION = 1
MAX_EVENTS = 2_000  # if there are more, each line and op is listed once, with a count
MAX_TENSORS = 2_000  # the last ones; the tracer lists as many living tensors


def to_json(report: Report, options: RenderOptions) -> str:
    """Returns the report as indented JSON; `options` has the texts of documented statements."""
    return written(to_dict(report, options), indent=1)


def to_dict(report: Report, options: RenderOptions) -> dict[str, Any]:
    """Returns the report as plain data."""
    trace = report.trace
    names = names_of(trace)
    states = last_states(trace)[-MAX_TENSORS:]
    return {
        "format": FORMAT,
        "version": VERSION,
        "tensorlens": trace.versions.tensorlens,
        "torch": trace.versions.torch,
        "python": trace.versions.python,
        "script": _script(trace),
        "sampling": _sampling(trace),
        "diagnostics": [diagnostic_dict(diagnostic, trace) for diagnostic in report.diagnostics],
        "ignored": [_ignored(each, trace) for each in report.ignored],
        "ranks": ranks_of(report),
        "tensors": [_tensor(trace, names, state) for state in states],
        "storages": _storages(trace, states),
        "events": list(_events(trace)),
        "claims": [_claim(claim, options) for claim in trace.claims],
        "gaps": [_gap(trace, event) for event in trace.events if isinstance(event, Gap)],
        "reference": None if trace.reference is None else _reference(trace.reference, names),
        "eager": None if trace.eager is None else _eager(trace.eager, trace, names),
        "training": _training(report),
        "tried": None if report.tried is None else asdict(report.tried),
    }


def _script(trace: Trace) -> dict[str, Any]:
    script, failure = trace.script, final_failure(trace)
    exception = None
    if failure is not None:
        span = None if failure.site is None else _span(trace.sites[failure.site].span, trace)
        exception = {"type": failure.type, "message": failure.message, "span": span}
    return {
        "path": script.path,
        "argv": list(script.argv),
        "outcome": script.outcome,
        "exit_code": script.exit_code,
        "exception": exception,
    }


def _sampling(trace: Trace) -> dict[str, Any] | None:
    """Describes which training steps were recorded; None if all were."""
    sampling = sampling_of(trace)
    if sampling is None:
        return None
    return {
        "recorded": sampling.recorded,
        "steps": sampling.ended,
        "all_counted": sampling.is_counted,
        "text": sampling_text(trace),
        "stretches": [{"first": each.first, "last": each.last} for each in sampling.stretches],
    }


def ranks_of(report: Report) -> list[dict[str, Any]] | None:
    """Describes this process of a distributed run. `failed_first` is None: one process cannot know which one did."""
    trace, rank = report.trace, report.trace.script.rank
    if rank is None:
        return None
    last = last_line(trace)
    return [
        {
            "rank": rank.number,
            "world_size": rank.world,
            "host": rank.host,
            "outcome": trace.script.outcome,
            "failed_first": None,
            "diagnostics": [diagnostic.code for diagnostic in report.diagnostics],
            "last_span": None if last is None else _span(last, trace),
        }
    ]


def _span(span: Span, trace: Trace) -> dict[str, Any]:
    return {
        "file": shown_path(span.file, trace.script.folder),
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }


def diagnostic_dict(diagnostic: Diagnostic, trace: Trace) -> dict[str, Any]:
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "title": diagnostic.title,
        "explanation": diagnostic.explanation,
        "labels": [{"role": label.role, **_span(label.span, trace), "text": label.text} for label in diagnostic.labels],
        "notes": list(diagnostic.notes),
        "detail": list(diagnostic.detail),
        "also": list(diagnostic.also),
        "confirmed": diagnostic.confirmed,
        "confirmation": diagnostic.confirmation,
        "fixes": [
            {
                "title": fix.title,
                "place": None if fix.place is None else _span(fix.place, trace),
                "edits": [{**_span(edit.span, trace), "text": edit.text} for edit in fix.edits],
                "verdict": fix.verdict,
                "differs": fix.differs,
            }
            for fix in diagnostic.fixes
        ],
        "evidence": diagnostic.evidence,
    }


def _ignored(ignored: Ignored, trace: Trace) -> dict[str, Any]:
    comment = None if ignored.comment is None else _span(ignored.comment, trace)
    return {**diagnostic_dict(ignored.diagnostic, trace), "comment": comment}


def _tensor(trace: Trace, names: Names, state: State) -> dict[str, Any]:
    tensor = trace.tensors[state.tensor]
    return {
        "id": tensor.id,
        "name": names.display_name(tensor.id),
        "shape": list(tensor.shape),
        "dtype": tensor.dtype,
        "device": tensor.device,
        "requires_grad": state.requires_grad,
        "is_leaf": state.is_leaf,
        "grad_fn": state.grad_fn,
        "version": state.version,
        "storage": _storage(trace, state),
        "is_view": tensor.base is not None,
        "base": tensor.base,
        "retains_grad": state.retains_grad,
        "grad": state.grad,
    }


def _storage(trace: Trace, state: State) -> int | None:
    return trace.tensors[state.tensor].storage if state.storage is None else state.storage


def _storages(trace: Trace, states: list[State]) -> list[dict[str, Any]]:
    tensors: dict[int, list[int]] = {}
    for state in states:
        storage = _storage(trace, state)
        if storage is not None:
            tensors.setdefault(storage, []).append(state.tensor)
    return [{"id": n, "nbytes": trace.storages[n].nbytes, "tensors": tensors[n]} for n in sorted(tensors)]


def _events(trace: Trace) -> Iterator[dict[str, Any]]:
    """Yields the events in order; for a long run, one for each line and op, with a count."""
    listed: list[Event] = [event for event in trace.events if not isinstance(event, Gap | Change)]
    if len(listed) <= MAX_EVENTS:
        yield from (_event(trace, event, 1) for event in listed)
        return
    last: dict[tuple[int | None, str], Event] = {}
    for event in listed:
        last[event.site, _op(event)] = event
    counts = {(total.site, total.op): total.count for total in trace.totals}
    for (site, op), event in list(last.items())[:MAX_EVENTS]:
        yield _event(trace, event, counts.get((site or 0, op), 1))


def _op(event: Event) -> str:
    if isinstance(event, Call | Backward):
        return event.op
    if isinstance(event, Region):
        return event.name
    return event.cause if isinstance(event, GradMode) else "warning"


def _event(trace: Trace, event: Event, count: int) -> dict[str, Any]:
    span = None if event.site is None or event.site < 0 else trace.sites[event.site].span
    data: dict[str, Any] = {
        "index": event.index,
        "op": _op(event),
        "file": None if span is None else shown_path(span.file, trace.script.folder),
        "line": None if span is None else span.line,
        "count": count,
    }
    if isinstance(event, Call):
        data |= {
            "inputs": [{"tensor": a.tensor, "version": a.version} for a in event.inputs],
            "outputs": [{"tensor": a.tensor, "version": a.version} for a in event.outputs],
            "writes": [{"tensor": w.tensor, "before": w.before, "after": w.after} for w in event.writes],
            "grad_mode": event.mode,
            "within": event.within,
        }
    elif isinstance(event, Backward):
        data |= {
            "inputs": [{"tensor": a.tensor, "version": a.version} for a in event.roots],
            "gradients": [{"tensor": g.tensor, "before": g.before, "after": g.after} for g in event.gradients],
            "retain_graph": event.retain_graph,
            "create_graph": event.create_graph,
            "failed": event.failed,
        }
    elif isinstance(event, GradMode):
        data |= {"grad_mode": event.mode, "entering": event.entering}
    elif isinstance(event, Region):
        data |= {"entering": event.entering}
    elif isinstance(event, Notice):
        data |= {"category": event.category, "message": event.message}
    return data


def _claim(claim: Claim, options: RenderOptions) -> dict[str, Any]:
    return {
        "id": claim.id,
        "statement": None if claim.id is None else options.statements.get(claim.id),
        "check": claim.check,
        "line": claim.line,
        "verdict": claim.verdict,
        "condition": claim.condition,
        "expected": claim.expected,
        "as_expected": claim.as_expected,
        "values": [{"expression": expression, "value": value} for expression, value in claim.values],
        "error": claim.error,
        "changed": claim.changed,
        "round": claim.round,
    }


def _training(report: Report) -> dict[str, Any] | None:
    """Describes what `--training` measured; None if the run was made without it."""
    if report.standing_out is None:
        return None
    from tensorlens.render.report.training_json import training_dict  # not above: most reports have none

    return training_dict(report)


def _reference(reference: Reference, names: Names) -> dict[str, Any]:
    return {
        "compared": list(reference.compared),
        "reason": reference.reason,
        "differences": [_difference(each, names) for each in reference.differences],
    }


def _eager(comparison: EagerComparison, trace: Trace, names: Names) -> dict[str, Any]:
    called = trace.callbacks.functions
    return {
        "compared": list(comparison.compared),
        "reason": comparison.reason,
        "differences": [_difference(each, names) for each in comparison.differences],
        "in_double": comparison.in_double,
        "exact": [_number(value) for value in comparison.exact],
        "rounding": comparison.rounding,
        "random": comparison.random,
        "functions": [each.name for each in trace.inspection.compiled if each.number in comparison.functions],
        "hooks": [called[each.function].name for each in trace.inspection.late if each.number in comparison.hooks],
        "raised": comparison.raised,
    }


def _difference(difference: Difference, names: Names) -> dict[str, Any]:
    return {
        "event": difference.backward,
        "tensor": difference.tensor,
        "name": names.display_name(difference.tensor, difference.backward),
        "largest": _number(difference.largest),
        "relative": _number(difference.relative),
        "start": difference.start,
        "got": [_number(value) for value in difference.got],
        "right": [_number(value) for value in difference.right],
        "values": difference.values,
    }


def _number(value: float) -> float | str:
    """Returns a finite number as it is, and others as "nan", "inf" or "-inf", which JSON has no numbers for."""
    return value if isfinite(value) else str(value)


def _gap(trace: Trace, gap: Gap) -> dict[str, Any]:
    span = None if gap.site is None or gap.site < 0 else trace.sites[gap.site].span
    file = None if span is None else shown_path(span.file, trace.script.folder)
    return {"reason": gap.reason, "count": gap.count, "file": file, "line": None if span is None else span.line}
