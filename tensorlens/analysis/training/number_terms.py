"""Finds terms of a loss that are plain numbers to backward: `.item()` took their values out of torch in the same pass.

A number that is added to a loss changes no gradient. Only sums count: a number that the rest is multiplied by is a
weight. The syntax shows that the number reached the sum: through names, sums and products, and `return`.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache

from tensorlens.analysis.code_around import scope_around
from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import MAX_PASSES, ConstantTerm, sums_below, trained_by
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call

_ITEM = "Tensor.item"
_BUILT_IN = ("sum", "float", "abs", "max", "min")
_Place = tuple[int, int, int, int]
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module


def number_terms(training: Training, ops: tuple[str, ...] = (_ITEM,)) -> Iterator[ConstantTerm]:
    """Yields the terms that are plain numbers, each place once. `ops` are the calls that took them out of torch."""
    facts, reported, passes = training.facts, set[tuple[int, int]](), Counter[int]()
    items = [call for call in facts.calls if call.op in ops and call.inputs]
    items = [call for call in items if call.inputs[0].tensor not in differentiated(facts)] if items else []
    previous = 0
    for backward in facts.backwards if items else ():
        passes[backward.site] += 1
        begin, previous = previous, backward.index
        if backward.failed or backward.op == "autograd.grad" or passes[backward.site] > MAX_PASSES:
            continue
        own = [call for call in items if begin < call.index < backward.index]
        for term in _terms(training, backward, own) if own else ():
            if (term.added.site, term.cut.site) not in reported:
                reported.add((term.added.site, term.cut.site))
                yield term


@lru_cache(maxsize=1)
def differentiated(facts: TraceIndex) -> frozenset[int]:
    """Returns the tensors that a pass began at or that other results with a history were computed from: what `.item()`
    reads of them can be there to be shown."""
    roots = {root.tensor for backward in facts.backwards for root in backward.roots}
    recorded = (call for call in facts.calls if call.nodes[1] > call.nodes[0])
    return frozenset(roots.union(access.tensor for call in recorded for access in call.inputs))


def _terms(training: Training, backward: Backward, items: list[Call]) -> Iterator[ConstantTerm]:
    """Yields the numbers that were added to the root of a pass and computed from parameters that it trains."""
    facts, used = training.facts, trained_by(training, backward)
    by_site: dict[int, list[Call]] = defaultdict(list)
    for item in items:
        if facts.requires_grad(item.inputs[0].tensor, item.index - 1):
            by_site[item.site].append(item)
    for added in sums_below(facts, backward) if used and by_site else ():
        if len({access.tensor for access in added.inputs}) != 1:
            continue
        for calls in by_site.values():
            last_step = max((step.index for step in training.steps if step.index < added.index), default=0)
            earlier = [call for call in calls if last_step <= call.index < added.index]
            sources = [call.inputs[0].tensor for call in earlier]
            trained = [used & graph_leaves(facts, each.inputs[0].tensor, each.index) for each in earlier]
            if all(trained) and earlier and _is_added(facts, earlier[0], added):
                yield ConstantTerm(
                    backward, added, sources[0], earlier[0], "number", tuple(sorted(set[int]().union(*trained)))
                )


def _is_added(facts: TraceIndex, item: Call, added: Call) -> bool:
    """Returns whether the number of `item` is an operand of a sum, and the sum's tensor is the other operand."""
    chain = facts.call_chain(item.site)
    scope, numbers = facts.scope(added.site), set[_Place]()
    for site in chain:
        node = facts.names.syntax.node(facts.trace.sites[site].span)
        if not isinstance(node, ast.Call) or (site != item.site and not numbers):
            return False
        span = facts.trace.sites[site].span
        function = scope_around(facts, span.file, span.line)
        numbers = {_place(node)}
        names = _names(function, numbers)
        if facts.scope(site) == scope:
            if facts.trace.sites[site].span.line > facts.trace.sites[added.site].span.line:
                return False  # a number of the iteration before
            sides = _sides(facts, added)
            given = [n for n, side in enumerate(sides) if _is_number(side, names, numbers)]
            return len(given) == 1 and _made_tensor(facts, added, sides[1 - given[0]], function)
        returned = [n.value for n in ast.walk(function) if isinstance(n, ast.Return) and n.value is not None]
        if len(returned) != 1 or not _is_number(returned[0], names, numbers):
            return False
    return False


def _sides(facts: TraceIndex, added: Call) -> list[ast.expr]:
    node = facts.names.syntax.node(facts.trace.sites[added.site].span)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [node.left, node.right]
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return [node.target, node.value]
    return []


def _made_tensor(facts: TraceIndex, added: Call, side: ast.expr, function: _Function) -> bool:
    """Returns whether the tensor of a sum was made inside one of its operands, or in an assignment to the name that
    this operand is."""
    made = facts.creator(added.inputs[0].tensor)
    sites = () if made is None else facts.call_chain(made.site)
    file, name = facts.trace.sites[added.site].span.file, plain_name(side)
    assigned = [n.value for n in ast.walk(function) if isinstance(n, ast.Assign) and plain_name(n.targets[0]) == name]
    places = [_place(each) for each in (side, *(assigned if name is not None else ()))]
    spans = [facts.trace.sites[site].span for site in sites]
    nodes = [facts.names.syntax.node(span) for span in spans if span.file == file]
    inner = [_place(node) for node in nodes if isinstance(node, ast.expr)]
    return any(place[:2] <= each[:2] and each[2:] <= place[2:] for place in places for each in inner)


def _names(function: _Function, numbers: set[_Place]) -> set[str]:
    """Returns the names that a function gives to a number, or adds one to."""
    names: set[str] = set()
    for _ in range(4):  # a name can be used above its assignment, in a loop
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and _is_number(node.value, names, numbers):
                names |= {text for target in node.targets if (text := plain_name(target)) is not None}
            elif isinstance(node, ast.AugAssign) and _is_number(node.value, names, numbers):
                names |= {text for text in [plain_name(node.target)] if text is not None}
    return names


def _is_number(node: ast.expr, names: set[str], numbers: set[_Place]) -> bool:
    """Returns whether an expression is a number, a sum of it or of several, or a product with it."""
    if _place(node) in numbers or plain_name(node) in names:
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult | ast.Div):
        return _is_number(node.left, names, numbers) or _is_number(node.right, names, numbers)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _BUILT_IN:
        return any(_is_number(each, names, numbers) for each in node.args)
    return isinstance(node, ast.GeneratorExp | ast.ListComp) and _is_number(node.elt, names, numbers)


def _place(node: ast.expr) -> _Place:
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0
