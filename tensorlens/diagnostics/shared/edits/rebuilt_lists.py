"""Makes the edits that give the tensors of a whole list, or the result of a hook, new values without a write."""

from __future__ import annotations

import ast

from tensorlens.analysis.aliases import replaces_variable
from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.naming.syntax import plain_name
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
    if not replaces_variable(facts, site, container):
        return None
    called = facts.code_of(value, span.file)
    method = value.func.attr
    made = called.replace(f".{method}(", f".{method[:-1]}(", 1)
    target, iterated = (facts.code_of(part, span.file) for part in (loop.target, loop.iter))
    return container, Edit(facts.span_of(loop, span.file), f"{container} = [{made} for {target} in {iterated}]")


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
