"""Names buffers whose new values a forward pass in training mode only gives to a variable of the same method."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.repeated_seeds import DRAWS
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_MIN_RUNS = 3
_MAX_CALLS = 40
_RANDOM = DRAWS | {"dropout"}


@dataclass(frozen=True, slots=True)
class _LocalUpdate:
    """A statement below `if self.training:` that computes the next value of a variable which began as a buffer."""

    file: str
    buffer: str
    variable: str
    update: ast.Assign  # the last that sets the variable
    lines: range  # of the method


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if no line of the program writes to the buffer."""
    facts = training.facts
    for file, tree in facts.trees() if training.training.steps else ():
        for holder in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            for found in _local_updates(file, holder):
                calls = _calls(facts, found)
                if len(calls) < _MIN_RUNS or _is_written(facts, found.buffer) or _is_random(facts, found, calls[-1]):
                    continue
                yield stands_out(
                    f"`{facts.code_of(found.update, file)}` only sets the variable `{found.variable}`, "
                    f"{len(calls):,} times, and no line writes to the buffer `self.{found.buffer}`: each pass begins "
                    "with the value that it was made with",
                    facts.label("observed_here", calls[-1].site, "sets a variable", calls[-1].index),
                )


def _local_updates(file: str, holder: ast.ClassDef) -> Iterator[_LocalUpdate]:
    nodes = list(ast.walk(holder))
    buffers = {
        node.args[0].value
        for node in nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.register_buffer" and node.args
        if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
    }
    for method in (node for node in holder.body if isinstance(node, ast.FunctionDef)):
        for read in (node for node in ast.walk(method) if isinstance(node, ast.Assign)):
            name = ast.unparse(read.value).removeprefix("self.")
            if name in buffers and ast.unparse(read.value) == f"self.{name}" and isinstance(read.targets[0], ast.Name):
                variable = read.targets[0].id
                updates = [each for each in _in_training(method) if _sets(each, variable)]
                if updates and _depends(method, updates[0], variable) and not _is_changed(method, variable):
                    yield _LocalUpdate(
                        file, name, variable, updates[-1], range(method.lineno, (method.end_lineno or 0) + 1)
                    )


def _in_training(method: ast.FunctionDef) -> list[ast.Assign]:
    """Returns the assignments below an `if` that asks for the training mode alone."""
    choices = (
        node for node in ast.walk(method) if isinstance(node, ast.If) and ast.unparse(node.test) == "self.training"
    )
    return [
        node for choice in choices for each in choice.body for node in ast.walk(each) if isinstance(node, ast.Assign)
    ]


def _is_changed(method: ast.FunctionDef, variable: str) -> bool:
    """Returns whether a method changes the tensor of a variable in place: `u.copy_(...)`, `out=u`, `u += ...`."""
    for node in ast.walk(method):
        if isinstance(node, ast.keyword) and node.arg == "out":
            return True
        is_method = isinstance(node, ast.Attribute) and node.attr.endswith("_") and ast.unparse(node.value) == variable
        if is_method or (isinstance(node, ast.AugAssign) and ast.unparse(node.target).startswith(variable)):
            return True
    return False


def _sets(statement: ast.Assign, variable: str) -> bool:
    return len(statement.targets) == 1 and ast.unparse(statement.targets[0]) == variable


def _depends(method: ast.FunctionDef, update: ast.Assign, variable: str) -> bool:
    """Returns whether a value is computed from the variable that it is assigned to, also by way of others."""
    waiting, seen = [update], set[str]()
    for statement in waiting:
        names = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
        if variable in names:
            return True
        seen |= names
        waiting += [
            each for each in _in_training(method)
            if each not in waiting and isinstance(each.targets[0], ast.Name) and each.targets[0].id in names
        ]  # fmt: skip
    return False


def _calls(facts: TraceIndex, found: _LocalUpdate) -> list[Call]:
    """Returns the calls whose results the update gives to its variable."""
    value = facts.span_of(found.update.value, found.file)
    return [call for call in facts.calls if call.outputs and facts.span(call.site) == value]


def _is_written(facts: TraceIndex, name: str) -> bool:
    """Returns whether a line may give an attribute of this name a new value, or give it to a function that does."""
    for _, tree in facts.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr == name and not isinstance(node.ctx, ast.Load):
                return True
            inner = node.value if isinstance(node, ast.Attribute | ast.Subscript) else None
            if isinstance(inner, ast.Attribute) and inner.attr == name:
                is_item = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
                if is_item or (isinstance(node, ast.Attribute) and (node.attr.endswith("_") or node.attr == "data")):
                    return True
            given = [*node.args, *(each.value for each in node.keywords)] if isinstance(node, ast.Call) else []
            if any(isinstance(each, ast.Attribute) and each.attr == name for each in given):
                return True
    return False


def _is_random(facts: TraceIndex, found: _LocalUpdate, call: Call) -> bool:
    """Returns whether the method of an update adds noise, which is of one pass only."""
    above = islice(ancestry(facts, call.outputs[0].tensor, call.index + 1), _MAX_CALLS)
    spans = (facts.span(made.site) for _, made in above if op_name(made) in _RANDOM)
    return any(span is not None and span.file == found.file and span.line in found.lines for span in spans)
