"""Finds convolutions along the time that see the next step, which a loss compares what comes of them with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.row_starts import BY_PLACE
from tensorlens.analysis.training.sequences_and_masks.next_steps import (
    TO_LAST,
    compared_with_next,
    has_slice,
    is_batch,
    slices_of,
)
from tensorlens.analysis.training.sequences_and_masks.parts_of_data import are_apart
from tensorlens.records.model import Call

_MOVING = frozenset("pad roll cat concat stack flip gather scatter index_select narrow split unfold".split())
_SAME_STEPS = BY_PLACE | frozenset(
    "linear conv1d transpose permute mT t T unsqueeze squeeze view reshape flatten getitem chunk split glu radd iadd "
    "group_norm".split()
)
_WEIGHT_NORMS = frozenset(("weight_norm", "_weight_norm", "weight_norm_interface"))
_DRAWS = frozenset("normal uniform trunc_normal".split())
_MOST, _MAX_CALLS = 400, 12


@dataclass(frozen=True, slots=True)
class AheadConvolution:
    """A convolution, the loss that compares each step with the next one, and how many steps it sees ahead."""

    call: Call
    loss: Call
    steps: int
    ahead: int


def ahead_convolutions(training: MeasuredTraining) -> Iterator[AheadConvolution]:
    """Yields these convolutions, one for each line.

    One whose result is as long as its input has as much padding at both ends. Where anything may move steps, as padding
    at one end or a cut, nothing is said; nor where something else than the optimizer writes to a weight, as a mask of
    the later steps.
    """
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        found_loss = compared_with_next(facts, backward)
        if found_loss is None:
            continue
        loss, part = found_loss
        above = recorded_above(facts, backward)
        found = [call for call in _of_steps(facts, loss) if op_name(call) == "conv1d" and call.site not in reported]
        times = _times(facts, part)
        ahead = [call for call in found if _is_along(facts, call, times) and _kernel(facts, call) > 1]
        ahead = [call for call in ahead if _is_unmasked(training, call)]
        if not ahead or any(_may_move(facts, call) for call in above):
            continue
        first = min(ahead, key=lambda call: call.index)
        if not _sees_target(facts, first, loss):
            continue
        reported |= {call.site for call in ahead}
        yield AheadConvolution(first, loss, _length(facts, first), _kernel(facts, first) // 2)


def _of_steps(facts: TraceIndex, loss: Call) -> Iterator[Call]:
    """Yields the calls by which each step of a prediction is made from the same one, or from those next to it."""
    waiting, seen = [(access.tensor, loss.index) for access in loss.inputs[:2]], set[int]()
    for number, before in waiting:
        call = next(iter(facts.producers(number, before)), None)
        if call is None or call.index in seen or len(seen) > _MOST or op_name(call) not in _SAME_STEPS:
            continue
        seen.add(call.index)
        yield call
        waiting += [(access.tensor, call.index) for access in call.inputs]


def _sees_target(facts: TraceIndex, call: Call, loss: Call) -> bool:
    """Returns whether a convolution is given the sequence that the target of a loss is a part of, at the same steps.

    It may see other data, as a forecast of the weather, also of other channels of one tensor.
    Nothing may move steps on the way from that sequence to it.
    """
    sources = dict[int, list[tuple[Call, ...]]]()
    ways = tuple[Call, ...]()
    for made in _calls_of_target(facts, loss):
        ways = (made, *ways)
        sources.setdefault(made.inputs[0].tensor, []).append(ways)
    waiting: list[tuple[int, int, tuple[Call, ...]]] = [(call.inputs[0].tensor, call.index, ())]
    seen, is_met = set[int](), False
    for number, before, way in waiting:
        is_met = is_met or any(not are_apart(facts, way, each) for each in sources.get(number, ()))
        made_by = next(iter(facts.producers(number, before)), None)
        if number in sources or made_by is None or made_by.index in seen or len(seen) > _MOST:
            continue
        seen.add(made_by.index)
        if op_name(made_by) in _MOVING and not is_batch(facts, made_by):
            return False
        given = [access.tensor for access in made_by.inputs if facts.tensor(access.tensor).type != "Parameter"]
        waiting += [(each, made_by.index, (made_by, *way)) for each in given]
    return is_met


def _calls_of_target(facts: TraceIndex, loss: Call) -> Iterator[Call]:
    """Yields the calls that take the target of a loss from a sequence, the last one first."""
    one, other = (access.tensor for access in loss.inputs[:2])
    number, before = one if facts.requires_grad(other, loss.index - 1) else other, loss.index
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or made.writes:
            return
        yield made
        number, before = made.inputs[0].tensor, made.index


def _times(facts: TraceIndex, part: Call) -> set[int]:
    """Returns the lengths that a sequence has with all its steps that are seen or predicted, and without one of them.

    A part of a longer series has one length.
    """
    whole, cut = (facts.tensor(each[0].tensor).shape for each in (part.inputs, part.outputs))
    sizes = [size for size in cut if size not in whole]
    return {sizes[0], sizes[0] + (sizes[0] + 1 in whole)} if len(sizes) == 1 else set()


def _is_along(facts: TraceIndex, call: Call, times: set[int]) -> bool:
    """Returns whether a convolution runs along the time, and not along the features of each step."""
    return _length(facts, call) in times and facts.tensor(call.inputs[0].tensor).shape[-2] not in times


def _is_unmasked(training: MeasuredTraining, call: Call) -> bool:
    """Returns whether nothing but the optimizer changes a weight that was drawn, of which all may be other than 0."""
    facts, weight = training.facts, call.inputs[1].tensor
    made = next(iter(facts.producers(weight, call.index)), None)
    is_made = made is not None and op_name(made) in _WEIGHT_NORMS
    leaves = [access.tensor for access in made.inputs] if made is not None and is_made else [weight]
    if not all(facts.is_leaf_requiring_grad(each, call.index - 1) for each in leaves):
        return False
    written = [each for leaf in leaves for each in training.written_after(leaf, -1)]
    return all(each.op.startswith("nn.init.") or op_name(each) in _DRAWS for each in written)


def _length(facts: TraceIndex, call: Call) -> int:
    """Returns the length of a convolution's result, if its input is as long; else 0."""
    lengths = {facts.tensor(access.tensor).shape[-1] for access in (call.inputs[0], call.outputs[0])}
    return min(lengths) if len(lengths) == 1 else 0


def _kernel(facts: TraceIndex, call: Call) -> int:
    return facts.tensor(call.inputs[1].tensor).shape[-1] if len(call.inputs) > 1 else 0


def _may_move(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call may move steps, or computes some from others that are not next to them."""
    if op_name(call) == "getitem":
        parts = [each for each in slices_of(facts, call) if each.lower or each.upper or each.step]
        return bool(parts) and not has_slice(facts, call, TO_LAST)
    return op_name(call) in _MOVING
