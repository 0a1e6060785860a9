"""Finds sums along the steps of episodes that go on through their ends, and time limits that count as such ends.

Both are read off the source: the flags of an environment are plain values, which no call of torch sees.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tensorlens.analysis.code_around import parent_of
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.policies_and_values.environment_steps import (
    has_clock,
    is_always_false,
    names_in,
    stored_in,
)

_END = re.compile(r"(.*_)?(dones?|d|ends?|ended|finished|terms?|terminals?|terminated|terminations?|over|dead)")
_MASK = re.compile(r".*(mask|non_?term|not_?done|alive|contin|discount).*")
_LIMIT = re.compile(r"(.*_)?(truncs?|truncated|truncations?|time_?outs?|timed_?out|time_?limits?|out_of_time)")
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
_OR = frozenset("logical_or bitwise_or maximum max any".split())
_BACK = frozenset("lfilter flip flipud fliplr reversed cumsum".split())
_MAX_CALLERS = 4


@dataclass(frozen=True, slots=True)
class UnmaskedSum:
    """A statement `running = delta + gamma * running` of a loop that goes back over the steps of several episodes."""

    file: str
    statement: ast.Assign
    mask: ast.AST  # what the loop masks at the ends, or the variable of an end that it does not read
    reset: ast.Call
    is_read: bool


@dataclass(frozen=True, slots=True)
class MergedEnd:
    """`terminated or truncated`, which a target multiplies the value of the next state by, as `1 - done`."""

    file: str
    merged: ast.expr
    limit: str
    mask: ast.expr


def unmasked_sums(facts: TraceIndex) -> Iterator[UnmaskedSum]:
    """Yields these statements if the program collects several episodes in a row."""
    for file, tree in facts.trees():
        collected = list(_collecting(facts, file, tree))
        for loop in ast.walk(tree) if collected else ():
            if not isinstance(loop, ast.For) or not _goes_back(loop):
                continue
            is_of_one = _is_of_one_episode(facts, file, loop, [each for each, _ in collected])
            for statement in () if is_of_one else loop.body:
                mask = _missing_mask(loop, statement)
                if isinstance(statement, ast.Assign) and mask is not None:
                    yield UnmaskedSum(file, statement, mask[0], collected[0][1], mask[1])


def _is_of_one_episode(facts: TraceIndex, file: str, loop: ast.For, collecting: Sequence[ast.AST]) -> bool:
    """Returns whether a loop may run for each episode alone: in a loop that collects them, or in one over these.

    The loops around the calls of its function count, and those around the calls of the functions with these calls.
    """
    holder = _scope(facts, file, loop)
    if isinstance(holder, ast.Module) or any(_loops_around(facts, file, loop)):
        return True
    names, seen = {holder.name}, set[str]()
    for _ in range(_MAX_CALLERS):
        seen |= names
        calls = [n for n in ast.walk(facts.tree(file)) if isinstance(n, ast.Call) and called_name(n) in names]
        for call in calls:
            for above in _loops_around(facts, file, call):
                over = stored_in(getattr(above, "target", ast.Constant(0)))
                if any(above is each for each in collecting) or set(over) & names_in(call):
                    return True
        scopes = [_scope(facts, file, call) for call in calls]
        names = {scope.name for scope in scopes if not isinstance(scope, ast.Module)} - seen
    return bool(names)  # there are more callers


def _loops_around(facts: TraceIndex, file: str, node: ast.AST) -> Iterator[ast.AST]:
    """Yields the loops of a function that a node is in, and comprehensions by their generators."""
    above = parent_of(facts, file, node)
    while above is not None and not isinstance(above, _Scope):
        if isinstance(above, ast.For | ast.While):
            yield above
        yield from getattr(above, "generators", ())
        above = parent_of(facts, file, above)


def merged_ends(facts: TraceIndex) -> Iterator[MergedEnd]:
    """Yields these flags if the program uses both kinds of ends in one way only.

    A loop back over the steps of a rollout is left out, where one flag for both is usual, unless it writes the `or`.
    So is a line before such a loop, which reads the result.
    """
    for file, tree in facts.trees():
        masks = [node for node in ast.walk(tree) if isinstance(node, ast.expr) and _is_bootstrap(facts, file, node)]
        masks = [mask for mask in masks if not _is_read_by_loop_back(facts, file, mask)]
        limits = [node for node in _flags(tree, _LIMIT) if masks and _is_given(facts, file, node)]
        joined = [each for each in (_merged(facts, file, node) for node in limits) if each is not None]
        written = [(each, mask) for each in joined for mask in masks if any(each is n for n in ast.walk(mask))]
        kept = [(each, mask) for each in joined for mask in masks if _is_kept(facts, file, each)]
        usual = [(each, mask) for each, mask in kept if not _is_in_loop_back(facts, file, mask)]
        found = next(iter(written or usual), None)
        if found is None or has_clock(tree) or is_always_false(tree, last_name(limits[0])):
            continue
        ends = {name for name in names_in(found[0]) if not _LIMIT.fullmatch(name)}
        others = [node for node in _flags(tree, _END) if last_name(node) in ends and _is_given(facts, file, node)]
        uses = [(node, _merged(facts, file, node)) for node in (*limits, *others)]
        if all(each is not None or (written and _is_stored(facts, file, node)) for node, each in uses):
            yield MergedEnd(file, found[0], last_name(limits[0]), found[1])


def _is_in_loop_back(facts: TraceIndex, file: str, node: ast.AST) -> bool:
    above: ast.AST | None = node
    while above is not None and not (isinstance(above, ast.For) and _goes_back(above)):
        above = parent_of(facts, file, above)
    return above is not None


def _is_read_by_loop_back(facts: TraceIndex, file: str, mask: ast.AST) -> bool:
    """Returns whether a statement with a mask defines a name that a loop back reads, or a function with one, or is the
    result of a function."""
    above: ast.AST | None = mask
    while above is not None and not isinstance(above, ast.stmt):
        above = parent_of(facts, file, above)
    nodes = list(ast.walk(facts.tree(file)))
    loops = [node for node in nodes if isinstance(node, ast.For) and _goes_back(node)]
    outside = [loop for loop in loops if not any(node is above for node in ast.walk(loop))]
    sums = _sums_back(facts, nodes)
    if not isinstance(above, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return bool(outside or sums)
    targets = above.targets if isinstance(above, ast.Assign) else [above.target]
    defined = {name for target in targets for name in names_in(target)}
    for each in (node for node in ast.walk(_scope(facts, file, above)) if isinstance(node, ast.Assign)):
        defined |= names_in(each.targets[0]) if names_in(each.value) & defined else set()
    return any(defined & names_in(each) or mask in ast.walk(each) for each in (*outside, *sums))


def _sums_back(facts: TraceIndex, nodes: list[ast.AST]) -> list[ast.AST]:
    """Returns the expressions that turn the order of steps, or call what may add them up from the last one."""
    functions = (each for _, tree in facts.trees() for each in ast.walk(tree) if isinstance(each, ast.FunctionDef))
    names = _BACK | {
        function.name
        for function in functions
        if any(isinstance(each, ast.For) and _goes_back(each) for each in ast.walk(function))
    }
    turned = [node for node in nodes if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == "::-1"]
    return [*turned, *(node for node in nodes if called_name(node) in names)]


def _is_stored(facts: TraceIndex, file: str, node: ast.AST) -> bool:
    """Returns whether a flag is only put somewhere: into a tuple, an item or a call."""
    above = parent_of(facts, file, node)
    while isinstance(above, ast.Call) and called_name(above) in ("float", "bool", "int", "tensor", "as_tensor"):
        above = parent_of(facts, file, above)
    return isinstance(above, ast.Tuple | ast.Call | ast.keyword | ast.Assign | ast.Dict)


def _flags(tree: ast.AST, names: re.Pattern[str]) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            if names.fullmatch(last_name(node)):
                yield node


def _is_given(facts: TraceIndex, file: str, node: ast.AST) -> bool:
    """Returns whether a function gets a flag from others, as from a `step()`, and so is no part of the environment."""
    scope = _scope(facts, file, node)
    own = [each for each in ast.walk(scope) if isinstance(each, ast.Assign) and _scope(facts, file, each) is scope]
    return not isinstance(node, ast.Name) or not any(_computes(each, node.id) for each in own)


def _computes(statement: ast.Assign, name: str) -> bool:
    """Returns whether a statement computes the value of a name, and does not get it with others."""
    is_one = isinstance(statement.targets[0], ast.Name) and statement.targets[0].id == name
    return is_one or (isinstance(statement.value, ast.Tuple) and name in stored_in(statement.targets[0]))


def _is_step(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and "step" in node.func.attr


def _merged(facts: TraceIndex, file: str, node: ast.AST) -> ast.expr | None:
    """Returns the expression that joins a flag with another one by an `or`."""
    above = parent_of(facts, file, node)
    while isinstance(above, ast.Subscript | ast.Attribute) or (
        isinstance(above, ast.Call) and called_name(above) in ("float", "bool", "int")
    ):
        above = parent_of(facts, file, above)
    is_or = isinstance(above, ast.BoolOp) and isinstance(above.op, ast.Or)
    is_or |= isinstance(above, ast.BinOp) and isinstance(above.op, ast.BitOr)
    is_or |= isinstance(above, ast.Call) and called_name(above) in _OR
    return above if is_or and isinstance(above, ast.expr) else None


def _is_kept(facts: TraceIndex, file: str, merged: ast.expr) -> bool:
    """Returns whether a joined flag goes on as a value, and not only as a condition: by itself or by its name."""
    above = parent_of(facts, file, merged)
    while isinstance(above, ast.Attribute) or (
        isinstance(above, ast.Call) and called_name(above) in ("float", "bool", "int", "tensor")
    ):
        above = parent_of(facts, file, above)
    if isinstance(above, ast.Call | ast.Tuple | ast.BinOp):
        return True
    if not isinstance(above, ast.Assign) or not isinstance(above.targets[0], ast.Name):
        return isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Subscript)
    name, scope = above.targets[0].id, _scope(facts, file, above)
    reads = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == name]
    parents = [parent_of(facts, file, node) for node in reads if isinstance(node.ctx, ast.Load)]
    return any(isinstance(each, ast.Call | ast.Tuple | ast.keyword | ast.BinOp | ast.Dict) for each in parents)


def _is_bootstrap(facts: TraceIndex, file: str, node: ast.expr) -> bool:
    """Returns whether an expression is `1 - done`, and a product with it, of a value, is added to something."""
    if not _is_remaining(node):
        return False
    above = parent_of(facts, file, node)
    if not isinstance(above, ast.BinOp) or not isinstance(above.op, ast.Mult):
        return False
    product: ast.AST = above
    while isinstance(above := parent_of(facts, file, product), ast.BinOp) and isinstance(above.op, ast.Mult):
        product = above
    if not isinstance(above, ast.BinOp) or not isinstance(above.op, ast.Add | ast.Sub):
        return False
    while isinstance(above, ast.BinOp):
        above = parent_of(facts, file, above)
    targets = stored_in(above.targets[0]) if isinstance(above, ast.Assign) else []
    factors = [part for part in ast.walk(product) if isinstance(part, ast.Call | ast.Name | ast.Subscript)]
    return not set(targets) & {last_name(part) for part in factors}


def _is_remaining(node: ast.AST) -> bool:
    """Returns whether an expression is 1 minus a flag of an end."""
    is_difference = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
    if not isinstance(node, ast.BinOp) or not is_difference or not isinstance(node.left, ast.Constant):
        return False
    return node.left.value == 1 and any(_END.fullmatch(name) for name in names_in(node.right))


def _collecting(facts: TraceIndex, file: str, tree: ast.Module) -> Iterator[tuple[ast.For | ast.While, ast.Call]]:
    """Yields the loops that make steps of an environment and begin new episodes, without another loop around these."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not _is_step(node) or not node.args:
            continue
        above = parent_of(facts, file, node)
        is_unpacked = isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Tuple)
        while above is not None and not isinstance(above, ast.For | ast.While | ast.FunctionDef):
            above = parent_of(facts, file, above)
        if not is_unpacked or not isinstance(above, ast.For | ast.While):
            continue
        resets = [each for each in ast.walk(above) if isinstance(each, ast.Call) and called_name(each) == "reset"]
        stops = any(isinstance(each, ast.Break) for each in ast.walk(above))
        if resets and not stops:
            yield above, resets[0]


