"""Finds flags of parameters that a program sets below a condition on their names which holds for none of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from tensorlens.analysis.code_around import function_around, parent_of, statement_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.given_arguments import arguments_of
from tensorlens.analysis.training.statements.known_runs import has_run
from tensorlens.analysis.training.statements.written_words import written_words
from tensorlens.records.model import Span

_FLAG = "requires_grad"
_PARAMETERS = ("parameters", "named_parameters", "state_dict")
_MODULES = ("named_children", "named_modules")
_NEAR = 0.75  # of `get_close_matches()`: one letter of four or five differs
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


def unmet_choices(facts: TraceIndex, names: Iterable[str]) -> Iterator[UnmetChoice]:
    """Yields these conditions, if the trace shows that the loop has run, and that nothing has set the flag there.

    In a helper that is given the network, one of the words is like a part of the `names` of parameters: it may be
    called for any network, also for one that has no such part.
    """
    known = {part for name in names for part in _parts(name)}
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            for each in _choices(facts, file, node):
                span = facts.span_of(each.sets, file)
                statement = statement_around(facts, span)
                whole = node if isinstance(node, ast.For) else statement
                words = _words(facts, file, each)
                is_meant = _are_near(words, known) or (bool(words) and not _is_given(facts, file, each.parts))
                if whole is None or not is_meant or not has_run(facts, file, whole):
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


def _words(facts: TraceIndex, file: str, choice: _Choice) -> frozenset[str]:
    """Returns the words that a condition asks for, if all of its parts ask for the name of a part.

    An option may be an empty word or list: then no part is meant.
    """
    variables = {node.id for node in ast.walk(choice.target) if isinstance(node, ast.Name)}
    test = choice.test
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    asked = [{node.id for node in ast.walk(part) if isinstance(node, ast.Name)} for part in parts]
    read = (node for node in ast.walk(test) if isinstance(node, ast.Attribute) and ast.unparse(node.value) in variables)
    if len(variables) < 2 or not all(hasattr(str, each.attr) for each in read):
        return frozenset()  # `p.grad is None` asks for more than the name
    if not all(names & variables for names in asked) or (choice.skips and not _is_negated(test)):
        return frozenset()  # all parts have the words: then nothing is to be set
    found = [written_words(facts, file, each) for each in _given_words(test, variables)]
    return frozenset().union(*(each for each in found if each)) if None not in found else frozenset()


def _given_words(test: ast.expr, variables: set[str]) -> Iterator[ast.expr]:
    """Yields the constants, variables and attributes of a condition that are not of the part itself."""
    own = {node.id for node in ast.walk(test) if isinstance(node, ast.Name) and _is_stored(node)}
    called = {id(node.func) for node in ast.walk(test) if isinstance(node, ast.Call)}
    inner = {id(node.value) for node in ast.walk(test) if isinstance(node, ast.Attribute)}
    for node in ast.walk(test):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node
        elif isinstance(node, ast.Name | ast.Attribute) and id(node) not in called | inner:
            if isinstance(node, ast.Attribute) or node.id not in variables | own:
                yield node


def _is_negated(test: ast.expr) -> bool:
    is_not_in = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn | ast.NotEq)
    return is_not_in or (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))


def _is_given(facts: TraceIndex, file: str, parts: ast.expr) -> bool:
    """Returns whether a function gets what its loop runs over as an argument."""
    function = function_around(facts, file, parts.lineno)
    given = set(arguments_of(function)) - {"self"} if function is not None else set[str]()
    return any(isinstance(node, ast.Name) and node.id in given for node in ast.walk(parts))


def _parts(name: str) -> list[str]:
    """Returns the parts of a name such as `model.encoder[0].in_proj_weight`: words and numbers."""
    return re.findall(r"[a-z]+|\d+", name.lower())


def _are_near(words: frozenset[str], known: set[str]) -> bool:
    """Returns whether a part of a word is one of the known parts, or nearly so."""
    parts = {part for word in words for part in _parts(word)}
    return any(part in known or (part.isalpha() and get_close_matches(part, known, 1, _NEAR)) for part in parts)


def _is_on(one: Span | None, other: Span) -> bool:
    return one is not None and one.file == other.file and other.line <= one.line <= other.end_line
