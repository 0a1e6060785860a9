"""Finds zeros that an optimizer of the program keeps for an average, reads at each step and never writes."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import class_around, statement_around
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.analysis.training.value_ranges import SHARING
from tensorlens.records.model import Call

_ZEROS = frozenset(("zeros", "zeros_like", "new_zeros"))
_AVERAGING = frozenset("lerp mul rmul add radd sub rsub addcmul addcdiv".split())
_CHANGING = ("update", "setdefault", "pop", "clear", "values", "items", "append", "extend")  # methods of collections
_PLAIN = ("len", "bool", "isinstance", "print")
_FEWEST = 3  # steps that read a state


@dataclass(frozen=True, slots=True)
class UnwrittenState:
    """The call that makes the zeros, the one that reads them, and how often it reads one of them."""

    made: Call
    read: Call
    times: int


def unwritten_states(training: MeasuredTraining) -> Iterator[UnwrittenState]:
    """Yields these states, one for each line that makes them, if nothing writes to any of the tensors of the line.

    A step must compute the average into the variable that it has read the state from, as `m = torch.lerp(m, ...)`.
    """
    facts, steps = training.facts, [step.index for step in training.training.steps]
    shapes = {facts.tensor(number).shape for number in training.training.stepped}
    owners = _optimizers(facts)
    made: dict[int, Call] = {}
    reads: dict[int, list[Call]] = defaultdict(list)
    written: set[int] = set()
    for call in facts.calls if owners else ():
        changed = {write.tensor for write in call.writes}
        if call.op in SHARING or call.op in (DATA_SET, "Tensor.set_"):
            changed |= {access.tensor for access in call.inputs}
        written |= {storage for number in changed for storage in facts.storages_of(number)}
        if facts.trace.sites[call.site].function.partition(".")[0] not in owners:
            continue
        if op_name(call) in _ZEROS and len(call.outputs) == 1 and facts.tensor(call.outputs[0].tensor).shape in shapes:
            made[call.outputs[0].tensor] = call
        elif op_name(call) in _AVERAGING:
            for access in call.inputs:
                if access.tensor in made and access.tensor not in changed and not access.version:
                    reads[access.tensor].append(call)
    by_line: dict[int, list[int]] = defaultdict(list)
    for number, call in made.items():
        by_line[call.site].append(number)
    for numbers in by_line.values():
        if any(facts.storages_of(number) & written for number in numbers):
            continue
        number = max(numbers, key=lambda each: len(reads[each]))
        found = next((call for call in reads[number] if _is_lost(facts, call)), None)
        same = [call for call in reads[number] if found is not None and call.site == found.site]
        is_often = len({bisect_left(steps, call.index) for call in same}) >= _FEWEST
        if found is not None and is_often and not _may_be_written(facts, made[number], found):
            yield UnwrittenState(made[number], found, len(same))


def _is_lost(facts: TraceIndex, read: Call) -> bool:
    """Returns whether a line assigns what it computes with a variable to this variable, and to nothing else."""
    span = facts.span(read.site)
    statement = None if span is None else statement_around(facts, span)
    node = None if span is None else facts.names.syntax.node(span)
    if node is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    pairs = zip(_each(statement.targets[0]), _each(statement.value), strict=False)
    return any(
        isinstance(target, ast.Name) and target.id in names and any(each is node for each in ast.walk(value))
        for target, value in pairs
    )


def _may_be_written(facts: TraceIndex, made: Call, read: Call) -> bool:
    """Returns whether a line of the file could change the state: one that never ran, perhaps, as under a condition."""
    span, reading = facts.span(made.site), facts.span(read.site)
    statement = None if span is None else statement_around(facts, span)
    holder = None if span is None else class_around(facts, span.file, span.line)
    line = None if reading is None else statement_around(facts, reading)
    if span is None or holder is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return True
    targets = _each(statement.targets[0])
    keys = {_key(each) for each in targets} - {None}
    collections = {_key(each.value) for each in targets if isinstance(each, ast.Subscript)}
    own, aliases = [*ast.walk(holder)], set[str | None]()
    for node in own:
        pairs = _pairs(node) if node is not statement else []
        aliases |= {_key(target) for target, value in pairs if isinstance(target, ast.Name) and _key(value) in keys}
    names = {_key(target) for target, _ in _pairs(line)}
    is_set = any(
        _key(target) in keys
        for node in ast.walk(facts.tree(span.file))
        if node is not statement
        for target in (*_targets(node), *_changed(node))
    )
    is_given = any(_key(each) in keys | collections | aliases for node in own for each in _given(node))
    is_changed = any(_key(each) in aliases | collections for node in own for each in _changed(node))
    return is_set or is_given or is_changed or not names & aliases


def _pairs(node: ast.AST | None) -> list[tuple[ast.expr, ast.expr]]:
    """Returns the targets of an assignment, each with its value."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return []
    return list(zip(_each(node.targets[0]), _each(node.value), strict=False))


def _targets(node: ast.AST) -> list[ast.expr]:
    """Returns what a statement assigns to, but for variables."""
    targets = [each for target in node.targets for each in _each(target)] if isinstance(node, ast.Assign) else []
    return [each for each in targets if not isinstance(each, ast.Name)]


def _changed(node: ast.AST) -> list[ast.expr]:
    """Returns what `+=` changes, and what a chain of calls with one in place begins with."""
    if isinstance(node, ast.AugAssign):
        return [node.target]
    root, is_in_place = node, False
    while isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute):
        is_in_place |= root.func.attr.endswith("_") or root.func.attr in _CHANGING
        root = root.func.value
    return [root] if is_in_place and isinstance(root, ast.expr) else []


def _given(node: ast.AST) -> list[ast.AST]:
    """Returns what a node hands to code that may change it: a call, a new list, a `return`."""
    if isinstance(node, ast.List | ast.Set | ast.Dict | ast.ListComp | ast.GeneratorExp | ast.Return | ast.Yield):
        return [*ast.iter_child_nodes(node)]
    if not isinstance(node, ast.Call):
        return []
    name = plain_name(node.func) or ""
    is_pure = name in _PLAIN or (name.startswith("torch.") and not name.endswith("_"))
    is_pure |= isinstance(node.func, ast.Attribute) and node.func.attr.rstrip("_") in _AVERAGING
    if is_pure and all(each.arg != "out" for each in node.keywords):
        return []
    return [*node.args, *(each.value for each in node.keywords)]


def _key(node: ast.AST) -> str | None:
    """Returns the key, the attribute or the variable that an expression reads: "first" of `self.state[p]["first"]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return repr(node.slice.value)
    if isinstance(node, ast.Subscript | ast.Starred):
        return _key(node.value)
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    return node.id if isinstance(node, ast.Name) else None


def _each(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple | ast.List) else [node]


def _optimizers(facts: TraceIndex) -> set[str]:
    """Returns the names of the program's classes that are derived from an optimizer."""
    classes = [node for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return {node.name for node in classes if any(_is_optimizer(plain_name(base) or "") for base in node.bases)}


def _is_optimizer(name: str) -> bool:
    return "optim" in name.split(".")[:-1] or "Optimizer" in name.rpartition(".")[2]
