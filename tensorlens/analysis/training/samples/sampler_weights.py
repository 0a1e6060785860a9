"""Finds draws with one weight for each class, whose results are taken for places of samples."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeGuard

from tensorlens.analysis.code_around import class_around, function_around, method_of
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Call

_READS = frozenset(("getitem", "index_select"))
_SHAPING = frozenset("view reshape flatten split chunk unbind iter getitem to clone tolist".split())
_COUNTS = frozenset("bincount unique unique_consecutive histc".split())
_GROUPS = frozenset(
    "class classes episode episodes category categories member members group groups bin bins task tasks identity "
    "identities cluster clusters domain domains".split()
)
_LOADERS = ("_BaseDataLoaderIter.__next__", "DataLoader.__iter__", "WeightedRandomSampler.__iter__")
_MAX_DRAWS, _MAX_CALLS, _MAX_USES, _MOST_CLASSES = 40, 24, 400, 4


@dataclass(frozen=True, slots=True)
class ClassDraws:
    """A draw with few weights, the call that takes samples at what it returns, and the call that made the weights."""

    drawn: Call
    taken: Call
    made: Call | None
    weights: int
    samples: int


def class_draws(facts: TraceIndex) -> Iterator[ClassDraws]:
    """Yields these, one for each line that draws.

    A loader draws as many samples as its data have, of fewer weights; or a line takes rows of the samples whose labels
    were counted for the weights.
    """
    seen, draws = set[int](), (call for call in facts.calls if op_name(call) == "multinomial" and call.inputs)
    for drawn in islice(draws, _MAX_DRAWS):
        weights = drawn.inputs[0].tensor
        shape = facts.tensor(weights).shape
        if len(shape) != 1 or drawn.site in seen:
            continue
        is_loader = facts.trace.sites[drawn.site].through in _LOADERS
        find = _loaded if is_loader else _indexed
        found = find(facts, drawn, shape[0])
        if found is not None:
            seen.add(drawn.site)
            taken, samples = found
            yield ClassDraws(drawn, taken, facts.creator(weights), shape[0], samples)


def _loaded(facts: TraceIndex, drawn: Call, weights: int) -> tuple[Call, int] | None:
    """Returns the call of a loader that takes one of as many rows as the sampler draws.

    One that takes several of them, as an episode of a long sequence, has been given another number.
    """
    count = facts.tensor(drawn.outputs[0].tensor).shape[-1]
    if count < _MOST_CLASSES * weights:
        return None
    calls = [
        call
        for call in islice(facts.calls_between(drawn.index + 1), _MAX_CALLS)
        if op_name(call) == "getitem"
        and len(call.inputs) == 1
        and facts.tensor(call.inputs[0].tensor).shape[:1] == (count,)
    ]
    is_other = any(_is_part(facts, call) or not _is_at_drawn(facts, call, weights) for call in calls)
    return None if not calls or is_other else (calls[0], count)


def _is_at_drawn(facts: TraceIndex, call: Call, weights: int) -> bool:
    """Returns whether a data set takes rows at the number that it is given, and is no data set of classes.

    Such a one has as many items as there are weights, or draws one of the rows of a class.
    """
    site, span, node = facts.trace.sites[call.site], facts.span(call.site), facts.node_at(call.site)
    if site.through in _LOADERS:  # no line of the program chooses the row
        return True
    function = None if span is None else function_around(facts, span.file, span.line)
    holder = None if span is None else class_around(facts, span.file, span.line)
    if function is None or holder is None or function.name != "__getitem__" or len(function.args.args) == 1:
        return False
    index = node.slice if isinstance(node, ast.Subscript) else None
    first = next(iter(index.elts), None) if isinstance(index, ast.Tuple) else index
    given, stored = function.args.args[1].arg, {each.id for each in ast.walk(function) if _is_stored(each)}
    length = method_of(holder, "__len__")
    is_of_data = length is not None and not _is_of_classes(length, weights)
    return isinstance(first, ast.Name) and first.id == given and given not in stored and is_of_data


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _is_of_classes(length: ast.FunctionDef, weights: int) -> bool:
    """Returns whether the length of a data set is the number of the weights, or is named as one of groups of rows."""
    nodes = list(ast.walk(length))
    is_same = any(isinstance(each, ast.Constant) and each.value == weights for each in nodes)
    return is_same or bool(_GROUPS & set(words_of(" ".join(map(ast.unparse, length.body)))))


def _is_part(facts: TraceIndex, call: Call) -> bool:
    """Returns whether an index takes several rows, as a slice does."""
    node = facts.node_at(call.site)
    index = node.slice if isinstance(node, ast.Subscript) else None
    first = next(iter(index.elts), None) if isinstance(index, ast.Tuple) else index
    before, after = (len(facts.tensor(each[0].tensor).shape) for each in (call.inputs, call.outputs))
    return isinstance(first, ast.Slice) or after >= before


def _indexed(facts: TraceIndex, drawn: Call, weights: int) -> tuple[Call, int] | None:
    """Returns the call that takes rows at drawn numbers, of as many rows as values were counted for the weights."""
    above = islice(ancestry(facts, drawn.inputs[0].tensor, drawn.index), _MAX_CALLS)
    counts = [call for _, call in above if op_name(call) in _COUNTS and len(call.inputs) == 1]
    counted = {facts.tensor(call.inputs[0].tensor).shape for call in counts}
    known = {drawn.outputs[0].tensor}
    for call in islice(facts.calls_between(drawn.index + 1), _MAX_USES if counted else 0):
        given = [access.tensor for access in call.inputs]
        if op_name(call) in _READS and len(given) == 2 and given[1] in known:
            rows = facts.tensor(given[0]).shape[:1]
            return (call, rows[0]) if rows in counted and rows[0] > weights else None
        if op_name(call) in _SHAPING and known & set(given):
            known |= {access.tensor for access in call.outputs}
    return None
