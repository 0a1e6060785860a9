"""Looks for the signs that a comparison, or a mask, is one of padding: masks hide other places for other reasons."""

from __future__ import annotations

import ast
from math import prod

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.naming.name_words import words_of, words_of_last
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.triangles import SAME
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

PAD = frozenset("pad padding padded padid padidx".split())
_PADDING_PLACE = 2  # of the arguments of `nn.Embedding` and `functional.embedding`
_LENGTHS = frozenset("len lens length lengths size sizes".split())
_OF_TOKENS = frozenset(  # a source, an input or a text can be what precedes another part of the same row
    "seq seqs sequence sequences token tokens x ids batch n num row rows valid true real actual".split()
)
REPEATING = frozenset("expand_as repeat".split())
_OF_OTHER_PLACES = frozenset("arange sub rsub isub eq".split())  # `T - lengths` counts what is left of each row
_ZEROS, _FULL = frozenset("zeros zeros_like new_zeros".split()), frozenset("full full_like new_full".split())
_OF_ALL_ROWS = ast.Slice | ast.Constant  # `[:, :k]` is a prior for the first places of each row
_MAX_CALLS = 8
_MAX_EARLIER = 200


def is_with_padding(facts: TraceIndex, comparison: Call, lookups: list[Call]) -> bool:
    """Returns whether ids are compared with the `padding_idx` of an embedding that looks them up, or with something
    that the line calls padding.

    `lookups`: all those of a pass. A table of flags or types can have a `padding_idx` for the type that most tokens
    have: the table with the most rows is that of the tokens.
    """
    span = facts.span(comparison.site)
    node = None if span is None else facts.names.syntax.node(span)
    other = node.comparators[0] if isinstance(node, ast.Compare) else None
    other = node.args[-1] if isinstance(node, ast.Call) and node.args else other
    if span is None or other is None:
        return False
    ids = comparison.inputs[0].tensor
    value, is_exact = _value(facts, span.file, other), op_name(comparison) in ("ne", "eq")
    readers = [call for call in lookups if call.inputs[0].tensor == ids]
    paddings = {_padding(facts, call) for call in readers} - {None}
    if (not is_exact and value != 0) or (value is not None and paddings - {value}):
        return False
    if PAD & set(words_of(ast.unparse(other))):
        return True
    shape = facts.tensor(ids).shape
    most = max(_rows(facts, call) for call in lookups if facts.tensor(call.inputs[0].tensor).shape == shape)
    return value is not None and any(_padding(facts, call) == value and _rows(facts, call) == most for call in readers)


def _value(facts: TraceIndex, file: str, node: ast.expr) -> float | None:
    value = number_of(facts, file, node)
    return written_number(facts, node) if value is None else value


def _rows(facts: TraceIndex, lookup: Call) -> int:
    shape = facts.tensor(lookup.inputs[1].tensor).shape if len(lookup.inputs) > 1 else ()
    return shape[0] if shape else 0


def _padding(facts: TraceIndex, lookup: Call) -> float | None:
    """Returns the `padding_idx` that a look-up, or the constructor of its embedding, is given."""
    made = facts.creator(lookup.inputs[1].tensor) if len(lookup.inputs) > 1 else None
    for call in (lookup, made):
        span = None if call is None else facts.span(call.site)
        node = None if span is None else facts.names.syntax.node(span)
        if span is None or not isinstance(node, ast.Call) or not ast.unparse(node.func).lower().endswith("embedding"):
            continue
        given = [each.value for each in node.keywords if each.arg == "padding_idx"] or node.args[_PADDING_PLACE:][:1]
        if given:
            return _value(facts, span.file, given[0])
    return None


def lengths_of(facts: TraceIndex, comparison: Call) -> int | None:
    """Returns the lengths, one for each sample, that a comparison has with the places of each row.

    The name has to say that they are lengths of tokens: the number of places of another document, of left padding or
    of what was read already is compared in the same way.
    """
    places, numbers = (facts.tensor(access.tensor).shape for access in comparison.inputs)
    whole = facts.tensor(comparison.outputs[0].tensor).shape
    is_of_rows = len(numbers) > 1 and prod(numbers) == numbers[0] == whole[0] > 1
    if not is_of_rows or not places or not places[-1] == whole[-1] > 1:
        return None
    if not is_counted(facts, comparison.inputs[0].tensor, comparison.index):
        return None
    number, before, is_named = comparison.inputs[1].tensor, comparison.index, False
    for _ in range(_MAX_CALLS):
        words = set(words_of_last(facts.name(number, before)))
        is_named |= bool(words & _LENGTHS) and words <= _LENGTHS | _OF_TOKENS
        made = next(iter(facts.producers(number, before)), None)
        is_same = made is not None and op_name(made) in SAME and len(made.inputs) == 1
        if made is None or not is_same or len(facts.tensor(number).shape) == 1:
            break
        number, before = made.inputs[0].tensor, made.index
    earlier = ancestry(facts, number, before, _MAX_CALLS)
    return number if is_named and all(op_name(call) not in _OF_OTHER_PLACES for _, call in earlier) else None


def is_counted(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a tensor is a range of positions."""
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or op_name(made) not in SAME | REPEATING:
            return made is not None and op_name(made) == "arange"
        number, before = made.inputs[0].tensor, made.index
    return False


def marks_beginnings(facts: TraceIndex, mask: int, before: int) -> bool:
    """Returns whether a mask is True at the beginning of each row: as far as its length, or where a line has written to
    zeros with `mask[i, :n] = True`."""
    return any(_begins(facts, call) for _, call in ancestry(facts, mask, before, _MAX_EARLIER))


def _begins(facts: TraceIndex, call: Call) -> bool:
    if op_name(call) == "lt" and len(call.inputs) == 2:
        return lengths_of(facts, call) is not None
    if op_name(call) != "setitem" or not call.inputs:
        return False
    made, span = facts.creator(call.inputs[0].tensor), facts.span(call.site)
    node = None if span is None else facts.names.syntax.node(span)
    if made is None or not is_blank(facts, made) or not isinstance(node, ast.Subscript):
        return False
    *rows, last = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    is_row = len(facts.tensor(call.inputs[0].tensor).shape) == 1 or bool(rows and not isinstance(rows[0], _OF_ALL_ROWS))
    if not is_row or not isinstance(last, ast.Slice) or isinstance(last.upper, ast.Constant):
        return False
    return last.lower is None and last.upper is not None and last.step is None


def is_blank(facts: TraceIndex, made: Call) -> bool:
    """Returns whether a call makes a tensor of zeros, or fills it with what the source calls padding."""
    node, span = facts.node_at(made.site), facts.span(made.site)
    if op_name(made) not in _FULL or not isinstance(node, ast.Call) or span is None:
        return op_name(made) in _ZEROS
    given = [each.value for each in node.keywords if each.arg == "fill_value"] or node.args[1:2]
    is_padding = any(PAD & set(words_of(ast.unparse(each).split(".")[-1])) for each in given)
    return is_padding or any(_value(facts, span.file, each) == 0 for each in given)
