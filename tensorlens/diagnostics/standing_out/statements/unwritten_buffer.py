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

_UPDATES = frozenset("lerp maximum minimum normalize".split())
_WRITING = frozenset("setattr load_state_dict buffers named_buffers".split())
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
                if len(calls) < _MIN_RUNS or _may_be_written(facts, holder, found.buffer):
                    continue
                if _is_random(facts, found, calls[-1]) or not _keeps_shape(facts, calls[-1], found.buffer):
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
                is_update = any(_averages(each.value, variable) for each in updates)
                if is_update and _depends(method, updates[0], variable) and not _is_changed(method, variable):
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


def _averages(value: ast.expr, variable: str) -> bool:
    """Returns whether a value is a mean with weights, a running extreme or a step of a power iteration."""
    for node in ast.walk(value):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            products = [each for each in (node.left, node.right) if isinstance(each, ast.BinOp)]
            if any(isinstance(each.op, ast.Mult) and variable in _names(each) for each in products):
                return True
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in _UPDATES:
            return True
    return False


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


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


def _may_be_written(facts: TraceIndex, holder: ast.ClassDef, name: str) -> bool:
    """Returns whether a line may write to the buffer of a class: by its attribute, an alias, or all buffers at once."""
    for _, tree in facts.trees():
        for node in ast.walk(tree):
            called = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
            if called in _WRITING or (isinstance(node, ast.Attribute) and node.attr == "_buffers"):
                return True
            if isinstance(node, ast.Attribute) and node.attr == name and not isinstance(node.ctx, ast.Load):
                return True
    reads = [node for node in ast.walk(holder) if isinstance(node, ast.Attribute) and node.attr == name]
    plain = [
        node.value
        for node in ast.walk(holder)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    ]
    registered = sum(
        isinstance(node, ast.Call) and ast.unparse(node.func) == "self.register_buffer" and bool(node.args)
        and isinstance(node.args[0], ast.Constant) and node.args[0].value == name
        for node in ast.walk(holder)
    )  # fmt: skip
    is_only_read = all(any(read is value for value in plain) for read in reads)
    return not is_only_read or registered != 1 or _is_written(facts, name)


def _is_written(facts: TraceIndex, name: str) -> bool:
    """Returns whether a call changed a tensor that a module has by this name, once the training had begun."""
    named = {each.name: each.tensor for each in facts.trace.end.bindings}
    for reached in facts.trace.inspection.reached[-1:]:
        named |= dict(zip(reached.names, reached.tensors, strict=True))
    start = facts.backwards[0].index if facts.backwards else 0
    numbers = {number for full, number in named.items() if full.endswith(f".{name}")}
    return any(event.index > start for number in numbers for event, _ in facts.writes(facts.tensor(number).counter))


def _keeps_shape(facts: TraceIndex, call: Call, name: str) -> bool:
    """Returns whether the result of an update has the shape of the buffer."""
    named = [(each.name, each.tensor) for each in facts.trace.end.bindings]
    shapes = {facts.tensor(number).shape for full, number in named if full.endswith(f".{name}")}
    return not shapes or facts.tensor(call.outputs[0].tensor).shape in shapes


def _is_random(facts: TraceIndex, found: _LocalUpdate, call: Call) -> bool:
    """Returns whether the method of an update adds noise, which is of one pass only."""
    above = islice(ancestry(facts, call.outputs[0].tensor, call.index + 1), _MAX_CALLS)
    spans = (facts.span(made.site) for _, made in above if op_name(made) in _RANDOM)
    return any(span is not None and span.file == found.file and span.line in found.lines for span in spans)
