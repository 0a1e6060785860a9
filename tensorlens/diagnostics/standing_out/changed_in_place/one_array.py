"""Names memories whose entries hold one NumPy array as two values, such as a state and the next one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.training_arrays import EntriesOfOneArray

_ADDING = frozenset("append appendleft insert".split())
_TAKING = frozenset("pop popleft remove".split())


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if the array of an entry got other values after the entry was added.

    An environment that returns the array that it changes in place leads to this.
    """
    facts = training.facts
    for each in facts.trace.inspection.one_array:
        if each.number == training.measured.number:
            yield from _of_lists(facts, each) if each.places[0] in each.name.split() else _of_entries(facts, each)


def _of_entries(facts: TraceIndex, each: EntriesOfOneArray) -> Iterator[StandingOut]:
    labels = _labels(facts, each.name)
    if len(labels) == 1:
        one, other = map(_place, each.places)
        share = f"{each.twice:,} of {each.entries:,} entries hold {_arrays(each)} both as {one} and as {other}"
        yield _sentence(facts, share, labels)


def _of_lists(facts: TraceIndex, each: EntriesOfOneArray) -> Iterator[StandingOut]:
    """Finds two lists that take entries at one line each, and from which no line takes entries."""
    both = [_labels(facts, name) for name in each.places]
    is_emptied = any(_takes_from(node, each.places) for _, tree in facts.trees() for node in ast.walk(tree))
    if [len(labels) for labels in both] == [1, 1] and not is_emptied:
        share = f"{each.twice:,} of {each.entries:,} entries are {_arrays(each)} that `{each.places[1]}` has there, too"
        yield _sentence(facts, share, [*both[0], *both[1]])


def _sentence(facts: TraceIndex, share: str, labels: list[Label]) -> StandingOut:
    code = facts.names.syntax.text(labels[0].span, 80)
    return stands_out(
        f"`{code}` keeps no copies: at the last look, {share}, and its values change in place after it is added",
        *labels,
    )


def _arrays(each: EntriesOfOneArray) -> str:
    return "one array" if each.arrays == 1 else f"one of {each.arrays:,} arrays"


def _labels(facts: TraceIndex, name: str) -> list[Label]:
    """Returns the lines that add entries to a list of this name."""
    return [
        Label("shared_here", facts.span_of(node, file), "keeps the array, without a copy")
        for file, tree in facts.trees()
        for node in ast.walk(tree)
        if _adds_to(node, name)
    ]


def _place(name: str) -> str:
    return f"item {name}" if name.isdigit() else f"`{name}`"


def _adds_to(node: ast.AST, name: str) -> bool:
    """Returns whether a call or statement adds an entry to a list of this name: `memory.append(e)`, `memory[i] = e`."""
    if isinstance(node, ast.Assign):
        targets = [each.value for each in node.targets if isinstance(each, ast.Subscript)]
        return any(_is_named(each, name) for each in targets)
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Add) and _is_named(node.target, name)
    return _calls(node, name, _ADDING)


def _takes_from(node: ast.AST, names: tuple[str, str]) -> bool:
    if isinstance(node, ast.Delete):
        return any(_is_named(getattr(each, "value", None), name) for each in node.targets for name in names)
    is_clear = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "clear"
    return is_clear or any(_calls(node, name, _TAKING) for name in names)  # `clear()` by whatever name


def _calls(node: ast.AST, name: str, methods: frozenset[str]) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in methods:
        return False
    return _is_named(node.func.value, name)


def _is_named(node: ast.AST | None, name: str) -> bool:
    """Returns whether an expression has a name, or is the item with this key: `memory`, `self.memory`, `lists["s"]`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == name
    return last_name(node) == name
