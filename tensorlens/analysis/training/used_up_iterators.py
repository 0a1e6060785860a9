"""Finds iterators that a program reads in each round of a loop, although the first round takes all of their items."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import is_inside
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Span

_METHODS = frozenset(
    "parameters named_parameters modules named_modules children named_children buffers named_buffers".split()
)
_FUNCTIONS = frozenset(("filter", "map", "zip", "iter", "reversed", "chain"))
_PASS_ON = ("zip", "enumerate", "map", "filter")  # an argument of these is read as far as their result is
_READ_ALL = ("sum", "list", "tuple", "dict", "max", "min", "sorted", "set", "clip_grad_norm_", "clip_grad_value_")
_ENDLESS = re.compile(r"\b(count|cycle|repeat)\(")
_LEAVING = ast.Break | ast.Continue | ast.Return | ast.Raise | ast.Yield
_MIN_RUNS = 2
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
_Parents = dict[ast.AST, ast.AST]


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
        parents: _Parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
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


def _is_set_once(tree: ast.Module, parents: _Parents, made: ast.Assign, name: str) -> bool:
    """Returns whether a name has one value: that of an attribute in the whole file, that of a variable in its scope."""
    home, nodes = _scope(parents, made), list(ast.walk(tree))
    named = (
        node for node in nodes if isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load)
    )
    stored = [node for node in named if plain_name(node) == name]
    if name.startswith("self."):
        return len(stored) == 1
    if any(isinstance(node, ast.Global | ast.Nonlocal) and name in node.names for node in nodes):
        return False
    given = [] if isinstance(home, ast.Module) else [arg for arg in ast.walk(home.args) if isinstance(arg, ast.arg)]
    return sum(_scope(parents, node) is home for node in stored) == 1 and name not in [arg.arg for arg in given]


def _read_again(
    facts: TraceIndex, file: str, parents: _Parents, named: tuple[ast.Assign, str]
) -> tuple[ast.expr, int] | None:
    made, name = named
    tree = facts.tree(file)
    home = _scope(parents, made)
    for read in _reads(tree, parents, name):
        statement, loops = _way_up(parents, read)
        scope = _scope(parents, read)
        if statement is None:
            continue
        if name.startswith("self."):
            repeats = _is_method_of_one_object(tree, parents, home, scope)
        else:
            repeats = scope is home and any(made not in ast.walk(each) for each in loops)
            repeats = repeats and not any(isinstance(node, _LEAVING) for each in loops for node in ast.walk(each))
        runs = _runs(facts, file, parents, parents[statement], facts.span_of(read, file)) if repeats else 0
        made_once = name.startswith("self.") or _runs_once(tree, parents, home)
        counts = [] if made_once else _counts(facts, file, parents[made], facts.span_of(made, file))
        times = 1 if made_once else max((number for each in counts for number in each), default=0)
        if times and runs >= _MIN_RUNS * times:
            return read, runs
    return None


def _reads(tree: ast.Module, parents: _Parents, name: str) -> Iterator[ast.expr]:
    """Yields the expressions that read all items of an iterator, or give it to a function that does."""
    loaded = (n for n in ast.walk(tree) if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Load))
    nodes = [node for node in loaded if plain_name(node) == name]
    yield from _direct_reads(parents, nodes)
    yield from (node for node in nodes if _is_read_by_callee(tree, parents, node))


def _leaves_early(function: ast.FunctionDef, reads: list[ast.Name]) -> bool:
    """Returns whether a function may end before it reads an argument."""
    last = max((node.lineno for node in reads), default=0)
    return any(isinstance(node, _LEAVING) and node.lineno < last for node in ast.walk(function))


def _direct_reads(parents: _Parents, nodes: Iterable[ast.expr]) -> Iterator[ast.expr]:
    """Yields the expressions that read all items: each is what a `for` runs over, or an argument."""
    for node in nodes:
        at = node
        while isinstance(call := parents[at], ast.Call) and at in call.args and _called(call) in _PASS_ON:
            if _called(call) == "zip" and len(call.args) > 1 and not _are_as_long(call.args, at):
                break
            at = call
        above, whole = parents[at], parents.get(parents[at])
        is_loop = isinstance(above, ast.For) and above.iter is at and not _may_stop(above)
        is_first = isinstance(above, ast.comprehension) and above.iter is at and _has_first(parents, whole, above)
        is_given = isinstance(above, ast.Call) and at in above.args[:1] and _called(above) in _READ_ALL
        if is_loop or is_first or is_given:
            yield node


def _is_read_by_callee(tree: ast.Module, parents: _Parents, node: ast.expr) -> bool:
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
        _scope(parents, each) is function and _way_up(parents, each)[0] is not None and not _way_up(parents, each)[1]
        for each in _direct_reads(parents, own)
    )


def _are_as_long(arguments: list[ast.expr], iterator: ast.expr) -> bool:
    """Returns whether each other argument of `zip` is of a module or an attribute, as what an average keeps for each
    parameter: other collections may have fewer items than the iterator."""
    others = [each for each in arguments if each is not iterator]
    return all(
        isinstance(each, ast.Attribute) or (isinstance(each, ast.Call) and _called(each) in _METHODS) for each in others
    )


def _has_first(parents: _Parents, whole: ast.AST | None, part: ast.comprehension) -> bool:
    """Returns whether a comprehension reads all items of what it runs over first, as `next(...)` of one does not."""
    if isinstance(whole, ast.GeneratorExp):
        call = parents[whole]
        return isinstance(call, ast.Call) and _called(call) in _READ_ALL and whole.generators[0] is part
    return isinstance(whole, ast.ListComp | ast.SetComp | ast.DictComp) and whole.generators[0] is part


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _may_stop(loop: ast.For) -> bool:
    return any(isinstance(node, ast.Break | ast.Return | ast.Raise | ast.Yield) for node in ast.walk(loop))


def _way_up(parents: _Parents, node: ast.AST) -> tuple[ast.stmt | None, list[ast.For | ast.While]]:
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


def _scope(parents: _Parents, node: ast.AST) -> Scope:
    at = parents[node]
    while not isinstance(at, Scope):
        at = parents[at]
    return at


def _runs_once(tree: ast.Module, parents: _Parents, scope: Scope, seen: tuple[Scope, ...] = ()) -> bool:
    """Returns whether a function is called at one place only, which is in no loop and in the main part of the file."""
    if isinstance(scope, ast.Module):
        return True
    if scope in seen:
        return False  # two functions that call each other
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) == scope.name]
    if len(calls) != 1 or not isinstance(parents.get(scope), ast.Module):
        return False
    at: ast.AST = calls[0]
    while not isinstance(at, Scope):
        at = parents[at]
        if isinstance(at, ast.For | ast.While | ast.comprehension | ast.Lambda):
            return False
    return at is not scope and _runs_once(tree, parents, at, (*seen, scope))


def _is_method_of_one_object(tree: ast.Module, parents: _Parents, made_in: Scope, read_in: Scope) -> bool:
    """Returns whether `__init__` of a class makes an iterator that another method reads, and the program makes one
    object of the class, at one place that runs once."""
    holder = parents.get(made_in)
    if not isinstance(holder, ast.ClassDef) or made_in is read_in or parents.get(read_in) is not holder:
        return False
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) == holder.name]
    loaded = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == holder.name]
    if len(calls) != 1 or len(loaded) != 1 or getattr(made_in, "name", "") != "__init__":
        return False
    at: ast.AST = calls[0]
    while not isinstance(at, Scope):
        at = parents[at]
        if isinstance(at, ast.For | ast.While | ast.comprehension | ast.Lambda):
            return False
    return _runs_once(tree, parents, at)


def _runs(
    facts: TraceIndex, file: str, parents: _Parents, block: ast.AST, read: Span, seen: tuple[ast.AST, ...] = ()
) -> int:
    """Returns how often the statements around an expression have run at least, by the calls that the trace has of them.

    A function without such a call has run as often as the statements around the only line that calls it; a `with`
    block as often as those around it.
    """
    counts = _counts(facts, file, block, read)
    if not counts and isinstance(block, ast.With):
        return _runs(facts, file, parents, parents[block], read, seen)
    if counts or block in seen or not isinstance(block, ast.FunctionDef):
        return max(map(min, counts), default=0)
    calls = [node for node in parents if isinstance(node, ast.Call) and _called(node) == block.name]
    statement = _way_up(parents, calls[0])[0] if len(calls) == 1 and _scope(parents, calls[0]) is not block else None
    return 0 if statement is None else _runs(facts, file, parents, parents[statement], read, (*seen, block))


def _counts(facts: TraceIndex, file: str, block: ast.AST, read: Span) -> list[list[int]]:
    """Returns how often the sites in each statement of a block have run: a module that is called may count twice."""
    statements = [each for each in ast.iter_child_nodes(block) if isinstance(each, ast.stmt)]
    simple = [each for each in statements if isinstance(each, ast.Expr | ast.Assign | ast.AugAssign | ast.Return)]
    spans = [facts.span_of(each, file) for each in simple]
    last = facts.events[-1].index if facts.events else 0
    counts: list[list[int]] = [[] for _ in spans]
    for site in {call.site for call in facts.calls} | {each.site for each in facts.backwards}:
        span = facts.span(site)
        if span is None or span.file != file or is_inside(span, read):
            continue
        for each, numbers in zip(spans, counts, strict=True):
            if is_inside(span, each):
                numbers.append(facts.times_run(site, last)[1])
    return [numbers for numbers in counts if numbers]
