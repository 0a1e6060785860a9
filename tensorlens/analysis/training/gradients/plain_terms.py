"""Decides whether the gradient of parameters is the same at each step because of how a loss uses them alone."""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import OPS_LEAVING_TORCH, TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Backward, Call

_SUMS = frozenset(
    "sum mean add radd iadd sub rsub isub neg getitem unbind iter select stack cat view reshape squeeze".split()
)
_PRODUCTS = frozenset("mul rmul imul div truediv itruediv".split())
_ROUNDS = 3


def is_plain_term(facts: TraceIndex, leaves: set[int]) -> bool:
    """Returns whether parameters enter the last loss only by sums and by products with written numbers: whatever the
    data are, their gradient is the same. A number that is read of a tensor may be the same by chance, as a count is."""
    done = [each for each in facts.backwards if not each.failed][-2:]
    before = done[0].index if len(done) > 1 else 0
    reached, products = set(leaves), dict[int, Call]()
    for call in _of_loss(facts, before, done[-1]) if done else ():
        if any(access.tensor in reached for access in call.inputs):
            is_product = op_name(call) in _PRODUCTS and len(call.inputs) == 1
            if op_name(call) not in _SUMS and not is_product:
                return False
            if is_product:
                products[call.site] = call
            reached |= {access.tensor for access in call.outputs}
    return len(reached) > len(leaves) and not any(_is_by_read_number(facts, each, before) for each in products.values())


def _of_loss(facts: TraceIndex, before: int, backward: Backward) -> list[Call]:
    """Returns the calls with a graph that lead to a loss, in order."""
    needed, found = {root.tensor for root in backward.roots}, list[Call]()
    for call in reversed(list(facts.calls_between(before, backward.index))):
        if call.nodes[1] > call.nodes[0] and any(access.tensor in needed for access in call.outputs):
            needed |= {access.tensor for access in call.inputs}
            found.append(call)
    return found[::-1]


def _is_by_read_number(facts: TraceIndex, product: Call, since: int) -> bool:
    """Returns whether a factor is a number that a line has read of a tensor, also by a name that it has."""
    node, span = facts.node_at(product.site), facts.span(product.site)
    if span is None or node is None:
        return False
    sites = {call.site for call in facts.calls_between(since, product.index) if call.op in OPS_LEAVING_TORCH}
    reading = [read for site in sites if (read := facts.node_at(site)) is not None]
    parts = set(ast.walk(node))
    if any(each in parts for each in reading):
        return True
    stored = [facts.span(site) for site in sites]
    statements = [statement_around(facts, each) for each in stored if each is not None]
    names = {name for each in statements if each is not None for name in _targets(each)}
    for _ in range(_ROUNDS):
        for each in ast.walk(facts.tree(span.file)):
            if isinstance(each, ast.Assign | ast.AugAssign) and _read(each.value) & names:
                names |= _targets(each)
    return bool(_read(node) & names)


def _targets(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AugAssign | ast.AnnAssign | ast.For):
        targets = [statement.target]
    else:
        return set()
    parts = (part for target in targets for part in ast.walk(target))
    return {last_name(part) for part in parts if isinstance(part, ast.Name | ast.Attribute)} - {"self", ""}


def _read(node: ast.AST) -> set[str]:
    return {last_name(part) for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute)} - {"self", ""}
