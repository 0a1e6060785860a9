"""Finds lists that grow from one backward pass to the next, and clears them where the pass has used them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.carried import Carried
from tensorlens.analysis.code_around import (
    block_around,
    function_around,
    loop_around_line,
    scope_around,
    statement_at,
)
from tensorlens.analysis.naming.assignments import assigned_pairs
from tensorlens.analysis.naming.places import place_of
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.statements import inserted_after, inserted_before
from tensorlens.diagnostics.shared.wording import fix
from tensorlens.records.model import Span
from tensorlens.records.report import Edit, Fix

_GROWING = ("append", "extend", "insert", "appendleft")
_SHRINKING = ("clear", "pop", "popleft", "remove")


def is_growing(facts: TraceIndex, name: str, span: Span) -> bool:
    """Returns whether the program adds to a list `losses` or `agent.losses` and never clears or replaces it.

    An attribute counts if no code resets an attribute of that name. A list that begins empty in the loop around `span`,
    or in a run of its function, does not grow from one pass to the next.
    """
    last = _last(name)
    uses = [(_use(node, last), node) for _, tree in facts.trees() for node in ast.walk(tree)]
    kinds = [kind for kind, _ in uses]
    if "grows" not in kinds or "shrinks" in kinds or kinds.count("starts") > 1:
        return False
    loop = loop_around_line(facts, span.file, span.line)
    again = loop or function_around(facts, span.file, span.line)
    inside = set[int]() if again is None else {id(node) for node in ast.walk(again)}
    return not any(kind == "starts" and id(node) in inside for kind, node in uses)


def _use(node: ast.AST, last: str) -> str:
    """Says what a node does to a list: it "grows", "shrinks" or "starts" it; "" for anything else."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_named(node.func.value, last):
        return "grows" if node.func.attr in _GROWING else "shrinks" if node.func.attr in _SHRINKING else ""
    if isinstance(node, ast.AugAssign) and _is_named(node.target, last):
        return "grows" if isinstance(node.op, ast.Add) else ""
    if isinstance(node, ast.Delete) and any(_is_named(_whole(target), last) for target in node.targets):
        return "shrinks"
    for target, value in assigned_pairs(node) if isinstance(node, ast.Assign) else ():
        for each in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(each, ast.Subscript) and _is_named(each.value, last):
                return "shrinks"
            if _is_named(each, last):
                return "starts" if isinstance(value, ast.List) and not value.elts else "shrinks"
    return ""


def cleared(facts: TraceIndex, site: int, names: list[str], found: list[Carried], stack: tuple[int, ...] = ()) -> Fix:
    """Clears lists below the line at `site`, and the lists of plain values that grow with them.

    They are cleared behind the last line of the block that reads one of them. If a `return` or another function reads
    them, it is at the beginning of the loop around the pass, whose line is in the `stack` of the failure.
    """
    span = facts.trace.sites[site].span
    every = [*names, *_growing_with(facts, span, names, found)]
    shown = ", ".join(f"`{name}`" for name in every[:-1]) + (" and " if every[1:] else "") + f"`{every[-1]}`"
    place = None if _is_read_elsewhere(facts, span, every) else _behind(facts, span, every)
    code = "\n".join(f"{name}.clear()" for name in every)
    edit = None if place is None else inserted_after(facts, span.file, place, code)
    edit = edit or _at_the_beginning(facts, every, stack)
    when = f"clear {shown} after this pass" if place is not None or edit is None else f"clear {shown} before each round"
    number = len({each.tensor for each in found})
    what = f"{number} {'entry of' if number == 1 else 'entries of'} `{names[0]}` {'is' if number == 1 else 'are'}"
    text = f"{what} from an earlier pass: {when}"
    return fix(text, *(edit,) if edit else (), place=span)


def _at_the_beginning(facts: TraceIndex, names: list[str], stack: tuple[int, ...]) -> Edit | None:
    """Clears lists at the beginning of the loop around the pass. The pass must be part of each of its rounds."""
    for site in reversed(stack):
        place, scope = facts.trace.sites[site].span, place_of(facts.trace.sites[site])[1]
        loop, own = loop_around_line(facts, place.file, place.line), statement_at(facts, place.file, place.line)
        body = loop.body if loop is not None else scope_around(facts, place.file, place.line).body
        if own is None or not any(own is each for each in body):
            return None  # not each round or call has a pass
        if loop is None:
            continue
        bindings = [b.name.partition("[")[0] for b in facts.trace.end.bindings if b.scope == scope]
        known = next((b for b in bindings if "." in b and _last(b) == _last(names[0])), None)
        owner = known.rpartition(".")[0] if known else ""
        if not owner or any("." not in name for name in names):
            return None
        code = "\n".join(f"{owner}.{_last(name)}.clear()" for name in names)
        return inserted_before(facts, place.file, loop.body[0].lineno, code)
    return None


