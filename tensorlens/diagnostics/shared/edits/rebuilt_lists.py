"""Makes the edits that give the tensors of a whole list, or the result of a hook, new values without a write."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.aliases import replaces_variable
from tensorlens.analysis.code_around import function_around, scope_around
from tensorlens.analysis.naming.assignments import assigned_pairs
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.naming.syntax import last_name, plain_name
from tensorlens.analysis.naming.variables import assigned_in
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.statements import inserted_after
from tensorlens.records.model import Span
from tensorlens.records.report import Edit

_METHODS = frozenset(
    "add_ sub_ mul_ div_ clamp_ copysign_ lerp_ addcmul_ addcdiv_ relu_ sigmoid_ tanh_ detach_".split()
)


def rebuilt_list(facts: TraceIndex, site: int, name: str) -> tuple[str, Edit] | None:
    """Makes a new list in the place of a loop that only writes into each tensor of a list.

    `for w, g in zip(ws, gs): w.sub_(g)` becomes `ws = [w.sub(g) for w, g in zip(ws, gs)]`. None if something else
    refers to the list.
    """
    span = facts.trace.sites[site].span
    loops = [
        node
        for node in ast.walk(facts.tree(span.file))
        if isinstance(node, ast.For) and len(node.body) == 1 and not node.orelse
        if node.body[0].lineno <= span.line <= (node.body[0].end_lineno or 0)
    ]
    if len(loops) != 1 or not isinstance(loops[0].body[0], ast.Expr) or loops[0].lineno == loops[0].body[0].lineno:
        return None
    loop, value = loops[0], loops[0].body[0].value
    container = _container(loop, name)
    if container is None or not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    if plain_name(value.func.value) != name or value.func.attr not in _METHODS:
        return None
    if not replaces_variable(facts, site, container) or not _has_only_fresh_items(facts, site, container):
        return None
    if _is_read_after(facts, loop, span.file) or not _takes_all(facts, loop, site, container):
        return None
    called = facts.code_of(value, span.file)
    method = value.func.attr
    made = called.replace(f".{method}(", f".{method[:-1]}(", 1)
    target, iterated = (facts.code_of(part, span.file) for part in (loop.target, loop.iter))
    return container, Edit(facts.span_of(loop, span.file), f"{container} = [{made} for {target} in {iterated}]")


def _is_read_after(facts: TraceIndex, loop: ast.For, file: str) -> bool:
    """Returns whether code below a loop reads what it loops with: a comprehension has variables of its own."""
    names, inside = assigned_in(loop.target), {id(node) for node in ast.walk(loop)}
    scope = scope_around(facts, file, loop.lineno)
    nodes = (node for node in ast.walk(scope) if isinstance(node, ast.Name) and id(node) not in inside)
    return any(node.id in names and isinstance(node.ctx, ast.Load) for node in nodes)


def _takes_all(facts: TraceIndex, loop: ast.For, site: int, container: str) -> bool:
    """Returns whether a loop goes over all items of a list: `zip` ends with the shortest of its arguments."""
    if not isinstance(loop.iter, ast.Call):
        return True
    written = {write.tensor for call in facts.calls if call.site == site for write in call.writes}
    scope, prefix = place_of(facts.trace.sites[site])[1], f"{container}["
    items = {b.tensor for b in facts.trace.end.bindings if b.scope == scope and b.name.startswith(prefix)}
    others = [each for each in loop.iter.args if plain_name(each) != container]
    is_as_long = bool(others) and all(_is_made_for_each(facts, site, each, container) for each in others)
    return is_as_long or (bool(items) and items <= written)


def _is_made_for_each(facts: TraceIndex, site: int, value: ast.expr, container: str) -> bool:
    """Returns whether a variable has one item for each of a list: it is made by `autograd.grad(loss, weights)`, or by a
    comprehension over the list."""
    made = [given for target, given in _assigned(facts, site) if plain_name(target) == plain_name(value)]
    return isinstance(value, ast.Name) and bool(made) and all(_has_each(each, container) for each in made)


def _assigned(facts: TraceIndex, site: int) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yields what the function at a site assigns to, each with its value."""
    span = facts.trace.sites[site].span
    nodes = ast.walk(scope_around(facts, span.file, span.line))
    return (pair for node in nodes if isinstance(node, ast.stmt) for pair in assigned_pairs(node))


def _has_each(value: ast.expr, container: str) -> bool:
    if isinstance(value, ast.ListComp):
        first = value.generators[0]
        return len(value.generators) == 1 and not first.ifs and plain_name(first.iter) == container
    if not isinstance(value, ast.Call) or last_name(value.func) != "grad":
        return False
    return any(plain_name(each) == container for each in value.args[1:])


def _has_only_fresh_items(facts: TraceIndex, site: int, container: str) -> bool:
    """Returns whether each item of a list is made where it is put into it: no other name refers to it."""
    span = facts.trace.sites[site].span
    if any(facts.tensor(w.tensor).base is not None for call in facts.calls if call.site == site for w in call.writes):
        return False  # a view: what it is a view of has a name
    items: list[ast.expr] = []
    for target, value in _assigned(facts, site):
        if plain_name(target) == container:
            items += getattr(value, "elts", [getattr(value, "elt", value)])
    for node in ast.walk(scope_around(facts, span.file, span.line)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            items += node.args if plain_name(node.func.value) == container else []
    return all(isinstance(item, ast.Call | ast.BinOp | ast.Constant) and not _copies(item) for item in items)


def _copies(item: ast.expr) -> bool:
    """Returns whether an expression takes items of another list: `list(weights)`."""
    return isinstance(item, ast.Call) and getattr(item.func, "id", "") in ("list", "tuple", "sorted", "reversed")


def _container(loop: ast.For, name: str) -> str | None:
    """Returns the variable whose items a loop's variable takes, alone or beside others in `zip`."""
    if isinstance(loop.target, ast.Name) and loop.target.id == name:
        return loop.iter.id if isinstance(loop.iter, ast.Name) else None
    if not (isinstance(loop.target, ast.Tuple) and isinstance(loop.iter, ast.Call)):
        return None
    if not (isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "zip"):
        return None
    for part, given in zip(loop.target.elts, loop.iter.args, strict=False):
        if isinstance(part, ast.Name) and part.id == name and isinstance(given, ast.Name):
            return given.id
    return None


def result_of_hook(facts: TraceIndex, site: int, name: str) -> Edit | None:
    """Returns a variable at the end of a forward hook that returns nothing; None if the function is none."""
    span = facts.trace.sites[site].span
    function = function_around(facts, span.file, span.line)
    if function is None or any(isinstance(node, ast.Return) for node in ast.walk(function)):
        return None
    callbacks = facts.trace.callbacks
    defined = {
        each.id
        for each in callbacks.functions
        if each.defined is not None and _is_at(facts.trace.sites[each.defined].span, span.file, function)
    }
    kinds = {each.kind for each in callbacks.registrations if each.function in defined}
    last = function.body[-1]
    if kinds != {"forward hook"} or not function.args.args or function.args.args[-1].arg != name:
        return None
    return inserted_after(facts, span.file, last.lineno, f"return {name}")


def _is_at(span: Span, file: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return span.file == file and span.line == function.lineno
