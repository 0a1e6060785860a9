"""Finds lines that set parts of gradients to zero, while the weight decay of steps moves these parts all the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.changed_gradients import GradientChange, gradient_changes
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.parameters.fixed_masks import begin_of, fixed_roots, roots_of
from tensorlens.analysis.training.parameters.owned_items import are_claimed, are_of_tasks, chosen_items
from tensorlens.analysis.training.repeated_seeds import DRAWS
from tensorlens.analysis.training.timeline import DATA_SET, GRAD_SET
from tensorlens.analysis.training.value_ranges import is_zero_or_one
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_PRODUCTS = frozenset(("mul", "imul", "rmul"))
_MASKING = _PRODUCTS | {"masked_fill", "where", "copy"}
_ZEROS = frozenset(("zeros", "zeros_like", "new_zeros"))
_PARTIAL = frozenset("where masked_fill tril triu cholesky linalg_cholesky".split())
_DIAGONALS = frozenset(("eye", "diag", "diag_embed"))
_SCALING = frozenset("mul rmul div truediv clone detach".split())
_SUMS = frozenset("add radd sub".split())
_SHIFTING = _SUMS | frozenset("mul rmul div truediv rsub neg to float".split())
_MAX_DEPTH = 4
_MAX_CALLS = 20
_FEWEST = 3  # runs of the line
_MOST_WRITTEN = 0.3  # of the steps: more may put the parts back


@dataclass(frozen=True, slots=True)
class MaskedGradient:
    """A line that sets parts of gradients to zero, and the parameters of one rate of decay."""

    change: Call
    rows: tuple[ParameterRow, ...]
    decay: float


def masked_gradients(training: MeasuredTraining) -> Iterator[MaskedGradient]:
    """Yields these lines. Parameters of which a mask sets parts to zero, too, have nothing to decay there."""
    for change in gradient_changes(training):
        if change.is_late or change.is_unused:
            continue
        rows = [row for row in training.rows if row.tensor in change.leaves and _is_wrong(training, row, change)]
        for decay in sorted({row.group.weight_decay for row in rows if row.group is not None}):
            chosen = [row for row in rows if row.group is not None and row.group.weight_decay == decay]
            yield MaskedGradient(change.call, tuple(chosen), decay)


def _is_wrong(training: MeasuredTraining, row: ParameterRow, change: GradientChange) -> bool:
    """Returns whether a line sets the same parts of a parameter's gradient to zero each time, and decay moves them."""
    facts = training.facts
    if not row.is_stepped or not _decays(row):
        return False
    moments = training.training.moments.get(row.tensor, [])
    touches = [each.event for each in moments if each.kind == "touch" and each.event.site == change.call.site]
    runs = [each for each in touches if isinstance(each, Call)]
    masks = [zeroing_mask(facts, _setting(facts, each)) for each in runs]
    numbers = [number for number in masks if number is not None]
    if len(runs) < _FEWEST or len(numbers) < len(runs):
        return False
    roots = fixed_roots(training, numbers, runs)
    if not roots or not _has_zeros(row, len(runs), len(set(numbers)) == 1):
        return False
    are_tasks = are_of_tasks(facts, numbers[1:], begin_of(facts, numbers, runs))
    return not _are_cared_for(training, row, are_tasks, len(runs)) and not _is_read_masked(facts, row, roots, runs[0])


def _has_zeros(row: ParameterRow, runs: int, is_one: bool) -> bool:
    """Returns whether steps found zeros in a gradient, at the same places if one mask holds for all steps."""
    found, moved = row.statistics, row.movement
    if found is None or not 0 < found.zeros < 1:
        return False
    return not is_one or runs < found.filled or moved is None or moved.unreached > 0


def _setting(facts: TraceIndex, call: Call) -> Call:
    """Returns the call that makes a gradient which a line assigns, as `p.grad = p.grad.where(free, 0.0)` does."""
    made = facts.producers(call.inputs[1].tensor, call.index) if call.op == GRAD_SET and len(call.inputs) > 1 else []
    return next((each for each in made if not each.writes), call)


