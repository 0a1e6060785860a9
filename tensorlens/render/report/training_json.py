"""Writes what `--training` measured as plain data, for the JSON report."""

from __future__ import annotations

from math import isfinite
from typing import Any

from tensorlens.analysis.trace_index import index_of
from tensorlens.analysis.training.changed_gradients import gradient_changes
from tensorlens.analysis.training.frozen import frozen_at
from tensorlens.analysis.training.held_memory import saved_by_line
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow, measured_training
from tensorlens.analysis.training.untrained import Untrained, untrained
from tensorlens.records.model import Trace
from tensorlens.records.report import Report
from tensorlens.records.source import shown_path
from tensorlens.records.training import HeldMemory
from tensorlens.render.report.training_losses import losses_list


def training_dict(report: Report) -> dict[str, Any]:
    """Returns the sentences about what stands out, the optimizers, the losses, and one object for each parameter."""
    training = measured_training(index_of(report.trace))
    assert training is not None
    ends = {each.row.tensor: each for each in untrained(training)}
    return {
        "steps": training.measured.steps,
        "passes": training.measured.passes,
        "standing_out": [
            {
                "text": each.text,
                "labels": [
                    {"role": label.role, **_span(label.span, report.trace), "text": label.text} for label in each.labels
                ],
            }
            for each in report.standing_out or ()
        ],
        "memory": [_look(training, look) for look in report.trace.inspection.memory],
        "first_nonfinite": _first_nonfinite(training),
        "optimizers": [_group(training, place) for place in range(len(training.groups))],
        "losses": losses_list(training),
        "parameters": [_parameter(training, row, ends.get(row.tensor)) for row in training.rows],
    }


def _look(training: MeasuredTraining, look: HeldMemory) -> dict[str, Any]:
    lines = [{"line": _line(training, site), "bytes": size} for site, size in saved_by_line(training.facts, look)]
    return {
        "step": look.step,
        "pass": look.begun or None,
        "live": look.live,
        "bytes": look.size,
        "saved_bytes": look.saved,
        "saved_at": lines,
        "complete": look.is_complete,
    }


def _first_nonfinite(training: MeasuredTraining) -> dict[str, Any] | None:
    """Returns the first loss or gradient with an infinity or NaN, and the operation behind it; None if there is none
    or, in a run inside a process, if nothing was searched."""
    inspection = training.facts.trace.inspection
    if not inspection.nonfinite or not inspection.origins:
        return None
    seen, origin = inspection.nonfinite[0], inspection.origins[0]
    return {
        "seen": seen.kind,
        "parameter": seen.tensor,
        "searched": origin.searched,
        "kind": origin.kind or None,
        "reason": origin.reason,
        "operation": origin.op,
        "within": origin.within,
        "node": origin.node,
        "value": origin.value or seen.value,
        "line": _line(training, origin.site),
        "shape": list(origin.shape),
        "nonfinite": origin.count,
        "element": list(origin.position),
        "given": origin.scope or None,
        "names": list(origin.names),
        "operands": list(origin.operands),
        "becomes_nan": _line(training, origin.then_site),
        "given_line": _line(training, origin.given_site),
        "seen_line": _line(training, origin.seen_site),
        "passes": origin.passes,
        "steps": origin.steps,
        "mixed": origin.mixed,
    }


def _group(training: MeasuredTraining, place: int) -> dict[str, Any]:
    group = training.groups[place]
    return {
        "optimizer": group.optimizer,
        "group": group.group,
        "name": group.name,
        "line": _line(training, group.site),
        "steps": group.steps,
        "learning_rates": [_number(rate) for rate in group.rates],
        "rate_course": [_number(rate) for rate in group.course],
        "weight_decay": _number(group.weight_decay),
        "momentum": _number(group.momentum),
        "parameters": list(group.parameters),
    }


def _end(training: MeasuredTraining, end: Untrained) -> dict[str, Any]:
    call = end.end.backward if end.end is not None and end.kind == "unasked" else end.call
    return {
        "kind": end.kind,
        "op": None if call is None else call.op,
        "line": None if call is None else _line(training, call.site),
    }


def _parameter(training: MeasuredTraining, row: ParameterRow, end: Untrained | None) -> dict[str, Any]:
    statistics, movement = row.statistics, row.movement
    frozen = frozen_at(training.facts, row.tensor)
    changes = [each for each in gradient_changes(training) if row.tensor in each.leaves]
    measured = None
    if statistics is not None:
        measured = {
            "rounds": statistics.rounds,
            "filled": statistics.filled,
            "zero": statistics.zero,
            "nonfinite": statistics.nonfinite,
            "first_nonfinite": statistics.first_nonfinite or None,
            "zeros": statistics.zeros,
            "norms": [_number(norm) for norm in statistics.norms],
        }
    moved = None
    if movement is not None:
        moved = {
            "size": _number(movement.size),
            "distance": _number(movement.distance),
            "elements": movement.elements,
            "unreached": movement.unreached,
            "unreached_moved": movement.unreached_moved,
        }
    return {
        "id": row.tensor,
        "name": row.name,
        "requires_grad": row.requires_grad,
        "optimizer": None if row.group is None else training.groups.index(row.group),
        "frozen_at": None if frozen is None else _line(training, frozen.site),
        "passes": [_line(training, site) for site in row.passes],
        "changed_at": [_line(training, each.call.site) for each in changes],
        "ends": None if end is None or not end.kind else _end(training, end),
        "gradients": measured,
        "moved": moved,
        "moved_by": list(row.causes),
    }


def _line(training: MeasuredTraining, site: int | None) -> dict[str, Any] | None:
    span = training.facts.span(site)
    return None if span is None else {"file": shown_path(span.file, training.facts.trace.script.folder),
                                      "line": span.line}  # fmt: skip


def _span(span: Any, trace: Trace) -> dict[str, Any]:
    return {
        "file": shown_path(span.file, trace.script.folder),
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }


def _number(value: float) -> float | str:
    """Returns a finite number as it is, and others as "nan", "inf" or "-inf", which JSON has no numbers for."""
    return value if isfinite(value) else str(value)
