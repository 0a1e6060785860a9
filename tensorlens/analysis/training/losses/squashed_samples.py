"""Finds log-probabilities of samples that go on through `tanh`, whose density is not that of the sample.

With `a = tanh(u)`, the log-probability of `a` is that of `u` minus `log(1 - a ** 2)`, the logarithm of the slope.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.turned_signs import sign_in_sum
from tensorlens.records.model import Call

_LOGS = frozenset("log log1p softplus logsigmoid".split())
_OF_SLOPE = frozenset("pow square mul rmul rsub sub add radd neg exp abs clamp clip clamp_min cosh".split())
_CHECKS = frozenset("eq _is_all_true bool ne isnan".split())
_SQUARES = frozenset(("pow", "square"))
_LINEAR_ENDS = frozenset("cat concat linear stack addmm matmul".split())
Kind = Literal["missing", "sign", "rows"]


@dataclass(frozen=True, slots=True)
class SquashedSample:
    """A log-probability of a sample `value`, and the `tanh` by which the sample goes on.

    "missing": no call computes the logarithm of the slope. "sign": it is added to the log-probability. "rows": it is
    added up over the rows of the batch. Then `slope` is the call that computes the logarithm, and `joined` the one that
    puts the two together.
    """

    kind: Kind
    density: Call
    squash: Call
    value: int
    slope: Call | None = None
    joined: Call | None = None


@dataclass(frozen=True, slots=True)
class _Term:
    sign: int
    lost_rows: bool = False


def squashed_samples(facts: TraceIndex) -> Iterator[SquashedSample]:
    """Yields these samples, one for each line."""
    reported = set[int]()
    for backward in examined_passes(facts):
        calls = sorted(recorded_above(facts, backward), key=lambda call: call.index)
        for squash in (call for call in calls if op_name(call) == "tanh" and len(call.inputs) == 1):
            found = _found(facts, squash, calls)
            if found is not None and found.density.site not in reported:
                reported.add(found.density.site)
                yield found


def _found(facts: TraceIndex, squash: Call, calls: list[Call]) -> SquashedSample | None:
    value, result = squash.inputs[0].tensor, squash.outputs[0].tensor
    made = next(iter(facts.producers(value, squash.index)), None)
    if made is None or not _through(facts, made).endswith(".rsample"):
        return None
    uses = [call for call in calls if value in {access.tensor for access in call.inputs}]
    densities = [call for call in uses if _through(facts, call) == "Normal.log_prob"]
    if len({call.site for call in densities}) != 1 or not _is_only_own(made, densities):
        return None
    density = max(densities, key=lambda call: call.index)
    logs = _logs_of(calls, {value, result})
    if not logs:
        later = [*facts.calls_between(made.index + 1, calls[-1].index)]
        if _logs_of([call for call in later if call.site != density.site], {value, result}, through_all=True):
            return None
        others = [call for call in uses if call not in densities and call is not squash]
        goes_on = any(op_name(c) in _LINEAR_ENDS and result in {a.tensor for a in c.inputs} for c in calls)
        is_used = any(op_name(call) not in _CHECKS for call in others)
        is_missing = goes_on and not is_used and _is_term(facts, calls, density)
        return SquashedSample("missing", density, squash, value) if is_missing else None
    if len(logs) != 1 or not _is_slope(facts, logs[0], (value, result)):
        return None
    return _joined(facts, (density, logs[0], squash), calls)


def _through(facts: TraceIndex, call: Call) -> str:
    return facts.trace.sites[call.site].through


def _is_only_own(drawn: Call, densities: list[Call]) -> bool:
    """Returns whether one log-probability of a sample is computed, by the distribution that it was drawn from.

    One line may compute several: a function that takes the density of a posterior and of a prior has one line for both.
    """
    means = {access.tensor for access in drawn.inputs}
    differences = [call for call in densities if op_name(call) in ("sub", "rsub")]
    return len(differences) == 1 and bool(means & {access.tensor for access in differences[0].inputs})


def _logs_of(calls: list[Call], sources: set[int], *, through_all: bool = False) -> list[Call]:
    """Returns the logarithms of what is computed from some tensors by arithmetic, or by any call but layers."""
    known, found = set(sources), list[Call]()
    for call in calls:
        inputs = {access.tensor for access in call.inputs}
        if not inputs & known or (op_name(call) == "tanh" and not through_all):
            continue
        if op_name(call) in _LOGS or (through_all and "log" in op_name(call)):
            found.append(call)
        elif op_name(call) in _OF_SLOPE or (through_all and op_name(call) not in _LINEAR_ENDS):
            known |= {access.tensor for access in call.outputs}
    return found


def _is_slope(facts: TraceIndex, log: Call, sources: tuple[int, int]) -> bool:
    """Returns whether a logarithm is that of `1 - a ** 2`, or the `softplus()` of a multiple of the sample, which is a
    part of it."""
    value, result = sources
    number, before, is_difference = log.inputs[0].tensor, log.index, op_name(log) == "log1p"
    for _ in range(6):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return False
        name, inputs = op_name(made), [access.tensor for access in made.inputs]
        if op_name(log) in ("softplus", "logsigmoid"):
            return name in ("mul", "rmul") and inputs == [value]
        if name in _SQUARES or (name == "mul" and len(inputs) == 2):
            return is_difference and all(_unsigned(facts, each, made.index) == result for each in inputs)
        if name not in ("rsub", "sub", "add", "clamp", "clip", "clamp_min", "neg", "mul", "rmul") or (
            len(inputs) > 1 and name != "sub"
        ):
            return False
        is_difference |= name == "rsub" or (name == "sub" and len(inputs) == 2)
        number, before = inputs[-1], made.index
    return False


def _unsigned(facts: TraceIndex, number: int, before: int) -> int:
    """Returns the tensor that a tensor is the negative of, or the tensor itself."""
    made = next(iter(facts.producers(number, before)), None)
    return made.inputs[0].tensor if made is not None and op_name(made) == "neg" else number


def _is_term(facts: TraceIndex, calls: list[Call], density: Call) -> bool:
    """Returns whether a loss adds the log-probability, perhaps times a weight, and takes no ratio or product of it."""
    known = {access.tensor for call in calls if call.site == density.site for access in call.outputs}
    for call in calls:
        inputs = {access.tensor for access in call.inputs}
        if call.site == density.site or not inputs & known:
            continue
        weights = [facts.requires_grad(n, call.index - 1) and n not in known for n in inputs]
        is_weighted = op_name(call) in ("mul", "rmul") and not any(weights)
        if not is_weighted and all(sign_in_sum(facts, call, place) is None for place in range(len(call.inputs))):
            return False
        if is_weighted and any(_is_rows(facts, number, known) for number in inputs):
            return False
        known |= {access.tensor for access in call.outputs}
    return True


def _is_rows(facts: TraceIndex, number: int, known: set[int]) -> bool:
    """Returns whether a factor has one number for each row, as an advantage has: then the product is a score."""
    return number not in known and any(size > 1 for size in facts.tensor(number).shape)


def _joined(facts: TraceIndex, parts: tuple[Call, Call, Call], calls: list[Call]) -> SquashedSample | None:
    """Follows the density and the logarithm of the slope to the call that puts them together."""
    density, log, squash = parts
    value = squash.inputs[0].tensor
    own: dict[int, _Term] = {a.tensor: _Term(1) for c in calls if c.site == density.site for a in c.outputs}
    others = {log.outputs[0].tensor: _Term(-1 if op_name(log) == "softplus" else 1)}
    for call in calls:
        numbers = [access.tensor for access in call.inputs]
        if call.site == density.site or call is log or len(numbers) > 2:
            continue
        signs = [sign_in_sum(facts, call, place) for place in range(len(numbers))]
        of_own = [place for place, n in enumerate(numbers) if n in own and signs[place] is not None]
        of_other = [place for place, n in enumerate(numbers) if n in others and signs[place] is not None]
        if of_own and of_other:
            one, other = own[numbers[of_own[0]]], others[numbers[of_other[0]]]
            is_same = one.sign * (signs[of_own[0]] or 1) == other.sign * (signs[of_other[0]] or 1)
            has_rows = len(facts.tensor(numbers[of_own[0]]).shape) > 0
            kind: Kind | None = "sign" if is_same else "rows" if other.lost_rows and has_rows else None
            return None if kind is None else SquashedSample(kind, density, squash, value, log, call)
        for places, terms in ((of_own, own), (of_other, others)):
            if places and call.outputs:
                term = terms[numbers[places[0]]]
                lost = term.lost_rows or _loses_rows(facts, call)
                terms[call.outputs[0].tensor] = _Term(term.sign * (signs[places[0]] or 1), lost)
    return None


def _loses_rows(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call adds up the rows of what it is given."""
    before, after = facts.tensor(call.inputs[0].tensor).shape, facts.tensor(call.outputs[0].tensor).shape
    return op_name(call) == "sum" and len(before) > 1 and before[0] > 1 and after[:1] != before[:1]
