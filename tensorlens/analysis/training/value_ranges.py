"""Finds out from the calls that made a tensor what its values can be: never below zero, or 0 and 1."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import ERRORS, is_error
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.analysis.written_call import written_call
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

ADDING = frozenset("add radd iadd sum mean nansum nanmean stack cat".split())
SHAPING = frozenset("getitem view reshape squeeze unsqueeze flatten unbind select float double to clone".split())
SAME_VALUES = frozenset(
    "view view_as reshape reshape_as float to type_as contiguous transpose permute squeeze unsqueeze T mT".split()
)
RESHAPING = SAME_VALUES | frozenset(
    "getitem expand expand_as bool int long half double type clone detach repeat flatten unflatten t swapaxes".split()
)
_PARTS = frozenset("unbind select narrow split chunk index_select movedim".split())
_NEVER_NEGATIVE = ERRORS | frozenset("square abs norm cross_entropy exp relu sqrt cdist dist".split())
_POSITIVE = frozenset("relu relu6 softplus hardsigmoid".split())
_CLAMPS = frozenset("clamp clip clamp_min".split())
_COMPARISONS = frozenset("eq ne lt gt le ge isin logical_not logical_and logical_or invert and or".split())
_TRIANGLES, _ONES = frozenset(("tril", "triu")), frozenset(("ones", "ones_like", "new_ones", "eye"))
ZEROS = frozenset(("zeros", "zeros_like", "new_zeros"))
_FILLED = _ONES | ZEROS
_DRAWN = frozenset(("bernoulli", "one_hot"))
_TOGETHER = frozenset("mul rmul imul minimum maximum min max".split())  # of zeros and ones, they return such
_JOINING = frozenset("cat concat stack hstack vstack block_diag".split())
_WRITTEN = frozenset("fill_diagonal scatter masked_fill index_fill".split())  # one number at some places
_SUMS = frozenset("add radd iadd sum".split())
SHARING = frozenset(f"Tensor.{name}" for name in ("numpy", "__array__", "__dlpack__"))
"""Calls that give the memory of a tensor to other code, which may write to it."""
_MAX_CALLS, _MAX_DEPTH, _MAX_PARTS = 400, 8, 64


def never_negative(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether the calls that made a tensor show that no element is below zero."""
    waiting, seen = [(number, before)], set[int]()
    for each, limit in waiting:
        call = next(iter(facts.producers(each, limit)), None)
        if call is None or len(seen) > _MAX_CALLS:
            return False
        seen.add(call.index)
        name = op_name(call)
        if name in _NEVER_NEGATIVE or (is_error(call) and name != "pow"):
            continue
        if (name == "pow" and _is_even(facts, call)) or (name in _CLAMPS and _least(facts, call) >= 0):
            continue
        if (name not in ADDING | SHAPING and not is_scaled(facts, call)) or _adds_negative(facts, call):
            return False
        waiting += [(access.tensor, call.index) for access in call.inputs]
    return True


