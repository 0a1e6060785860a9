"""Makes the edits that let an operation keep a copy: later writes then do not reach what backward needs.

Such an edit changes no value and no gradient, whoever else shares the memory.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache

from tensorlens.analysis.naming.places import callers
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.saved_tensors import Save, shares_memory
from tensorlens.analysis.trace_index import TraceIndex, is_result_slot
from tensorlens.records.model import Call, Span
from tensorlens.records.report import Edit

_PRIMARY = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


def copies_for(facts: TraceIndex, saves: Iterable[Save], changed_at: int) -> tuple[Edit, ...]:
    """Appends `.clone()` to each expression that gives a tensor to an operation, or is the operation whose result was
    kept. () if one of the tensors has no such expression.

    `changed_at` is the site of the write: a copy of an expression does not help against a write inside it.
    """
    edits: dict[Span, tuple[Edit, ...]] = {}
    for save in saves:
        parts = [] if save.call is None else list(_kept_expressions(facts, save, save.call))
        if not parts or save.call is None or save.call.site == changed_at:
            return ()
        file = facts.trace.sites[save.call.site].span.file
        for part in parts:
            made = tuple(_cloned(facts, part, file))
            if not made:
                return ()
            edits[made[-1].span] = made
    return tuple(edit for made in edits.values() for edit in made)


def _cloned(facts: TraceIndex, node: ast.expr, file: str) -> Iterator[Edit]:
    """Yields the edits that put `.clone()` behind an expression, in brackets where it needs them."""
    if isinstance(node, ast.Starred) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return
    span = facts.span_of(node, file)
    end = Span(file, span.end_line, span.end_column, span.end_line, span.end_column)
    if isinstance(node, _PRIMARY):
        yield Edit(end, ".clone()")
    else:
        yield Edit(Span(file, span.line, span.column, span.line, span.column), "(")
        yield Edit(end, ").clone()")


def _kept_expressions(facts: TraceIndex, save: Save, call: Call) -> Iterator[ast.expr]:
    """Yields the expressions whose value an operation kept: all places of its line that give it the tensor."""
    site = facts.trace.sites[call.site]
    node = facts.names.syntax.node(site.span)
    if save.tensor is None or not isinstance(node, ast.expr) or _is_in_text(facts, node, site.span.file):
        return
    if call.op.startswith("autograd.") or "_foreach" in call.op:
        return  # its operands are lists of tensors
    is_input = save.tensor in {access.tensor for access in call.inputs}
    if is_result_slot(save.saved.slot) or (not save.saved.slot and not is_input):
        if _is_value(facts, call, save.tensor):
            yield node
        return
    access = next((a for a in call.inputs if a.tensor == save.tensor), None)
    if access is None or access.version != save.saved.expected:
        return
    yield from _operands(facts, node, save.tensor, call)


def _operands(facts: TraceIndex, node: ast.expr, number: int, call: Call) -> Iterator[ast.expr]:
    """Yields the operands of the expression at a call that are a tensor."""
    site = facts.trace.sites[call.site]
    if facts.names.syntax.is_direct(site, call.op):
        operands = facts.names.syntax.operands(site, call.op)
        given = [access.tensor for access in call.inputs]
        if len(operands) == len(given):
            yield from (each for each, tensor in zip(operands, given, strict=True) if tensor == number)
            return
    elif isinstance(node, ast.Call):
        operands = [*node.args, *(keyword.value for keyword in node.keywords)]
        operands = [each for each in operands if not isinstance(each, ast.Constant)]
        if ast.unparse(node.func).rpartition(".")[2] == "checkpoint":
            operands = operands[1:]  # the function
    else:
        return
    name = facts.names.script_name(number, call.index)
    made = facts.creator(number)
    place = None if made is None else facts.span(made.site)
    found = [
        each
        for each in operands
        if (plain_name(each) is not None and plain_name(each) == name)
        or (place is not None and facts.span_of(each, site.span.file) == place)
    ]
    if not found and len(operands) == 1 and _is_input_of_layer(facts, call, number):
        found = operands
    yield from found


def _is_input_of_layer(facts: TraceIndex, call: Call, number: int) -> bool:
    """Returns whether the first input of a call by library code came from the line that calls it."""
    made = facts.creator(number)
    inside = () if made is None else facts.call_chain(made.site)
    is_direct = facts.names.syntax.is_direct(facts.trace.sites[call.site], call.op)
    return not is_direct and call.inputs[0].tensor == number and call.site not in inside


def _is_value(facts: TraceIndex, call: Call, number: int) -> bool:
    """Returns whether the expression at a call has the call's result as its value.

    A layer returns the result of its last call, if a later line uses that result.
    """
    site = facts.trace.sites[call.site]
    if len(call.outputs) != 1 or call.writes or call.outputs[0].tensor != number:
        return False
    if facts.names.syntax.is_direct(site, call.op):
        return True
    after = next(facts.calls_between(call.index + 1), None)
    if after is None or after.site == call.site or call.site in callers(facts.trace, after.site):
        return False
    later = (each for each in facts.calls_between(call.index + 1) if each.site != call.site)
    return any(shares_memory(facts, a.tensor, number) for each in later for a in each.inputs)


def _is_in_text(facts: TraceIndex, node: ast.expr, file: str) -> bool:
    """Returns whether an expression is part of an f-string, whose positions are not those of the source."""
    return node in _parts_of_texts(facts.tree(file))


@lru_cache(maxsize=8)
def _parts_of_texts(tree: ast.Module) -> frozenset[ast.AST]:
    texts = (each for each in ast.walk(tree) if isinstance(each, ast.JoinedStr))
    return frozenset(part for text in texts for part in ast.walk(text))
