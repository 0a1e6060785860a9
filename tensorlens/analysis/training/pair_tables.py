"""Follows the tables of all pairs of rows that contrastive losses compute, and the targets that name a partner of each.

A table is the product of rows with the transpose of these rows: `z @ z.T / temperature`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.whole_index import is_whole_index
from tensorlens.records.model import Call

PRODUCTS = frozenset("matmul rmatmul mm einsum linear cosine_similarity".split())
SCALING = frozenset(
    "mul rmul imul div truediv itruediv true_divide divide multiply clone contiguous float double to clamp".split()
)
JOINS = frozenset("cat concat concatenate hstack vstack row_stack".split())
TURNS = frozenset("t T mT transpose permute swapaxes adjoint".split())
_FACTORS = frozenset("mul rmul div truediv".split())
_FOLDS = frozenset("view reshape flatten unflatten stack squeeze".split())
_PARTS = frozenset("chunk split tensor_split unbind getitem".split())
_LENGTHS = frozenset(
    "expand expand_as unsqueeze norm vector_norm clamp clamp_min clip sqrt rsqrt sum add pow square".split()
)
_OF_PARTNERS = frozenset(
    "arange add radd iadd sub remainder mod roll flip xor bitwise_xor to long view reshape flatten".split()
)
_MOVES = frozenset("xor bitwise_xor roll flip".split())
_MOST_CALLS, _MOST_VIEWS = 60, 4


@dataclass(frozen=True, slots=True)
class PairedRows:
    """A call that takes one element of each row of a table, as the target says, and the product that the table is."""

    pairs: Call
    target: int
    product: Call
    rows: int


def shape_of(facts: TraceIndex, number: int) -> tuple[int, ...]:
    return facts.tensor(number).shape


def made_by(facts: TraceIndex, number: int, before: int) -> Call | None:
    return next(iter(facts.producers(number, before)), None)


def paired_rows(facts: TraceIndex, calls: tuple[Call, ...]) -> Iterator[PairedRows]:
    """Yields the calls of a loss that take an element of each row of a square table, which nothing masks or moves."""
    for call in calls:
        table, target = _table_and_target(facts, call)
        shape = shape_of(facts, table) if table >= 0 else ()
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 4 or shape_of(facts, target)[:1] != shape[:1]:
            continue
        product = product_below(facts, table, call.index, shape)
        if product is not None:
            yield PairedRows(call, target, product, shape[0])


def _table_and_target(facts: TraceIndex, call: Call) -> tuple[int, int]:
    """Returns the table whose softmax a call takes an element of each row of, and which ones; (-1, -1): it does not."""
    name, inputs = op_name(call), [access.tensor for access in call.inputs]
    if name == "cross_entropy" and len(inputs) == 2:
        return inputs[0], inputs[1]
    is_indexed = name == "getitem" and len(inputs) == 3
    if not is_indexed and not (name in ("nll_loss", "gather") and len(inputs) == 2):
        return -1, -1
    made = made_by(facts, inputs[0], call.index)
    return (made.inputs[0].tensor, inputs[-1]) if made is not None and op_name(made) == "log_softmax" else (-1, -1)


def product_below(
    facts: TraceIndex, number: int, before: int, shape: tuple[int, ...], passed: frozenset[str] = SCALING
) -> Call | None:
    """Returns the product that a table is, up to a factor; None if anything else has changed it since.

    `passed` are the operations that do not count as a change.
    """
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None or not made.inputs:
            return None
        if op_name(made) in PRODUCTS:
            return made
        tables = [access.tensor for access in made.inputs if shape_of(facts, access.tensor) == shape]
        others = [access.tensor for access in made.inputs if shape_of(facts, access.tensor) not in (shape, (), (1,))]
        if op_name(made) not in passed or len(tables) != 1 or others:
            return None
        number, before = tables[0], made.index
    return None


def rows_of(facts: TraceIndex, product: Call) -> int | None:
    """Returns the tensor whose rows a product takes with themselves; None if it takes others."""
    sources = {_untransposed(facts, access.tensor, product.index) for access in product.inputs}
    return sources.pop() if len(sources) == 1 else None


def _untransposed(facts: TraceIndex, number: int, before: int) -> int:
    """Returns the tensor that another one is the transpose of, or a multiple, or that with further dimensions."""
    for _ in range(_MOST_VIEWS):
        made = made_by(facts, number, before)
        if made is None or len(made.inputs) != 1 or made.writes:
            break
        is_same = op_name(made) in TURNS | _FACTORS or op_name(made) == "unsqueeze" or is_whole_index(facts, made)
        if not is_same:
            break
        number, before = made.inputs[0].tensor, made.index
    return number


def has_unit_rows(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a call has divided each row by its length."""
    waiting = [(number, before)]
    for one, limit in waiting:
        made = made_by(facts, one, limit)
        if made is None or not made.inputs or len(waiting) > _MOST_CALLS:
            return False
        if op_name(made) == "normalize" or _divides_by_length(facts, made):
            continue
        keeps_rows = (
            op_name(made) in _PARTS and shape_of(facts, one)[-1:] == shape_of(facts, made.inputs[0].tensor)[-1:]
        )
        if op_name(made) not in JOINS | _FOLDS and not keeps_rows:
            return False
        waiting += [(access.tensor, made.index) for access in made.inputs[: 1 if keeps_rows else None]]
    return True


def _divides_by_length(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call is `z / z.norm(dim=1, keepdim=True)`, with or without a least length."""
    if op_name(call) not in ("div", "truediv", "true_divide", "divide", "mul") or len(call.inputs) != 2:
        return False
    number, before, names = call.inputs[1].tensor, call.index, set[str]()
    for _ in range(6):
        made = made_by(facts, number, before)
        if made is None or not made.inputs or op_name(made) not in _LENGTHS:
            return False
        names.add(op_name(made))
        number, before = made.inputs[0].tensor, made.index
        if number == call.inputs[0].tensor:
            is_inverse = "rsqrt" in names
            return is_inverse == (op_name(call) == "mul") and bool(names & {"norm", "vector_norm", "sqrt", "rsqrt"})
    return False


def target_calls(facts: TraceIndex, target: int, before: int) -> list[Call] | None:
    """Returns the calls that have made a target of `arange()`, the last first; None if anything else has."""
    made, waiting = list[Call](), [(target, before)]
    for number, limit in waiting:
        call = made_by(facts, number, limit)
        if call is None or len(made) > _MOST_CALLS or op_name(call) not in _OF_PARTNERS | JOINS:
            return None
        made.append(call)
        waiting += [(access.tensor, call.index) for access in call.inputs]
    return made


def names_others(facts: TraceIndex, made: list[Call]) -> bool:
    """Returns whether the calls that made a target give each row another one as its partner."""
    names = {op_name(call) for call in made}
    if names & _MOVES or (names & {"add", "radd", "iadd"} and names & {"remainder", "mod"}):
        return True
    join = next((call for call in made if op_name(call) in JOINS), None)
    if join is None or len(join.inputs) != 2:
        return False
    first, second = (_is_later(facts, access.tensor, join.index) for access in join.inputs)
    return first and not second


def _is_later(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether numbers do not begin at 0: `arange(n, 2 * n)`, or `arange(n) + n`."""
    made = made_by(facts, number, before)
    if made is None or op_name(made) != "arange":
        return made is not None and op_name(made) in ("add", "radd", "iadd")
    node = facts.node_at(made.site)
    return isinstance(node, ast.Call) and len(node.args) >= 2 and ast.unparse(node.args[0]) != "0"
