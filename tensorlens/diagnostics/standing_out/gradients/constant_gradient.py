"""Names parameters with the same gradient at each step, if a line takes what is computed from them out of the graph."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.code_around import parent_of
from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import OPS_LEAVING_TORCH, TraceIndex
from tensorlens.analysis.training.changed_arguments import meets_graph
from tensorlens.analysis.training.changed_gradients import CLIPS, gradient_changes
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.gradients.clips_by_hand import DATA_READ
from tensorlens.analysis.training.gradients.plain_terms import is_plain_term
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_MIN_STEPS = 5
_MAX_LOOKS = 50  # calls of one line
_SHOWING = (
    "print",
    "append",
    "add_scalar",
    "log",
    "info",
    "debug",
    "format",
    "str",
    "round",
    "update",
    "write",
    "isnan",
)


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds a weight of a loss that is learned, and that the loss uses as a number: only its own term trains it."""
    facts = training.facts
    constant = {row.tensor: row for row in training.rows if _is_constant(row)}
    for change in gradient_changes(training) if constant else ():
        if op_name(change.call) not in CLIPS:
            constant = {number: row for number, row in constant.items() if number not in change.leaves}
    roots = {root.tensor for backward in facts.backwards for root in backward.roots} if constant else set[int]()
    lines: dict[int, dict[int, ParameterRow]] = defaultdict(dict)
    last: dict[int, Call] = {}
    looks: dict[int, int] = defaultdict(int)
    for call in facts.calls if constant else ():
        if call.within or not call.inputs or looks[call.site] > _MAX_LOOKS or not _is_end(facts, call):
            continue
        looks[call.site] += 1
        number, before = _in_graph(facts, call)
        if number not in roots and facts.requires_grad(number, before - 1):
            leaves = graph_leaves(facts, number, before)
            if leaves and leaves <= constant.keys():
                lines[call.site] |= {number: constant[number] for number in leaves}
                last[call.site] = call
    for site, rows in lines.items():
        steps = min(row.statistics.rounds for row in rows.values() if row.statistics is not None)
        is_number = last[site].op in OPS_LEAVING_TORCH
        is_used = _is_computed_with(facts, last[site]) if is_number else meets_graph(facts, last[site])
        if looks[site] >= min(steps, _MAX_LOOKS) and is_used and is_plain_term(facts, set(rows)):
            yield _sentence(training, last[site], [rows[number] for number in sorted(rows)])


def _is_end(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call gives numbers of a tensor with a graph, and no graph: those of Python, or a tensor by
    `detach()` or while gradients are off."""
    if call.op in OPS_LEAVING_TORCH:
        return True
    if call.writes or len(call.outputs) != 1 or "float" not in facts.tensor(call.outputs[0].tensor).dtype:
        return False
    given = any(facts.requires_grad(access.tensor, call.index - 1) for access in call.inputs)
    return given and not facts.requires_grad(call.outputs[0].tensor, call.index)


def _in_graph(facts: TraceIndex, call: Call) -> tuple[int, int]:
    """Returns the tensor whose numbers a call gives, and the event that reads it: the one before it was detached."""
    number, before = call.inputs[0].tensor, call.index
    while call.op in OPS_LEAVING_TORCH:
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or not (op_name(made) in ("detach", "cpu") or made.op == DATA_READ):
            break
        number, before = made.inputs[0].tensor, made.index
    return number, before


def _is_constant(row: ParameterRow) -> bool:
    """Returns whether each step has found a gradient with the same norm, other than zero."""
    own = row.statistics
    if own is None or not row.is_stepped or not row.requires_grad or own.filled != own.rounds:
        return False
    return own.rounds >= _MIN_STEPS and own.zero == 0 and len(set(own.norms)) == 1 and own.norms[0] > 0


def _is_computed_with(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the program may compute with the number: it does not only show or compare it."""
    span = facts.span(call.site)
    node = None if span is None else facts.names.syntax.node(span)
    return span is not None and node is not None and _is_used(facts, span.file, node)


def _is_used(facts: TraceIndex, file: str, node: ast.AST) -> bool:
    """Returns whether an expression is in a statement that computes, and neither shown nor compared. The items that a
    loop runs over count as its variables."""
    is_loss, inner, start = False, node, node
    while not isinstance(node, ast.stmt):
        inner, outer = node, parent_of(facts, file, node)
        if outer is None or isinstance(outer, ast.FormattedValue | ast.Compare):
            return False
        if isinstance(outer, ast.Call) and called_name(outer) in _SHOWING:
            return False
        is_loss = is_loss or called_name(outer) == "backward"
        node = outer
    if isinstance(node, ast.For) and inner is node.iter:
        names = _variables(node, start)
        reads = (each for part in node.body for each in ast.walk(part) if isinstance(each, ast.Name))
        return any(_is_used(facts, file, each) for each in reads if each.id in names and isinstance(each.ctx, ast.Load))
    return is_loss or isinstance(node, ast.Return | ast.Assign | ast.AugAssign)


def _variables(loop: ast.For, items: ast.AST) -> set[str]:
    """Returns the variables of a loop that get the items of a part of what it runs over: `s` of
    `for s, name in zip(items, names)`."""
    target, over = loop.target, loop.iter
    if called_name(over) in ("zip", "enumerate") and isinstance(over, ast.Call) and isinstance(target, ast.Tuple):
        at = next((at for at, each in enumerate(over.args) if items in ast.walk(each)), 0)
        at += called_name(over) == "enumerate"
        target = target.elts[at] if at < len(target.elts) else target
    return {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}


def _sentence(training: MeasuredTraining, call: Call, rows: list[ParameterRow]) -> StandingOut:
    facts = training.facts
    assert rows[0].statistics is not None
    whose = "the gradient" if len(rows) == 1 else "each gradient"
    them = "it" if len(rows) == 1 else "them"
    does = f"makes a plain number of what is computed from {them}, and no gradient passes through a number"
    label = "a plain number from here on"
    if call.op not in OPS_LEAVING_TORCH:
        does, label = f"gives what is computed from {them} without a graph, as a constant", "a constant from here on"
    return stands_out(
        f"{whose} of {listed(rows)} has the same norm, {rows[0].statistics.norms[0]:.4g}, at each of "
        f"{rows[0].statistics.rounds:,} steps: {as_written(facts, call)} {does}",
        facts.label("graph_cut_here", call.site, label, call.index),
    )
