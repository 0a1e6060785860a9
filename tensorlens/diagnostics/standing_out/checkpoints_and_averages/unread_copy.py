"""Names copies and averages of trained parameters that lines update, and that nothing reads or that are never other
than what they follow."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tensorlens.analysis.code_around import function_around, statement_at
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.averaged_parameters import source_of_average
from tensorlens.analysis.training.blends import copied_tensor
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import code_at
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_MIN_UPDATES = 2
_MIN_COPIES = 5
_MOST_BETWEEN = 500  # calls
_ACTING = frozenset(
    "multinomial bernoulli normal sample rsample standard_gamma log_prob exponential argmax exp".split()
)
_ALIASING = frozenset(("detach", "get"))


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    steps = [step.index for step in training.training.steps]
    if not steps or training.training.is_hidden or facts.trace.inspection.switches or not is_complete(facts.trace):
        return
    trained = {row.tensor: row for row in training.rows if row.is_stepped}
    unread: dict[int, list[tuple[ParameterRow, list[Call]]]] = defaultdict(list)
    read = set[int]()  # lines that update a parameter that is read
    copied: dict[int, list[tuple[ParameterRow, list[Call]]]] = defaultdict(list)
    for row in training.rows:
        writes = training.writes(row.tensor, since=steps[0]) if row.group is None else []
        loads = _last_of_two(training, row, writes, trained)
        if len(writes) < _MIN_UPDATES or not (loads or len({call.site for call in writes}) == 1):
            continue
        if not loads and not _is_read(training, row.tensor, {call.site for call in writes}):
            unread[writes[0].site].append((row, writes))
            continue
        copies = loads or writes
        read.add(copies[0].site)
        follows = _follows_each_step(facts, copies, steps) and _is_target(training, row, copies)
        if follows and _copies_trained(facts, copies, trained, steps):
            copied[copies[0].site].append((row, copies))
    for site, found in unread.items():
        if site not in read:  # of an average, other parts may be all that is read
            yield _unread(training, found)
    for found in copied.values():
        yield _copied(training, found)


def _is_read(training: MeasuredTraining, number: int, updates: set[int]) -> bool:
    """Returns whether a call elsewhere than on the lines of the updates reads a parameter, from its first update on."""
    facts = training.facts
    storages = facts.storages_of(number)
    first = min(call.index for call in facts.calls if call.site in updates)
    return any(
        call.site not in updates
        and any(facts.storage_of(access.tensor, call.index) in storages for access in call.inputs)
        for call in facts.calls_between(first)
    )


def _last_of_two(
    training: MeasuredTraining, row: ParameterRow, writes: list[Call], trained: dict[int, ParameterRow]
) -> list[Call]:
    """Returns the loads of a parameter that replace what another line has just averaged, before anything reads it."""
    facts, storages = training.facts, training.facts.storages_of(row.tensor)
    averages, loads = writes[::2], writes[1::2]
    if len(loads) < _MIN_COPIES or len({call.site for call in averages}) > 1 or len({call.site for call in loads}) > 1:
        return []
    if averages[0].site == loads[0].site or source_of_average(training, averages[-1], row.tensor, trained) is None:
        return []
    for average, load in zip(averages, loads, strict=False):
        between = list(facts.calls_between(average.index + 1, load.index - 1))
        if len(between) > _MOST_BETWEEN or any(
            facts.storage_of(access.tensor, call.index) in storages and op_name(call) not in _ALIASING
            for call in between
            for access in call.inputs
        ):
            return []
    return loads


def _copies_trained(facts: TraceIndex, writes: list[Call], trained: dict[int, ParameterRow], steps: list[int]) -> bool:
    """Returns whether writes copy the present values of a trained parameter, and not a blend with those of before, nor
    values that were kept before the last step."""
    for call in (writes[1], writes[-1]):
        value = call.inputs[-1].tensor
        source, made = copied_tensor(facts, value, call.index), facts.creator(value)
        is_alias = facts.storage_of(value, call.index) in facts.storages_of(source)
        is_new = made is not None and bisect_left(steps, made.index) == bisect_left(steps, call.index)
        if source not in trained or not (is_alias or is_new):
            return False
    return True


def _follows_each_step(facts: TraceIndex, writes: list[Call], steps: list[int]) -> bool:
    """Returns whether `load_state_dict()` has copied other parameters after each step, and not only if they are the
    best so far."""
    counts = [bisect_left(steps, b.index) - bisect_left(steps, a.index) for a, b in pairwise(writes)]
    span = facts.span(writes[0].site)
    if len(writes) < _MIN_COPIES or set(counts) != {1} or span is None:
        return False
    if "load_state_dict" not in code_at(facts, writes[0].site, ""):
        return False
    scope = function_around(facts, span.file, span.line) or facts.tree(span.file)
    statement = statement_at(facts, span.file, span.line)
    choices = (node for node in ast.walk(scope) if isinstance(node, ast.If))
    return not any(statement is each for choice in choices for each in ast.walk(choice))


def _is_target(training: MeasuredTraining, row: ParameterRow, copies: list[Call]) -> bool:
    """Returns whether a loss is computed from a copy between the last two times, as from a target network.

    A worker whose gradients another module gets, and a policy whose actions are drawn or whose probabilities a ratio
    has, begin with the present values in each round on purpose.
    """
    if row.statistics is not None and row.statistics.filled > row.statistics.zero:
        return False
    facts, storages = training.facts, training.facts.storages_of(row.tensor)
    begin, end = copies[-2].index, copies[-1].index
    reached = set[int]()
    for call in facts.calls_between(begin + 1, end - 1):
        read = {access.tensor for access in call.inputs}
        if not reached.isdisjoint(read) or any(facts.storage_of(number, call.index) in storages for number in read):
            if op_name(call) in _ACTING:
                return False
            reached |= {access.tensor for access in call.outputs}
    passes = (each for each in facts.backwards if begin < each.index < end)
    return any(root.tensor in reached for each in passes for root in each.roots)


def _unread(training: MeasuredTraining, found: list[tuple[ParameterRow, list[Call]]]) -> StandingOut:
    facts, (first, writes) = training.facts, found[0]
    rows = [row for row, _ in found]
    verb, them = ("is", "it") if len(rows) == 1 else ("are", "them")
    made = facts.creator(first.tensor)
    return stands_out(
        f"{listed(rows)} {verb} updated {len(writes):,} times, and no other line reads {them} then",
        facts.label("modified_here", writes[0].site, "updated here", writes[0].index),
        None if made is None else facts.label("leaf_made_here", made.site, "made here", made.index),
    )


def _copied(training: MeasuredTraining, found: list[tuple[ParameterRow, list[Call]]]) -> StandingOut:
    facts, (_, writes) = training.facts, found[0]
    rows = [row for row, _ in found]
    return stands_out(
        f"{code_at(facts, writes[0].site, 'Module.load_state_dict')} replaces all values of {listed(rows)} after each "
        f"of {len(writes):,} steps: nothing of earlier steps stays in {'it' if len(rows) == 1 else 'them'}",
        facts.label("modified_here", writes[0].site, "copied here", writes[0].index),
    )
