"""Finds contrastive losses in which each row is compared with itself: its own length is one of the logits.

A row of length 1 has the product 1 with itself, more than with any other one, whatever the model learns.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.pair_tables import (
    PairedRows,
    has_unit_rows,
    names_others,
    paired_rows,
    rows_of,
    target_calls,
)


def own_similarities(facts: TraceIndex) -> Iterator[PairedRows]:
    """Yields the calls that take another element of each row as its target, one for each line.

    The target must be made of `arange()`: with labels of another kind a row may be its own partner.
    """
    reported = set[int]()
    for backward in examined_passes(facts):
        for found in paired_rows(facts, recorded_above(facts, backward)):
            rows = rows_of(facts, found.product) if found.pairs.site not in reported else None
            if rows is None:
                continue
            is_unit = op_name(found.product) == "cosine_similarity" or has_unit_rows(facts, rows, found.product.index)
            made = target_calls(facts, found.target, found.pairs.index) if is_unit else None
            if made is not None and names_others(facts, made):
                reported.add(found.pairs.site)
                yield found
