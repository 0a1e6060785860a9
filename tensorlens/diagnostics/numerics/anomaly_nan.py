"""Finds the cause of `anomaly-nan`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.numerics._anomaly import failing_call, mode_label, value_label
from tensorlens.diagnostics.shared.wording import finding, fix, in_iteration, node_text, op_text, severity_of
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
    built = None
    if call is not None:
        built = facts.label("graph_built_here", call.site, f"{name} is recorded here{in_iteration(facts, call)}")
    return finding(
        CODE,
        severity_of(failure),
        f"the gradient computed by {name} is not a number",
        f"no NaN reached {name}; its own formula made one of what it was given",
        [
            built,
            value_label(facts, failure, call),
            facts.label("needed_here", failure.site, f"{name} is run backward here"),
            mode_label(facts, failure.index),
        ],
        fixes=tuple(_fixes(call)),
        evidence={"node": None if node is None else node.node, "output": None if node is None else node.slot},
    )


def _fixes(call: Call | None) -> Iterator[Fix]:
    if call is None or call.op.endswith(".apply"):
        yield fix("look at the formula in `backward` for a division by zero or a product of 0 and infinity")
        return
    op = op_text(call.op)
    yield fix(f"keep what {op} is given away from where its slope is infinite: `clamp(min=...)` or a small constant")
    yield fix(f"to leave elements out, put harmless values in their place before {op}: masked after it, 0 * inf is NaN")
