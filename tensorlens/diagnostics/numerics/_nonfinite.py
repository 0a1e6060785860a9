"""Explains an infinite or NaN gradient: which operation has no finite derivative, and at which value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.naming.variables import assigned_in
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.imports import imported
from tensorlens.diagnostics.shared.edits.writes import statements_of
from tensorlens.diagnostics.shared.silent_saved_tensor import backward_of
from tensorlens.diagnostics.shared.wording import as_written, finding, fix, in_iteration, named, op_text
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import NonfiniteDerivative
from tensorlens.records.report import Diagnostic, Edit, Fix
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
    "mul": "0.0",
    "multiply": "0.0",
}
BOUNDARY = "infinite-or-nan-gradient-at-boundary"


def find_singular(facts: TraceIndex, code: str) -> Iterator[Diagnostic]:
    """Makes one finding for each line whose operation was the first to make a gradient infinite or NaN."""
    reported: set[int] = set()
    for node in facts.trace.inspection.singular:
        backward, call = backward_of(facts, node.index), facts.call_of_node(node.sequence, node.index, node.node)
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
    value, made = _value(facts, call, node.factor)
    name = "what it is given" if value is None else named(facts, value, call.index)
    leaf = named(facts, node.leaf, backward.index)
    select = _selection(facts, node)
    count = f"{node.infinite} of {node.total} elements" if node.total > 1 else "the value"
    if len(_differentiated(facts, call)) > 1:  # the elements are those of all its inputs
        count = "some elements" if node.total > 1 else "the value"
    return finding(
        code,
        "warning",
        f"the gradient of {leaf} is {node.gradient} because of {as_written(facts, call)}{in_iteration(facts, call)}",
        _why(code, call, f"{count} of {name}", select, node.factor),
        [
            facts.label("graph_built_here", call.site, "its slope is infinite or NaN here"),
            None if made is None else facts.label("value_made_here", made.site, f"makes {name}"),
            facts.label("needed_here", backward.site, f"gives {leaf} an infinite or NaN gradient"),
        ],
        fixes=tuple(_fixes(facts, code, (call, select), name, node.factor)),
        evidence={"node": node.node, "not_finite": node.infinite, "elements": node.total, "gradient": node.gradient},
        detail=(f"the node is {node.node}; the loss itself is finite" + _selected_at(facts, select),),
    )  # fmt: skip


def _why(code: str, call: Call, where: str, select: Call | None, factor: str) -> str:
    slope = f"the slope of {op_text(call.op)} is infinite or NaN at {where}"
    if code == UNSELECTED:
        zero = "0 times infinity or NaN" if factor else "0 * inf"
        selector = "a selection" if select is None else op_text(select.op)
        return f"{slope}; {selector} leaves that out, so its gradient is zero, but {zero} is NaN"
    return f"{slope}, and backward multiplies by it"


def _value(facts: TraceIndex, call: Call, factor: str) -> tuple[int | None, Call | None]:
    """Finds the tensor that the operation read, and the call on another line that made the value of that tensor."""
    number, line = _singular_input(facts, call, factor), place_of(facts.trace.sites[call.site])
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


def _singular_input(facts: TraceIndex, call: Call, factor: str) -> int | None:
    """Finds the input at whose values the slope is not finite: the only one with a gradient, a divisor, a base, or the
    `factor` of a product."""
    if factor:
        is_product = call.op.rpartition(".")[2].strip("_") in ("mul", "multiply") and len(call.inputs) == 2
        return call.inputs[factor == "other"].tensor if is_product else None
    inputs = _differentiated(facts, call)
    if len(inputs) < 2:
        return inputs[0] if inputs else None
    name = call.op.rpartition(".")[2].strip("_")
    position = _SINGULAR.get(name)
    return call.inputs[position].tensor if position is not None and len(call.inputs) == 2 else None


_SINGULAR = {"div": 1, "truediv": 1, "true_divide": 1, "divide": 1, "pow": 0}
"""Which of two inputs makes a slope infinite: the divisor at zero, the base of a power at zero."""


def _differentiated(facts: TraceIndex, call: Call) -> list[int]:
    """Lists the inputs of a recorded call that require grad."""
    if not any(state.requires_grad for state in call.states):
        return []
    return list(dict.fromkeys(a.tensor for a in call.inputs if facts.requires_grad(a.tensor, call.index)))


def _selection(facts: TraceIndex, node: NonfiniteDerivative) -> Call | None:
    return facts.call_of_node(node.selected[0], node.index) if node.selected else None


def _selected_at(facts: TraceIndex, select: Call | None) -> str:
    span = None if select is None else facts.span(select.site)
    return "" if select is None or span is None else f"; {op_text(select.op)} on line {span.line} selects too late"


def _fixes(facts: TraceIndex, code: str, calls: tuple[Call, Call | None], name: str, factor: str) -> Iterator[Fix]:
    call, select = calls
    operation, place = op_text(call.op), facts.span(call.site)
    if code == UNSELECTED:
        nodes = _operands(facts, call, factor)
        operand = _operand(nodes, name)
        text = f"give {operation} {'finite' if factor else 'harmless'} values where they are left out"
        if operand:
            text += f": {_replacement(facts, call, select, operand)} in place of `{operand}`"
        yield fix(text, *_selected_before(facts, call, select, nodes), place=place)
        return
    if factor:
        yield fix(f"give {operation} finite values: a mask can be a large negative number, not `-inf`", place=place)
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


def _operands(facts: TraceIndex, call: Call, factor: str) -> list[ast.expr]:
    """Returns the expressions that the operation is given; of a product, only the factor that is not finite."""
    nodes = facts.names.syntax.operands(facts.trace.sites[call.site], call.op)
    if not factor:
        return list(nodes)
    return [nodes[factor == "other"]] if len(nodes) == 2 else []


def _operand(nodes: list[ast.expr], name: str) -> str:
    """Returns what the operation is given, as the script writes it; else the name of the value, or ""."""
    if len(nodes) == 1:
        return one_line(ast.unparse(nodes[0]), 30)
    return name.strip("`") if name.startswith("`") else ""


def _replacement(facts: TraceIndex, call: Call, select: Call | None, value: str) -> str:
    """Returns code that takes harmless values where a selection leaves the result of `call` out."""
    harmless, chosen = _harmless(call), _choice(facts, call, select)
    if chosen is None:
        return f"`torch.where(..., {value}, {harmless})`"
    condition, is_first = one_line(ast.unparse(chosen[0]), 30), chosen[1]
    first, second = (value, harmless) if is_first else (harmless, value)
    return f"`torch.where({condition}, {first}, {second})`"


def _harmless(call: Call) -> str:
    return _HARMLESS.get(call.op.rpartition(".")[2].strip("_"), "1.0")


def _choice(facts: TraceIndex, call: Call, select: Call | None) -> tuple[ast.expr, bool] | None:
    """Returns the condition of the `where` that selects, and whether it takes the result of `call` where it holds."""
    span = None if select is None else facts.span(select.site)
    node = None if span is None else facts.names.syntax.node(span)
    if select is None or not isinstance(node, ast.Call) or not select.op.endswith("where") or len(node.args) != 3:
        return None
    inside = [_leads_to(facts, call, access.tensor, select) for access in select.inputs[1:3]]
    for position, argument in enumerate(node.args[1:]):
        if len(inside) == 1 and isinstance(argument, ast.Constant):
            inside.insert(position, False)
    return (node.args[0], inside[0]) if inside in ([True, False], [False, True]) else None


def _selected_before(facts: TraceIndex, call: Call, select: Call | None, operands: list[ast.expr]) -> tuple[Edit, ...]:
    """Makes the edit that selects before the operation too, if its line can compute the condition.

    It can if both lines are in one function, and nothing in between assigns to a name of the condition.
    """
    chosen, span = _choice(facts, call, select), facts.span(call.site)
    there = None if select is None else facts.span(select.site)
    if chosen is None or span is None or there is None or len(operands) != 1 or span.file != there.file:
        return ()
    around = function_around(facts, span.file, span.line)
    names = {node.id for node in ast.walk(chosen[0]) if isinstance(node, ast.Name)}
    body = statements_of(facts, span.file, span.line)
    between = [each for each in body if span.line <= each.lineno <= there.line]
    torch = imported(facts, span.file, "torch")
    is_here = around is function_around(facts, there.file, there.line) and span.line <= there.line
    if not is_here or torch is None or any(name in assigned_in(each) for each in between for name in names):
        return ()
    value, condition = (facts.code_of(node, span.file) for node in (operands[0], chosen[0]))
    first, second = (value, _harmless(call)) if chosen[1] else (_harmless(call), value)
    text = f"{torch[0]}.where({condition}, {first}, {second})"
    return (*torch[1], Edit(facts.span_of(operands[0], span.file), text))


def _leads_to(facts: TraceIndex, call: Call, number: int, select: Call) -> bool:
    return any(above is call for _, above in ancestry(facts, number, select.index))
