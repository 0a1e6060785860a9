"""Names updates of kept averages that only set the variable of a loop, as `m = 0.9 * m + 0.1 * p.grad` does."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.code_around import is_inside, loop_around_line, statement_at
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.one_memory import operands
from tensorlens.analysis.training.timeline import DATA_SET, GRAD_READ
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_MIN_RUNS = 2


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds sums with a gradient or a trained parameter that read one tensor again and again, which nothing changes."""
    facts = training.facts
    trained = _trained(training)
    sites: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls if trained else ():
        if op_name(call) in ("add", "sub") and not call.within and not call.writes and call.outputs:
            sites[call.site].append(call)
    for calls in sites.values():
        name = _loop_variable(facts, calls[0]) if len(calls) >= _MIN_RUNS else None
        if name is None or not _reads_the_same(facts, calls, name, trained) or _is_kept(training, calls, name, trained):
            continue
        span = facts.span(calls[0].site)
        statement = None if span is None else statement_at(facts, span.file, span.line)
        if span is not None and statement is not None:
            yield stands_out(
                f"`{facts.code_of(statement, span.file)}` only sets the variable `{name}` of the loop, "
                f"{len(calls):,} times: the tensor that the loop gives it stays as it is",
                facts.label("observed_here", calls[0].site, "sets a variable", calls[0].index),
            )


def _trained(training: MeasuredTraining) -> set[int]:
    """Returns the memory of the parameters that a pass or a step reaches, and of the gradients that lines read."""
    rows = (row.tensor for row in training.rows if row.is_stepped or row.passes)
    return _gradients(training.facts).union(*map(training.facts.storages_of, rows))


def _gradients(facts: TraceIndex) -> set[int]:
    gradients = (call.outputs[0].tensor for call in facts.calls if call.op == GRAD_READ and call.outputs)
    return set[int]().union(*map(facts.storages_of, gradients))


def _is_kept(training: MeasuredTraining, calls: list[Call], name: str, trained: set[int]) -> bool:
    """Returns whether the loop goes on to use the sum, but for an update of parameters with a gradient in it.

    So it does where it stores or measures a value between two models.
    """
    facts, span = training.facts, training.facts.span(calls[-1].site)
    loop = None if span is None else loop_around_line(facts, span.file, span.line)
    if span is None or loop is None:
        return True
    later = (node for node in ast.walk(loop) if isinstance(node, ast.stmt) and node.lineno > span.end_line)
    simple = sorted((node for node in later if not hasattr(node, "body")), key=lambda node: node.lineno)
    tracked, updates = {name}, list[ast.stmt]()
    for statement in simple:
        nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        if tracked.isdisjoint(node.id for node in nodes if isinstance(node.ctx, ast.Load)):
            continue
        if isinstance(statement, ast.Assign) and all(isinstance(each, ast.Name) for each in statement.targets):
            tracked |= {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
        elif _writes_trained(facts, span.file, statement, trained):
            updates.append(statement)
        else:
            return True
    is_read = len(tracked) > 1 or bool(updates)
    _, others = _memory_read(facts, calls[-1], name, calls[-2].index)
    return is_read and (not updates or others.isdisjoint(_gradients(facts)) or not _has_factor(facts, calls[-1]))


def _has_factor(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call is a sum, or a difference of products: `p - old` may be the way to an anchor."""
    node = facts.node_at(call.site)
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
        return True
    return any(isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mult) for each in ast.walk(node))


def _writes_trained(facts: TraceIndex, file: str, statement: ast.stmt, trained: set[int]) -> bool:
    """Returns whether a statement writes to a parameter or a gradient."""
    for call in facts.calls:
        span = facts.span(call.site) if call.writes or call.op == DATA_SET else None
        if span is None or not is_inside(span, facts.span_of(statement, file)):
            continue
        written = (facts.storage_of(each.tensor, call.index) for each in call.writes)
        if call.op == DATA_SET or not trained.isdisjoint(each for each in written if each is not None):
            return True
    return False


def _loop_variable(facts: TraceIndex, call: Call) -> str | None:
    """Returns the variable of a loop that a statement assigns a sum to, if the sum reads that variable."""
    span = facts.span(call.site)
    statement = None if span is None else statement_at(facts, span.file, span.line)
    loop = None if span is None else loop_around_line(facts, span.file, span.line)
    if span is None or not isinstance(loop, ast.For) or not isinstance(statement, ast.Assign):
        return None
    target, value = statement.targets[0], statement.value
    if len(statement.targets) != 1 or not isinstance(target, ast.Name) or facts.span_of(value, span.file) != span:
        return None
    given = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    read = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    return target.id if target.id in given & read else None


def _reads_the_same(facts: TraceIndex, calls: list[Call], name: str, trained: set[int]) -> bool:
    """Returns whether each sum reads something trained, and the variable has memory in the last one that it had before
    and that nothing has changed since."""
    before = [-1, *(call.index for call in calls)]
    by_run = [_memory_read(facts, call, name, since) for call, since in zip(calls, before, strict=False)]
    if not all(others & trained for _, others in by_run):
        return False
    kept = by_run[-1][0] & set[int]().union(*(own for own, _ in by_run[:-1])) - trained
    first = next((call.index for call, (own, _) in zip(calls, by_run, strict=True) if own & kept), 0)
    written = {
        facts.storage_of(write.tensor, call.index)
        for call in facts.calls_between(first + 1, calls[-1].index)
        for write in call.writes
    }
    return bool(kept) and not kept & written


def _memory_read(facts: TraceIndex, call: Call, name: str, since: int) -> tuple[set[int], set[int]]:
    """Returns the memory that the line of a sum reads by a variable, and the other memory of the sum's size that it
    reads. This run of the line begins after `since`."""
    shape = facts.tensor(call.outputs[0].tensor).shape
    own, others, waiting = set[int](), set[int](), [call]
    for each in waiting:
        for operand in operands(facts, each):
            storage = facts.storage_of(operand.tensor, each.index)
            if storage is not None and facts.tensor(operand.tensor).shape == shape:
                (own if operand.name == name else others).add(storage)
            made = facts.creator(operand.tensor)
            if made is not None and made.index > since and facts.same_line(made.site, call.site):
                waiting.append(made)
    return own, others
