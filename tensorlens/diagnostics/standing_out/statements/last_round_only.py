"""Names evaluations that return the value of the last batch, where a loop computes one for each batch."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around, loop_around_line, parent_of, statement_at
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Call
from tensorlens.records.report import Label, StandingOut

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_READING = frozenset("item float cpu detach round double numpy tolist".split())
_LEAVING = ast.Break | ast.Return | ast.Yield


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds single numbers without a graph that a loop over batches sets anew, and that only a `return` below reads."""
    facts, seen = training.facts, set[tuple[str, int]]()
    for call in facts.calls if training.measured.steps else ():
        span = facts.span(call.site)
        is_number = call.outputs and facts.tensor(call.outputs[0].tensor).shape == ()
        is_number = is_number and not call.within and call.nodes[1] == call.nodes[0]
        if span is None or (span.file, span.line) in seen or not is_number:
            continue
        seen.add((span.file, span.line))
        statement, function = statement_at(facts, span.file, span.line), function_around(facts, span.file, span.line)
        loop = None if function is None else _loop_of(function, statement)
        if function is None or loop is None or not isinstance(statement, ast.Assign):
            continue
        name = statement.targets[0]
        given = _only_returned(function, loop, name.id) if isinstance(name, ast.Name) else None
        runs = _runs(facts, call, loop) if _is_own_value(facts, call, statement) else 0
        if given is None or runs < 2 or not _is_of_round(loop, statement):
            continue
        yield stands_out(
            f"`{facts.code_of(given, span.file)}` gives the `{ast.unparse(name)}` of the last round only: the loop "
            f"sets it anew in each of {runs:,} rounds, and nothing reads it there",
            Label("observed_here", facts.span_of(given, span.file), "only that of the last round"),
            facts.label("value_made_here", call.site, "set anew in each round", call.index),
        )


def _is_own_value(facts: TraceIndex, call: Call, statement: ast.Assign) -> bool:
    """Returns whether a statement keeps the result of a call itself, and gives it to nothing that may add it up."""
    span, node = facts.span(call.site), facts.node_at(call.site)
    while span is not None and node is not None and node is not statement.value:
        above = parent_of(facts, span.file, node)
        if isinstance(above, ast.BinOp):
            other = above.right if above.left is node else above.left
            if any(isinstance(each, ast.Call) and last_name(each.func) != "len" for each in ast.walk(other)):
                return False
        elif not isinstance(above, ast.UnaryOp | ast.Attribute):
            if not isinstance(above, ast.Call) or last_name(above.func) not in _READING:
                return False
        node = above
    return node is not None


def _loop_of(function: _Function, statement: ast.stmt | None) -> ast.For | None:
    """Returns the only loop of a function, if a statement is directly in it and it goes on to its end."""
    loops = [node for node in ast.walk(function) if isinstance(node, ast.For | ast.While | ast.AsyncFor)]
    loop = loops[0] if len(loops) == 1 else None
    if not isinstance(loop, ast.For):
        return None
    body = [each for node in loop.body for each in (node.body if isinstance(node, ast.With) else [node])]
    is_left = any(isinstance(node, _LEAVING) for each in loop.body for node in ast.walk(each))
    return loop if any(each is statement for each in body) and not is_left else None


def _only_returned(function: _Function, loop: ast.For, name: str) -> ast.Return | None:
    """Returns the `return` below a loop that reads a variable, if no other line does; one in the loop sets it."""
    nodes = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name]
    reads = [node for node in nodes if isinstance(node.ctx, ast.Load)]
    end = loop.end_lineno or loop.lineno
    inside = [node for node in nodes if loop.lineno <= node.lineno <= end]
    if len(inside) != 1 or any(not isinstance(node.ctx, ast.Load) and node.lineno > end for node in nodes):
        return None
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return) and node.lineno > end]
    if len(returns) != 1 or not reads:
        return None
    own = set(map(id, ast.walk(returns[0])))
    return returns[0] if all(id(node) in own for node in reads) else None