def _growing_with(facts: TraceIndex, span: Span, names: list[str], found: list[Carried]) -> Iterator[str]:
    """Yields other lists that grow, and from which the function that uses `names` computes its result.

    Their entries belong to those of `names`.
    """
    here = function_around(facts, span.file, span.line)
    for use in {each.use.site for each in found}:
        sites = facts.call_chain(use)
        for number in sites:
            site = facts.trace.sites[number]
            if place_of(site)[0] != span.file or function_around(facts, site.span.file, site.span.line) is not here:
                continue
            for name in _feeding(facts, site.span):
                if name not in names and is_growing(facts, name, span):
                    yield name
            return


def _feeding(facts: TraceIndex, span: Span) -> list[str]:
    """Lists the names from which the statement at a place computes, directly or through others, in its function."""
    scope = scope_around(facts, span.file, span.line)
    statements = [node for node in ast.walk(scope) if isinstance(node, ast.stmt)]
    first = statement_at(facts, span.file, span.line)
    needed, waiting = list[str](), _read(first) if first is not None else []
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed.append(name)
        for statement in statements:
            if name in _given(statement):
                waiting += _read(statement)
    return needed


def _given(statement: ast.stmt) -> set[str]:
    """Returns the names that a statement gives a value or adds to."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = [
            part for each in statement.targets for part in (each.elts if isinstance(each, ast.Tuple) else [each])
        ]
    elif isinstance(statement, ast.AugAssign | ast.AnnAssign | ast.For):
        targets = statement.target.elts if isinstance(statement.target, ast.Tuple) else [statement.target]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        targets = [function.value] if isinstance(function, ast.Attribute) and function.attr in _GROWING else []
    return {ast.unparse(each) for each in targets}


def _read(statement: ast.stmt) -> list[str]:
    """Returns the names and attributes that a statement reads; of a loop, those of its head."""
    inner: list[ast.AST] = [statement.iter] if isinstance(statement, ast.For) else [statement]
    if isinstance(statement, ast.If | ast.While | ast.With | ast.FunctionDef | ast.ClassDef | ast.Try):
        inner = []
    parts = (part for each in inner for part in ast.walk(each))
    return [
        ast.unparse(part)
        for part in parts
        if isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, ast.Load)
    ]


def _behind(facts: TraceIndex, span: Span, names: list[str]) -> int | None:
    """Returns the line of the last statement of the block at a place that reads one of the lists; None if that is a
    `return`, or if the function also reads one elsewhere behind it."""
    own = statement_at(facts, span.file, span.line)
    block = [] if own is None else block_around(facts, span.file, own)
    at = next((i for i, each in enumerate(block) if each is own), None)
    if own is None or at is None:
        return None
    last = own
    for statement in block[at + 1 :]:
        if any(_is_named(node, _last(name)) for node in ast.walk(statement) for name in names):
            last = statement
    if isinstance(last, ast.Return) or any(isinstance(node, ast.Break | ast.Continue) for node in ast.walk(last)):
        return None
    scope, end = scope_around(facts, span.file, span.line), last.end_lineno or last.lineno
    inside = {id(node) for statement in block for node in ast.walk(statement)}
    behind = (n for n in ast.walk(scope) if getattr(n, "lineno", 0) > end and id(n) not in inside)
    if any(_is_named(node, _last(name)) for node in behind for name in names):
        return None
    return last.lineno


def _is_read_elsewhere(facts: TraceIndex, span: Span, names: list[str]) -> bool:
    """Returns whether another function reads one of the lists, other than to add to it."""
    own = scope_around(facts, span.file, span.line)
    for _, tree in facts.trees():
        skip = {id(node) for node in ast.walk(own)}
        if isinstance(own, ast.Module):
            functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
            skip -= {id(node) for function in functions for node in ast.walk(function)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _use(node, _last(getattr(node.func, "value", None))) == "grows":
                skip.add(id(node.func.value))  # type: ignore[attr-defined]
        for node in ast.walk(tree):
            if id(node) not in skip and isinstance(getattr(node, "ctx", None), ast.Load):
                if any(_is_named(node, _last(name)) for name in names):
                    return True
    return False


def _last(name: str | ast.AST | None) -> str:
    """Returns the last part of a name: `losses` of `agent.losses`."""
    return name.rpartition(".")[2] if isinstance(name, str) else last_name(name)


def _is_named(node: ast.AST, last: str) -> bool:
    return bool(last) and isinstance(node, ast.Name | ast.Attribute) and _last(node) == last


def _whole(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Subscript) else node
