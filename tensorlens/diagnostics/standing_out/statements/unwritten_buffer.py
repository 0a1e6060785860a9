"""Names buffers whose new values a forward pass in training mode only gives to a variable of the same method."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeGuard

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.name_words import words_of_last
from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.repeated_seeds import DRAWS
from tensorlens.analysis.training.statements.given_buffers import given_buffers
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Call
from tensorlens.records.report import Label, StandingOut

_UPDATES = frozenset("lerp maximum minimum normalize".split())
_PURE = frozenset("mul multiply add sub".split())
_SUMS = frozenset(("add", "sub"))
_WRITING = frozenset("setattr load_state_dict buffers named_buffers functional_call".split())
_KEPT = frozenset("prior anchor anchors mask causal template base default initial uniform grid table".split())
"""Words of names of buffers that are meant to stay as they are."""
_MIN_RUNS = 3
_MAX_CALLS = 40
_RANDOM = DRAWS | {"dropout"}


@dataclass(frozen=True, slots=True)
class _Set:
    """A statement that gives a value to a variable: also each part of `a, b = x, y`, and of `a = x if ... else y`."""

    variable: str
    value: ast.expr
    statement: ast.Assign


@dataclass(frozen=True, slots=True)
class _LocalUpdate:
    """A statement in training mode that computes the next value of a variable which is a buffer otherwise."""

    file: str
    buffer: str
    update: _Set  # the last that sets the variable
    lines: range  # of the method


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if no line of the program writes to the buffer."""
    facts = training.facts
    for file, tree in facts.trees() if training.training.steps else ():
        for holder in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            for found in _local_updates(facts, file, holder):
                calls = _calls(facts, found)
                if len(calls) < _MIN_RUNS or _may_be_written(facts, holder, found.buffer):
                    continue
                if (
                    not _reads_more(facts, holder, calls)
                    or _is_random(facts, found, calls[-1])
                    or not _keeps_shape(facts, calls[-1], found.buffer)
                ):
                    continue
                place = facts.span_of(found.update.value, file)
                is_own = facts.span(calls[-1].site) == place
                times = f", {len(calls):,} times," if is_own else ""  # a function that it calls may have other callers
                yield stands_out(
                    f"`{facts.code_of(found.update.statement, file)}` only sets the variable "
                    f"`{found.update.variable}`{times} and no line writes to the buffer `self.{found.buffer}`: each "
                    "pass begins with the value that it was made with",
                    Label("observed_here", place, "sets a variable", calls[-1].site if is_own else None),
                )


def _local_updates(facts: TraceIndex, file: str, holder: ast.ClassDef) -> Iterator[_LocalUpdate]:
    nodes = list(ast.walk(holder))
    buffers = _buffers(nodes) - given_buffers(holder)
    for method in (node for node in holder.body if isinstance(node, ast.FunctionDef)):
        in_training = _in_training(method)
        for variable, name in _reads(method).items():
            is_state = name in buffers and _KEPT.isdisjoint(words_of_last(name)) and not _is_returned(method, variable)
            updates = [each for each in in_training if each.variable == variable] if is_state else []
            names = frozenset((variable, f"self.{name}"))
            is_update = any(_averages(facts, each.value, names) for each in updates)
            if is_update and _depends(in_training, updates[0], names) and not _is_changed(method, variable):
                lines = range(method.lineno, (method.end_lineno or 0) + 1)
                yield _LocalUpdate(file, name, updates[-1], lines)


def _buffers(nodes: list[ast.AST]) -> set[str]:
    return {
        node.args[0].value
        for node in nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.register_buffer" and node.args
        if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
    }


def _is_returned(method: ast.FunctionDef, variable: str) -> bool:
    """Returns whether a method returns a variable, alone or beside others: its caller may keep the new value."""
    waiting = [node.value for node in ast.walk(method) if isinstance(node, ast.Return | ast.Yield)]
    for value in waiting:
        if isinstance(value, ast.Tuple | ast.List | ast.Dict | ast.Set):
            waiting += value.values if isinstance(value, ast.Dict) else value.elts
    return any(isinstance(value, ast.Name) and value.id == variable for value in waiting)