def zeroing_mask(facts: TraceIndex, call: Call) -> int | None:
    """Returns the mask that chooses the elements which a call sets to zero; None: it sets no chosen ones to zero."""
    others = [access.tensor for access in call.inputs[1:] if facts.tensor(access.tensor).shape]  # no number for all
    masks = [number for number in others if facts.tensor(number).dtype == "bool"]
    if op_name(call) in _PRODUCTS:
        return others[0] if len(others) == 1 and _is_mask(facts, others[0], call.index) else None
    span = facts.span(call.site)
    statement = None if span is None else statement_around(facts, span)
    node = None if span is None else facts.names.syntax.node(span)
    is_zero = False
    if op_name(call) == "setitem":
        is_zero = isinstance(statement, ast.Assign) and written_number(facts, statement.value) == 0
    elif op_name(call) == "masked_fill" and isinstance(node, ast.Call):
        is_zero = any(written_number(facts, each) == 0 for each in (*node.args, *(key.value for key in node.keywords)))
    elif (
        op_name(call) == "where" and isinstance(node, ast.Call) and facts.tensor(call.inputs[0].tensor).dtype == "bool"
    ):
        masks, is_zero = [call.inputs[0].tensor], any(written_number(facts, each) == 0 for each in node.args)
        is_zero = is_zero or any(_are_zeros(facts, access.tensor, call.index) for access in call.inputs[1:])
    return masks[0] if masks and is_zero else None


def _are_zeros(facts: TraceIndex, number: int, before: int) -> bool:
    made = next(iter(facts.producers(number, before)), None)
    return made is not None and op_name(made) in _ZEROS


def _decays(row: ParameterRow) -> bool:
    group = row.group
    return group is not None and group.weight_decay > 0 and group.rates[1] > 0


def _are_cared_for(training: MeasuredTraining, row: ParameterRow, are_tasks: bool, runs: int) -> bool:
    """Returns whether lines may put parts back, or set those to zero whose gradients a mask sets to zero as well.

    Lines that set parts to zero for the next task do not count, if the mask depends on a task: it leaves out the parts
    of other tasks as well, which are not zero.
    """
    zeroing = _zeroing_writes(training, row.tensor)
    if len(zeroing) >= _MOST_WRITTEN * runs:
        return True
    reused = {call.index for call in zeroing if _is_reused(training, row.tensor, call)}
    if len(reused) < len(zeroing) or (reused and not are_tasks):
        return True
    writes = [call for call in training.writes(row.tensor) if call.index not in reused]
    is_masked = any(op_name(call) in _MASKING or _puts_back(training, call) for call in writes)
    steps = 0 if row.group is None else row.group.steps
    return is_masked or len(writes) >= _MOST_WRITTEN * steps or _begins_masked(training, row.tensor)


def _zeroing_writes(training: MeasuredTraining, number: int) -> list[Call]:
    """Returns the calls that set chosen parts of a tensor to zero."""
    facts = training.facts
    storages = facts.storages_of(number)
    written = (
        call
        for call in facts.calls
        if not call.within and any(facts.storages_of(write.tensor) & storages for write in call.writes)
    )
    return [call for call in written if zeroing_mask(facts, call) is not None]


def _puts_back(training: MeasuredTraining, call: Call) -> bool:
    """Returns whether a call assigns items that are not drawn in the training: it may put parts back."""
    facts = training.facts
    if op_name(call) != "setitem":
        return False
    values = [access.tensor for access in call.inputs[1:] if "float" in facts.tensor(access.tensor).dtype]
    return not any(_is_drawn(training, number, call.index) for number in values)


