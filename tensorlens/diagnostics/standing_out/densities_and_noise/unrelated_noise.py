"""Names targets of noise that is drawn on its own, while the prediction is given the noise of another draw."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import ERRORS, examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.mixed_noise import (
    SAME,
    drawn,
    mixtures_above,
    origin,
    repeats_draws,
)
from tensorlens.analysis.training.taken_norms import written_power
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_SCALING = frozenset("mul rmul div truediv neg sub".split())
_DISTANCES = frozenset(("abs", "norm", "vector_norm"))
_COMPARING = ERRORS | {"sub", "rsub", "binary_cross_entropy", "binary_cross_entropy_with_logits"}
_MAX_VALUES = 24


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them where the other noise is added to data, and the noise of the target is drawn anew for each pass.

    A sum of data and noise is a target of its own, as another noisy view of the same picture. Noise that a code is
    mixed with may be compared with draws of a prior, and noise that is drawn once may be a data set. Where another
    error of the pass is one of the data themselves, their noise has its target.
    """
    facts, reported = training.facts, set[int]()
    if repeats_draws(facts):
        return
    for backward in examined_passes(facts):
        since = max((each.index for each in facts.backwards if each.index < backward.index), default=None)
        for call in recorded_above(facts, backward):
            pair = _pair(facts, call) if call.site not in reported else None
            noise = None if pair is None else _noise_of(facts, pair[1], call.index)
            if pair is None or noise is None or since is None or noise[0].index < since:
                continue
            draw, beside = noise
            above = {made.index for _, made in ancestry(facts, pair[0], call.index)}
            shape = facts.tensor(draw.outputs[0].tensor).shape
            mixed = [
                each
                for each in mixtures_above(facts, pair[0], call.index)
                if facts.tensor(each.call.outputs[0].tensor).shape == shape
                and (beside is None or each.data in beside)
                and not facts.requires_grad(each.data, each.call.index)
            ]
            data = {origin(facts, each.data, each.call.index)[0] for each in mixed}
            if any(_is_of_data(facts, each, data) for each in recorded_above(facts, backward)):
                continue
            if draw.index in above or not mixed or any(each.noise is draw for each in mixed):
                continue
            reported.add(call.site)
            prediction = named(facts, pair[0], call.index)
            yield stands_out(
                f"{as_written(facts, draw)} draws the noise of the target, and nothing that {prediction} is computed "
                f"from depends on it: its input has the noise of another draw, in {as_written(facts, mixed[0].call)}",
                facts.label("value_made_here", draw.site, "drawn for the target", draw.index),
                facts.label("observed_here", mixed[0].noise.site, "drawn for the input", mixed[0].noise.index),
                facts.label("needed_here", call.site, "compared here", call.index),
            )


def _pair(facts: TraceIndex, call: Call) -> tuple[int, int] | None:
    """Returns the prediction and the target of an error."""
    numbers = [access.tensor for access in call.inputs]
    if op_name(call) not in ERRORS:
        is_error = written_power(facts, call) == 2 or op_name(call) in _DISTANCES
        made = next(iter(facts.producers(numbers[0], call.index)), None) if is_error and numbers else None
        numbers = [a.tensor for a in made.inputs] if made is not None and op_name(made) == "sub" else []
    trained = [facts.requires_grad(number, call.index - 1) for number in numbers]
    if len(numbers) != 2 or sum(trained) != 1:
        return None
    return (numbers[0], numbers[1]) if trained[0] else (numbers[1], numbers[0])


def _is_of_data(facts: TraceIndex, call: Call, data: set[int]) -> bool:
    """Returns whether a call compares a result with some data."""
    given = [access.tensor for access in call.inputs] if op_name(call) in _COMPARING else []
    return any(origin(facts, number, call.index)[0] in data for number in given)


def _noise_of(facts: TraceIndex, target: int, before: int) -> tuple[Call, set[int] | None] | None:
    """Returns the draw that a target is, maybe scaled, or a difference with; and the values of the difference."""
    waiting, read, is_difference = [(target, before)], set[int](), False
    for number, limit in waiting:
        if len(read) > _MAX_VALUES:
            break
        made = next(iter(facts.producers(number, limit)), None)
        draw = drawn(facts, number, limit)
        if draw is not None:
            return draw, None if not is_difference else read | {each for each, _ in waiting}
        read.add(number)
        if made is not None and op_name(made) in SAME | _SCALING:
            is_difference |= op_name(made) == "sub"
            waiting += [(access.tensor, made.index) for access in made.inputs]
    return None
