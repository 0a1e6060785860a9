"""Advises on a result that was computed once and that every pass goes through: compute it again, or detach it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from tensorlens.analysis.carried import every_carried, names_in_frame
from tensorlens.analysis.code_around import (
    block_around,
    function_around,
    loop_around_line,
    scope_around,
    statement_at,
)
from tensorlens.analysis.contexts import failed_backward
from tensorlens.analysis.lineage import calls_reached_by, graph_leaves
from tensorlens.analysis.naming.places import Scope, place_of
from tensorlens.analysis.naming.variables import assigned_in, owned_by, read_in
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.expressions import argument_with_call, with_call
from tensorlens.diagnostics.shared.edits.scopes import names_in
from tensorlens.diagnostics.shared.edits.statements import inserted_after, inserted_before, without_statement
from tensorlens.diagnostics.shared.edits.writes import owner_of
from tensorlens.diagnostics.shared.wording import fix, source_text
from tensorlens.records.model import Backward, Call, Failure
from tensorlens.records.report import Edit, Fix
from tensorlens.records.source import line_at

_KEPT = re.compile(r"(.+?)(?:\[[^\[\]]+\])?")


def fixes_of_one_result(facts: TraceIndex, failure: Failure, built: Call, freeing: Backward) -> Iterator[Fix]:
    """Suggests to compute the result for each pass, and to detach it if no optimizer between the passes trains what it
    was computed from."""
    again = _again(facts, failure, built, freeing)
    steps = [c for c in facts.calls if c.within and c.writes and freeing.index < c.index < failure.index]
    behind = {leaf for access in built.outputs for leaf in graph_leaves(facts, access.tensor, built.index + 1)}
    moved = {write.tensor for step in steps for write in step.writes}
    cut = _detached(facts, failure, freeing)
    if steps and not moved & behind and cut is not None:
        text = f"the steps between the passes do not train what `{cut[0]}` is computed from: detach it"
        yield fix(text, cut[1])
        yield again
        return
    yield again
    unless = "or `detach()` it: these passes then no longer train what it is computed from"
    if cut is not None:
        yield fix(unless, cut[1])
    elif facts.times_run(built.site, built.index)[1] == 1:
        yield fix(unless, place=facts.span(built.site))
    else:
        yield fix(unless)


def _again(facts: TraceIndex, failure: Failure, built: Call, freeing: Backward) -> Fix:
    """Suggests to compute the result for each pass: without the cache that keeps it, or inside the loop."""
    text, place = source_text(facts, built.site), facts.span(built.site)
    kept = _attribute_of(facts, built)
    if kept:
        title = f"`{kept}` keeps `{text}` from pass to pass: compute it again before each backward"
        edit = _not_kept(facts, built, kept) or _emptied(facts, freeing, kept)
        return fix(title, *(edit,) if edit else (), place=place)
    edits, where = _moved_into_loop(facts, failure, freeing), "in the loop"
    inner, statements = before_closure(facts, failure, freeing)
    if not edits and inner is not None:
        edits, where = (
            _moved(facts, facts.trace.sites[failure.stack[-1]].span.file, statements, inner),
            f"in `{inner.name}`",
        )
        text = ast.unparse(statements[-1].value) if edits else text
    title = f"compute `{text}` again before each backward"
    return fix(f"{title}, {where}" if edits else title, *edits, place=edits[-1].span if edits else place)


def _attribute_of(facts: TraceIndex, built: Call) -> str:
    """Returns the attribute or item that still holds the result of a call when the run ends; "" if none does."""
    results = {access.tensor for access in built.outputs}
    names = (binding.name for binding in facts.trace.end.bindings if binding.tensor in results)
    return next((name for name in names if "." in name), "")


def _not_kept(facts: TraceIndex, built: Call, kept: str) -> Edit | None:
    """Leaves out `self.cached = table`, where the function also returns `table`, and asks whether the cache is
    filled."""
    span = facts.trace.sites[built.site].span
    function, last = function_around(facts, span.file, span.line), _attribute(kept)
    if function is None or not _begins_empty(facts, span.file, last):
        return None
    stores = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.value, ast.Name)
        and _names_attribute(node.targets[0], last)
    ]
    if len(stores) != 1 or not isinstance(stores[0].value, ast.Name):
        return None
    value, end = stores[0].value.id, stores[0].end_lineno or 0
    later = [node for node in ast.walk(function) if getattr(node, "lineno", 0) > end]
    if any(_names_attribute(node, last) for node in later):
        return None
    returns = [node for node in later if isinstance(node, ast.Return) and node.value is not None]
    used = any(isinstance(part, ast.Name) and part.id == value for node in returns for part in ast.walk(node))
    return without_statement(facts, span.file, stores[0].lineno) if used else None


def _emptied(facts: TraceIndex, freeing: Backward, kept: str) -> Edit | None:
    """Empties a cache after the pass that released what it keeps, if the program fills an empty one."""
    span, match = facts.trace.sites[freeing.site].span, _KEPT.fullmatch(kept)
    scope = place_of(facts.trace.sites[freeing.site])[1]
    is_known = any(b.name == kept and b.scope == scope for b in facts.trace.end.bindings)
    files = [file for file in facts.trace.sources if _begins_empty(facts, file, _attribute(kept))]
    if match is None or not is_known or not files:
        return None
    code = f"{kept} = None" if match[1] == kept else f"{match[1]}.clear()"
    return inserted_after(facts, span.file, span.line, code)


def _attribute(kept: str) -> str:
    match = _KEPT.fullmatch(kept)
    return match[1].rpartition(".")[2] if match else ""


def _names_attribute(node: ast.AST, last: str) -> bool:
    inner = node.value if isinstance(node, ast.Subscript) else node
    return isinstance(inner, ast.Attribute) and inner.attr == last


def _begins_empty(facts: TraceIndex, file: str, last: str) -> bool:
    """Returns whether a file sets an attribute to None or `{}` at first, and later asks whether it is."""
    empty = asked = False
    for node in ast.walk(facts.tree(file)):
        if isinstance(node, ast.Assign) and any(_names_attribute(t, last) for t in node.targets):
            value = node.value
            empty |= isinstance(value, ast.Constant) and value.value is None
            empty |= isinstance(value, ast.Dict) and not value.keys
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot | ast.In | ast.NotIn):
            asked |= any(_names_attribute(each, last) for each in (node.left, *node.comparators))
    return empty and asked


def _moved_into_loop(facts: TraceIndex, failure: Failure, freeing: Backward) -> tuple[Edit, ...]:
    """Moves the statements that computed the result before a loop to the beginning of the loop's body."""
    failed = failed_backward(facts, failure)
    loops = ((site, facts.trace.sites[site].span) for site in reversed(failure.stack))
    around = ((site, span, loop) for site, span in loops if (loop := loop_around_line(facts, span.file, span.line)))
    site, span, loop = next(around, (None, None, None))
    if failed is None or site is None or span is None or loop is None or freeing.site != failure.site:
        return ()
    function, block = facts.scope(site), block_around(facts, span.file, loop)
    statements: list[ast.stmt] = []
    for index in sorted(calls_reached_by(facts, failed).calls):
        call = facts.call(index)
        if call is None or call.index > freeing.index:
            continue
        line = _line_in(facts, call, function)
        own = None if line is None else statement_at(facts, span.file, line)
        if line is not None and loop.lineno <= line <= (loop.end_lineno or line):
            continue
        if own is None or not isinstance(own, ast.Assign) or not any(own is each for each in block):
            return ()
        statements += [] if own in statements else [own]
    if _make_leaf(facts, failed, statements, function) or _changes(loop, statements):
        return ()
    return _moved(facts, span.file, statements, loop)


