"""Names statements that write to a tensor which they have just computed, and which nothing reads."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

from tensorlens.analysis.code_around import is_inside
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, op_text
from tensorlens.records.model import Access, Call, Write
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds statements such as `w[mask].zero_()`, of which no run changes a tensor that another line can use."""
    facts = training.facts
    sites: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        if call.writes and not call.within and _is_statement(facts, call):
            sites[call.site].append(call)
    if not sites or training.training.is_hidden or not is_complete(facts.trace):
        return
    written = {_storage(facts, call.writes[0], call) for calls in sites.values() for call in calls}
    users = _users(facts, written)
    alive = {storage for each in facts.trace.end.bindings for storage in facts.storages_of(each.tensor)}
    for calls in sites.values():
        makers = [_maker(facts, call, users) for call in calls]
        is_kept = any(_storage(facts, call.writes[0], call) in alive for call in calls)
        if all(makers) and not is_kept and (maker := makers[0]) is not None:
            made = {each.site for each in makers if each is not None}
            if any(_is_given(facts, site, calls[0].site) for site in made):
                continue
            what = op_text(maker.op)
            yield stands_out(
                f"{as_written(facts, calls[0])} writes to a new tensor that {what} makes in the same statement, and "
                "no other line reads it",
                facts.label("modified_here", calls[0].site, "changed here", calls[0].index),
            )


def _is_statement(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call in place is a whole statement, on an expression that is no variable."""
    span, site, syntax = facts.span(call.site), facts.trace.sites[call.site], facts.names.syntax
    if span is None or not call.op.endswith("_") or not syntax.is_whole_statement(site):
        return False
    node = syntax.node(span)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return not isinstance(node.func.value, ast.Name) and syntax.is_direct(site, call.op)


def _users(facts: TraceIndex, written: set[int | None]) -> dict[int, list[Call]]:
    """Maps each of some storages to the calls that use it, in order."""
    users: dict[int, list[Call]] = defaultdict(list)
    near = cache(lambda number: not written.isdisjoint(facts.storages_of(number)))
    for call in facts.calls:
        accesses = [each for each in (*call.inputs, *call.outputs) if near(each.tensor)]  # few of a long run
        for storage in {_storage(facts, each, call) for each in accesses}:
            if storage is not None:
                users[storage].append(call)
    return users


def _maker(facts: TraceIndex, call: Call, users: dict[int, list[Call]]) -> Call | None:
    """Returns the call that made the memory of a write from other tensors, if only that statement uses it."""
    storage = _storage(facts, call.writes[0], call)
    if len(call.writes) != 1 or storage is None:
        return None
    using = users[storage]
    maker = using[0]
    given = {_storage(facts, each, maker) for each in maker.inputs}
    is_new = any(_storage(facts, each, maker) == storage for each in maker.outputs)
    if maker is call or not given or None in given or storage in given or not is_new or using[-1] is not call:
        return None
    return maker if all(_is_inside(facts, each, call) for each in using) else None


def _is_given(facts: TraceIndex, maker: int, statement: int) -> bool:
    """Returns whether the statement gives what it makes to a function that may keep it, as in
    `half.setdefault(name, p.clone()).mul_(0.5)`, or to a variable."""
    made, span = facts.span(maker), facts.span(statement)
    node = None if span is None else facts.names.syntax.node(span)
    if made is None or span is None or node is None:
        return True
    recorded = {each.span for each in facts.trace.sites if not each.through}
    for each in ast.walk(node):
        if isinstance(each, ast.NamedExpr):
            return True
        if isinstance(each, ast.Call) and facts.span_of(each, span.file) not in recorded:
            arguments = [*each.args, *(keyword.value for keyword in each.keywords)]
            if any(is_inside(made, facts.span_of(argument, span.file)) for argument in arguments):
                return True
    return False


def _storage(facts: TraceIndex, access: Access | Write, call: Call) -> int | None:
    return facts.storage_of(access.tensor, call.index)


def _is_inside(facts: TraceIndex, call: Call, outer: Call) -> bool:
    """Returns whether the expression of a call is a part of another one's."""
    inner, span = facts.span(call.site), facts.span(outer.site)
    if inner is None or span is None or inner.file != span.file:
        return False
    starts = (span.line, span.column) <= (inner.line, inner.column)
    return starts and (inner.end_line, inner.end_column) <= (span.end_line, span.end_column)
