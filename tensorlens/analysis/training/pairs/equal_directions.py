"""Finds symmetric contrastive losses that compute one direction twice: the second one has the table as it is, not its
transpose."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import LINEAR, op_name, sums_below
from tensorlens.analysis.training.loss_calls import examined_passes
from tensorlens.analysis.training.pair_tables import made_by, product_below, shape_of, target_calls
from tensorlens.analysis.training.written_losses import loss_options
from tensorlens.records.model import Call

_LOSSES = frozenset(("cross_entropy", "nll_loss"))
_MOST_CALLS = 12


@dataclass(frozen=True, slots=True)
class EqualDirections:
    """Two terms of one sum that are the same loss of the same table and target."""

    first: Call
    second: Call
    table: int
    rows: int


def equal_directions(facts: TraceIndex) -> Iterator[EqualDirections]:
    """Yields these pairs, one for each line."""
    reported = set[int]()
    for backward in examined_passes(facts):
        for added in sums_below(facts, backward):
            terms = [_loss(facts, access.tensor, added.index) for access in added.inputs]
            first, second = terms if len(terms) == 2 else (None, None)
            if first is None or second is None or first.index == second.index or second.site in reported:
                continue
            shape = shape_of(facts, first.inputs[0].tensor)
            is_square = len(shape) == 2 and shape[0] == shape[1] and shape[0] > 1
            if is_square and _are_equal(facts, first, second) and _has_pairs(facts, first, shape):
                reported.add(second.site)
                first, second = sorted((first, second), key=lambda call: call.index)
                yield EqualDirections(first, second, first.inputs[0].tensor, shape[0])


def _loss(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the loss that a term of a sum is, up to a factor."""
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None or op_name(made) in _LOSSES:
            return made
        trained = [access.tensor for access in made.inputs if facts.requires_grad(access.tensor, made.index - 1)]
        if op_name(made) not in LINEAR or len(trained) != 1:
            return None
        number, before = trained[0], made.index
    return None


def _are_equal(facts: TraceIndex, first: Call, second: Call) -> bool:
    """Returns whether two calls compute the same of the same tensors, with the same options."""
    if first.op != second.op or [access.tensor for access in first.inputs] != [each.tensor for each in second.inputs]:
        return False
    written = {access.tensor for call in facts.calls_between(first.index, second.index) for access in call.writes}
    if written & {access.tensor for access in first.inputs}:
        return False
    one, other = _options(facts, first), _options(facts, second)
    return one is not None and one == other


def _options(facts: TraceIndex, call: Call) -> list[tuple[str, str]] | None:
    """Returns the options of a loss; None if the source does not show all, and that they are the same each time."""
    options = loss_options(facts, call)
    if options is None or not all(isinstance(each, ast.Constant) for name, each in options.items() if name != "weight"):
        return None
    return sorted((name, ast.unparse(value)) for name, value in options.items())


def _has_pairs(facts: TraceIndex, loss: Call, shape: tuple[int, ...]) -> bool:
    """Returns whether a loss compares each row of one batch with all of another, and the target names its partner.

    Scores of as many classes as there are samples have a square table, too.
    """
    if len(loss.inputs) < 2:
        return False
    table, before = loss.inputs[0].tensor, loss.index
    made = made_by(facts, table, before) if op_name(loss) == "nll_loss" else None
    if made is not None and op_name(made) == "log_softmax":
        table, before = made.inputs[0].tensor, made.index
    product = product_below(facts, table, before, shape)
    if product is None or len(product.inputs) != 2 or target_calls(facts, loss.inputs[1].tensor, loss.index) is None:
        return False
    return not any(is_parameter(facts, access.tensor, product.index) for access in product.inputs)


def is_parameter(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a side of a product is a parameter, or this in another form: then it has a row for each class."""
    for _ in range(_MOST_CALLS):
        if facts.is_leaf_requiring_grad(number, before - 1):
            return True
        made = made_by(facts, number, before)
        if made is None or not made.inputs or (len(made.inputs) > 1 and op_name(made) not in ("div", "truediv")):
            return False
        number, before = made.inputs[0].tensor, made.index
    return False
