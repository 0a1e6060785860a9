"""Finds the cause of `anomaly-nan`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.numerics._anomaly import failing_call, mode_label, value_label
from tensorlens.diagnostics.shared.wording import (
    as_written,
    finding,
    fix,
    in_iteration,
    node_text,
    op_text,
    severity_of,
)
from tensorlens.records.model import Call, Failure
from tensorlens.records.report import Diagnostic, Fix

CODE = "anomaly-nan"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        yield explain(facts, failure)


def explain(facts: TraceIndex, failure: Failure) -> Diagnostic:
    """Reports the node whose gradient was NaN, the call that recorded it, and the input value of this call."""
    node = failure.saved[0] if failure.saved else None
    name = "an operation" if node is None else node_text(node.node)
    call = failing_call(facts, failure)
    code = name if call is None else as_written(facts, call)
    when = "" if call is None else in_iteration(facts, call)
    return finding(
        CODE,
        severity_of(failure),
        f"backward of {code} computed NaN{when}",
        "of the operations that this pass went back through, it is the first whose gradient is NaN",
        [
            None if call is None else facts.label("graph_built_here", call.site, "the gradient of its input is NaN"),
            value_label(facts, failure, call),
            facts.label("needed_here", failure.site, "stops at the NaN"),
            mode_label(facts, failure.index),
        ],
        fixes=tuple(_fixes(facts, failure, call)),
        evidence={"node": None if node is None else node.node, "output": None if node is None else node.slot},
        detail=() if node is None else (f"anomaly mode names the node {node.node}",),
    )


def _fixes(facts: TraceIndex, failure: Failure, call: Call | None) -> Iterator[Fix]:
    if call is None or call.op.endswith(".apply"):
        yield fix("look at the formula in `backward` for a division by zero or a product of 0 and infinity")
        return
    if call.op == "autograd.grad":
        yield fix("a derivative of this gradient is not finite: keep the values away from where that happens")
        return
    if len(failure.saved) < 2:  # no value that it saved is infinite, NaN or zero
        text = "look at the gradient that arrives here: a hook or the gradient passed to backward may bring the NaN"
        yield fix(text, place=facts.span(call.site))
        return
    op, place = op_text(call.op), facts.span(call.site)
    yield fix(f"keep what {op} is given a little away from where its slope is infinite", place=place)
    yield fix(f"to leave elements out, replace them before {op}: masked after it, 0 * inf is NaN", place=place)
