"""Explains an infinite or NaN gradient: which operation has no finite derivative, and at which value."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.silent_saved_tensor import backward_of
from tensorlens.diagnostics.shared.wording import finding, fix, in_iteration, named, op_text
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import NonfiniteDerivative
from tensorlens.records.report import Diagnostic, Fix

UNSELECTED = "nan-gradient-from-unselected-branch"
BOUNDARY = "infinite-or-nan-gradient-at-boundary"


def find_singular(facts: TraceIndex, code: str) -> Iterator[Diagnostic]:
    """Makes one finding for each line whose operation was the first to make a gradient infinite or NaN."""
    reported: set[int] = set()
    for node in facts.trace.inspection.singular:
        backward, call = backward_of(facts, node.index), facts.call_of_node(node.sequence, node.index)
        if backward is None or call is None or call.site in reported:
            continue
        reported.add(call.site)
        if (UNSELECTED if _is_unselected(node) else BOUNDARY) == code:
            yield _report(facts, code, node, call, backward)


def _is_unselected(node: NonfiniteDerivative) -> bool:
    """Returns whether a later selection left the value out: then its gradient is zero, and zero times infinity is
    NaN."""
    return bool(node.selected) and "nan" in node.gradient


def _report(facts: TraceIndex, code: str, node: NonfiniteDerivative, call: Call, backward: Backward) -> Diagnostic:
    value, made = _value(facts, call)
    name = "its input" if value is None else named(facts, value, call.index)
    leaf = named(facts, node.leaf, backward.index)
    select = _selection(facts, node)
    count = f"{node.infinite} of {node.total} elements" if node.total > 1 else "the value"
    return finding(
        code,
        "warning",
        f"the gradient of {leaf} is {node.gradient} because of {op_text(call.op)}",
        f"the loss is finite, but `{node.node}` has no finite derivative at {count} of {name}: "
        + _why(code, node, select),
        [
            facts.label("graph_built_here", call.site, f"the derivative here is not finite{in_iteration(facts, call)}"),
            None if made is None else facts.label("value_made_here", made.site, f"{name} is made here"),
            facts.label("needed_here", backward.site, f"backward gives {leaf} {node.gradient}"),
        ],
        notes=tuple(_line_note(facts, select)),
        fixes=tuple(_fixes(code, call, name, select)),
        evidence={"node": node.node, "not_finite": node.infinite, "elements": node.total, "gradient": node.gradient},
    )  # fmt: skip


def _why(code: str, node: NonfiniteDerivative, select: Call | None) -> str:
    if code == UNSELECTED:
        selector = "a selection" if select is None else op_text(select.op)
        return f"{selector} leaves those values out, so their incoming gradient is zero, and 0 * inf is NaN"
    if "nan" in node.gradient:
        return "from there back to the leaves it turns into NaN"
    return "the incoming gradient is multiplied by it"


def _value(facts: TraceIndex, call: Call) -> tuple[int | None, Call | None]:
    """Finds the tensor that the operation read, and the call on another line that made the value of that tensor."""
    state = next((s for s in call.states if s.requires_grad), None)
    inputs = [a.tensor for a in call.inputs if facts.requires_grad(a.tensor, call.index)]
    number = inputs[-1] if inputs and state is not None else None
    line = place_of(facts.trace.sites[call.site])
    if number is None:
        return None, None
    made = next(iter(facts.producers(number, call.index)), None) or facts.first_use(number)
    if made is not None and place_of(facts.trace.sites[made.site]) != line:
        return number, made
    for _, above in ancestry(facts, number, call.index):
        for access in above.inputs:
            made = next(iter(facts.producers(access.tensor, above.index)), None)
            if made is not None and place_of(facts.trace.sites[made.site]) != line:
                return access.tensor, made
    return number, None


def _selection(facts: TraceIndex, node: NonfiniteDerivative) -> Call | None:
    return facts.call_of_node(node.selected[0], node.index) if node.selected else None


def _line_note(facts: TraceIndex, select: Call | None) -> Iterator[str]:
    span = None if select is None else facts.span(select.site)
    if select is not None and span is not None:
        yield f"{op_text(select.op)} on line {span.line} selects among the results, which is too late for the gradient"


def _fixes(code: str, call: Call, name: str, select: Call | None) -> Iterator[Fix]:
    operation = op_text(call.op)
    if code == UNSELECTED:
        yield fix(f"put harmless values into {name} before {operation}, where they are to be left out")
    else:
        yield fix(f"keep {name} away from that value: add a small number before {operation}, or `clamp()` it")
        if call.op.endswith(("sqrt", "pow")):
            yield fix("for a norm, `torch.linalg.vector_norm()` has the gradient zero at zero")
