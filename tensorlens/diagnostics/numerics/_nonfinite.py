"""Explains an infinite or NaN gradient: which operation has no finite derivative, and at which value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.silent_saved_tensor import backward_of
from tensorlens.diagnostics.shared.wording import as_written, finding, fix, in_iteration, named, op_text
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import NonfiniteDerivative
from tensorlens.records.report import Diagnostic, Fix
from tensorlens.records.source import one_line

UNSELECTED = "nan-gradient-from-unselected-branch"
_HARMLESS = {
    "asin": "0.0",
    "acos": "0.0",
    "arcsin": "0.0",
    "arccos": "0.0",
    "atanh": "0.0",
    "arctanh": "0.0",
    "acosh": "2.0",
}
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
        f"the gradient of {leaf} is {node.gradient} because of {as_written(facts, call)}{in_iteration(facts, call)}",
        _why(code, call, f"{count} of {name}", select),
        [
            facts.label("graph_built_here", call.site, "its slope is infinite or NaN here"),
            None if made is None else facts.label("value_made_here", made.site, f"makes {name}"),
            facts.label("needed_here", backward.site, f"gives {leaf} an infinite or NaN gradient"),
        ],
        fixes=tuple(_fixes(facts, code, (call, select), name)),
        evidence={"node": node.node, "not_finite": node.infinite, "elements": node.total, "gradient": node.gradient},
        detail=(f"the node is {node.node}; the loss itself is finite" + _selected_at(facts, select),),
    )  # fmt: skip


def _why(code: str, call: Call, where: str, select: Call | None) -> str:
    slope = f"the slope of {op_text(call.op)} is infinite or NaN at {where}"
    if code == UNSELECTED:
        selector = "a selection" if select is None else op_text(select.op)
        return f"{slope}; {selector} leaves that out, so its gradient is zero, but 0 * inf is NaN"
    return f"{slope}, and backward multiplies by it"


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


def _selected_at(facts: TraceIndex, select: Call | None) -> str:
    span = None if select is None else facts.span(select.site)
    return "" if select is None or span is None else f"; {op_text(select.op)} on line {span.line} selects too late"


def _fixes(facts: TraceIndex, code: str, calls: tuple[Call, Call | None], name: str) -> Iterator[Fix]:
    call, select = calls
    operation, place = op_text(call.op), facts.span(call.site)
    if code == UNSELECTED:
        operand = _operand(facts, call, name)
        text = f"give {operation} harmless values where they are left out"
        yield fix(f"{text}: {_replacement(facts, call, select, operand)} in place of `{operand}`", place=place)
        return
    yield fix(_away(call, name), place=place)
    if call.op.endswith(("sqrt", "pow")):
        yield fix("for a norm, use `torch.linalg.vector_norm()`: its gradient at zero is zero", place=place)


def _away(call: Call, name: str) -> str:
    """Says how to keep the input of an operation from where the slope is not finite."""
    if any(part in call.op for part in ("eig", "svd")):
        return "equal values leave the vectors undetermined: use the values alone, or keep them apart"
    if call.op.rpartition(".")[2].strip("_") in _HARMLESS:
        return f"keep {name} away from the edge, where the slope is infinite: `clamp(...)` it a little inside"
    return f"keep {name} away from that value: add a small number before {op_text(call.op)}"


def _operand(facts: TraceIndex, call: Call, name: str) -> str:
    """Returns what the operation is given, as the script writes it; else the name of the value, or "x"."""
    nodes = facts.names.syntax.operands(facts.trace.sites[call.site], call.op)
    if len(nodes) == 1:
        return one_line(ast.unparse(nodes[0]), 30)
    return name.strip("`") if name.startswith("`") else "x"


def _replacement(facts: TraceIndex, call: Call, select: Call | None, value: str) -> str:
    """Returns code that takes harmless values where a selection leaves the result of `call` out."""
    harmless = _HARMLESS.get(call.op.rpartition(".")[2].strip("_"), "1.0")
    span = None if select is None else facts.span(select.site)
    node = None if span is None else facts.names.syntax.node(span)
    if select is None or not isinstance(node, ast.Call) or not select.op.endswith("where") or len(node.args) != 3:
        return f"`torch.where(..., {value}, {harmless})`"
    condition = one_line(ast.unparse(node.args[0]), 30)
    inside = [_leads_to(facts, call, access.tensor, select) for access in select.inputs[1:3]]
    for position, argument in enumerate(node.args[1:]):
        if len(inside) == 1 and isinstance(argument, ast.Constant):
            inside.insert(position, False)
    if inside == [True, False]:
        return f"`torch.where({condition}, {value}, {harmless})`"
    if inside == [False, True]:
        return f"`torch.where({condition}, {harmless}, {value})`"
    return f"`torch.where(..., {value}, {harmless})`"


def _leads_to(facts: TraceIndex, call: Call, number: int, select: Call) -> bool:
    return any(above is call for _, above in ancestry(facts, number, select.index))
