"""Finds tensors of random numbers that NumPy or Python draws, as `torch.from_numpy(np.random.permutation(4))`."""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import scope_around
from tensorlens.analysis.naming.syntax import called_name, last_name, plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Call

_ENTRIES = frozenset("from_numpy tensor as_tensor asarray".split())
_DRAWING = frozenset(
    "permutation choice normal standard_normal randn rand random uniform integers randint sample shuffle".split()
)
_SEEDING = frozenset(("seed", "set_state"))
_NAMES = 2  # names that are followed


def is_drawn_outside(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call makes a tensor of such numbers, and the program sets the seed of them at most once."""
    node, span = facts.node_at(call.site), facts.span(call.site)
    if op_name(call) not in _ENTRIES or not isinstance(node, ast.Call) or not node.args or span is None:
        return False
    return _is_drawn(facts, span.file, node.args[0], _NAMES) and _is_seeded_once(facts)


def is_permuted_outside(facts: TraceIndex, call: Call) -> bool:
    """Returns whether such a call names a permutation itself."""
    node = facts.node_at(call.site)
    names = {called_name(each) for each in ast.walk(node)} if isinstance(node, ast.Call) else set[str]()
    return "permutation" in names and is_drawn_outside(facts, call)


def _is_drawn(facts: TraceIndex, file: str, value: ast.expr, left: int) -> bool:
    if any(_is_draw(facts, node) for node in ast.walk(value)):
        return True
    scope = list(ast.walk(scope_around(facts, file, value.lineno)))
    if not isinstance(value, ast.Name) or not left:
        return False
    if any(_shuffles(facts, node, value.id) for node in scope):
        return True
    assigned = [node for node in scope if isinstance(node, ast.Assign)]
    values = [node.value for node in assigned if value.id in map(plain_name, node.targets)]
    return len(values) == 1 and _is_drawn(facts, file, values[0], left - 1)


def _is_draw(facts: TraceIndex, node: ast.AST) -> bool:
    """Returns whether a call draws from the numbers that all of the program share, as `np.random.permutation(4)`, or
    from a generator that no constructor gives a seed."""
    is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _DRAWING
    holder = node.func.value if is_method else None  # type: ignore[attr-defined]
    if holder is None or ast.unparse(holder) in ("np.random", "numpy.random", "random"):
        return holder is not None
    return isinstance(holder, ast.Name) and _is_shared(facts, holder.id)


def _is_shared(facts: TraceIndex, name: str) -> bool:
    """Returns whether the only line that sets a name makes a generator: once for all, or without a seed."""
    assigned = [
        (tree, node)
        for _, tree in facts.trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and name in map(plain_name, node.targets)
    ]
    made = assigned[0][1].value if len(assigned) == 1 else None
    if not isinstance(made, ast.Call) or called_name(made) not in ("default_rng", "RandomState"):
        return False
    return assigned[0][1] in assigned[0][0].body or not (made.args or made.keywords)


def _shuffles(facts: TraceIndex, node: ast.AST, name: str) -> bool:
    is_shuffle = _is_draw(facts, node) and called_name(node) == "shuffle"
    return is_shuffle and name in {last_name(each) for each in node.args}  # type: ignore[attr-defined]


def _is_seeded_once(facts: TraceIndex) -> bool:
    """Returns whether no line sets the seed, or only one of the program's own level, or a function that is called at
    one such place."""
    trees = [tree for _, tree in facts.trees()]
    places = [(tree, node) for tree in trees for node in ast.walk(tree) if _sets_seed(node)]
    if len(places) != 1:
        return not places
    tree, seed = places[0]
    around = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and seed in ast.walk(node)]
    if not around:
        return not _is_in_loop(tree, seed)
    name = around[-1].name
    calls = [(tree, node) for tree in trees for node in ast.walk(tree) if called_name(node) == name]
    return len(calls) == 1 and not _is_in_loop(*calls[0])


def _sets_seed(node: ast.AST) -> bool:
    named = (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("seed", "set_state")
    )
    return named and "random" in ast.unparse(node.func)  # type: ignore[attr-defined]


def _is_in_loop(tree: ast.Module, node: ast.AST) -> bool:
    loops = (each for each in ast.walk(tree) if isinstance(each, ast.For | ast.While | ast.ClassDef))
    return any(node in ast.walk(loop) for loop in loops)
