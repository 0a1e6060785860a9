"""Names memories whose entries hold one NumPy array as two values, such as a state and the next one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut

_ADDING = frozenset("append appendleft insert".split())


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if the array of an entry got other values after the entry was added.

    An environment that returns the array that it changes in place leads to this.
    """
    facts = training.facts
    for each in facts.trace.inspection.one_array:
        if each.number != training.measured.number:
            continue
        labels = [
            Label("shared_here", facts.span_of(node, file), "keeps the array, without a copy")
            for file, tree in facts.trees()
            for node in ast.walk(tree)
            if _adds_to(node, each.name)
        ]
        if len(labels) != 1:
            continue
        arrays = "one array" if each.arrays == 1 else f"one of {each.arrays:,} arrays"
        code, (one, other) = _added(facts, labels[0]), each.places
        share = f"{each.twice:,} of {each.entries:,} entries"
        yield stands_out(
            f"`{code}` keeps no copies: at the last look, {share} hold {arrays} both "
            f"as {_place(one)} and as {_place(other)}, and its values change in place after it is added",
            *labels,
        )


def _place(name: str) -> str:
    return f"item {name}" if name.isdigit() else f"`{name}`"


def _added(facts: TraceIndex, label: Label) -> str:
    return facts.names.syntax.text(label.span, 80)


def _adds_to(node: ast.AST, name: str) -> bool:
    """Returns whether a statement adds an entry to a list of this name, as `memory.append(...)`, `memory[i] = ...`."""
    if isinstance(node, ast.Assign):
        targets = [each.value for each in node.targets if isinstance(each, ast.Subscript)]
        return any(last_name(each) == name for each in targets)
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Add) and last_name(node.target) == name
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    called = node.value.func
    return isinstance(called, ast.Attribute) and called.attr in _ADDING and last_name(called.value) == name