def _scope(facts: TraceIndex, file: str, node: ast.AST) -> _Scope:
    above: ast.AST | None = node
    while above is not None and not isinstance(above, _Scope):
        above = parent_of(facts, file, above)
    return above if isinstance(above, _Scope) else facts.tree(file)


def _goes_back(loop: ast.For) -> bool:
    calls = [called_name(node) for node in ast.walk(loop.iter)]
    return "reversed" in calls or re.search(r"-1, -1\)|\[::-1\]", ast.unparse(loop.iter)) is not None


def _missing_mask(loop: ast.For, statement: ast.stmt) -> tuple[ast.AST, bool] | None:
    """Returns what the loop masks at the ends, if a statement of it adds up without a mask."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return None
    name = statement.targets[0].id
    writes = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]
    product = _product_of(statement.value, name)
    if product is None or len(writes) != 1 or any(_is_mask(part) for part in ast.walk(product)):
        return None
    stored = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if (names_in(product) - {name}) & stored:
        return None  # a factor of the step may be zero at an end
    masks = [part for part in ast.walk(loop) if _is_remaining(part)]
    if masks:
        return masks[0], True
    read = names_in(ast.Module(loop.body, []))
    unread = [node for node in ast.walk(loop.target) if isinstance(node, ast.Name) and _END.fullmatch(node.id)]
    return (unread[0], False) if unread and unread[0].id not in read else None


def _product_of(value: ast.expr, name: str) -> ast.BinOp | None:
    """Returns the product that a name is a factor of, of names and numbers, in a sum."""
    if not isinstance(value, ast.BinOp) or name not in names_in(value):
        return None
    if isinstance(value.op, ast.Add | ast.Sub):
        return _product_of(value.left, name) or _product_of(value.right, name)
    kinds = ast.BinOp | ast.Mult | ast.expr_context | ast.Name | ast.Attribute | ast.Constant
    is_plain = isinstance(value.op, ast.Mult) and all(isinstance(part, kinds) for part in ast.walk(value))
    return value if is_plain else None


def _is_mask(node: ast.AST) -> bool:
    name = last_name(node)
    return _is_remaining(node) or bool(name and (_MASK.fullmatch(name) or _END.fullmatch(name)))