def _changes(loop: ast.For | ast.While, statements: Sequence[ast.stmt]) -> bool:
    """Returns whether a loop gives a name of the statements another value: in its next round they would use that."""
    names = set[str]().union(*(names_in(each, context) for each in statements for context in (ast.Load, ast.Store)))
    written = (node for node in ast.walk(loop) if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store))
    return not names.isdisjoint(names_in(loop, ast.Store) | {owner_of(node) or "" for node in written})


def _make_leaf(facts: TraceIndex, failed: Backward, statements: Sequence[ast.stmt], function: Scope) -> bool:
    """Returns whether one of the statements also makes what is trained."""
    lines = {each.lineno for each in statements}
    leaves = (leaf for root in failed.roots for leaf in graph_leaves(facts, root.tensor, failed.index))
    born = (first for leaf in leaves if (first := facts.first_use(leaf)) is not None)
    return any(_line_in(facts, call, function) in lines for call in born)


def before_closure(
    facts: TraceIndex, failure: Failure, freeing: Backward
) -> tuple[ast.FunctionDef | None, list[ast.Assign]]:
    """Finds the function in which both passes ran, and the statements of the function around it that computed what both
    use: `features = net(x)` above `def closure():`."""
    failed = failed_backward(facts, failure)
    span = None if not failure.stack else facts.trace.sites[failure.stack[-1]].span
    inner = None if span is None else function_around(facts, span.file, span.line)
    outer = None if span is None or inner is None else function_around(facts, span.file, inner.lineno - 1)
    if failed is None or freeing.site != failure.site or not isinstance(inner, ast.FunctionDef):
        return None, []
    if span is None or outer is None or not any(inner is each for each in outer.body):
        return None, []
    frames = (facts.scope(site) for site in failure.stack[:-1])
    frame = next((each for each in frames if each[0] == span.file and each[1].rpartition(".")[2] == outer.name), None)
    statements: list[ast.Assign] = []
    if frame is None:
        return None, []
    for index in sorted(calls_reached_by(facts, failed).calls):
        call = facts.call(index)
        if call is None or call.index > freeing.index:
            continue
        line = _line_in(facts, call, frame)
        own = None if line is None else statement_at(facts, span.file, line)
        if not isinstance(own, ast.Assign) or not any(own is each for each in outer.body) or own.lineno > inner.lineno:
            return None, []
        statements += [] if own in statements else [own]
    if _make_leaf(facts, failed, statements, frame):
        return None, []
    return (inner, statements) if statements and _only_read_in(outer, inner, statements) else (None, [])


