"""Names choices of the nearest row with the same label that always choose the row itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from math import prod

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.pairs.own_extremes import own_extremes
from tensorlens.analysis.training.whole_index import is_whole_index
from tensorlens.analysis.written_call import written_call
from tensorlens.analysis.written_numbers import written_number
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_LEAST = frozenset(("min", "amin"))
_VIEWS = frozenset("getitem unsqueeze view reshape t T transpose expand".split())
_NOT = frozenset(("invert", "logical_not", "bitwise_not", "rsub"))
_CASTS = frozenset("float to double bool type int long".split())
_MAX_DEPTH = 8
_LENGTHS = frozenset("sqrt clamp clamp_min sum pow square abs norm vector_norm".split())
_LARGE = 100.0


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds the least of distances among rows, the row itself included, where others are masked by a large number."""
    facts, seen, named = training.facts, set[int](), set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            if op_name(call) not in _LEAST or len(call.inputs) != 1 or call.site in seen:
                continue
            seen.add(call.site)
            table = _own_distances(facts, call)
            if table is not None:
                yield stands_out(
                    f"{as_written(facts, call)} takes the least of the distances to the rows with the same label, of "
                    "which the row itself is one: its own distance is 0, and no other one can be less",
                    facts.label("needed_here", call.site, "the row itself is among them", call.index),
                    facts.label("value_made_here", table.site, "distances of rows, also to themselves", table.index),
                )
                named.add(call.site)
    for each in own_extremes(facts):
        if each.chosen.site not in named:
            yield stands_out(
                f"{as_written(facts, each.chosen)} chooses one element of each row of a table, which "
                f"{as_written(facts, each.compared)} makes by comparing rows with themselves: in all {each.rows:,} "
                f"rows that of the row itself. {as_written(facts, each.mask)} leaves it in",
                facts.label("needed_here", each.chosen.site, "the row itself is among them", each.chosen.index),
                facts.label("value_made_here", each.compared.site, "rows are compared here", each.compared.index),
            )


def _own_distances(facts: TraceIndex, call: Call) -> Call | None:
    """Returns the distances that a call takes the least of, if it leaves out only rows with other labels."""
    number, shape = call.inputs[0].tensor, facts.tensor(call.inputs[0].tensor).shape
    masked = next(iter(facts.producers(number, call.index)), None)
    if masked is None or len(shape) != 2 or shape[0] != shape[1] or len(masked.inputs) < 2 or not call.outputs:
        return None
    if facts.tensor(call.outputs[0].tensor).shape not in ((shape[0],), (shape[0], 1), (1, shape[0])):
        return None
    name, inputs = op_name(masked), [access.tensor for access in masked.inputs]
    if name == "masked_fill":
        table, mask, is_kept = inputs[0], inputs[1], False
    elif name == "where":
        table, mask, is_kept = inputs[1], inputs[0], True
    elif name in ("add", "radd"):
        table, mask, is_kept = *_summands(facts, masked), False
    else:
        return None
    made = _distances(facts, table, masked.index)
    is_same = _is_same_label(facts, mask, masked.index)
    return made if made is not None and is_same is is_kept and _fills_much(facts, masked, name) else None


def _distances(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the call that compares each row of a table with all of the same table, if a tensor is their distances."""
    for _ in range(_MAX_DEPTH):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        if op_name(made) in ("cdist", "sub"):
            return made if len({_base(facts, access.tensor, made.index) for access in made.inputs}) == 1 else None
        if op_name(made) not in _LENGTHS or len(made.inputs) != 1:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _summands(facts: TraceIndex, added: Call) -> tuple[int, int]:
    """Returns the table of a sum, and the mask whose product with a large number is added to it; -1: there is none."""
    for first, second in (added.inputs[:2], added.inputs[1::-1]):
        made = next(iter(facts.producers(second.tensor, added.index)), None)
        if made is not None and op_name(made) in ("mul", "rmul") and len(made.inputs) == 1 and _is_large(facts, made):
            return first.tensor, made.inputs[0].tensor
    return added.inputs[0].tensor, -1


def _is_large(facts: TraceIndex, product: Call) -> bool:
    node = facts.node_at(product.site)
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
    return any((written_number(facts, side) or 0) >= _LARGE for side in sides)


def _fills_much(facts: TraceIndex, masked: Call, name: str) -> bool:
    """Returns whether what is left out gets a large number."""
    if name in ("add", "radd"):
        return True
    written = written_call(facts, masked)
    given = None if written is None else written.argument(2, "value", "other")
    number = written_number(facts, given)
    is_infinite = given is not None and ast.unparse(given) in ("float('inf')", "math.inf", "torch.inf", "np.inf")
    is_most = given is not None and ast.unparse(given).endswith(".max") and "finfo" in ast.unparse(given)
    return (number is not None and number >= _LARGE) or is_infinite or is_most


def _is_same_label(facts: TraceIndex, number: int, before: int) -> bool | None:
    """Returns whether a mask is true where two rows of one vector have the same label, or where they have not.

    None: it is another mask, also one that leaves out the diagonal.
    """
    is_same = True
    for _ in range(_MAX_DEPTH if number >= 0 else 0):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        if op_name(made) in ("eq", "ne"):
            bases = {_base(facts, access.tensor, made.index) for access in made.inputs}
            return (op_name(made) == "eq") is is_same if len(made.inputs) == 2 and len(bases) == 1 else None
        if op_name(made) in _NOT:
            is_same = not is_same
        elif op_name(made) not in _CASTS:
            return None
        later = facts.calls_between(made.index + 1, before - 1)
        if len(made.inputs) != 1 or any(write.tensor == number for call in later for write in call.writes):
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _base(facts: TraceIndex, number: int, before: int) -> int:
    """Returns the vector that a tensor is a view of, all of it: the rows of a part are others."""
    for _ in range(_MAX_DEPTH):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) not in _VIEWS or not made.inputs or len(facts.tensor(number).shape) == 1:
            return number
        source = made.inputs[0].tensor
        is_whole = prod(facts.tensor(source).shape) == prod(facts.tensor(number).shape)
        if op_name(made) != "expand" and not (is_whole and (op_name(made) != "getitem" or is_whole_index(facts, made))):
            return number
        number, before = source, made.index
    return number