def _reads(method: ast.FunctionDef) -> dict[str, str]:
    """Maps variables of a method that it sets to an attribute of `self` to the attribute."""
    found: dict[str, str] = {}
    for node in (node for node in ast.walk(method) if isinstance(node, ast.Assign)):
        for each in _sets(node):
            if isinstance(each.value, ast.Attribute) and ast.unparse(each.value.value) == "self":
                found[each.variable] = each.value.attr
    return found


def _sets(statement: ast.Assign) -> Iterator[_Set]:
    for target in statement.targets:
        pairs = [(target, statement.value)]
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            pairs = list(zip(target.elts, statement.value.elts, strict=False))
        for each, value in pairs:
            if isinstance(each, ast.Name):
                yield _Set(each.id, value.orelse if _is_choice(value) else value, statement)


def _is_choice(value: ast.expr) -> TypeGuard[ast.IfExp]:
    return isinstance(value, ast.IfExp) and ast.unparse(value.test) == "self.training"


def _in_training(method: ast.FunctionDef) -> list[_Set]:
    """Returns what is set below an `if` that asks for the training mode alone, or in the first part of a choice."""
    found: list[_Set] = []
    for node in ast.walk(method):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "self.training":
            below = (each for statement in node.body for each in ast.walk(statement))
            found += [each for inner in below if isinstance(inner, ast.Assign) for each in _sets(inner)]
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            if _is_choice(node.value):
                found.append(_Set(node.targets[0].id, node.value.body, node))
    return found


def _averages(facts: TraceIndex, value: ast.expr, names: frozenset[str]) -> bool:
    """Returns whether a value is a mean with weights, a running extreme or a step of a power iteration, also one that a
    function of the program returns."""
    for node in ast.walk(value):
        called = called_name(node)
        if called in _UPDATES:
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            parts = [node.left, node.right]
        elif isinstance(node, ast.Call) and called in _SUMS:
            parts = [*([node.func.value] if isinstance(node.func, ast.Attribute) else []), *node.args]
        else:
            parts = []
        if any(_is_product(each) and names & _names(each) for each in parts):
            return True
        function = _function(facts, called) if isinstance(node, ast.Call) else None
        if function is not None and isinstance(node, ast.Call) and _returns_average(facts, function, node, names):
            return True
    return False


def _returns_average(facts: TraceIndex, function: ast.FunctionDef, call: ast.Call, names: frozenset[str]) -> bool:
    """Returns whether a function that is given a variable returns an average of it, and does nothing else with it."""
    arguments = [each.arg for each in function.args.args]
    given = {name for name, value in zip(arguments, call.args, strict=False) if names & _names(value)}
    given |= {each.arg for each in call.keywords if each.arg and names & _names(each.value)}
    last = function.body[-1]
    is_known = bool(given) and function.name not in names and _only_returns(function)
    if not is_known or not isinstance(last, ast.Return) or last.value is None:
        return False
    inner = frozenset(given)
    is_changed = any(_is_changed(function, name) for name in given)
    return not is_changed and _averages(facts, last.value, inner | {function.name})


def _function(facts: TraceIndex, name: str) -> ast.FunctionDef | None:
    """Returns the only function of the program that has a name."""
    nodes = (node for _, tree in facts.trees() for node in ast.walk(tree)) if name else ()
    found = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == name]
    return found[0] if len(found) == 1 else None


def _is_product(node: ast.expr) -> bool:
    return (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)) or called_name(node) in ("mul", "multiply")


def _names(node: ast.AST) -> set[str]:
    """Returns the variables that a value is computed from, and the attributes of `self`."""
    inner = list(ast.walk(node))
    attributes = {ast.unparse(each) for each in inner if isinstance(each, ast.Attribute)}
    return {each.id for each in inner if isinstance(each, ast.Name)} | attributes


def _is_changed(method: ast.FunctionDef, variable: str) -> bool:
    """Returns whether a method changes the tensor of a variable in place: `u.copy_(...)`, `out=u`, `u += ...`."""
    for node in ast.walk(method):
        if isinstance(node, ast.keyword) and node.arg == "out":
            return True
        is_method = isinstance(node, ast.Attribute) and node.attr.endswith("_") and ast.unparse(node.value) == variable
        if is_method or (isinstance(node, ast.AugAssign) and ast.unparse(node.target).startswith(variable)):
            return True
    return False


