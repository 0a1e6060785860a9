"""Puts the statements that write to a leaf under `torch.no_grad()`, where recorded facts show that they are updates."""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import block_around, function_around, statement_at
from tensorlens.analysis.lineage import ancestry, leaves_above
from tensorlens.analysis.naming.bindings import root_of
from tensorlens.analysis.naming.variables import assigned_in, read_in
from tensorlens.diagnostics.shared.edits.imports import imported
from tensorlens.diagnostics.shared.edits.statements import wrapped
from tensorlens.diagnostics.shared.edits.writes import (
    as_new_tensor,
    owner_of,
    statements_of,
    target_of,
)
from tensorlens.diagnostics.shared.rejected_call import RejectedCall
from tensorlens.records.model import Call
from tensorlens.records.report import Edit


def under_no_grad(rejected: RejectedCall) -> tuple[Edit, ...] | None:
    """Puts the rejected write to a leaf, and the later writes to leaves in the same function, under `no_grad`.

    None if a gradient is meant to go through the write: what it writes is computed with recording from other things
    than tensors of the leaf's own shape, or the function goes on with a name of its own for the leaf.
    """
    facts, span = rejected.facts, rejected.facts.span(rejected.site)
    statement = None if span is None else statement_at(facts, span.file, span.line)
    if span is None or statement is None or target_of(statement) is None or not is_update(rejected):
        return None
    if computes_with_alias(rejected, statement):
        return None
    name = imported(facts, span.file, "torch")
    if name is None:
        return None
    edits: list[Edit] = [*name[1]]
    writes = _writes(rejected, span.file, statement)
    whole = _from_the_view(rejected, span.file, statement, writes)
    rest = writes if whole is None else [each for each in writes if not whole[0] <= each.lineno <= whole[1]]
    for first, last in [*([whole] if whole else []), *_runs(rejected, span.file, rest)]:
        more = wrapped(facts, span.file, first, last, f"with {name[0]}.no_grad():")
        if more is None:
            return None
        edits += more
    return tuple(edits)


def as_result(rejected: RejectedCall) -> tuple[Edit, ...] | None:
    """Rewrites a write to a leaf, through a name that the function then computes with, to make a new tensor."""
    facts, span = rejected.facts, rejected.facts.span(rejected.site)
    statement = None if span is None else statement_at(facts, span.file, span.line)
    if span is None or statement is None or not computes_with_alias(rejected, statement):
        return None
    edit = as_new_tensor(facts, span.file, statement)
    return None if edit is None else (edit,)


def is_update(rejected: RejectedCall) -> bool:
    """Returns whether the values that a call writes to a leaf need no gradient.

    They need none if they do not require grad, or if they are a mixture of leaves of the written one's shape, as in an
    average of two models. A gradient made with `create_graph=True` is to be differentiated again.
    """
    facts = rejected.facts
    if not rejected.inputs:
        return False
    written = rejected.inputs[0].tensor
    for number in {access.tensor for access in rejected.inputs} - {written}:
        if not facts.requires_grad(number, rejected.index):
            continue
        calls = [call for _, call in ancestry(facts, number, rejected.index)]
        if any(call.op == "autograd.grad" and _requires_grad(rejected, call) for call in calls):
            return False
        above = [number] if rejected.is_leaf(number) else leaves_above(facts, number, rejected.index)
        if not above or any(facts.tensor(leaf).shape != facts.tensor(written).shape for leaf in above):
            return False
    return True


def _requires_grad(rejected: RejectedCall, call: Call) -> bool:
    return any(rejected.facts.requires_grad(access.tensor, call.index) for access in call.outputs)


def computes_with_alias(rejected: RejectedCall, statement: ast.stmt) -> bool:
    """Returns whether a method `forward` changes a leaf by a name of its own, and then computes with that name.

    `w = self.weight`, `w *= self.mask`, `return F.linear(x, w)`: the product is a part of the computation.
    """
    facts, span = rejected.facts, rejected.facts.span(rejected.site)
    target = target_of(statement)
    function = None if span is None else function_around(facts, span.file, span.line)
    if span is None or function is None or function.name != "forward" or not isinstance(target, ast.Name):
        return False
    body = statements_of(facts, span.file, span.line)
    above = [each for each in body if each.lineno < statement.lineno and target.id in assigned_in(each)]
    below = [each for each in body if each.lineno > (statement.end_lineno or 0) and target.id in read_in(each)]
    made = above[-1] if above else None
    is_alias = isinstance(made, ast.Assign) and owner_of(made.value) is not None
    return is_alias and any(target_of(each) is None for each in below)


