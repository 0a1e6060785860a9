"""Finds parameters that a mask sets to zero in part, and that later steps change again without the mask."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.changed_gradients import gradient_changes
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.hook_functions import in_hooks
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.parameters.masked_gradients import zeroing_mask
from tensorlens.analysis.training.timeline import DATA_SET, GRAD_SET
from tensorlens.analysis.unseen_reads import may_be_read_unseen
from tensorlens.records.model import Call

_COMPARISONS = frozenset("gt lt ge le ne eq greater less greater_equal less_equal logical_and logical_or".split())
_CASTS = frozenset("float to type bool int double half logical_not invert and or type_as view_as reshape".split())
_COUNTS = frozenset("sum mean any all item numel count_nonzero tolist size".split())
_LOOKS = frozenset("numpy array nonzero abs where sign bool".split())
_PRODUCTS = frozenset(("mul", "rmul", "imul"))
_ONES = frozenset(("ones", "ones_like", "new_ones"))
_AVERAGES = frozenset(("momentum_buffer", "exp_avg"))  # of the gradients, in the state of an optimizer
_MIN_STEPS = 3
_MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class PrunedWeights:
    """A line that sets parts of parameters to zero by a mask, and the steps that change them afterwards."""

    write: Call  # the last that does so
    rows: tuple[ParameterRow, ...]
    steps: int
    gradient: Call | None  # applies the mask to their gradients, so that only averages of earlier ones are left
    is_product: bool


def pruned_weights(training: MeasuredTraining) -> Iterator[PrunedWeights]:
    """Yields these lines, each once. A mask that a line applies afterwards counts only if that is to the gradients, and
    if the optimizer steps by averages of earlier ones."""
    facts = training.facts
    found: dict[int, list[tuple[Call, ParameterRow, int, Call | None]]] = {}
    for row in training.rows:
        if not row.is_stepped or row.statistics is None or row.statistics.filled == row.statistics.zero:
            continue
        masked = ((call, _mask_of(facts, row.tensor, call)) for call in training.writes(row.tensor))
        writes = [(call, mask) for call, mask in masked if mask is not None]
        is_narrowed = bool(writes) and _is_narrowed(facts, *writes[-1])
        if not writes or not (is_narrowed or _is_mask(facts, *writes[-1])):
            continue
        last, mask = writes[-1]
        moving = [
            step.index
            for step in training.training.steps
            if any(n == row.tensor and g is not None for n, g in zip(step.parameters, step.gradients, strict=True))
        ]
        later = len(moving) - bisect_right(moving, last.index)
        applied = _applied(facts, last, mask)
        by_averages = bool(applied) and later < len(moving) and _has_averages(training, row)
        is_kept = _is_looked_at(training, row, last) or (bool(applied) and _changes_state(facts))
        is_left = _is_product(facts, last) or (later < len(moving) and _is_of_sizes(facts, last, mask))
        is_left = is_left and not is_narrowed  # the parts may be meant to grow again before its next product
        is_open = not applied and is_left and not _is_shown(facts, *writes[-1]) and not _is_anew(writes, moving)
        is_wrong = is_open or (by_averages and _mask_gradients(training, row, applied))
        if later >= _MIN_STEPS and not is_kept and is_wrong:
            found.setdefault(last.site, []).append((last, row, later, applied[0] if applied else None))
    for group in found.values():
        rows, steps = tuple(row for _, row, *_ in group), min(steps for _, _, steps, _ in group)
        yield PrunedWeights(group[0][0], rows, steps, group[0][3], _is_product(facts, group[0][0]))


def _is_shown(facts: TraceIndex, write: Call, mask: int) -> bool:
    """Returns whether a line may show or store a mask without a call that is recorded."""
    made = facts.creator(_root(facts, mask, write.index))
    return made is not None and may_be_read_unseen(facts, made)


def _is_anew(writes: list[tuple[Call, int]], moving: list[int]) -> bool:
    """Returns whether a line has set other parts to zero before, and steps came in between: weights that start anew
    from zero, and are trained again, may be all that a program wants."""
    last, mask = writes[-1]
    earlier = [call.index for call, other in writes if call.site == last.site and other != mask]
    return any(earlier[0] < step < last.index for step in moving) if earlier else False


def _mask_of(facts: TraceIndex, number: int, write: Call) -> int | None:
    """Returns the mask of a call that multiplies a parameter by it, or sets parts to zero by it: in place or by a copy
    of the result."""
    product, own = _copied(facts, write), facts.storages_of(number)
    if op_name(product) not in _PRODUCTS:
        is_own = any(facts.storage_of(each.tensor, product.index - 1) in own for each in product.inputs)
        return zeroing_mask(facts, product) if is_own else None
    if len(product.inputs) != 2:
        return None
    others = [each.tensor for each in product.inputs if facts.storage_of(each.tensor, product.index - 1) not in own]
    return others[0] if len(others) == 1 else None


def _copied(facts: TraceIndex, write: Call) -> Call:
    """Returns the call whose result another one copies; else the call itself."""
    is_copy = (op_name(write) == "copy" or write.op == DATA_SET) and len(write.inputs) == 2
    made = facts.producers(write.inputs[1].tensor, write.index) if is_copy else ()
    return next(iter(made), write)


def _is_product(facts: TraceIndex, write: Call) -> bool:
    return op_name(_copied(facts, write)) in _PRODUCTS


def _is_of_sizes(facts: TraceIndex, write: Call, mask: int) -> bool:
    """Returns whether a mask is a comparison of sizes, as `w.abs() > cut`: signs may be what a program changes."""
    root = _root(facts, mask, write.index)
    made = next(iter(facts.producers(root, write.index)), None)
    given = [] if made is None else [facts.producers(access.tensor, made.index)[:1] for access in made.inputs]
    return any(op_name(each) == "abs" for calls in given for each in calls)


def _root(facts: TraceIndex, mask: int, before: int) -> int:
    """Returns the mask that another one is a cast of, or its opposite."""
    for _ in range(_MAX_DEPTH):
        made = next(iter(facts.producers(mask, before)), None)
        if made is None or not made.inputs or not _is_cast(made):
            break
        given = made.inputs[0].tensor
        source = next(iter(facts.producers(given, made.index)), None)
        if op_name(made) not in _CASTS and (source is None or op_name(source) not in _COMPARISONS | _CASTS):
            break  # of values, as `w == 0`
        mask, before = given, made.index
    return mask


def _is_cast(call: Call) -> bool:
    """Returns whether a call gives a mask another form: also `mask == 0` does."""
    return op_name(call) in _CASTS or (op_name(call) in ("eq", "ne") and len(call.inputs) == 1)


def _is_mask(facts: TraceIndex, write: Call, mask: int) -> bool:
    """Returns whether what a parameter is multiplied by is the result of a comparison."""
    waiting = [(mask, write.index, 0)]
    for number, before, depth in waiting:
        if facts.tensor(number).dtype == "bool":
            return True
        made = next(iter(facts.producers(number, before)), None)
        if made is None or depth > _MAX_DEPTH:
            continue
        if op_name(made) in _COMPARISONS:
            return True
        if op_name(made) in _CASTS and made.inputs:
            waiting.append((made.inputs[0].tensor, made.index, depth + 1))
    return False


def _is_narrowed(facts: TraceIndex, write: Call, mask: int) -> bool:
    """Returns whether a mask begins with ones, and is only ever multiplied in place by other masks."""
    mask = _root(facts, mask, write.index)
    made, storages = facts.creator(mask), facts.storages_of(mask)
    if made is None or op_name(made) not in _ONES:
        return False
    products = [
        call
        for call in facts.calls_between(made.index + 1, write.index - 1)
        if any(facts.storage_of(each.tensor, call.index) in storages for each in call.writes)
    ]
    others = [[access.tensor for access in call.inputs if access.tensor != mask] for call in products]
    return bool(products) and all(
        op_name(call) in _PRODUCTS and len(given) == 1 and _is_mask(facts, call, given[0])
        for call, given in zip(products, others, strict=True)
    )


def _applied(facts: TraceIndex, write: Call, mask: int) -> list[Call]:
    """Returns the calls that use the mask of a write, or a cast of it, elsewhere, but for those that count."""
    masks = {mask, _root(facts, mask, write.index)}
    found, own = list[Call](), {access.tensor for access in write.inputs} - masks
    made = next(iter(facts.producers(_root(facts, mask, write.index), write.index)), None)
    for call in facts.calls_between(write.index if made is None else made.index + 1):
        if call.index == write.index or masks.isdisjoint(access.tensor for access in call.inputs):
            continue
        if call.index < write.index and not own.isdisjoint(access.tensor for access in call.outputs):
            continue  # the product that the write copies
        if _is_cast(call):
            masks.update(access.tensor for access in call.outputs)
        elif op_name(call) not in _COUNTS:
            found.append(call)
    return found


def _is_looked_at(training: MeasuredTraining, row: ParameterRow, write: Call) -> bool:
    """Returns whether a later call compares a parameter, or writes to it: it may find the mask again by its zeros."""
    facts, own = training.facts, training.facts.storages_of(row.tensor)
    later = (call for call in training.writes(row.tensor) if call.index > write.index)
    if any(not facts.same_line(call.site, write.site) for call in later):
        return True
    looks = [
        call
        for call in facts.calls_between(write.index + 1)
        if not call.within and op_name(call) in _COMPARISONS | _LOOKS
        if any(facts.storage_of(access.tensor, call.index) in own for access in call.inputs)
    ]
    counted = _counted(facts, [call for call in looks if op_name(call) in _COMPARISONS])
    return any(call.index not in counted for call in looks)


def _counted(facts: TraceIndex, comparisons: list[Call]) -> set[int]:
    """Returns those of some comparisons whose results a run only counts, as a share of weights that are not zero."""
    if not comparisons:
        return set()
    masks = {access.tensor: call.index for call in comparisons for access in call.outputs}
    read, used = set[int](), set[int]()
    for call in facts.calls_between(comparisons[0].index + 1):
        for index in {masks[access.tensor] for access in call.inputs if access.tensor in masks}:
            read.add(index)
            if op_name(call) in _CASTS:
                masks |= {access.tensor: index for access in call.outputs}
            elif op_name(call) not in _COUNTS:
                used.add(index)
    return read - used


def _changes_state(facts: TraceIndex) -> bool:
    """Returns whether the program reads or loads the state of an optimizer, where it may clear averages."""
    nodes = [node for _, tree in facts.trees() for node in ast.walk(tree)]
    named = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    written = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return bool(named & {"state", "load_state_dict"} or written & _AVERAGES)


def _has_averages(training: MeasuredTraining, row: ParameterRow) -> bool:
    """Returns whether one optimizer holds a parameter, and steps by averages of gradients."""
    groups = [group for group in training.groups if row.tensor in group.parameters]
    return len({group.optimizer for group in groups}) == 1 and all(group.momentum > 0 for group in groups)


def _mask_gradients(training: MeasuredTraining, row: ParameterRow, calls: list[Call]) -> bool:
    """Returns whether calls only apply a mask to gradients: in a hook of a tensor, or the `.grad` of a parameter."""
    sites = {change.call.site for change in gradient_changes(training) if row.tensor in change.leaves}
    sets = (call for call in training.facts.calls if call.op == GRAD_SET and call.inputs[0].tensor == row.tensor)
    given = {access.tensor for call in sets for access in call.inputs[1:]}
    others = [call for call in calls if call.site not in sites and given.isdisjoint(a.tensor for a in call.outputs)]
    are_masked = all(op_name(call) in _PRODUCTS or zeroing_mask(training.facts, call) is not None for call in calls)
    return are_masked and len(list(in_hooks(training.facts, others, "tensor hook"))) == len(others)
