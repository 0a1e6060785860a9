"""Finds functions that set their own seed and that a statement calls twice with the same arguments.

Both results are equal then, as the two views of a sample whose augmentation is seeded by the number of the sample.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.modes.seeded_arguments import has_number, is_closed, is_same_again
from tensorlens.analysis.training.modes.seeded_views import is_used_twice
from tensorlens.analysis.training.repeated_seeds import RANDOM
from tensorlens.records.model import Span

_SEEDING = frozenset("manual_seed default_rng RandomState Random seed".split())
_LIBRARIES = frozenset("torch F np numpy math nn functional".split())
_PURE = frozenset("int float len range max min round abs bool tuple list str hash sum zip enumerate".split())
_DRAWING = RANDOM | frozenset("random standard_normal integers uniform choice choices permutation sample".split())
_OWN = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.expr_context, ast.Slice, ast.BinOp, ast.operator)
_OTHER = frozenset(  # of an object that is no tensor
    "apply augment transform forward draw next step pop read readline shuffle".split()
)
_FRESH = frozenset("empty zeros ones full empty_like zeros_like ones_like full_like clone new_empty new_zeros".split())
_ROUNDS = (ast.ListComp, ast.GeneratorExp)
_MAKERS = ("Generator", "Random", "RandomState")


@dataclass(frozen=True, slots=True)
class SeededTwin:
    """A call of a function that sets its seed, which runs again with the same arguments for the same loss."""

    call: Span
    seeding: Span


def seeded_twins(facts: TraceIndex) -> Iterator[SeededTwin]:
    """Yields one for each such function."""
    nodes = [(file, node) for file, tree in facts.trees() for node in _twins(tree)]
    twins = {facts.span_of(node, file) for file, node in nodes if is_same_again(facts, file, node)}
    found: dict[tuple[Span, Span], set[int]] = {}
    for site in {call.site for call in facts.calls} if twins else ():
        chain = facts.call_chain(site)
        for inner, outer in pairwise(chain):
            span, around = facts.trace.sites[inner].span, facts.trace.sites[outer].span
            node = facts.node_at(outer) if around in twins else None
            function = function_around(facts, span.file, span.line) if isinstance(node, ast.Call) else None
            seeding = None if function is None else _seeding(function)
            if function is None or seeding is None or not isinstance(node, ast.Call):
                continue
            if has_number(facts, around, node, function, seeding) and is_closed(facts, span.file, function):
                found.setdefault((around, facts.span_of(seeding, span.file)), set()).add(site)
    named = set[Span]()
    for (around, seed), sites in found.items():
        if seed not in named and is_used_twice(facts, sites):
            named.add(seed)
            yield SeededTwin(around, seed)


def _twins(tree: ast.AST) -> Iterator[ast.Call]:
    """Yields the calls that a statement makes twice with the same arguments, in parts that are equal as a whole."""
    for node in ast.walk(tree):
        yield from _twins_of(node)


def _twins_of(node: ast.AST) -> Iterator[ast.Call]:
    parts: list[ast.expr] = []
    if isinstance(node, ast.Tuple | ast.List):
        parts = _equal(node.elts)
    elif isinstance(node, ast.Call):
        parts = _equal(node.args)
    elif isinstance(node, _ROUNDS) and len(node.generators) == 1:
        each = node.generators[0]
        parts = [node.elt] if _repeats(each.target, each.iter, node.elt) and not each.ifs else []
    elif isinstance(node, ast.FunctionDef | ast.For | ast.Module):
        parts = _equal_assignments(node.body)
    for call in (each for part in parts for each in ast.walk(part) if isinstance(each, ast.Call)):
        given = [*call.args, *(word.value for word in call.keywords)]
        if any(not isinstance(each, ast.Constant) for each in given) and _is_plain(given):
            yield call


def _equal(parts: list[ast.expr]) -> list[ast.expr]:
    codes = [ast.unparse(part) if isinstance(part, ast.Call) else "" for part in parts]
    return [part for part, code in zip(parts, codes, strict=True) if code and codes.count(code) > 1]


def _equal_assignments(body: list[ast.stmt]) -> list[ast.expr]:
    """Returns the values of `a = f(x)` and `b = f(x)` in a row."""
    found: list[ast.expr] = []
    for one, other in pairwise(body):
        if isinstance(one, ast.Assign) and isinstance(other, ast.Assign):
            names = {each.id for target in one.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
            read = {each.id for each in ast.walk(other.value) if isinstance(each, ast.Name)}
            if len(_equal([one.value, other.value])) > 1 and not names & read:
                found += [one.value, other.value]
    return found


def _repeats(target: ast.expr, values: ast.expr, body: ast.expr) -> bool:
    """Returns whether a loop runs a fixed number of times, two or more, and its body does not use its variable."""
    number = values.args[0] if called_name(values) == "range" and isinstance(values, ast.Call) and values.args else None
    is_fixed = isinstance(number, ast.Constant) and isinstance(number.value, int) and number.value > 1
    used = {each.id for each in ast.walk(body) if isinstance(each, ast.Name)}
    return is_fixed and isinstance(target, ast.Name) and target.id not in used


def _is_plain(nodes: list[ast.expr]) -> bool:
    return all(isinstance(each, _OWN) for node in nodes for each in ast.walk(node))


def _seeding(function: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.Call | None:
    """Returns the only call that sets a seed in a function whose result depends on its arguments and that seed alone.

    Each draw is below the seed, and no function of the script runs, which might draw or count.
    """
    nodes = list(ast.walk(function))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    seeds = [call for call in calls if called_name(call) in _SEEDING]
    places = (each for stmt in function.body for each in ([*stmt.body] if isinstance(stmt, ast.With) else [stmt]))
    top = {node for stmt in places if isinstance(stmt, ast.Assign | ast.Expr) for node in ast.walk(stmt)}
    if len(seeds) != 1 or seeds[0] not in top or len(seeds[0].args) != 1 or function.decorator_list:
        return None
    seed, stored = seeds[0], [node for node in nodes if isinstance(getattr(node, "ctx", None), ast.Store)]
    seed_nodes = list(ast.walk(seed.args[0]))
    given = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    read = {each.id for each in seed_nodes if isinstance(each, ast.Name)} - _PURE
    written = {each.id for each in stored if isinstance(each, ast.Name)}
    if not read <= given - written or any(not isinstance(each, ast.Name | ast.Tuple) for each in stored):
        return None
    if any(isinstance(each, ast.AugAssign) for each in nodes) or any(map(_changes, calls)):
        return None  # the second call finds other arguments
    is_global = called_name(seed) in ("manual_seed", "seed") and called_name(_receiver(seed)) != "Generator"
    others = [call for call in calls if call is not seed]
    draws = any(called_name(call).strip("_") in _DRAWING for call in others)
    return seed if draws and all(_is_determined(call, written | given, seed, is_global) for call in others) else None


def _changes(call: ast.Call) -> bool:
    """Returns whether a call changes something in place that may be an argument: it isn't made right there."""
    name, receiver = last_name(call.func), _receiver(call)
    is_out = any(word.arg == "out" for word in call.keywords)
    return is_out or (name.endswith("_") and called_name(receiver) not in _FRESH)


