"""Names evaluations that return the value of the last batch, where a loop computes one for each batch."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from tensorlens.analysis.code_around import block_around, loop_around_line, scope_around, statement_at, upwards
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.statements.set_places import KeptValue, is_plain_set, keepers, kept_value, occurrences
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.records.model import Call
from tensorlens.records.report import Label, StandingOut

_BLOCKS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
_LEAVING = ast.Break | ast.Return | ast.Yield


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds single numbers without a graph that a loop over batches sets anew, and that only statements below read."""
    facts, seen, named = training.facts, set[tuple[str, int]](), set[ast.stmt]()
    for call in facts.calls if training.measured.steps else ():
        span = facts.span(call.site)
        is_number = call.outputs and facts.tensor(call.outputs[0].tensor).shape == ()
        is_number = is_number and not call.within and call.nodes[1] == call.nodes[0]
        if span is None or (span.file, span.line) in seen or not is_number:
            continue
        seen.add((span.file, span.line))
        kept = kept_value(facts, call.site)
        loop = None if kept is None else _loop_of(facts, kept)
        given = None if kept is None or loop is None else _reader(facts, kept, loop, call)
        if kept is None or loop is None or given is None or given in named or not _is_of_round(facts, loop, kept):
            continue
        runs = _runs(facts, call, kept.site, loop)
        if runs < 2:
            continue
        named.add(given)
        yield stands_out(
            f"`{facts.code_of(given, kept.file)}` gives the `{kept.name}` of the last round only: the loop "
            f"sets it anew in each of {runs:,} rounds, and nothing reads it there",
            Label("observed_here", facts.span_of(given, kept.file), "only that of the last round"),
            facts.label("value_made_here", kept.site, "set anew in each round", call.index),
        )


def _loop_of(facts: TraceIndex, kept: KeptValue) -> ast.For | None:
    """Returns the loop that a statement is directly in, if it has no loop in it and goes on to its end."""
    loop = loop_around_line(facts, kept.file, kept.statement.lineno)
    if not isinstance(loop, ast.For):
        return None
    body = [each for node in loop.body for each in (node.body if isinstance(node, ast.With) else [node])]
    inner = [node for each in loop.body for node in ast.walk(each)]
    is_left = any(isinstance(node, ast.For | ast.While | _LEAVING) for node in inner)
    return loop if any(each is kept.statement for each in body) and not is_left else None


def _reader(facts: TraceIndex, kept: KeptValue, loop: ast.For, call: Call) -> ast.stmt | None:
    """Returns the statement below a loop that reads a place, if none in the loop does and none elsewhere can.

    A function gives it by its only `return`; other code in an evaluation may read it in further ways.
    """
    scope = scope_around(facts, kept.file, loop.lineno)
    end = loop.end_lineno or loop.lineno
    places = occurrences(_own_nodes(scope), kept.root)
    inside = [node for node in places if loop.lineno <= node.lineno <= end]
    later = [node for node in places if node.lineno > end]
    is_set = all(is_plain_set(facts, kept.file, node) for node in inside)
    is_once = kept.name != kept.root or len(inside) == 1
    if not later or not is_set or not is_once or not all(isinstance(node.ctx, ast.Load) for node in later):  # type: ignore[attr-defined]
        return None
    before = [node for node in places if node.lineno < loop.lineno and not is_plain_set(facts, kept.file, node)]
    reader = statement_at(facts, kept.file, later[0].lineno)
    if isinstance(reader, ast.Return):
        loops = [node for node in ast.walk(scope) if isinstance(node, ast.For | ast.While | ast.AsyncFor)]
        own = set(map(id, ast.walk(reader)))
        returns = [node for node in ast.walk(scope) if isinstance(node, ast.Return) and node.lineno > end]
        is_only = len(loops) == len(returns) == 1 and not before and all(id(node) in own for node in later)
        return reader if is_only else None
    return reader if _is_evaluation(facts, reader, loop, call) and _are_set_above(facts, kept, before) else None


