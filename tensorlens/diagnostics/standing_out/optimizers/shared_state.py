"""Names state of an optimizer that is no copy: a buffer that is the gradient, and a load of the present state."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import scope_around
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import code_at
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.training import OptimizerGroup
from tensorlens.records.training_values import SharedState


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    for each in training.facts.trace.inspection.shared_states:
        group = next((group for group in training.groups if group.optimizer == each.optimizer), None)
        if each.number == training.measured.number and group is not None:
            yield (_loaded if each.kind == "loaded" else _gradient)(training, each, group)


def _gradient(training: MeasuredTraining, each: SharedState, group: OptimizerGroup) -> StandingOut:
    rows = [row for number in each.tensors if (row := training.row(number)) is not None]
    whose = listed(rows) or f"{len(each.tensors)} parameters"
    return stands_out(
        f"the state `{each.name}` of `{group.name}` is the `.grad` of {whose} itself, and no copy: what changes the "
        "one changes the other",
        *_assignments(training.facts),
        training.facts.label("optimizer_made_here", group.site, "the optimizer is made here"),
    )


def _assignments(facts: TraceIndex) -> Iterator[Label]:
    """Labels the lines that keep a `.grad` in an item, as `state["buffer"] = p.grad`."""
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            is_item = isinstance(node, ast.Assign) and any(isinstance(each, ast.Subscript) for each in node.targets)
            if (
                isinstance(node, ast.Assign)
                and is_item
                and (_is_gradient(node.value) or _is_named_gradient(facts, file, node))
            ):
                yield Label("shared_here", facts.span_of(node, file), "kept without a copy")


def _is_named_gradient(facts: TraceIndex, file: str, node: ast.Assign) -> bool:
    """Returns whether the value is a variable that the same function has given a gradient: `d = p.grad`."""
    name = plain_name(node.value) if isinstance(node.value, ast.Name) else None
    assigned = (each for each in ast.walk(scope_around(facts, file, node.lineno)) if isinstance(each, ast.Assign))
    return name is not None and any(
        _is_gradient(each.value) and any(plain_name(target) == name for target in each.targets) for each in assigned
    )


def _is_gradient(node: ast.expr) -> bool:
    """Returns whether an expression is a gradient itself: `p.grad`, `p.grad.data`, `p.grad.detach()`."""
    while isinstance(node, ast.Call | ast.Attribute):
        if isinstance(node, ast.Call):
            if node.args or not isinstance(node.func, ast.Attribute) or node.func.attr != "detach":
                return False
            node = node.func.value
        elif node.attr == "grad":
            return True
        elif node.attr == "data":
            node = node.value
        else:
            return False
    return False


def _loaded(training: MeasuredTraining, each: SharedState, group: OptimizerGroup) -> StandingOut:
    facts = training.facts
    return stands_out(
        f"{code_at(facts, each.site, 'Optimizer.load_state_dict')} loads the tensors that `{group.name}` has anyhow: "
        "its `state_dict()` is no copy, and later steps have changed what was kept",
        facts.label("replaced_here", each.site, "loads its own present state"),
        *_kept(facts, each.site),
    )


def _kept(facts: TraceIndex, site: int | None) -> Iterator[Label]:
    """Labels the lines that keep the state of the same optimizer."""
    span = facts.span(site)
    node = None if span is None else facts.names.syntax.node(span)
    name = plain_name(node.func.value) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    for call in ast.walk(facts.tree(span.file)) if span is not None and name is not None else ():
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "state_dict":
            if plain_name(call.func.value) == name and span is not None:
                yield Label("shared_here", facts.span_of(call, span.file), "kept without a copy")