def _receiver(call: ast.Call) -> ast.expr:
    return call.func.value if isinstance(call.func, ast.Attribute) else call.func


def _is_determined(call: ast.Call, local: set[str], seed: ast.Call, is_global: bool) -> bool:
    """Returns whether a call gives the same result each time that the seed is set and its arguments are the same."""
    name, receiver = last_name(call.func), _receiver(call)
    root: ast.expr = receiver
    while isinstance(root, ast.Attribute | ast.Subscript | ast.Call | ast.BinOp | ast.Compare):
        is_left = isinstance(root, ast.BinOp | ast.Compare)
        root = root.left if is_left else root.func if isinstance(root, ast.Call) else root.value  # type: ignore[union-attr]
    of_library = isinstance(root, ast.Name) and root.id in _LIBRARIES
    if name.strip("_") in _DRAWING:
        has_own = any(word.arg == "generator" for word in call.keywords)
        of_local = isinstance(receiver, ast.Name) and receiver.id in local and last_name(seed.func) != "manual_seed"
        same = is_global and of_library and ("torch" in ast.unparse(call.func)) == ("torch" in ast.unparse(seed.func))
        return call.lineno >= seed.lineno and (has_own or of_local or same)
    if isinstance(call.func, ast.Name) or name[:1].isupper():
        return name in _PURE or name in _MAKERS
    is_self = isinstance(receiver, ast.Name) and receiver.id in ("self", "cls")
    is_known = isinstance(root, ast.Constant) or (isinstance(root, ast.Name) and (of_library or root.id in local))
    return not is_self and is_known and name not in _OTHER
