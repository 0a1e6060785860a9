"""Finds iterators that a program reads in each round of a loop, although the first round takes all of their items."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import is_inside
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.iterator_reads import LEAVING, MODULE_METHODS, Read, reads_of
from tensorlens.analysis.training.run_counts import (
    Parents,
    Scope,
    counts_in,
    makes_one_object,
    runs_of,
    runs_once,
    scope_of,
    way_up,
)
from tensorlens.records.model import Span

_FUNCTIONS = frozenset(("filter", "map", "zip", "iter", "reversed", "chain"))
_ENDLESS = re.compile(r"\b(count|cycle|repeat)\(")
_STORED = ast.Name | ast.Attribute | ast.Subscript
_LISTS = ast.ListComp | ast.List | ast.Tuple
_MIN_RUNS = 2


@dataclass(frozen=True, slots=True)
class UsedUp:
    """An iterator, and an expression that reads it again when it has no items left."""

    name: str  # "params", "self.params"
    made: Span
    read: Span
    runs: int  # how often the line that reads it has run, at least
    taken: Span | None = None  # the optimizer that has all items before any such line runs


def used_up_iterators(facts: TraceIndex) -> Iterator[UsedUp]:
    """Yields these iterators, each with the first expression that reads it in vain."""
    for file, tree in facts.trees():
        if any(getattr(node, "name", getattr(node, "attr", "")) in ("__next__", "seek") for node in ast.walk(tree)):
            continue  # an iterator of the program, or one over a file, may begin again
        parents: Parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        for made in ast.walk(tree):
            if isinstance(made, ast.Assign) and is_iterator(made.value, defined) and len(made.targets) == 1:
                name = plain_name(made.targets[0])
                if name and _is_set_once(tree, parents, made, name):
                    found = _read_again(facts, file, parents, (made, name))
                    if found is not None:
                        yield found


def is_iterator(value: ast.expr, defined: set[str]) -> bool:
    """Returns whether a value can be read once. The program may have methods of its own with such names."""
    if _ENDLESS.search(ast.unparse(value)):
        return False
    if isinstance(value, ast.GeneratorExp):
        return True
    if not isinstance(value, ast.Call):
        return False
    function = value.func
    if isinstance(function, ast.Name):
        return function.id in _FUNCTIONS - defined
    is_chain = isinstance(function, ast.Attribute) and ast.unparse(function) == "itertools.chain"
    return is_chain or (isinstance(function, ast.Attribute) and function.attr in MODULE_METHODS - defined)


def _is_set_once(tree: ast.Module, parents: Parents, made: ast.Assign, name: str) -> bool:
    """Returns whether a name has one value: that of an attribute in the whole file, that of a variable in its scope."""
    home, nodes = scope_of(parents, made), list(ast.walk(tree))
    named = [n for n in nodes if isinstance(n, _STORED) and not isinstance(n.ctx, ast.Load)]
    stored = [node for node in named if plain_name(node) == name]
    if name.startswith("self."):  # another object may have an attribute of that name
        part = name.rpartition(".")[2]
        methods = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == part]
        return sum(getattr(node, "attr", "") == part for node in named) == 1 and not methods
    if isinstance(made.targets[0], ast.Subscript) and not _is_only_key(nodes, made.targets[0].slice):
        return False
    if any(isinstance(node, ast.Global | ast.Nonlocal) and name in node.names for node in nodes):
        return False
    given = [] if isinstance(home, ast.Module) else [arg for arg in ast.walk(home.args) if isinstance(arg, ast.arg)]
    return sum(scope_of(parents, node) is home for node in stored) == 1 and name not in [arg.arg for arg in given]


def _is_only_key(nodes: list[ast.AST], key: ast.expr) -> bool:
    """Returns whether a text is an item's key at one place that writes, and no other text of the file than such keys
    and those of places that read."""
    keys = [node for node in nodes if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == ast.unparse(key)]
    same = [node for node in nodes if isinstance(node, ast.Constant) and ast.unparse(node) == ast.unparse(key)]
    return len(same) == len(keys) and sum(not isinstance(node.ctx, ast.Load) for node in keys) == 1


def _read_again(facts: TraceIndex, file: str, parents: Parents, named: tuple[ast.Assign, str]) -> UsedUp | None:
    made, name = named
    times = _times_made(facts, file, parents, named)
    taken = _optimizer_given(facts, file, parents, named)
    for read in reads_of(facts, file, parents, made, name) if times else ():
        runs = _runs_again(facts, file, parents, named, read.node)
        if runs < _MIN_RUNS * times:
            continue
        ran = _ran(facts, file, read.items)
        spans = facts.span_of(made.value, file), facts.span_of(read.node, file)
        if taken is not None:
            if not ran:
                return UsedUp(name, *spans, runs, facts.span_of(taken, file))
        elif not read.beside or (times == 1 and _ran_in_one_round(facts, file, parents, read, ran)):
            return UsedUp(name, *spans, runs)
    return None


def _runs_again(facts: TraceIndex, file: str, parents: Parents, named: tuple[ast.Assign, str], read: ast.expr) -> int:
    """Returns how often an expression that reads an iterator has run at least; 0 if it may run only once for each."""
    (made, name), home = named, scope_of(parents, named[0])
    statement, loops = way_up(parents, read)
    if statement is None:
        return 0
    if scope_of(parents, read) is home:
        repeats = any(made not in ast.walk(each) for each in loops)
        repeats = repeats and not any(isinstance(node, LEAVING) for each in loops for node in ast.walk(each))
    else:
        repeats = name.startswith("self.") or _is_free(parents, read, home, name)
    whole = facts.span_of(_around(parents, read), file)
    return runs_of(facts, file, parents, parents[statement], whole) if repeats else 0


def _optimizer_given(facts: TraceIndex, file: str, parents: Parents, named: tuple[ast.Assign, str]) -> ast.expr | None:
    """Returns the call that makes an optimizer of an iterator, right where the iterator is made: it takes all items."""
    made, name = named
    calls = [call for call in facts.calls if call.op.startswith("optim.") and call.inputs]
    spans = {facts.span(call.site) for call in calls}
    for node in ast.walk(scope_of(parents, made)) if spans else ():
        if (
            isinstance(node, ast.Call)
            and facts.span_of(node, file) in spans
            and parents[parents[node]] is parents[made]
        ):
            given = [*node.args[:1], *(each.value for each in node.keywords if each.arg == "params")]
            if node.lineno > made.lineno and any(plain_name(each) == name for each in given):
                return node
    return None


def _ran(facts: TraceIndex, file: str, parts: tuple[ast.AST, ...]) -> list[int]:
    """Returns the events of the calls in some parts of a file, in their order."""
    spans = [facts.span_of(each, file) for each in parts]
    sites = {site.id for site in facts.trace.sites if any(is_inside(site.span, span) for span in spans)}
    return [call.index for call in facts.calls if call.site in sites] if sites else []


def _ran_in_one_round(facts: TraceIndex, file: str, parents: Parents, read: Read, ran: list[int]) -> bool:
    """Returns whether items came in one round only, although what is read beside the iterator stays as long as it is:
    it is a list of one assignment, of which no line calls a method."""
    if not ran or read.is_callee or not all(_stays_as_long(parents, each) for each in read.beside):
        return False
    at: ast.AST = read.node
    while not isinstance(at, ast.stmt):
        at = parents[at]
    span = facts.span_of(at, file)
    between = {call.site for call in facts.calls_between(ran[0], ran[-1])}
    return all(is_inside(facts.trace.sites[site].span, span) for site in between)


def _stays_as_long(parents: Parents, other: ast.expr) -> bool:
    """Returns whether an expression is a variable of one assignment that no line calls a method of, or deletes from."""
    if not isinstance(other, ast.Name):
        return False
    same = [node for node in parents if isinstance(node, ast.Name) and node.id == other.id]
    stored = [node for node in same if not isinstance(node.ctx, ast.Load)]
    changed = [node for node in same if isinstance(parents[node], ast.Attribute | ast.Delete | ast.AugAssign)]
    arguments = [node for node in parents if isinstance(node, ast.arg) and node.arg == other.id]
    is_list = len(stored) == 1 and isinstance(made := parents[stored[0]], ast.Assign) and isinstance(made.value, _LISTS)
    return is_list and not changed and not arguments


def _times_made(facts: TraceIndex, file: str, parents: Parents, named: tuple[ast.Assign, str]) -> int:
    """Returns how often an iterator is made, at most; 0 if that is not known."""
    made, name = named
    tree, home = facts.tree(file), scope_of(parents, made)
    if (makes_one_object if name.startswith("self.") else runs_once)(tree, parents, home):
        return 1
    numbers = [number for each in counts_in(facts, file, parents[made], facts.span_of(made, file)) for number in each]
    return max(numbers, default=0) if len(numbers) > 1 or not name.startswith("self.") else 0


def _is_free(parents: Parents, read: ast.expr, home: Scope, name: str) -> bool:
    """Returns whether a function that reads a variable has it from the function or file around it."""
    scope = scope_of(parents, read)
    while scope is not home:
        if isinstance(scope, ast.Module) or any(_binds(node, name) for node in ast.walk(scope)):
            return False
        scope = scope_of(parents, scope)
    return name.isidentifier()


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.arg):
        return node.arg == name
    return isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)


def _around(parents: Parents, read: ast.expr) -> ast.AST:
    """Returns the comprehension that reads an iterator, with the call that takes it: both run for each item."""
    above = parents[read]
    if not isinstance(above, ast.comprehension):
        return read
    call = parents[parents[above]]
    return call if isinstance(call, ast.Call) else parents[above]