def _is_evaluation(facts: TraceIndex, reader: ast.stmt | None, loop: ast.For, call: Call) -> bool:
    """Returns whether a loop runs without gradients, and a simple statement below it takes the value as if of all."""
    file = facts.trace.sites[call.site].span.file
    trains = any(isinstance(node, ast.Attribute) and node.attr == "backward" for node in ast.walk(loop))
    if not isinstance(reader, ast.Expr | ast.Assign | ast.AugAssign):
        return False
    return call.mode != "grad" and not trains and "last" not in facts.code_of(reader, file).lower()


def _are_set_above(facts: TraceIndex, kept: KeptValue, reads: list[ast.expr]) -> bool:
    """Returns whether places before a loop read what a statement of their own block has set: another loss, perhaps."""
    for node in reads:
        around = upwards(facts, kept.file, statement_at(facts, kept.file, node.lineno) or kept.statement)
        above = [each for one in around for each in block_around(facts, kept.file, one) if each.lineno < node.lineno]
        targets = [each for one in above if isinstance(one, ast.Assign) for each in one.targets]
        if kept.root not in {ast.unparse(each) for each in targets}:
            return False
    return True


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yields the parts of a function, or of a module, that are not in a function or class in it."""
    waiting = [scope]
    for node in waiting:
        yield node
        waiting += [each for each in ast.iter_child_nodes(node) if not isinstance(each, _BLOCKS)]


def _is_of_round(facts: TraceIndex, loop: ast.For, kept: KeptValue) -> bool:
    """Returns whether a value is computed from the batch of a round, and from nothing that earlier ones change."""
    targets, keeping = _batch_names(loop), keepers(facts)
    if "" in keeping:
        return False
    changed, sets = _kept(loop, kept.root), dict[str, set[str]]()
    for each in (node for part in loop.body for node in ast.walk(part) if isinstance(node, ast.Assign)):
        read = _read(each.value)
        called = {last_name(node.func) for node in ast.walk(each.value) if isinstance(node, ast.Call)}
        if called & keeping or read & changed or any(name not in sets and name in _set(loop) for name in read):
            changed |= {name for target in each.targets for name in _stored(target)}
        for target in each.targets:
            sets |= dict.fromkeys(_stored(target), read)
        if each is kept.statement:
            if called & keeping:
                return False
            break
    used, waiting = set[str](), [*_read(kept.value)]
    for name in waiting:
        if name not in used:
            used.add(name)
            waiting += sets.get(name, ())
    is_batch = len(targets) > 1 or _is_sliced(loop, targets) or _is_taken_apart(loop, targets)
    return not used & changed and len(used & targets) > 0 and is_batch


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


def _is_taken_apart(loop: ast.For, targets: set[str]) -> bool:
    """Returns whether a loop takes several parts of its variable: `x, y = batch`, `batch["x"]` and `batch["y"]`."""
    parts = set[str]()
    for node in (node for part in loop.body for node in ast.walk(part)):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            names = _read(node.value) if isinstance(node.value, ast.Name | ast.GeneratorExp | ast.ListComp) else set()
            parts |= {ast.unparse(each) for each in node.targets[0].elts} if names & targets else set()
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            parts |= {ast.unparse(node)} if _read(node.value) & targets else set()
        elif isinstance(node, ast.Call):
            parts |= {"*", "**"} if any(isinstance(e, ast.Starred) and _read(e) & targets for e in node.args) else set()
    return len(parts) > 1


def _kept(loop: ast.For, root: str) -> set[str]:
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
            parts = [
                each for each in parts if root not in (ast.unparse(each), ast.unparse(getattr(each, "value", each)))
            ]
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


def _runs(facts: TraceIndex, call: Call, at_site: int, loop: ast.For) -> int:
    """Returns how often a line ran in one run of its loop, until the next backward pass begins; 0 if it is not known.

    It is known by calls of the function outside the loop, or if the function is called at most once in each epoch.
    """
    site, span = facts.trace.sites[at_site], facts.span(at_site)
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
    caller = facts.span(site.caller) if site.caller is not None else None
    place = span if at_site == call.site and caller is None else caller
    if place is None:
        return 0
    around = loop_around_line(facts, place.file, loop.lineno if place is span else place.line)
    called = around.iter if isinstance(around, ast.For) else None
    is_epoch = isinstance(called, ast.Call) and last_name(called.func) == "range"
    return runs if around is None or is_epoch else 0