def _is_of_round(loop: ast.For, statement: ast.Assign) -> bool:
    """Returns whether a value is computed from the batch of a round, and from nothing that earlier ones change."""
    targets = _batch_names(loop)
    kept, sets = _kept(loop), dict[str, set[str]]()
    for each in (node for part in loop.body for node in ast.walk(part) if isinstance(node, ast.Assign)):
        read = _read(each.value)
        if read & kept or any(name not in sets and name in _set(loop) for name in read):
            kept |= {name for target in each.targets for name in _stored(target)}
        for target in each.targets:
            sets |= dict.fromkeys(_stored(target), read)
        if each is statement:
            break
    used, waiting = set[str](), [*_read(statement.value)]
    for name in waiting:
        if name not in used:
            used.add(name)
            waiting += sets.get(name, ())
    return not used & kept and len(used & targets) > 0 and len(targets) > (0 if _is_sliced(loop, targets) else 1)


def _batch_names(loop: ast.For) -> set[str]:
    """Returns the variables of a loop, but not the number that `enumerate()` gives."""
    target: ast.expr = loop.target
    counted = isinstance(loop.iter, ast.Call) and last_name(loop.iter.func) == "enumerate"
    if counted and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[1]
    return _stored(target)


def _is_sliced(loop: ast.For, targets: set[str]) -> bool:
    """Returns whether the variable of a loop chooses a part of the data: `x[i : i + 32]`."""
    slices = [node for part in loop.body for node in ast.walk(part) if isinstance(node, ast.Slice)]
    return any(_read(each) & targets for each in slices)


def _kept(loop: ast.For) -> set[str]:
    """Returns the variables that a round changes for the next one: `n += 1`, `found.append(x)` and `found[i] = x`."""
    found = set[str]()
    for node in (node for part in loop.body for node in ast.walk(part)):
        if isinstance(node, ast.AugAssign):
            found |= _roots(node.target)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            given = node.value.args if isinstance(node.value.func, ast.Name) else []
            found |= {name for each in (node.value.func, *given) for name in _roots(each)}
        elif isinstance(node, ast.Assign):
            parts = [each for each in node.targets if not isinstance(each, ast.Name | ast.Tuple)]
            found |= {name for each in parts for name in _roots(each)}
    return found


def _roots(node: ast.expr) -> set[str]:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def _read(node: ast.expr) -> set[str]:
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
    return found - _stored(node)  # those of a comprehension


def _stored(node: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def _set(loop: ast.For) -> set[str]:
    """Returns the variables that the body of a loop sets."""
    nodes = (node for part in loop.body for node in ast.walk(part))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _runs(facts: TraceIndex, call: Call, loop: ast.For) -> int:
    """Returns how often a line ran in one run of its loop, until the next backward pass begins; 0 if it is not known.

    It is known by calls of the function outside the loop, or if the function is called at most once in each epoch.
    """
    site, span = facts.trace.sites[call.site], facts.span(call.site)
    end = next((each.index for each in facts.backwards if each.index > call.index), None)
    calls = facts.calls_between(call.index, facts.calls[-1].index + 1 if end is None else end)
    runs, outside = sum((each.site, each.op) == (call.site, call.op) for each in calls), Counter[int]()
    for each in calls:
        other, at = facts.trace.sites[each.site], facts.span(each.site)
        is_same = (other.function, other.caller) == (site.function, site.caller)
        if is_same and at is not None and span is not None and at.file == span.file:
            if at.line > (loop.end_lineno or loop.lineno):
                outside[each.site] += 1
    if outside:
        return runs // max(outside.values())
    caller = facts.span(site.caller)
    around = None if caller is None else loop_around_line(facts, caller.file, caller.line)
    called = around.iter if isinstance(around, ast.For) else None
    is_epoch = isinstance(called, ast.Call) and last_name(called.func) == "range"
    return runs if caller is not None and (around is None or is_epoch) else 0
