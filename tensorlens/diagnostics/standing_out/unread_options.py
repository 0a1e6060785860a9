"""Names options of an optimizer that a script changes where no step reads them, as `defaults`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Span
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.training_values import UnreadOption

_MIN_STEPS = 2


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    for each in facts.trace.inspection.unread:
        groups = [group for group in training.groups if group.optimizer == each.optimizer]
        if each.number != training.measured.number or not groups or groups[0].steps < _MIN_STEPS:
            continue
        if each.name == "lr" and any(set(group.rates) != {each.used} for group in groups):
            continue  # some steps had another rate
        name = groups[0].name
        where = f'`defaults["{each.name}"]` of' if each.place == "defaults" else f"the attribute `{each.name}` of"
        text = f"{where} `{name}` is changed to {each.value:g}, and no step reads it: "
        text += f"each of {groups[0].steps:,} steps uses `{each.name}={each.used:g}` of its groups"
        made = facts.label("optimizer_made_here", groups[0].site, "the optimizer is made here")
        written = _written(facts, each)
        changed = None if written is None else Label("state_changed_here", written, "changed here")
        yield stands_out(text, changed, made)


def _written(facts: TraceIndex, option: UnreadOption) -> Span | None:
    """Returns the only place of the program that can write an option there; None if there are several."""
    found = [
        facts.span_of(node, file) for file, tree in facts.trees() for node in ast.walk(tree) if _writes(node, option)
    ]
    return found[0] if len(found) == 1 else None


def _writes(node: ast.AST, option: UnreadOption) -> bool:
    if option.place == "attribute":
        is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
        return isinstance(node, ast.Attribute) and _is_stored(node) and node.attr == option.name and not is_own
    if not isinstance(node, ast.Subscript) or not _is_stored(node):
        return False
    held, key = node.value, node.slice
    is_name = not isinstance(key, ast.Constant) or key.value == option.name
    return isinstance(held, ast.Attribute) and held.attr == "defaults" and is_name


def _is_stored(node: ast.Attribute | ast.Subscript) -> bool:
    return isinstance(node.ctx, ast.Store)
