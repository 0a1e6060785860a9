"""Finds flags of parameters that a program sets below a condition on their names which holds for none of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import function_around, parent_of, statement_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.known_runs import has_run
from tensorlens.analysis.training.written_words import is_written
from tensorlens.records.model import Span

_FLAG = "requires_grad"
_PARAMETERS = ("parameters", "named_parameters", "state_dict")
_MODULES = ("named_children", "named_modules")
_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp


@dataclass(frozen=True, slots=True)
class UnmetChoice:
    """A statement or call that sets a flag, and the condition that keeps it from running."""

    sets: Span
    test: Span
    skips: bool  # the condition holds for each part, and the loop goes on with the next one
    of_modules: bool


@dataclass(frozen=True, slots=True)
class _Choice:
    sets: ast.expr | ast.stmt
    test: ast.expr
    target: ast.expr  # the variables that the condition asks for
    parts: ast.expr  # over which the loop runs
    skips: bool = False


def unmet_choices(facts: TraceIndex) -> Iterator[UnmetChoice]:
    """Yields these conditions, if the trace shows that the loop has run, and that nothing has set the flag there."""
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            for each in _choices(facts, file, node):
                span = facts.span_of(each.sets, file)
                statement = statement_around(facts, span)
                whole = node if isinstance(node, ast.For) else statement
                if whole is None or not _asks_for_name(facts, file, each) or not has_run(facts, file, whole):
                    continue
                if not any(_is_on(site.span, span) for site in facts.trace.sites):
                    of_modules = _is_over(facts, file, each.parts, _MODULES)
                    yield UnmetChoice(span, facts.span_of(each.test, file), each.skips, of_modules)


def _choices(facts: TraceIndex, file: str, node: ast.AST) -> Iterator[_Choice]:
    """Yields what a loop, or a statement that is a comprehension, sets below a condition."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.ListComp | ast.SetComp):
        for test in _tests(facts, file, node.value):
            if _sets_flag(node.value.elt):
                yield _Choice(node.value.elt, *test)
    if not isinstance(node, ast.For):
        return
    chosen = _chosen(facts, file, node.iter)
    for sets in node.body if chosen is not None else ():
        if _sets_flag(sets):
            yield from (_Choice(sets, *test) for test in _tests(facts, file, chosen))
    if _is_over(facts, file, node.iter, _PARAMETERS + _MODULES):
        yield from _below(node)


def _chosen(facts: TraceIndex, file: str, iterated: ast.expr) -> ast.expr | None:
    """Returns the comprehension over which a loop runs, also by the name that a statement in front of it gives it."""
    if not isinstance(iterated, ast.Name):
        return iterated
    scope = function_around(facts, file, iterated.lineno) or facts.tree(file)
    stored = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == iterated.id and _is_stored(n)]
    made = parent_of(facts, file, stored[0]) if len(stored) == 1 else None
    return made.value if isinstance(made, ast.Assign) and len(made.targets) == 1 else None


def _is_stored(name: ast.Name) -> bool:
    return not isinstance(name.ctx, ast.Load)


def _tests(facts: TraceIndex, file: str, node: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr, ast.expr]]:
    """Yields the condition of a comprehension over parameters, its variables, and what it runs over."""
    if isinstance(node, _Comprehension) and len(node.generators) == 1:
        part = node.generators[0]
        if len(part.ifs) == 1 and _is_over(facts, file, part.iter, _PARAMETERS + _MODULES):
            yield part.ifs[0], part.target, part.iter


def _below(loop: ast.For) -> Iterator[_Choice]:
    """Yields what an `if` of a loop chooses, and what comes below `if ...: continue`."""
    first = loop.body[0]
    if isinstance(first, ast.If) and [type(each) for each in first.body] == [ast.Continue] and not first.orelse:
        for sets in filter(_sets_flag, loop.body[1:]) if not _leaves(*loop.body[1:]) else ():
            yield _Choice(sets, first.test, loop.target, loop.iter, skips=True)
    for choice in loop.body if not _leaves(loop) else ():
        if isinstance(choice, ast.If) and not choice.orelse:
            inner = [each.body for each in choice.body if isinstance(each, ast.For)]
            for sets in filter(_sets_flag, [*choice.body, *(each for body in inner for each in body)]):
                yield _Choice(sets, choice.test, loop.target, loop.iter)


def _leaves(*nodes: ast.stmt) -> bool:
    walked = (each for node in nodes for each in ast.walk(node))
    return any(isinstance(each, ast.Break | ast.Continue | ast.Return | ast.Raise) for each in walked)


def _sets_flag(node: ast.AST) -> bool:
    """Returns whether a node is `p.requires_grad = ...`, or `p.requires_grad_(...)`."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
        return node.targets[0].attr == _FLAG
    call = node.value if isinstance(node, ast.Expr) else node
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == f"{_FLAG}_"


def _is_over(facts: TraceIndex, file: str, node: ast.expr, methods: tuple[str, ...]) -> bool:
    source = facts.code_of(node, file)
    return any(f".{method}(" in source for method in methods)


def _asks_for_name(facts: TraceIndex, file: str, choice: _Choice) -> bool:
    """Returns whether a condition asks for the name of a part in all of its parts, and for words that are written.

    An option may be an empty word or list: then no part is meant.
    """
    variables = {node.id for node in ast.walk(choice.target) if isinstance(node, ast.Name)}
    test = choice.test
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    asked = [{node.id for node in ast.walk(part) if isinstance(node, ast.Name)} for part in parts]
    read = (node for node in ast.walk(test) if isinstance(node, ast.Attribute) and ast.unparse(node.value) in variables)
    if len(variables) < 2 or not all(hasattr(str, each.attr) for each in read):
        return False  # `p.grad is None` asks for more than the name
    own = {node.id for node in ast.walk(test) if isinstance(node, ast.Name) and _is_stored(node)}
    called = {id(node.func) for node in ast.walk(test) if isinstance(node, ast.Call)}
    inner = {id(node.value) for node in ast.walk(test) if isinstance(node, ast.Attribute)}
    words = (
        node
        for node in ast.walk(test)
        if isinstance(node, ast.Name | ast.Attribute)
        and id(node) not in called | inner
        and (isinstance(node, ast.Attribute) or node.id not in variables | own)
    )
    return all(names & variables for names in asked) and all(is_written(facts, file, word) for word in words)


def _is_on(one: Span | None, other: Span) -> bool:
    return one is not None and one.file == other.file and other.line <= one.line <= other.end_line
