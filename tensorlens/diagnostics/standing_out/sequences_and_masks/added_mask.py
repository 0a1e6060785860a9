"""Names masks of zeros and ones that attention adds to its scores, because they are no bools: nothing is hidden."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, loss_calls, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.runs_along_batch import LOSSES
from tensorlens.analysis.training.sequences_and_masks.padding_masks import padding_places
from tensorlens.analysis.training.sequences_and_masks.padding_signs import marks_beginnings
from tensorlens.analysis.training.sequences_and_masks.score_masks import SUMS, is_of_attention
from tensorlens.analysis.training.value_ranges import made_as_zero_or_one
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.model import Backward, Call
from tensorlens.records.report import StandingOut

_ATTENTION = frozenset(("scaled_dot_product_attention", "multi_head_attention_forward"))
_FLOATS = frozenset(("float32", "float64", "float16", "bfloat16"))
_TRIANGLES = frozenset(("tril", "triu"))
_COMPARISONS = frozenset("eq ne lt gt le ge".split())
_MATRIX = 2
_INPUTS = 3  # query, key, value


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        above = recorded_above(facts, backward)
        lookups = [call for call in above if op_name(call) == "embedding" and len(call.inputs) > 1]
        for call in above:
            mask = _mask(facts, call, lookups) if call.site not in reported else None
            if mask is None or _is_preference(facts, mask, call, backward):
                continue
            reported.add(call.site)
            made = made_as_zero_or_one(facts, mask, call.index)
            yield stands_out(
                f"{as_written(facts, call)} adds the zeros and ones of {named(facts, mask, call.index)} to its scores, "
                f"because it is a mask of {facts.tensor(mask).dtype}: each position still has a weight. One of bools "
                "hides positions",
                facts.label("needed_here", call.site, "the mask is added here", call.index),
                None if made is None else facts.label("value_made_here", made.site, "made here", made.index),
            )


def _is_preference(facts: TraceIndex, mask: int, call: Call, backward: Backward) -> bool:
    """Returns whether a triangle may be a preference for earlier places: the loss has one target for each row, so the
    model may see all places."""
    made = made_as_zero_or_one(facts, mask, call.index)
    if made is None or op_name(made) not in _TRIANGLES:
        return False
    steps = facts.tensor(mask).shape[-1]
    for loss in loss_calls(facts, backward):
        if op_name(loss) in LOSSES and len(loss.inputs) > 1:
            shape = facts.tensor(loss.inputs[1].tensor).shape
            if not {steps, steps - 1} & set(shape) and not any(size % steps == 0 for size in shape[:1]):
                return True
    return False


def _mask(facts: TraceIndex, call: Call, lookups: list[Call]) -> int | None:
    """Returns an input after query, key and value, or a summand of scores, that consists of zeros and ones and is no
    tensor of bools."""
    is_sum = op_name(call) in SUMS and len(call.inputs) == 2
    if op_name(call) not in _ATTENTION and not is_sum:
        return None
    given = set() if is_sum else {access.tensor for access in call.inputs[:_INPUTS]}
    for number in (access.tensor for access in call.inputs[0 if is_sum else _INPUTS :] if access.tensor not in given):
        is_data = facts.tensor(number).dtype in _FLOATS and not facts.requires_grad(number, call.index - 1)
        made = made_as_zero_or_one(facts, number, call.index) if is_data else None
        if made is None:
            continue
        if is_sum:
            is_hiding = _hides_keys(facts, number, call, lookups) and is_of_attention(facts, call)
        else:
            is_hiding = op_name(made) in _TRIANGLES or _is_of_padding(facts, number, call)
            is_hiding = is_hiding or _hides_keys(facts, number, call, lookups)
        if is_hiding:
            return number
    return None


def _is_of_padding(facts: TraceIndex, number: int, call: Call) -> bool:
    """Returns whether a mask has the shape of the padding of a batch of sequences, which comes second in a layer."""
    key = facts.tensor(call.inputs[1].tensor).shape
    return op_name(call) == "multi_head_attention_forward" and facts.tensor(number).shape == (key[1:2] + key[:1])


def _hides_keys(facts: TraceIndex, number: int, call: Call, lookups: list[Call]) -> bool:
    """Returns whether a mask of padding has one number for each key, the last dimension of scores."""
    shape = facts.tensor(number).shape
    made = made_as_zero_or_one(facts, number, call.index)
    if made is None or len(shape) < _MATRIX or shape[-1] == 1 or shape[-2] not in (1, shape[-1]):
        return False
    if op_name(made) in _COMPARISONS:
        return padding_places(facts, (number, call.index), lookups) == shape[-1]
    rows = facts.tensor(made.outputs[0].tensor).shape
    is_of_batch = any(facts.tensor(each.inputs[0].tensor).shape[:2] == rows[:2] for each in lookups)
    if not is_of_batch or shape[0] != rows[0] or shape[-1] != rows[-1] or rows[0] == rows[1]:
        return False  # a square may have a row for each place, as a prior has
    return marks_beginnings(facts, number, call.index)
