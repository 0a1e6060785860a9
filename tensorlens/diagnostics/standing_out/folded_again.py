"""Names parameters that no step trains, and to which a line adds what others give, again and again.

So it is where `eval()` adds a low-rank update to the weights below it, and nothing takes it out again.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tensorlens.analysis.code_around import scope_around, statement_at
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_ADDING = frozenset(("add", "iadd", "sub", "isub", "addmm"))
_MAX_CALLS = 32


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    steps = [step.index for step in training.training.steps]
    if not steps or training.training.is_hidden or facts.trace.inspection.switches or not is_complete(facts.trace):
        return
    stepped = [row.tensor for row in training.rows if row.is_stepped]
    trained = {storage: number for number in stepped for storage in facts.storages_of(number)}
    found: dict[int, list[tuple[ParameterRow, list[Call], set[int]]]] = defaultdict(list)
    for row in training.rows:
        is_frozen = row.group is None and not row.requires_grad
        writes = _without_ends(facts, training.writes(row.tensor, since=steps[0])) if is_frozen else []
        if len(writes) < 2 or len({call.site for call in writes}) != 1 or not _add(facts, writes):
            continue
        between = [bisect_left(steps, a.index) < bisect_left(steps, b.index) for a, b in pairwise(writes)]
        added = [_computed_from(facts, row.tensor, call, trained) for call in writes]
        if all(between) and all(added) and _is_read(training, row, writes):
            found[writes[0].site].append((row, writes, added[0]))
    for each in found.values():
        yield _sentence(training, each)


def _without_ends(facts: TraceIndex, writes: list[Call]) -> list[Call]:
    """Leaves out the assignments that a `+=` on `.data` ends with: they are on the line of a change."""
    changes = [call for call in writes if call.op != DATA_SET]
    return [
        call for call in writes if call.op != DATA_SET or not any(facts.same_line(call.site, c.site) for c in changes)
    ]


def _add(facts: TraceIndex, writes: list[Call]) -> bool:
    """Returns whether a line adds in each of its runs: what it adds has no number of the function, such as a sign, that
    could make it take the rest out again."""
    if not all(op_name(call) in _ADDING and len(call.inputs) > 1 for call in writes):
        return False
    span = facts.span(writes[0].site)
    statement = None if span is None else statement_at(facts, span.file, span.line)
    if span is None or statement is None:
        return False
    scope = scope_around(facts, span.file, span.line)
    own = {node.arg for node in ast.walk(scope) if isinstance(node, ast.arg)}
    own |= {node.id for node in ast.walk(scope) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    read = [node for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    objects = {node.value for node in ast.walk(statement) if isinstance(node, ast.Attribute)}
    return not any(node.id in own for node in read if node not in objects)


def _computed_from(facts: TraceIndex, number: int, call: Call, trained: dict[int, int]) -> set[int]:
    """Returns the trained parameters that a summand was computed from; none if it depends on the parameter itself, as
    in the update of an average. `trained` has them by their storages."""
    own, found = facts.storages_of(number), set[int]()
    for access in call.inputs[1:]:
        made = (
            each.tensor for _, above in ancestry(facts, access.tensor, call.index, _MAX_CALLS) for each in above.inputs
        )
        places = {facts.storage_of(each, call.index) for each in (access.tensor, *made)}
        if places & own:
            return set()
        found |= {trained[place] for place in places if place in trained}
    return found


def _is_read(training: MeasuredTraining, row: ParameterRow, writes: list[Call]) -> bool:
    """Returns whether a call elsewhere reads the parameter after its second change."""
    facts, own = training.facts, training.facts.storages_of(row.tensor)
    return any(
        call.site != writes[0].site
        and any(facts.storage_of(access.tensor, call.index) in own for access in call.inputs)
        for call in facts.calls_between(writes[1].index + 1)
    )


def _sentence(training: MeasuredTraining, found: list[tuple[ParameterRow, list[Call], set[int]]]) -> StandingOut:
    facts, (_, writes, added) = training.facts, found[0]
    rows = [row for row, _, _ in found]
    others = [row for row in training.rows if row.tensor in added]
    return stands_out(
        f"{as_written(facts, writes[0])} changes {listed(rows)} {len(writes):,} times, each time by a value of "
        f"{listed(others)}, and no line takes it out again: the changes add up",
        facts.label("modified_here", writes[0].site, "added here", writes[0].index),
    )