def _depends(in_training: list[_Set], update: _Set, names: frozenset[str]) -> bool:
    """Returns whether a value is computed from the variable that it is given to, also by way of others."""
    waiting, seen = [update], set[str]()
    for each in waiting:
        read = _names(each.value)
        if names & read:
            return True
        seen |= read
        waiting += [other for other in in_training if other not in waiting and other.variable in read]
    return False


def _calls(facts: TraceIndex, found: _LocalUpdate) -> list[Call]:
    """Returns the calls whose results the update gives to its variable."""
    value, sites = facts.span_of(found.update.value, found.file), facts.trace.sites
    calls = [call for call in facts.calls if call.outputs and facts.span(call.site) == value]
    if calls:
        return calls
    inner = [call for call in facts.calls if call.outputs and facts.span(sites[call.site].caller) == value]
    return [call for call in inner if call.site == inner[-1].site]  # the last call of a function of the program


def _may_be_written(facts: TraceIndex, holder: ast.ClassDef, name: str) -> bool:
    """Returns whether a line may write to the buffer of a class: by its attribute, an alias, or all buffers at once."""
    for _, tree in facts.trees():
        for node in ast.walk(tree):
            called = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
            if called in _WRITING or (isinstance(node, ast.Attribute) and node.attr == "_buffers"):
                return True
            if isinstance(node, ast.Attribute) and node.attr == name and not isinstance(node.ctx, ast.Load):
                return True
    nodes = list(ast.walk(holder))
    methods = [node.func for node in nodes if isinstance(node, ast.Call)]  # `x.mean()` is no buffer `mean`
    reads = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr == name and node not in methods]
    plain = [each.value for node in nodes if isinstance(node, ast.Assign) for each in _sets(node)]
    plain += [part for node in nodes for part in _operands(facts, node)]
    registered = sum(
        isinstance(node, ast.Call) and ast.unparse(node.func) == "self.register_buffer" and bool(node.args)
        and isinstance(node.args[0], ast.Constant) and node.args[0].value == name
        for node in ast.walk(holder)
    )  # fmt: skip
    is_only_read = all(any(read is value for value in plain) for read in reads)
    return not is_only_read or registered != 1 or _is_written(facts, name)


def _operands(facts: TraceIndex, node: ast.AST) -> list[ast.expr]:
    """Returns what a part of the program computes another value from, and does not change."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    called = called_name(node)
    if not isinstance(node, ast.Call):
        return []
    if isinstance(node.func, ast.Attribute) and called in _UPDATES | _PURE:
        return [node.func.value, *node.args]
    function = _function(facts, called)
    arguments = [] if function is None else [each.arg for each in function.args.args]
    is_pure = function is not None and _only_returns(function) and not any(_is_changed(function, n) for n in arguments)
    return [*node.args, *(each.value for each in node.keywords)] if is_pure else []


def _only_returns(function: ast.FunctionDef) -> bool:
    """Returns whether a function computes what it returns, and keeps and calls nothing else."""
    return all(
        isinstance(each, ast.Return) or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        for each in function.body
    )


def _is_written(facts: TraceIndex, name: str) -> bool:
    """Returns whether a call changed a tensor that a module has by this name, once the training had begun."""
    start = facts.backwards[0].index if facts.backwards else 0
    numbers = {number for full, number in _named(facts) if full.endswith(f".{name}")}
    return any(event.index > start for number in numbers for event, _ in facts.writes(facts.tensor(number).counter))


def _reads_more(facts: TraceIndex, holder: ast.ClassDef, calls: list[Call]) -> bool:
    """Returns whether the last pass computes the new value from more than constants and buffers of the class."""
    own = tuple(f".{name}" for name in _buffers(list(ast.walk(holder))))
    numbers = {number for full, number in _named(facts) if full.endswith(own)}
    above = list(islice(ancestry(facts, calls[-1].outputs[0].tensor, calls[-1].index + 1), _MAX_CALLS))
    recent = [made for _, made in above if made.index > calls[-2].index]
    made_here = {access.tensor for made in recent for access in made.outputs}
    return any(access.tensor not in numbers | made_here for made in recent for access in made.inputs)


def _named(facts: TraceIndex) -> list[tuple[str, int]]:
    """Returns the tensors that modules have, with their names."""
    named = [(each.name, each.tensor) for each in facts.trace.end.bindings]
    for reached in facts.trace.inspection.reached[-1:]:
        named += zip(reached.names, reached.tensors, strict=True)
    return named


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
