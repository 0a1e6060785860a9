"""Names lines that add to the items of a `state_dict()` that is no copy: they change the parameters themselves."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.code_around import scope_around, statement_at
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.checkpoints_and_averages.summed_states import summed_states
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.module_loads import LOADS
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.records.model import Call
from tensorlens.records.report import Label, StandingOut

_SCALING = frozenset("mul imul rmul div idiv truediv itruediv".split())


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds `average[key] += value`, where `average = model.state_dict()` and steps have trained the model."""
    said = set[int]()
    for site, sentence in _named_dicts(training):
        said.add(site)
        yield sentence
    yield from _sums(training, said)


def _sums(training: MeasuredTraining, said: set[int]) -> Iterator[StandingOut]:
    """Finds the same where another dict or variable has the tensors of the `state_dict()`."""
    facts = training.facts
    lines: dict[tuple[int, int], tuple[Call, list[ParameterRow]]] = {}
    for each in summed_states(training):
        lines.setdefault((each.change.site, each.made), (each.change, []))[1].append(each.row)
    for (site, made), (change, rows) in lines.items():
        at, span = facts.span(site), facts.span(made)
        statement = None if at is None else statement_at(facts, at.file, at.line)
        node = None if span is None else facts.names.syntax.node(span)
        if at is None or span is None or statement is None or node is None or site in said:
            continue
        yield stands_out(
            f"`{facts.code_of(statement, at.file)}` changes {listed(rows)}, which steps go on training: "
            f"`{facts.code_of(node, span.file)}` is no copy",
            facts.label("modified_here", site, "changes the parameters, too", change.index),
            Label("shared_here", span, "shares their memory"),
        )


def _named_dicts(training: MeasuredTraining) -> Iterator[tuple[int, StandingOut]]:
    """Yields the sentences about a variable that is a `state_dict()`, each with the site of the change."""
    facts = training.facts
    lines: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls if training.training.steps else ():
        if call.writes and not call.within:
            lines[call.site].append(call)
    for site, calls in lines.items():
        span = facts.span(site)
        statement = None if span is None else statement_at(facts, span.file, span.line)
        made = None if span is None or statement is None else _state_dict(facts, statement, span.file)
        if span is None or statement is None or made is None:
            continue
        written = {facts.storage_of(write.tensor, call.index) for call in calls for write in call.writes}
        rows = [row for row in training.rows if row.is_stepped and facts.storages_of(row.tensor) & written]
        if rows and _is_unwanted(training, rows, calls):
            yield (
                site,
                stands_out(
                    f"`{facts.code_of(statement, span.file)}` changes {listed(rows)}: "
                    f"`{facts.code_of(made, span.file)}` is no copy",
                    facts.label("modified_here", site, "changes the parameters, too", calls[0].index),
                    Label("shared_here", facts.span_of(made, span.file), "shares their memory"),
                ),
            )


def _is_unwanted(training: MeasuredTraining, rows: list[ParameterRow], changes: list[Call]) -> bool:
    """Returns whether a step goes on with changed parameters, or the sum is one of models or part of an average.

    A sum that is loaded into the same parameters is meant for them, as where an adapter is merged.
    """
    facts, sites = training.facts, training.facts.trace.sites
    numbers = {row.tensor for row in rows}
    memory = {storage for number in numbers for storage in facts.storages_of(number)}
    later = list(facts.calls_between(changes[-1].index + 1))
    if any(
        sites[call.site].through == LOADS
        and not memory.isdisjoint(facts.storage_of(w.tensor, call.index) for w in call.writes)
        for call in later
    ):
        return False
    if any(
        step.index > changes[-1].index and not numbers.isdisjoint(step.parameters) for step in training.training.steps
    ):
        return True
    return any(_adds_state(facts, change) for change in changes) or any(
        op_name(call) in _SCALING and facts.storage_of(call.inputs[0].tensor, call.index) in memory
        for call in later if call.inputs and not sites[call.site].through
    )  # fmt: skip


def _adds_state(facts: TraceIndex, change: Call) -> bool:
    """Returns whether a call adds an item of a `state_dict()`, or a multiple of one."""
    made = facts.creator(change.inputs[-1].tensor)
    if made is not None and op_name(made) in _SCALING and len(made.inputs) == 1:
        made = facts.creator(made.inputs[0].tensor)
    return made is not None and facts.trace.sites[made.site].through == "Module.state_dict"


def _state_dict(facts: TraceIndex, statement: ast.stmt, file: str) -> ast.Call | None:
    """Returns the call of `state_dict()` whose items a statement changes, as `average[key] += value` does."""
    target = statement.target if isinstance(statement, ast.AugAssign) else None
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        return None
    scope, name = scope_around(facts, file, statement.lineno), target.value.id
    assigned = (each for each in ast.walk(scope) if isinstance(each, ast.Assign))
    values = [each.value for each in assigned if any(isinstance(t, ast.Name) and t.id == name for t in each.targets)]
    value = values[0] if len(values) == 1 else None
    is_state = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "state_dict"
    return value if isinstance(value, ast.Call) and is_state else None