def keeps_above_zero(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call is an activation without negative results, such as `relu()` and `x.clamp(min=0)`."""
    name = op_name(call)
    if name in ("maximum", "max") and len(call.inputs) == 2:
        return any(_is_zero(facts, access.tensor, call.index) for access in call.inputs)
    return name in _POSITIVE or (name in _CLAMPS | {"hardtanh"} and _least(facts, call) >= 0)


def _is_zero(facts: TraceIndex, number: int, before: int) -> bool:
    made = facts.creator(number)
    if made is None or is_written_between(facts, number, made, before):
        return False
    return op_name(made) in ZEROS or (op_name(made) == "tensor" and _written_values(facts, made) == {0})


def _adds_negative(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call adds a number that the source does not show to be positive."""
    if op_name(call) not in ("add", "radd", "iadd") or len(call.inputs) != 1:
        return False
    node = facts.node_at(call.site)
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
    return not any((written_number(facts, side) or -1) >= 0 for side in sides)


def is_scaled(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call multiplies or divides a tensor by a positive number, which the source shows."""
    if op_name(call) not in ("mul", "rmul", "truediv", "div") or len(call.inputs) != 1:
        return False
    node = facts.node_at(call.site)
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
    return any((written_number(facts, side) or 0) > 0 for side in sides)


def is_zero_or_one(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a tensor is a comparison, a triangle of ones, or zeros in which lines write ones.

    It may have another dtype or shape than these, and be put together from several, as by a product.
    """
    return made_as_zero_or_one(facts, number, before) is not None


def is_count(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a tensor is one that `is_zero_or_one` describes, or a sum of several, which has whole numbers."""
    return is_zero_or_one(facts, number, before) or _made(facts, (number, before), _MAX_DEPTH, _SUMS) is not None


def made_as_zero_or_one(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the call that made what `is_zero_or_one` describes, if a tensor has its values."""
    return _made(facts, (number, before), _MAX_DEPTH, frozenset())


def _made(facts: TraceIndex, given: tuple[int, int], depth: int, sums: frozenset[str]) -> Call | None:
    """Returns the call that made such a tensor, given with the event that uses it; `sums` may add several."""
    number, before = given
    hops: list[tuple[int, Call, int]] = []
    for left in range(depth, 0, -1):
        call = next(iter(facts.producers(number, before)), None)
        made = facts.creator(number)
        if made is not None and op_name(made) in _FILLED:
            is_whole = _gets_zeros_and_ones(facts, (number, before), made, (left, sums))
            return made if is_whole and not any(is_written_between(facts, *hop) for hop in hops) else None
        if call is None or not (call.inputs or op_name(call) in ("tensor", "randint")):
            return None
        hops.append((number, call, before))
        if _makes_zero_or_one(facts, call, left, sums):
            return None if any(is_written_between(facts, *hop) for hop in hops) else call
        if op_name(call) not in RESHAPING | _PARTS:
            if sums or not _is_one_minus(facts, call):  # the sum of a mask and its opposite has no zeros
                return None
        number, before = call.inputs[0].tensor, call.index
    return None


def _makes_zero_or_one(facts: TraceIndex, call: Call, left: int, sums: frozenset[str]) -> bool:
    """Returns whether a call compares, draws or writes zeros and ones, or takes a part of them or several together."""
    name, dtypes = op_name(call), [facts.tensor(access.tensor).dtype for access in call.outputs]
    parts = [(access.tensor, call.index) for access in call.inputs]
    if name in _COMPARISONS and dtypes == ["bool"]:
        return True
    if name in _DRAWN or (name == "randint" and _draws_zero_or_one(facts, call)):
        return True
    if name in ("where", "tensor"):
        return len(parts) == (name == "where") and _written_values(facts, call) == {0, 1}
    if name in _WRITTEN:
        return len(parts) < 3 and _last_written(facts, call) in (0, 1) and _is_part(facts, parts[0], left, sums)
    if name in _CLAMPS | {"clamp_max"} and len(parts) == 1:
        return _greatest(facts, call) == 1 and _made(facts, parts[0], left - 1, _SUMS) is not None
    if name in _TRIANGLES:
        return _is_part(facts, parts[0], left, sums)
    if name in _JOINING:
        is_filled = name != "block_diag" and all(
            _made(facts, part, left - 1, sums) is None for part in parts[:_MAX_PARTS]
        )
        return not is_filled and all(_is_part(facts, part, left, sums) for part in parts[:_MAX_PARTS])
    is_together = (name in _TOGETHER and len(parts) > 1) or (name in sums and (len(parts) > 1 or name == "sum"))
    return is_together and all(_made(facts, part, left - 1, sums) is not None for part in parts[:_MAX_PARTS])


def _is_part(facts: TraceIndex, part: tuple[int, int], left: int, sums: frozenset[str]) -> bool:
    """Returns whether a tensor has zeros and ones, or is filled with one of them."""
    made = facts.creator(part[0])
    if made is not None and op_name(made) in _FILLED and not is_written_between(facts, part[0], made, part[1]):
        return True
    return _made(facts, part, left - 1, sums) is not None


def _gets_zeros_and_ones(
    facts: TraceIndex, given: tuple[int, int], made: Call, limits: tuple[int, frozenset[str]]
) -> bool:
    """Returns whether lines have put 0 or 1, as the source shows, into a tensor, and nothing else; or whether it has
    ones along its diagonal."""
    (number, before), (left, sums) = given, limits
    writes = list(_writes_between(facts, number, made, before))
    adding = [call for call in writes if op_name(call) in sums and len(call.inputs) == 2]
    putting = [call for call in writes if call not in adding]
    if any(_made(facts, (call.inputs[1].tensor, call.index), left - 1, sums) is None for call in adding):
        return False
    if not all(op_name(call) == "setitem" or op_name(call) in _WRITTEN for call in putting):
        return False
    values = {
        assigned_number(facts, call) if op_name(call) == "setitem" else _last_written(facts, call) for call in putting
    }
    return values <= {0, 1} and bool(values or adding or op_name(made) == "eye")


def _draws_zero_or_one(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the source gives a `randint()` the numbers 0 and 2, or 2 alone, as its limits."""
    node = facts.node_at(call.site)
    args = (
        node.args
        if isinstance(node, ast.Call) and not any(each.arg in ("low", "high") for each in node.keywords)
        else []
    )
    limits = [written_number(facts, each) for each in args[:2] if not isinstance(each, ast.Tuple | ast.List)]
    return limits in ([0, 2], [2])


def _last_written(facts: TraceIndex, call: Call) -> float | None:
    """Returns the number that the source gives a call as its last argument, or as its value."""
    node = facts.node_at(call.site)
    if not isinstance(node, ast.Call):
        return None
    named = [each.value for each in node.keywords if each.arg in ("value", "fill_value")]
    return written_number(facts, next(iter(named or node.args[-1:]), None))


def _written_values(facts: TraceIndex, call: Call) -> set[float | None]:
    """Returns the numbers that a `where()` chooses from, or that a list of `tensor()` has."""
    node = facts.node_at(call.site)
    if not isinstance(node, ast.Call) or not node.args:
        return set()
    if op_name(call) == "where":
        return {written_number(facts, each) for each in node.args[-2:]}
    inner = [each for each in ast.walk(node.args[0]) if not isinstance(each, ast.List | ast.Tuple | ast.Load)]
    return {written_number(facts, each) if isinstance(each, ast.Constant) else None for each in inner}


def _greatest(facts: TraceIndex, call: Call) -> float | None:
    """Returns the upper limit that the source gives to a `clamp`, if its lower one is at most 1."""
    node = facts.node_at(call.site)
    if not isinstance(node, ast.Call):
        return None
    named = [each.value for each in node.keywords if each.arg == "max"]
    lower = [each.value for each in node.keywords if each.arg == "min"]
    is_last = op_name(call) == "clamp_max" or len(node.args) > 1 + (not call.op.startswith("Tensor."))
    return None if lower else written_number(facts, next(iter(named or (node.args[-1:] if is_last else [])), None))


def assigned_number(facts: TraceIndex, call: Call) -> float | None:
    """Returns the number that a line assigns, as the source writes it."""
    span = facts.span(call.site)
    statement = None if span is None else statement_around(facts, span)
    return written_number(facts, statement.value) if isinstance(statement, ast.Assign) else None


def _is_one_minus(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call computes `1 - x`, as the source shows."""
    node = facts.node_at(call.site)
    is_difference = op_name(call) in ("rsub", "sub") and len(call.inputs) == 1
    is_difference = is_difference and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
    return is_difference and written_number(facts, node.left) == 1  # type: ignore[union-attr]


def is_written_between(facts: TraceIndex, number: int, made: Call, before: int) -> bool:
    """Returns whether a call writes to the memory of a tensor after it was made, or gives it to NumPy."""
    return any(True for _ in _writes_between(facts, number, made, before))


def _writes_between(facts: TraceIndex, number: int, made: Call, before: int) -> Iterator[Call]:
    storage = facts.storage_of(number, before)
    for call in facts.calls_between(made.index + 1, before - 1) if storage is not None else ():
        numbers = [write.tensor for write in call.writes]
        if call.op in SHARING:
            numbers += [access.tensor for access in call.inputs]
        is_replaced = call.op == DATA_SET and call.inputs[0].tensor == number
        if is_replaced or any(facts.storage_of(each, call.index) == storage for each in numbers):
            yield call


def _is_even(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the source shows an even exponent."""
    node = facts.node_at(call.site)
    exponent = node.args[-1] if isinstance(node, ast.Call) and node.args else None
    exponent = node.right if isinstance(node, ast.BinOp) else exponent
    number = written_number(facts, exponent)
    return number is not None and number % 2 == 0


def _least(facts: TraceIndex, call: Call) -> float:
    """Returns the lower limit that the source gives to a `clamp` or a `hardtanh`; -1 if it shows none."""
    written = written_call(facts, call)
    limit = None if written is None else written.argument(1, "min", "min_val")
    number = written_number(facts, limit) if written is not None and written.is_whole else None
    return -1 if number is None else number
