"""Finds lines that write computed values into parameters without their graph, as a hypernetwork must not do.

Backward gives the parameters a gradient then, and none to what computes their values. A script may pass it on by hand.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.parameters.lost_values import is_written_at_once
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.analysis.training.timeline import DATA_SET, Training
from tensorlens.records.model import Backward, Call

_GENERATING = frozenset(
    """
    linear matmul rmatmul mm bmm mv addmm addmv addbmm baddbmm einsum bilinear outer ger tensordot kron embedding
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d gru gru_cell lstm lstm_cell rnn_tanh
    rnn_relu rnn_tanh_cell rnn_relu_cell scaled_dot_product_attention multi_head_attention_forward
    """.split()
)
"""Ops that mix values: an average, a step or a rounding of other parameters has none of them."""
_SHAPING = frozenset(
    """
    getitem view view_as reshape reshape_as flatten unflatten squeeze unsqueeze split split_with_sizes chunk unbind
    narrow select t T mT transpose permute contiguous clone to float double type_as
    """.split()
)
_PASSING = frozenset("cat concat stack tanh sigmoid relu gelu silu mul imul rmul".split())
_HOOKS = frozenset(("register_hook", "register_post_accumulate_grad_hook"))
_DATA_READ = "Tensor.data.__get__"
_SHAPED_AS = frozenset(("view_as", "reshape_as", "expand_as"))  # use the shape of the second tensor only
_MIN_TIMES = 3
_LOST = 0.9  # of the steps
_MOST_PASSES = 6  # that are looked at
_MOST_SHAPING = 20


@dataclass(frozen=True, slots=True)
class GeneratedValues:
    """A line that writes values into parameters without the graph that leads to what computes them."""

    write: Call
    backward: Backward
    written: tuple[ParameterRow, ...]
    computing: tuple[ParameterRow, ...]
    times: int
    is_stepped: bool  # the line overwrites what steps make of the written parameters


def generated_values(training: MeasuredTraining) -> Iterator[GeneratedValues]:
    """Yields these lines, if nothing uses the gradients of the written parameters, and a term of the same loss trains
    what computes the values: where nothing does, the sentence about parameters without gradient says so."""
    own = training.training
    if own.is_hidden or not is_complete(training.facts.trace):
        return
    groups: dict[tuple[int, tuple[int, ...], bool], list[tuple[ParameterRow, list[Call], Backward]]] = defaultdict(list)
    for row in training.rows:
        writes = _generated_writes(training, row) if row.statistics is not None and row.statistics.filled else {}
        if len(writes) < _MIN_TIMES or _may_pass_on(own, row.tensor):
            continue
        steps = _steps(own, row.tensor)
        if steps and not _are_lost(training, row.tensor, steps, sorted(writes)):
            continue
        found = _computing(training, row, writes)
        if found is not None:
            last, leaves, backward = found
            same = [call for call in writes.values() if call.site == last.site]
            groups[last.site, tuple(sorted(leaves)), bool(steps)].append((row, same, backward))
    for (_, of_values, is_stepped), found_rows in groups.items():
        rows = tuple(row for row, _, _ in found_rows)
        computing = tuple(row for row in training.rows if row.tensor in of_values)
        _, calls, backward = found_rows[0]
        if computing and not {row.tensor for row in rows}.intersection(of_values):
            yield GeneratedValues(calls[0], backward, rows, computing, len(calls), is_stepped)


def _generated_writes(training: MeasuredTraining, row: ParameterRow) -> dict[int, Call]:
    """Returns the calls that give a parameter whole new values that have a graph, by their indices."""
    facts = training.facts
    calls = training.written_after(row.tensor, -1)
    return {call.index: call for call in calls if _value(facts, call, row.tensor) is not None}


def _value(facts: TraceIndex, call: Call, parameter: int) -> int | None:
    """Returns the tensor with a graph whose values a call gives a parameter, also where the call reads its `.data`, or
    a part that a line takes of it while gradients are off."""
    if len(call.inputs) != 2 or (call.op != DATA_SET and op_name(call) != "copy"):
        return None
    given, value = call.inputs[0].tensor, call.inputs[1].tensor
    if facts.tensor(given).shape != facts.tensor(parameter).shape:
        return None
    for _ in range(_MOST_SHAPING):
        state = facts.state(value, call.index - 1)
        if state is not None and state.requires_grad and not state.is_leaf:
            return value
        made = facts.creator(value)
        if made is None or not made.inputs or (made.op != _DATA_READ and op_name(made) not in _SHAPING):
            return None
        value = made.inputs[0].tensor
    return None


def _may_pass_on(training: Training, number: int) -> bool:
    """Returns whether a line or a hook of the script may use the gradient of a parameter."""
    facts = training.facts
    if number in training.gradient_read or any(number in each.inputs for each in facts.backwards):
        return True
    return any(op_name(call) in _HOOKS and number in {a.tensor for a in call.inputs} for call in facts.calls)


def _steps(training: Training, number: int) -> list[int]:
    """Returns the indices of the steps that find a gradient of a parameter."""
    steps = (step for step in training.steps if number in step.parameters)
    return [step.index for step in steps if step.gradients[step.parameters.index(number)] is not None]


def _are_lost(training: MeasuredTraining, number: int, steps: list[int], writes: list[int]) -> bool:
    """Returns whether the writes of a parameter overwrite nearly all steps before anything reads it."""
    lost = 0
    for step in steps:
        place = bisect_right(writes, step)
        if place < len(writes):
            between = training.facts.calls_between(step, writes[place] - 1)
            lost += not any(_reads(training, call, number) for call in between)
    return lost >= max(_MIN_TIMES - 1, _LOST * (len(steps) - 1))  # nothing need follow the last


def _reads(training: MeasuredTraining, call: Call, number: int) -> bool:
    """Returns whether a call outside of steps may read a parameter, also by its memory. Parts of one vector that are
    other parameters are in this memory as well."""
    facts = training.facts
    if call.within or ".grad." in call.op or (not call.writes and is_written_at_once(training, call)):
        return False
    memory = facts.storage_of(number, call.index - 1)
    for access in call.inputs[:1] if op_name(call) in _SHAPED_AS else call.inputs:
        is_other = access.tensor != number and training.row(access.tensor) is not None
        if not is_other and facts.storage_of(access.tensor, call.index - 1) == memory:
            return True
    return False


def _computing(
    training: MeasuredTraining, row: ParameterRow, writes: dict[int, Call]
) -> tuple[Call, set[int], Backward] | None:
    """Returns the last write of a parameter that a pass uses, the parameters that compute its value, and the pass, if
    each pass that is looked at gives both sides gradients, but the latter by another way only."""
    facts, every = training.facts, training.written_after(row.tensor, -1)
    passes = [each for each in facts.backwards if row.tensor in {change.tensor for change in each.gradients}]
    found: tuple[Call, set[int], Backward] | None = None
    looked_at = passes[-_MOST_PASSES:]
    for backward in looked_at if len(passes) >= _MIN_TIMES else ():
        used = _used(facts, backward, row.tensor)
        last = next((call for call in reversed(every) if used is not None and call.index < used.index), None)
        value = None if last is None or last.index not in writes else _value(facts, last, row.tensor)
        if last is None or value is None or not _is_generated(facts, value, last.index):
            return None
        leaves = _leaves(facts, value, last.index)
        trained = leaves & {change.tensor for change in backward.gradients} & training.training.stepped
        if row.tensor in leaves or not trained or _uses_values(facts, backward, value, last.index):
            return None
        found = last, trained, backward
    return found


def _used(facts: TraceIndex, backward: Backward, number: int) -> Call | None:
    """Returns the first call of a loss that has a parameter as an input."""
    calls = (call for call in recorded_above(facts, backward) if number in {access.tensor for access in call.inputs})
    return min(calls, key=lambda call: call.index, default=None)


def _leaves(facts: TraceIndex, value: int, before: int) -> set[int]:
    """Returns the leaves that a value is computed from. `part.view_as(p)` uses `p` for its shape only."""
    made = _maker(facts, value, before)
    given = () if made is None else made.inputs
    return set[int]().union(*(graph_leaves(facts, access.tensor, made.index) for access in given if made is not None))


def _is_generated(facts: TraceIndex, value: int, before: int) -> bool:
    """Returns whether a value is the result of an operation that mixes values, at most put together with others.

    What is computed from such results may be a mean of features, or the solution of a linear system.
    """
    for _ in range(_MOST_SHAPING):
        made = _maker(facts, value, before)
        if made is None or op_name(made) in _GENERATING:
            return made is not None
        if op_name(made) not in _PASSING or not made.inputs:
            return False
        value, before = made.inputs[0].tensor, made.index
    return False


def _uses_values(facts: TraceIndex, backward: Backward, value: int, before: int) -> bool:
    """Returns whether a loss also uses the values as weights with their graph, as `functional_call()` does: the written
    ones may be a copy that is meant to stop gradients."""
    made = _maker(facts, value, before)
    return any(
        made is not None and made is _maker(facts, access.tensor, call.index)
        for call in recorded_above(facts, backward)
        if op_name(call) in _GENERATING
        for access in call.inputs
    )


def _maker(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the call that computed a value, before others took a part of it or gave it another shape."""
    for _ in range(_MOST_SHAPING):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) not in _SHAPING or not made.inputs:
            return made
        number, before = made.inputs[0].tensor, made.index
    return None
