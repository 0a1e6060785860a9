"""Finds zeros that an optimizer of the program keeps for an average, reads at each step and never writes."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import class_around, statement_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Call

_ZEROS = frozenset(("zeros", "zeros_like", "new_zeros"))
_AVERAGING = frozenset("lerp mul rmul add radd sub rsub addcmul addcdiv".split())
_FEWEST = 3  # reads


@dataclass(frozen=True, slots=True)
class UnwrittenState:
    """The call that makes the zeros, the one that reads them, and how often it reads one of them."""

    made: Call
    read: Call
    times: int


def unwritten_states(facts: TraceIndex) -> Iterator[UnwrittenState]:
    """Yields these states, one for each line that makes them, if nothing writes to any of the tensors of the line."""
    owners = _optimizers(facts)
    if not owners:
        return
    made: dict[int, Call] = {}
    reads: dict[int, list[Call]] = defaultdict(list)
    written: set[int] = set()
    for call in facts.calls:
        if facts.trace.sites[call.site].function.partition(".")[0] not in owners:
            written |= {storage for write in call.writes for storage in facts.storages_of(write.tensor)}
            continue
        changed = {write.tensor for write in call.writes}
        written |= {storage for number in changed for storage in facts.storages_of(number)}
        if op_name(call) in _ZEROS and len(call.outputs) == 1:
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
        sites = [call.site for call in reads[number]]
        first = reads[number][0] if sites else None
        if first is not None and sites.count(first.site) >= _FEWEST and not _may_be_written(facts, made[number]):
            yield UnwrittenState(made[number], first, sites.count(first.site))


def _may_be_written(facts: TraceIndex, made: Call) -> bool:
    """Returns whether a line of the class changes the state in place: under a condition that never held, perhaps."""
    span = facts.span(made.site)
    statement = None if span is None else statement_around(facts, span)
    holder = None if span is None else class_around(facts, span.file, span.line)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if holder is None or len(targets) != 1:
        return True
    names = {ast.unparse(each) for each in _each(targets[0])}
    for node in ast.walk(holder):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            pairs = zip(_each(node.targets[0]), _each(node.value), strict=False)
            names |= {ast.unparse(target) for target, value in pairs if ast.unparse(value) in names}
    changed = {ast.unparse(_root(node)) for node in ast.walk(holder) if isinstance(node, ast.Call | ast.AugAssign)}
    return bool(names & changed)


def _each(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple | ast.List) else [node]


def _root(node: ast.Call | ast.AugAssign) -> ast.expr:
    """Returns what a chain of calls that ends with an underscore begins with, or what `+=` changes."""
    if isinstance(node, ast.AugAssign):
        return node.target
    root: ast.expr = node
    is_in_place = False
    while isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute):
        is_in_place |= root.func.attr.endswith("_")
        root = root.func.value
    return root if is_in_place else node


def _optimizers(facts: TraceIndex) -> set[str]:
    """Returns the names of the program's classes that are derived from an optimizer."""
    classes = [node for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return {node.name for node in classes if any("optim" in ast.unparse(base).lower() for base in node.bases)}