def _writes(rejected: RejectedCall, file: str, failed: ast.stmt) -> list[ast.stmt]:
    """Lists the rejected statement, and those below it in its function that write to a leaf too: to the same name, or
    to another name of a leaf that requires grad."""
    facts, site = rejected.facts, rejected.site
    scope = "" if site is None else facts.trace.sites[site].function
    bound = {b.name for b in facts.trace.end.bindings if b.scope == scope and _is_leaf(rejected, b.tensor)}
    target = target_of(failed)
    bound.add((owner_of(target) if target is not None else None) or "")
    body = [each for each in statements_of(facts, file, failed.lineno) if each.lineno >= failed.lineno]
    found = [failed]
    for each in body:
        place = target_of(each)
        owner = None if place is None else owner_of(place)
        root = "" if owner is None else root_of(owner)
        between = (one for one in body if one.lineno < each.lineno)
        if each is not failed and owner in bound and not any(_sets(one, root) for one in between):
            found.append(each)
    return found


def _from_the_view(
    rejected: RejectedCall, file: str, failed: ast.stmt, writes: list[ast.stmt]
) -> tuple[int, int] | None:
    """Returns the lines from the statement that takes a view to the last one that reads its name.

    None if another statement than a write, or one that makes a new parameter of it, reads it: that may need recording.
    """
    target = target_of(failed)
    name = None if target is None else owner_of(target)
    block = block_around(rejected.facts, file, failed)
    if name is None or not name.isidentifier():
        return None
    made = next((each for each in block if isinstance(each, ast.Assign) and _sets(each, name)), None)
    if made is None or made.lineno > failed.lineno or not _is_view(made.value):
        return None
    body = statements_of(rejected.facts, file, failed.lineno)
    inside = [each for each in body if each is not made and name in read_in(each) and not hasattr(each, "body")]
    last = max(inside, key=lambda each: each.lineno)
    plain = all(each in writes or _makes_parameter(each) for each in inside if each.lineno > made.lineno)
    is_here = all(any(each is one for one in block) and each.lineno > made.lineno for each in inside)
    between = [each for each in block if made.lineno < each.lineno < last.lineno and each not in inside]
    return (made.lineno, last.lineno) if plain and is_here and not between else None


def _is_view(value: ast.expr) -> bool:
    return not isinstance(value, ast.Name | ast.Attribute) and owner_of(value) is not None


def _makes_parameter(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Assign | ast.Return) else None
    return isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] == "Parameter"


def _sets(statement: ast.stmt, name: str) -> bool:
    """Returns whether a statement gives a variable another object; a change in place does not."""
    changed = [part.target for part in ast.walk(statement) if isinstance(part, ast.AugAssign)]
    return any(
        isinstance(part, ast.Name) and part.id == name and not isinstance(part.ctx, ast.Load)
        for part in ast.walk(statement)
        if not any(part is each for each in changed)
    )


def _is_leaf(rejected: RejectedCall, number: int) -> bool:
    base = rejected.facts.tensor(number).base
    return rejected.is_leaf(number) or (base is not None and rejected.is_leaf(base))


def _runs(rejected: RejectedCall, file: str, writes: list[ast.stmt]) -> list[tuple[int, int]]:
    """Groups statements that follow each other in one block: the lines of the first and last of each group."""
    runs: list[tuple[ast.stmt, ast.stmt]] = []
    for each in writes:
        block = block_around(rejected.facts, file, each)
        at = next((n for n, one in enumerate(block) if one is each), 0)
        if runs and at and block[at - 1] is runs[-1][1]:
            runs[-1] = runs[-1][0], each
        else:
            runs.append((each, each))
    return [(first.lineno, last.lineno) for first, last in runs]
