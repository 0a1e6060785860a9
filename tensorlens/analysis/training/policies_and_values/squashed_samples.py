"""Finds log-probabilities of samples that go on through `tanh`, whose density is not that of the sample.

With `a = tanh(u)`, the log-probability of `a` is that of `u` minus `log(1 - a ** 2)`, the logarithm of the slope.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import ERRORS, examined_passes, is_error, recorded_above
from tensorlens.analysis.training.policies_and_values.drawn_samples import (
    DrawnSample,
    density_terms,
    drawn_sample,
    squared,
)
from tensorlens.analysis.training.turned_signs import sign_in_sum
from tensorlens.analysis.training.value_ranges import never_negative
from tensorlens.records.model import Call

_LOGS = frozenset("log log1p softplus logsigmoid".split())
_OF_SLOPE = frozenset("pow square mul rmul rsub sub add radd neg exp abs clamp clip clamp_min cosh".split())
_CHECKS = frozenset("eq _is_all_true bool ne isnan".split())
_TO_SLOPE = frozenset("rsub sub add radd clamp clip clamp_min neg mul rmul".split())
_LAYERS = frozenset("linear addmm matmul conv1d conv2d conv_transpose1d conv_transpose2d".split())
_LINEAR_ENDS = frozenset("cat concat linear stack addmm matmul".split())
_ENDS = _LINEAR_ENDS | {"sub"}
_LOG_DENSITIES = frozenset(f"{name}.log_prob" for name in ("Normal", "Independent", "MultivariateNormal"))
_RECONSTRUCTIONS = ERRORS | frozenset("cross_entropy binary_cross_entropy binary_cross_entropy_with_logits".split())
_MOST_ABOVE = 400
_ALL = frozenset(("square", "width"))
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
    parts: frozenset[str] = frozenset()  # of the log-density of the sample


@dataclass(frozen=True, slots=True)
class _Density:
    """A log-density of a sample: the call that shows it, and the tensors that it adds up."""

    call: Call
    own: dict[int, _Term]
    sites: frozenset[int]  # of a distribution
    is_used_further: bool  # something else is computed from the sample, too


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
    value = squash.inputs[0].tensor
    made = next(iter(facts.producers(value, squash.index)), None)
    drawn = None if made is None else drawn_sample(facts, made)
    if made is None or (drawn is None and not _through(facts, made).endswith(".rsample")):
        return None
    squashed = [call for call in calls if op_name(call) == "tanh" and value in {each.tensor for each in call.inputs}]
    results = {access.tensor for call in squashed for access in call.outputs}
    density = _density(facts, (made, drawn), value, calls)
    if density is None:
        return None
    logs = _logs_of(calls, {value, *results})
    if not logs:
        own = density.sites | {density.call.site}
        later = [*facts.calls_between(made.index + 1, calls[-1].index)]
        others = [call for call in later if call.site not in own]
        if _logs_of(others, {value, *results}, through_all=True) or density.is_used_further:
            return None
        ends = [call for call in calls if results & {access.tensor for access in call.inputs}]
        goes_on = any(op_name(call) in _ENDS for call in ends)
        is_missing = goes_on and _is_term(facts, calls, density)
        is_missing = is_missing and not _is_of_prior(facts, (made, drawn), calls)
        is_missing = is_missing and not _is_fitted(facts, results, calls)
        return SquashedSample("missing", density.call, squash, value) if is_missing else None
    if len(logs) != 1 or not _is_slope(facts, logs[0], value, results):
        return None
    return _joined(facts, (density, logs[0], squash), calls)


def _is_of_prior(facts: TraceIndex, sample: tuple[Call, DrawnSample | None], calls: list[Call]) -> bool:
    """Returns whether a loss squares the mean itself, or compares a result with what the sample is made of.

    The first is a term of a prior of the sample, the second a reconstruction: there the density of the sample is meant.
    """
    made, drawn = sample
    means = {access.tensor for access in made.inputs} if drawn is None else {drawn.mean}
    above = {number for mean in means for number, _ in ancestry(facts, mean, made.index, _MOST_ABOVE)}
    inputs = {access.tensor for mean in means for _, call in ancestry(facts, mean, made.index, _MOST_ABOVE)
              for access in call.inputs}  # fmt: skip
    for call in calls:
        square = squared(facts, call)
        if square is not None and square[0] in means:
            return True
        if op_name(call) in _RECONSTRUCTIONS and (above | inputs) & {access.tensor for access in call.inputs}:
            return True
    return False


def _is_fitted(facts: TraceIndex, results: set[int], calls: list[Call]) -> bool:
    """Returns whether a loss compares data with what layers compute from the results of `tanh()`, as a decoder."""
    known, decoded, missed = set(results), set[int](), set[int]()
    for call in calls:
        inputs, outputs = {access.tensor for access in call.inputs}, {access.tensor for access in call.outputs}
        if not inputs & known:
            continue
        is_of_data = bool(inputs & decoded) and not all(facts.requires_grad(n, call.index - 1) for n in inputs)
        if (op_name(call) in _RECONSTRUCTIONS and is_of_data) or (is_error(call) and inputs & missed):
            return True
        if inputs & decoded or op_name(call) in _LAYERS:
            decoded |= outputs
        missed |= outputs if op_name(call) in ("sub", "rsub") and is_of_data else set()
        known |= outputs
    return False


def _density(
    facts: TraceIndex, sample: tuple[Call, DrawnSample | None], value: int, calls: list[Call]
) -> _Density | None:
    """Returns the only log-density of a sample, which a distribution computes, or which is written out."""
    made, drawn = sample
    uses = [call for call in calls if value in {access.tensor for access in call.inputs}]
    ready = [call for call in uses if _through(facts, call) in _LOG_DENSITIES]
    if ready:
        means = {access.tensor for access in made.inputs} if drawn is None else {drawn.mean}
        if len({call.site for call in ready}) != 1 or not _is_only_own(means, ready):
            return None
        last = max(ready, key=lambda call: call.index)
        own = {a.tensor: _Term(1, parts=_ALL) for c in calls if c.site == last.site for a in c.outputs}
        further = [call for call in uses if call not in ready and op_name(call) not in _CHECKS | {"tanh"}]
        return _Density(last, own, frozenset((last.site,)), bool(further))
    terms = [] if drawn is None else list(density_terms(facts, drawn, calls[-1].index))
    squares = [each.square for each in terms if each.square is not None]
    if len(squares) != 1:
        return None
    is_free = not facts.requires_grad(squares[0].outputs[0].tensor, squares[0].index)  # of the noise itself
    width = _ALL if is_free else _ALL - {"square"}
    own = {each.tensor: _Term(each.sign, parts=width if each.square is None else _ALL - {"width"}) for each in terms}
    further = [call for call in uses if op_name(call) not in _CHECKS | {"tanh"}]
    return _Density(squares[0], own, frozenset(), is_free or len(further) > 1)


def _through(facts: TraceIndex, call: Call) -> str:
    return facts.trace.sites[call.site].through


def _is_only_own(means: set[int], densities: list[Call]) -> bool:
    """Returns whether one log-probability of a sample is computed, by the distribution that it was drawn from.

    One line may compute several: a function that takes the density of a posterior and of a prior has one line for both.
    """
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


def _is_slope(facts: TraceIndex, log: Call, value: int, results: set[int]) -> bool:
    """Returns whether a logarithm is that of `1 - a ** 2`, or the `softplus()` of a multiple of the sample or the
    logarithm of its `cosh()`, which are a part of it."""
    number, before, is_difference = log.inputs[0].tensor, log.index, op_name(log) == "log1p"
    for _ in range(6):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return False
        name, inputs = op_name(made), [access.tensor for access in made.inputs]
        if op_name(log) in ("softplus", "logsigmoid"):
            return name in ("mul", "rmul") and inputs == [value]
        if name == "cosh":
            return inputs == [value] and not is_difference
        square = squared(facts, made)
        if square is not None:
            return is_difference and square[0] in results
        trained = [each for each in inputs if facts.requires_grad(each, made.index - 1)]
        if name not in _TO_SLOPE or len(trained) != 1 or (len(inputs) > 1 and name not in ("sub", "mul", "add")):
            return False
        is_difference |= name in ("rsub", "neg") or (name == "sub" and trained == inputs[1:])
        number, before = trained[0], made.index
    return False


def _is_term(facts: TraceIndex, calls: list[Call], density: _Density) -> bool:
    """Returns whether a loss adds the log-probability, perhaps times a weight, and takes no ratio or product of it."""
    known = {number for number, term in density.own.items() if "square" in term.parts}
    for call in calls:
        inputs = {access.tensor for access in call.inputs}
        if call.site in density.sites or not inputs & known:
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


def _joined(facts: TraceIndex, parts: tuple[_Density, Call, Call], calls: list[Call]) -> SquashedSample | None:
    """Follows the density and the logarithm of the slope to the call that puts them together."""
    density, log, squash = parts
    value, own = squash.inputs[0].tensor, dict(density.own)
    others = {log.outputs[0].tensor: _Term(-1 if op_name(log) == "softplus" or _is_of_cosh(facts, log) else 1)}
    for call in calls:
        numbers = [access.tensor for access in call.inputs]
        if call.site in density.sites or call is log or len(numbers) > 2 or not call.outputs:
            continue
        signs = [_sign(facts, call, place) for place in range(len(numbers))]
        of_own = [place for place, n in enumerate(numbers) if n in own and signs[place] is not None]
        of_other = [place for place, n in enumerate(numbers) if n in others and signs[place] is not None]
        if of_own and of_other:
            one, other = own[numbers[of_own[0]]], others[numbers[of_other[0]]]
            is_same = one.sign * (signs[of_own[0]] or 1) == other.sign * (signs[of_other[0]] or 1)
            has_rows = len(facts.tensor(numbers[of_own[0]]).shape) > 0
            kind: Kind | None = "sign" if is_same else "rows" if other.lost_rows and has_rows else None
            if kind is None or one.parts != _ALL:
                return None
            shown = density.call if density.sites else facts.creator(numbers[of_own[0]]) or density.call
            return SquashedSample(kind, shown, squash, value, log, call)
        for places, terms in ((of_own, own), (of_other, others)):
            if places:
                terms[call.outputs[0].tensor] = _together(facts, call, [(terms[numbers[p]], signs[p]) for p in places])
    return None


def _together(facts: TraceIndex, call: Call, found: list[tuple[_Term, int | None]]) -> _Term:
    """Returns what a call makes of terms; of two with different signs, one that is no part of a density."""
    signs = {term.sign * (sign or 1) for term, sign in found}
    parts = frozenset[str]().union(*(term.parts for term, _ in found)) if len(signs) == 1 else frozenset[str]()
    lost = any(term.lost_rows for term, _ in found) or _loses_rows(facts, call)
    return _Term(max(signs), lost, parts)


def _sign(facts: TraceIndex, call: Call, place: int) -> int | None:
    """Returns the sign that an input has in a sum, or in a product with something that is never below zero."""
    sign = sign_in_sum(facts, call, place)
    if sign is None and op_name(call) in ("mul", "rmul") and len(call.inputs) == 2:
        return 1 if never_negative(facts, call.inputs[1 - place].tensor, call.index) else None
    is_divisor = op_name(call) in ("div", "truediv") and place > 0
    return None if is_divisor else sign


def _is_of_cosh(facts: TraceIndex, log: Call) -> bool:
    made = next(iter(facts.producers(log.inputs[0].tensor, log.index)), None)
    return made is not None and op_name(made) == "cosh"


def _loses_rows(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call adds up the rows of what it is given."""
    before, after = facts.tensor(call.inputs[0].tensor).shape, facts.tensor(call.outputs[0].tensor).shape
    return op_name(call) == "sum" and len(before) > 1 and before[0] > 1 and after[:1] != before[:1]
