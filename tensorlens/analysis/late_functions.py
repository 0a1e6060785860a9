"""Finds functions that a loop makes and that learning-rate schedulers call when the loop has ended."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from tensorlens.analysis.code_around import is_inside, scope_around, statement_around
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.written_numbers import only_value

SCHEDULES = frozenset(("LambdaLR", "MultiplicativeLR"))
Made = ast.Lambda | ast.FunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp,
           ast.GeneratorExp)  # fmt: skip
Loop = ast.For | ast.ListComp | ast.GeneratorExp | ast.DictComp


def runs_inside(facts: TraceIndex, file: str, loop: ast.For | ast.While) -> bool:
    """Returns whether the loop itself, or a function that it calls, runs backward passes: hooks then run while it goes
    on."""
    around = facts.span_of(loop, file)
    sites = {site for each in facts.backwards for site in facts.call_chain(each.site)}
    return any((span := facts.span(site)) is not None and is_inside(span, around) for site in sites)


def set_later(facts: TraceIndex, file: str, loop: Loop) -> set[str]:
    """Returns the variables of a loop that get other values when it has ended, which its functions then read: in a
    later line, in the rounds of a training loop, or in another function."""
    if not isinstance(loop, ast.For):
        return set()  # the variables of a comprehension are its own
    shared = (node for node in ast.walk(facts.tree(file)) if isinstance(node, ast.Global | ast.Nonlocal))
    found = {name for node in shared for name in node.names}
    waiting: list[tuple[ast.AST, bool]] = [(each, False) for each in scope_around(facts, file, loop.lineno).body]
    while waiting:
        node, is_repeated = waiting.pop()  # in the rounds of a training loop
        if isinstance(node, ast.For | ast.While) and not _is_part(loop, node):
            is_repeated = runs_inside(facts, file, node)
            if not is_repeated:
                continue  # it leaves one value for all functions, too
        if node is loop or isinstance(node, _SCOPES):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            is_again = is_repeated and _is_repeated_with(facts, file, loop, node)
            found |= {node.id} if node.lineno > (loop.end_lineno or loop.lineno) or is_again else set()
        waiting += ((each, is_repeated) for each in ast.iter_child_nodes(node))
    return found


def _is_repeated_with(facts: TraceIndex, file: str, loop: ast.For, node: ast.Name) -> bool:
    """Returns whether one more loop is around a loop and a variable."""
    scope = scope_around(facts, file, loop.lineno)
    loops = (each for each in ast.walk(scope) if isinstance(each, ast.For | ast.While) and each is not loop)
    return any(_is_part(loop, each) and _is_part(node, each) for each in loops)


def scheduled_functions(facts: TraceIndex, file: str, loop: Loop) -> Iterator[Made]:
    """Yields the functions that a loop makes, in a list or a dict or for a scheduler of each round, and that schedulers
    call in their steps."""
    calls = [
        (node, each)
        for each, tree in facts.trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and last_name(node.func) in SCHEDULES
    ]
    if not calls or isinstance(loop, ast.GeneratorExp) or _makes_one(facts, loop):
        return
    schedules = [s for s in facts.trace.inspection.schedules if s.steps]
    made = Counter(facts.span(site) for site in {(s.site, s.schedule): s.site for s in schedules}.values())
    for call, place in calls:
        taken = [*call.args[1:], *(each.value for each in call.keywords if each.arg != "optimizer")]
        if made[facts.span_of(call, place)] > 1 and _is_part(call, loop):
            yield from (each for each in _functions(loop) if _gives(loop, each, taken))
    given = [
        each
        for call, place in calls
        if made[facts.span_of(call, place)] and not _is_part(call, loop)
        for each in [*call.args[1:], *(one.value for one in call.keywords if one.arg != "optimizer")]
    ]
    names = _spread(facts, _holders(facts, file, loop)) if given else set()
    if any(_mentions(each, names) or (not isinstance(loop, ast.For) and _is_part(loop, each)) for each in given):
        yield from _kept(loop)


def _makes_one(facts: TraceIndex, loop: Loop) -> bool:
    """Returns whether a loop goes through a list or another literal of one item."""
    iterables = [loop.iter] if isinstance(loop, ast.For) else [each.iter for each in loop.generators]
    for each in iterables:
        inner = each.func.value if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) else each
        value = only_value(facts, last_name(inner)) if last_name(inner) else inner
        items = value.keys if isinstance(value, ast.Dict) else getattr(value, "elts", (None, None))
        if len(items) > 1:
            return False
    return True


def _functions(loop: Loop) -> Iterator[Made]:
    for node in ast.walk(loop):
        if isinstance(node, ast.Lambda) or (
            isinstance(node, ast.FunctionDef) and isinstance(loop, ast.For) and node in loop.body
        ):
            yield node


def _gives(loop: Loop, made: Made, taken: list[ast.expr]) -> bool:
    return any(each is made or (isinstance(made, ast.FunctionDef) and last_name(each) == made.name) for each in taken)


def _kept(loop: Loop) -> Iterator[Made]:
    """Yields the functions that each round adds to a list or a dict."""
    if isinstance(loop, ast.For):
        values = [value for _, value in _additions(loop)]
        yield from (each for each in _functions(loop) if _gives(loop, each, values))
        return
    for part in [loop.value] if isinstance(loop, ast.DictComp) else [loop.elt]:
        parts = part.elts if isinstance(part, ast.Tuple | ast.List) else [part]
        parts = part.values if isinstance(part, ast.Dict) else parts
        yield from (each for each in parts if isinstance(each, ast.Lambda))


def _additions(loop: ast.For) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yields what the rounds of a loop add to, and what they add."""
    for node in (part for statement in loop.body for part in ast.walk(statement)):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            yield node.targets[0].value, node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            yield from ((node.func.value, each) for each in node.args)


def _holders(facts: TraceIndex, file: str, loop: Loop) -> set[str]:
    """Returns the names that hold the list or the dict of functions that a loop makes."""
    if isinstance(loop, ast.For):
        return {last_name(held) for held, _ in _additions(loop)} - {""}
    return set(_takers(facts, file, statement_around(facts, facts.span_of(loop, file))))


def _spread(facts: TraceIndex, names: set[str]) -> set[str]:
    """Returns some names and those that get what these hold, also functions that return it."""
    statements = [
        (file, node)
        for file, tree in facts.trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.Return) and node.value is not None
    ]
    size = -1
    while names and size != len(names):
        size = len(names)
        for file, node in statements:
            if node.value is not None and _mentions(node.value, names):
                names = names | set(_takers(facts, file, node))
    return names


def _takers(facts: TraceIndex, file: str, statement: ast.stmt | None) -> Iterator[str]:
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (name for each in targets if (name := last_name(each)))
    elif isinstance(statement, ast.Return):
        functions = [
            node for node in ast.walk(facts.tree(file))
            if isinstance(node, ast.FunctionDef) and any(each is statement for each in ast.walk(node))
        ]  # fmt: skip
        yield from (each.name for each in functions[-1:])  # the innermost


def _mentions(node: ast.expr, names: set[str]) -> bool:
    return any(last_name(each) in names for each in ast.walk(node))


def _is_part(inner: ast.AST, outer: ast.AST) -> bool:
    return any(each is inner for each in ast.walk(outer))
