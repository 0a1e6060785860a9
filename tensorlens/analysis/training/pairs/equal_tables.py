"""Finds symmetric contrastive losses whose two tables have the same values, as a run has measured them.

One of the tables should be the transpose of the other: then the rows of both are different comparisons.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.looked_at import call_of
from tensorlens.analysis.training.pair_tables import (
    SCALING,
    TURNS,
    made_by,
    product_below,
    rows_of,
    shape_of,
    target_calls,
)
from tensorlens.analysis.training.pairs.equal_directions import is_parameter
from tensorlens.records.model import Call

_LOSSES = frozenset(("cross_entropy", "nll_loss"))
_TAKES = frozenset("nll_loss diag diagonal trace getitem gather take_along_dim".split())
_OF_SUMS = frozenset("sub rsub isub add radd iadd mean sum".split())
_VIEWS = TURNS | frozenset(("neg", "mul", "rmul", "clone", "log"))
_LEAST_LOOKS, _MOST_LATER = 2, 60


@dataclass(frozen=True, slots=True)
class EqualTables:
    """Two calls that normalise the rows of tables with the same values, and the products that the tables are."""

    first: Call
    second: Call
    products: tuple[Call, Call]
    rows: int


def equal_tables(facts: TraceIndex) -> Iterator[EqualTables]:
    """Yields these, one for each pair of lines, where all passes that were looked at have equal tables."""
    pairs = defaultdict[tuple[int, int], list[EqualTables | None]](list)
    for each in facts.trace.inspection.normalized_tables:
        first, second = (call_of(facts, each, node) for node in (each.first, each.second))
        if first is not None and second is not None and first.index != second.index:
            pairs[first.site, second.site].append(_found(facts, first, second, each.rows) if each.are_equal else None)
    for found in pairs.values():
        known = [each for each in found if each is not None]
        if len(known) == len(found) >= _LEAST_LOOKS:
            yield known[0]


def _found(facts: TraceIndex, first: Call, second: Call, rows: int) -> EqualTables | None:
    if op_name(first) != op_name(second) or not all(_takes_partners(facts, each) for each in (first, second)):
        return None
    products = [_product(facts, each, (rows, rows)) for each in (first, second)]
    one, other = products
    return None if one is None or other is None else EqualTables(first, second, (one, other), rows)


def _product(facts: TraceIndex, call: Call, shape: tuple[int, int]) -> Call | None:
    """Returns the product of rows of two batches that a table is."""
    made = product_below(facts, call.inputs[0].tensor, call.index, shape, SCALING | TURNS)
    if made is None or len(made.inputs) != 2 or rows_of(facts, made) is not None:
        return None
    return None if any(is_parameter(facts, each.tensor, made.index) for each in made.inputs) else made


def _takes_partners(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a loss takes one element of each normalised row, by a target that counts the rows."""
    if op_name(call) in _LOSSES:
        return len(call.inputs) == 2 and target_calls(facts, call.inputs[1].tensor, call.index) is not None
    known = {access.tensor for access in call.outputs}
    for reader in islice(facts.calls_between(call.index + 1), _MOST_LATER):
        read = [access.tensor for access in reader.inputs]
        if known.isdisjoint(read):
            continue
        if op_name(reader) in (_OF_SUMS if op_name(call) == "logsumexp" else _TAKES):
            others = [each for each in read if each not in known] if op_name(reader) == "nll_loss" else []
            return all(target_calls(facts, each, reader.index) is not None for each in others)
        if op_name(reader) == "mul" and any(_is_diagonal(facts, each, reader.index) for each in read):
            return True
        if op_name(reader) not in _VIEWS or shape_of(facts, read[0]) not in (shape_of(facts, each) for each in known):
            return False
        known |= {access.tensor for access in reader.outputs}
    return False


def _is_diagonal(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a product with a tensor keeps the diagonal."""
    made = made_by(facts, number, before)
    return made is not None and op_name(made) == "eye"
