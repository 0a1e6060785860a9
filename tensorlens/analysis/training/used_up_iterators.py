"""Finds iterators that a program reads in each round of a loop, although the first round takes all of their items."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.syntax import called_name, plain_name
from tensorlens.analysis.trace_index import TraceIndex
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

_METHODS = frozenset(
    "parameters named_parameters modules named_modules children named_children buffers named_buffers".split()
)
_FUNCTIONS = frozenset(("filter", "map", "zip", "iter", "reversed", "chain"))
_PASS_ON = ("zip", "enumerate", "map", "filter")  # an argument of these is read as far as their result is
_READ_ALL = ("sum", "list", "tuple", "dict", "max", "min", "sorted", "set", "clip_grad_norm_", "clip_grad_value_")
_ENDLESS = re.compile(r"\b(count|cycle|repeat)\(")
_LEAVING = ast.Break | ast.Continue | ast.Return | ast.Raise | ast.Yield
_STORED = ast.Name | ast.Attribute | ast.Subscript
_MIN_RUNS = 2


@dataclass(frozen=True, slots=True)
class UsedUp:
    """An iterator, and an expression that reads it again when it has no items left."""

    name: str  # "params", "self.params"
    made: Span
    read: Span
    runs: int  # how often the line that reads it has run, at least


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
                        read, runs = found
                        yield UsedUp(name, facts.span_of(made.value, file), facts.span_of(read, file), runs)


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
    return is_chain or (isinstance(function, ast.Attribute) and function.attr in _METHODS - defined)


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


def _read_again(
    facts: TraceIndex, file: str, parents: Parents, named: tuple[ast.Assign, str]
) -> tuple[ast.expr, int] | None:
    made, name = named
    tree = facts.tree(file)
    home = scope_of(parents, made)
    times = _times_made(facts, file, parents, named)
    for read in _reads(tree, parents, name) if times else ():
        statement, loops = way_up(parents, read)
        if statement is None:
            continue
        if scope_of(parents, read) is home:
            repeats = any(made not in ast.walk(each) for each in loops)
            repeats = repeats and not any(isinstance(node, _LEAVING) for each in loops for node in ast.walk(each))
        else:
            repeats = name.startswith("self.") or _is_free(parents, read, home, name)
        whole = facts.span_of(_around(parents, read), file)
        runs = runs_of(facts, file, parents, parents[statement], whole) if repeats else 0
        if runs >= _MIN_RUNS * times:
            return read, runs
    return None


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


def _reads(tree: ast.Module, parents: Parents, name: str) -> Iterator[ast.expr]:
    """Yields the expressions that read all items of an iterator, or give it to a function that does."""
    loaded = (n for n in ast.walk(tree) if isinstance(n, _STORED) and isinstance(n.ctx, ast.Load))
    part = name.removeprefix("self.")
    is_attribute = part != name and part.isidentifier()
    nodes = [n for n in loaded if (getattr(n, "attr", "") == part if is_attribute else plain_name(n) == name)]
    yield from _direct_reads(parents, nodes)
    yield from (node for node in nodes if _is_read_by_callee(tree, parents, node))


def _leaves_early(function: ast.FunctionDef, reads: list[ast.Name]) -> bool:
    """Returns whether a function may end before it reads an argument."""
    last = max((node.lineno for node in reads), default=0)
    return any(isinstance(node, _LEAVING) and node.lineno < last for node in ast.walk(function))


def _direct_reads(parents: Parents, nodes: Iterable[ast.expr]) -> Iterator[ast.expr]:
    """Yields the expressions that read all items: each is what a `for` runs over, or an argument."""
    for node in nodes:
        at = node
        while isinstance(call := parents[at], ast.Call) and at in call.args and called_name(call) in _PASS_ON:
            if called_name(call) == "zip" and len(call.args) > 1 and not _are_as_long(call.args, at):
                break
            at = call
        above, whole = parents[at], parents.get(parents[at])
        is_loop = isinstance(above, ast.For) and above.iter is at and not _may_stop(above)
        is_first = isinstance(above, ast.comprehension) and above.iter is at and _has_first(parents, whole, above)
        is_given = isinstance(above, ast.Call) and at in above.args[:1] and called_name(above) in _READ_ALL
        if is_loop or is_first or is_given:
            yield node


def _is_read_by_callee(tree: ast.Module, parents: Parents, node: ast.expr) -> bool:
    """Returns whether an expression is an argument of a function of the file that reads all of its items each time."""
    call = parents[node]
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or node not in call.args:
        return False
    defined = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == call.func.id]
    place = call.args.index(node)
    if len(defined) != 1 or len(defined[0].args.args) <= place or any(isinstance(a, ast.Starred) for a in call.args):
        return False
    (function,) = defined
    name = function.args.args[place].arg
    own = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name]
    if any(not isinstance(each.ctx, ast.Load) for each in own) or _leaves_early(function, own):
        return False
    return any(
        scope_of(parents, each) is function and way_up(parents, each)[0] is not None and not way_up(parents, each)[1]
        for each in _direct_reads(parents, own)
    )


def _are_as_long(arguments: list[ast.expr], iterator: ast.expr) -> bool:
    """Returns whether each other argument of `zip` is of a module or an attribute, as what an average keeps for each
    parameter: other collections may have fewer items than the iterator."""
    others = [each for each in arguments if each is not iterator]
    return all(isinstance(each, ast.Attribute) or called_name(each) in _METHODS for each in others)


def _has_first(parents: Parents, whole: ast.AST | None, part: ast.comprehension) -> bool:
    """Returns whether a comprehension reads all items of what it runs over first, as `next(...)` of one does not."""
    if isinstance(whole, ast.GeneratorExp):
        call = parents[whole]
        return isinstance(call, ast.Call) and called_name(call) in _READ_ALL and whole.generators[0] is part
    return isinstance(whole, ast.ListComp | ast.SetComp | ast.DictComp) and whole.generators[0] is part


def _may_stop(loop: ast.For) -> bool:
    return any(isinstance(node, ast.Break | ast.Return | ast.Raise | ast.Yield) for node in ast.walk(loop))