def _is_drawn(training: MeasuredTraining, number: int, before: int) -> bool:
    """Returns whether random values of the training are all that a tensor has, also scaled and shifted ones.

    A copy of a parameter is none, although its start and the parts that it was given later may be drawn.
    """
    facts, steps, waiting = training.facts, training.training.steps, [(number, before)]
    for each, limit in waiting:
        made = next(iter(facts.producers(each, limit)), None)
        if made is None or len(waiting) > _MAX_CALLS:
            continue
        if op_name(made) in DRAWS:
            return bool(steps) and made.index > steps[0].index
        if op_name(made) in _SHIFTING:
            waiting += [(access.tensor, made.index) for access in made.inputs]
        elif op_name(made) == "getitem":
            waiting.append((made.inputs[0].tensor, made.index))
    return False


def _is_reused(training: MeasuredTraining, number: int, call: Call) -> bool:
    """Returns whether a call sets items to zero that other lines use again, as those that no task owns.

    These lines give such items new random values, or the number of a task: `owner[owner == 0] = task`.
    """
    facts = training.facts
    mask = zeroing_mask(facts, call)
    items = None if mask is None else chosen_items(facts, mask, op_name(call) in _PRODUCTS)
    if items is None:
        return False
    return are_claimed(facts, items) or any(
        op_name(each) == "setitem"
        and zeroing_mask(facts, each) is None
        and not _puts_back(training, each)
        and any(chosen_items(facts, access.tensor) == items for access in each.inputs[1:])
        for each in training.writes(number)
    )


def _begins_masked(training: MeasuredTraining, number: int) -> bool:
    """Returns whether a tensor, or what is copied into it, comes from a call that sets parts of it to zero."""
    facts = training.facts
    storages = facts.storages_of(number)
    made = facts.creator(number)
    given = [] if made is None else [(access.tensor, made.index) for access in made.inputs]
    for call in facts.calls:
        is_written = any(facts.storages_of(write.tensor) & storages for write in call.writes) and not call.within
        if (is_written and op_name(call) == "copy") or (call.op == DATA_SET and call.inputs[0].tensor == number):
            given += [(access.tensor, call.index) for access in call.inputs[1:]]
    return any(_has_zeroed_parts(facts, each, before) for each, before in given)


def _has_zeroed_parts(facts: TraceIndex, number: int, before: int, depth: int = 0) -> bool:
    """Returns whether a call has set parts of a tensor to zero, also where a diagonal is added to it."""
    for made in facts.producers(number, before):
        if zeroing_mask(facts, made) is not None or op_name(made) in _PARTIAL:
            return True
        if op_name(made) in _SCALING and made.inputs and depth < _MAX_DEPTH:
            return _has_zeroed_parts(facts, made.inputs[0].tensor, made.index, depth + 1)
        if op_name(made) in _SUMS and depth < _MAX_DEPTH:
            parts = [access.tensor for access in made.inputs if not _is_diagonal(facts, access.tensor, made.index)]
            is_shifted = len(made.inputs) == 1  # by a number
            return (
                bool(parts)
                and not is_shifted
                and all(_has_zeroed_parts(facts, part, made.index, depth + 1) for part in parts)
            )
    return False


def _is_diagonal(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a tensor is a diagonal matrix, or a multiple of one."""
    for _ in range(_MAX_DEPTH):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) in _DIAGONALS:
            return made is not None
        if op_name(made) not in _SCALING or not made.inputs:
            return False
        number, before = made.inputs[0].tensor, made.index
    return False


def _is_read_masked(facts: TraceIndex, row: ParameterRow, roots: frozenset[int], first: Call) -> bool:
    """Returns whether a forward pass reads a parameter under the same mask, so that the other parts do not matter.

    Two masks that are computed from the numbers of tasks, as `own < task`, are not the same one.
    """
    masks = {each for each in roots if _is_mask(facts, each, first.index)}
    for call in facts.calls:
        numbers = [access.tensor for access in call.inputs]
        if op_name(call) in _PRODUCTS | {"masked_fill", "where"} and row.tensor in numbers:
            others = [number for number in numbers if number != row.tensor]
            if any(each in masks or roots_of(facts, each, first.index) & masks for each in others):
                return True
    return False


def _is_mask(facts: TraceIndex, number: int, before: int) -> bool:
    return facts.tensor(number).dtype == "bool" or is_zero_or_one(facts, number, before)
