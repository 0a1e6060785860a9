"""Counts how often the statements around an expression have run, by the calls of the trace."""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import is_inside
from tensorlens.analysis.naming.syntax import called_name, plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Span

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
Parents = dict[ast.AST, ast.AST]
_OFTEN = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Lambda


def way_up(parents: Parents, node: ast.AST) -> tuple[ast.stmt | None, list[ast.For | ast.While]]:
    """Returns the statement that a node is in, and the loops around it in its function; no statement if a condition
    may keep it from running."""
    statement: ast.stmt | None = None
    loops: list[ast.For | ast.While] = []
    at, below = parents[node], node
    while not isinstance(at, Scope):
        if isinstance(at, ast.If | ast.IfExp | ast.BoolOp | ast.Try | ast.Lambda | ast.ClassDef | ast.Match):
            return None, []
        if statement is None and isinstance(at, ast.stmt):
            statement = at
        elif isinstance(at, ast.For | ast.While) and below in at.body:
            loops.append(at)
        at, below = parents[at], at
    return statement, loops


def scope_of(parents: Parents, node: ast.AST) -> Scope:
    at = parents[node]
    while not isinstance(at, Scope):
        at = parents[at]
    return at


def runs_once(tree: ast.Module, parents: Parents, scope: Scope, seen: tuple[Scope, ...] = ()) -> bool:
    """Returns whether a function is called at one place only, which is in no loop and in the main part of the file."""
    if isinstance(scope, ast.Module):
        return True
    if scope in seen:
        return False  # two functions that call each other
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and called_name(node) == scope.name]
    if len(calls) != 1 or not isinstance(parents.get(scope), ast.Module):
        return False
    around = _scope_without_loop(parents, calls[0])
    return around is not None and around is not scope and runs_once(tree, parents, around, (*seen, scope))


def makes_one_object(tree: ast.Module, parents: Parents, made_in: Scope) -> bool:
    """Returns whether a function is the `__init__` of a class of which the program makes one object, at one place that
    runs once."""
    holder = parents.get(made_in)
    if not isinstance(holder, ast.ClassDef) or getattr(made_in, "name", "") != "__init__":
        return False
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and called_name(node) == holder.name]
    loaded = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == holder.name]
    around = _scope_without_loop(parents, calls[0]) if len(calls) == len(loaded) == 1 else None
    return around is not None and runs_once(tree, parents, around)


def _scope_without_loop(parents: Parents, node: ast.AST) -> Scope | None:
    """Returns the function, or the file, that a node is in; None if it is in a loop or a lambda of it."""
    at = node
    while not isinstance(at, Scope):
        at = parents[at]
        if isinstance(at, ast.For | ast.While | ast.comprehension | ast.Lambda):
            return None
    return at


def runs_of(
    facts: TraceIndex, file: str, parents: Parents, block: ast.AST, read: Span, seen: tuple[ast.AST, ...] = ()
) -> int:
    """Returns how often the statements around an expression have run at least, by the calls that the trace has of them.

    A function without such a call has run as often as the statements around the only line that calls it; a `with`
    block as often as those around it.
    """
    counts = counts_in(facts, file, block, read, own=True)
    if not counts and isinstance(block, ast.With):
        return runs_of(facts, file, parents, parents[block], read, seen)
    if counts or block in seen or not isinstance(block, ast.FunctionDef):
        return max(map(min, counts), default=0)
    calls = _calls_of(parents, block)
    statement = way_up(parents, calls[0])[0] if len(calls) == 1 and scope_of(parents, calls[0]) is not block else None
    return 0 if statement is None else runs_of(facts, file, parents, parents[statement], read, (*seen, block))


def _calls_of(parents: Parents, function: ast.FunctionDef) -> list[ast.Call]:
    """Returns the calls by the name of a function; of `__call__` and `forward` those of the one object of the class."""
    calls = [node for node in parents if isinstance(node, ast.Call)]
    holder = parents[function]
    if not isinstance(holder, ast.ClassDef) or function.name not in ("__call__", "forward"):
        return [node for node in calls if called_name(node) == function.name]
    made = [parents[node] for node in calls if called_name(node) == holder.name]
    names = [plain_name(each.targets[0]) for each in made if isinstance(each, ast.Assign) and len(each.targets) == 1]
    return [node for node in calls if len(made) == 1 and plain_name(node.func) in names]


def counts_in(facts: TraceIndex, file: str, block: ast.AST, read: Span, own: bool = False) -> list[list[int]]:
    """Returns how often the sites in each statement of a block have run: a module that is called may count twice.

    With `own`, only those of functions of torch that the lines themselves call: a module of torch may hold modules of
    the program, and so come twice in one run of the line. What runs for each item of a
    comprehension is not counted.
    """
    statements = [each for each in ast.iter_child_nodes(block) if isinstance(each, ast.stmt)]
    simple = [each for each in statements if isinstance(each, ast.Expr | ast.Assign | ast.AugAssign | ast.Return)]
    spans = [facts.span_of(each, file) for each in simple]
    last = facts.events[-1].index if facts.events else 0
    parts = [node for each in simple for node in ast.walk(each) if isinstance(node, _OFTEN)]
    left_out = [read, *(facts.span_of(node, file) for node in parts)]
    counts: list[list[int]] = [[] for _ in spans]
    ops = {call.site: call.op for call in facts.calls}
    for site in ops.keys() | {each.site for each in facts.backwards}:
        span = facts.span(site)
        if own and site in ops and not facts.names.syntax.is_direct(facts.trace.sites[site], ops[site]):
            continue
        if span is None or span.file != file or any(is_inside(span, part) for part in left_out):
            continue
        for each, numbers in zip(spans, counts, strict=True):
            if is_inside(span, each):
                numbers.append(facts.times_run(site, last)[1])
    return [numbers for numbers in counts if numbers]