def _only_read_in(outer: ast.AST, inner: ast.FunctionDef, statements: list[ast.Assign]) -> bool:
    """Returns whether an inner function alone uses what the statements compute, and has all that they read."""
    inside, own = {id(n) for n in ast.walk(inner)}, {id(n) for each in statements for n in ast.walk(each)}
    given = assigned_in(*statements)
    rest = (n for n in ast.walk(outer) if isinstance(n, ast.Name) and id(n) not in inside | own)
    return owned_by(inner).isdisjoint(read_in(*statements) | given) and given.isdisjoint(n.id for n in rest)


def _moved(
    facts: TraceIndex, file: str, statements: Sequence[ast.stmt], loop: ast.For | ast.While | ast.FunctionDef
) -> tuple[Edit, ...]:
    text = facts.trace.sources.get(file, "")
    given = assigned_in(*statements)
    first = statements[0].lineno if statements else loop.lineno
    rest = [s for s in block_around(facts, file, loop) if first < s.lineno < loop.lineno and s not in statements]
    defined = [each for each in rest if isinstance(each, ast.FunctionDef)]
    between = [part for each in rest if each not in defined for part in ast.walk(each)]
    if any(isinstance(part, ast.Call) and isinstance(part.func, ast.Name) for part in between):
        between += [part for each in defined for part in ast.walk(each)]  # it may run before the loop
    if any(isinstance(part, ast.Name) and part.id in given for part in between):
        return ()
    if not statements or any(each.lineno != each.end_lineno for each in statements):
        return ()
    code = "\n".join(line_at(text, each.lineno).strip() for each in statements)
    added = inserted_before(facts, file, loop.body[0].lineno, code)
    removed = [without_statement(facts, file, each.lineno) for each in statements]
    if added is None or any(each is None for each in removed):
        return ()
    return (*(each for each in removed if each is not None), added)


def _line_in(facts: TraceIndex, call: Call, function: Scope) -> int | None:
    """Returns the line of a function that led to a call."""
    span = facts.span(facts.site_in(function, call.site))
    return None if span is None else span.line


def _detached(facts: TraceIndex, failure: Failure, freeing: Backward) -> tuple[str, Edit] | None:
    """Detaches the only result that is made before the loop around the passes: where it gets its name, if only the
    loop reads it, else where the loop passes it on. Returns its name and the edit."""
    failed = failed_backward(facts, failure)
    for site in reversed(failure.stack if failed is not None else ()):
        span = facts.trace.sites[site].span
        loop = loop_around_line(facts, span.file, span.line)
        if loop is None:
            continue
        found = every_carried(facts, failed, freeing) if failed is not None else []
        names = {name for each in found for name, old in names_in_frame(facts, each, site) if old}
        names = {name for name in names if name.isidentifier()}
        if len(names) != 1 or len({each.tensor for each in found}) != 1:
            return None
        name = names.pop()
        edit = _at_assignment(facts, span.file, name, loop) or _at_argument(facts, span.file, name, loop)
        return None if edit is None else (name, edit)
    return None


def _at_assignment(facts: TraceIndex, file: str, name: str, loop: ast.For | ast.While) -> Edit | None:
    scope = scope_around(facts, file, loop.lineno)
    uses = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == name]
    outside = [node for node in uses if not loop.lineno <= node.lineno <= (loop.end_lineno or 0)]
    if len(outside) != 1 or not isinstance(outside[0].ctx, ast.Store):
        return None
    statement = statement_at(facts, file, outside[0].lineno)
    if not isinstance(statement, ast.Assign) or statement.targets != [outside[0]]:
        return None
    return with_call(facts, facts.span_of(statement.value, file), "detach")


def _at_argument(facts: TraceIndex, file: str, name: str, loop: ast.For | ast.While) -> Edit | None:
    uses = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == name]
    if len(uses) != 1 or not isinstance(uses[0].ctx, ast.Load):
        return None
    return argument_with_call(facts, file, uses[0].lineno, name, "detach")
