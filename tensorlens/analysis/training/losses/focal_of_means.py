"""Finds focal losses whose factor is computed from the mean of a loss: `(1 - exp(-ce)) ** gamma * ce`, `ce` a mean.

The factor is there to weigh each sample by how well it is classified; of a mean it is one number for all samples.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.pair_tables import made_by, shape_of
from tensorlens.analysis.training.written_losses import reduces_by_mean
from tensorlens.records.model import Call

_LOSSES = frozenset("cross_entropy nll_loss binary_cross_entropy binary_cross_entropy_with_logits".split())
_LOGS = frozenset("log_softmax logsigmoid log log1p logsumexp softplus".split())  # of a loss that is written by hand
_PRODUCTS = frozenset("mul rmul imul".split())
_POWERS = frozenset("pow float_power square".split())
_SAME = frozenset("detach clone clamp clamp_min clamp_max clip squeeze view reshape float double to contiguous".split())
_RATIOS = frozenset("div truediv itruediv true_divide divide".split())
_SCALED = _PRODUCTS | _SAME | _RATIOS | {"neg"}
_CURVES = _SCALED | _POWERS | frozenset("rsub sub isub add radd iadd exp expm1 log1p log sqrt".split())
_MEANS, _SUMS = frozenset(("mean", "nanmean")), frozenset(("sum", "nansum", "dot"))
_REDUCTIONS = _MEANS | _SUMS
_ARITHMETIC = (
    _SCALED | _REDUCTIONS | frozenset("add radd iadd sub isub rsub gather getitem take_along_dim where".split())
)
_MOST_CALLS = 16
_MOST_ABOVE = 40
_MOST_COUNTS = 2  # of rows: that of a batch, and that of the last one; texts have more
_STEPS = frozenset("rnn_tanh rnn_relu lstm gru scaled_dot_product_attention multi_head_attention_forward".split())
_Way = tuple[tuple[Call, ...], Call]  # the calls on single numbers, the last first, and the one that returned the first


@dataclass(frozen=True, slots=True)
class FocalOfMean:
    """The call that multiplies a loss by a factor of its mean, what takes the mean, and the power that the factor is.

    Where `is_sum` is set, the call takes the sum, which another one divides. With `is_each`, each sample has a factor
    of its own, which multiplies the mean of all.
    """

    product: Call
    mean: Call
    power: Call
    samples: int
    is_sum: bool
    is_each: bool = False


def focal_of_means(facts: TraceIndex) -> Iterator[FocalOfMean]:
    """Yields these products, each loss once. Several such losses may be meant as weights of their tasks."""
    found, counts = dict[int, FocalOfMean](), set[int]()
    for backward in examined_passes(facts, with_asked=True):
        of_pass = dict[tuple[object, ...], FocalOfMean]()
        for call in recorded_above(facts, backward):
            is_product = op_name(call) in _PRODUCTS and len(call.inputs) == 2
            one = (_found(facts, call) or _of_each(facts, call)) if is_product else None
            if one is not None:
                of_pass[_key(one.mean)] = one
        if len(of_pass) > 1:
            return
        for one in of_pass.values():
            found.setdefault(one.mean.site, one)
            counts.add(one.samples)
    if len(found) == 1 and len(counts) <= _MOST_COUNTS:
        yield from found.values()


def _found(facts: TraceIndex, product: Call) -> FocalOfMean | None:
    numbers = [access.tensor for access in product.inputs]
    for number, other in (numbers, numbers[::-1]):
        way = _way(facts, number, product.index) if shape_of(facts, number) == () else None
        power = None if way is None else _focal_power(facts, way[0])
        if way is None or power is None or not _is_loss(facts, (other, product.index), way[1]):
            continue
        if not facts.requires_grad(number, product.index - 1) and not _is_named(facts, (product, *way[0])):
            continue  # the weight of a batch in a curriculum, perhaps
        samples, is_sum = _samples(facts, way[1]), op_name(way[1]) in _SUMS
        is_divided = is_sum and bool(way[0]) and op_name(way[0][-1]) in _RATIOS
        is_mean = reduces_by_mean(facts, way[1]) if op_name(way[1]) in _LOSSES else op_name(way[1]) in _MEANS
        if samples > 1 and (is_mean or is_divided):
            return FocalOfMean(product, way[1], power, samples, is_sum)
    return None


def _is_named(facts: TraceIndex, calls: tuple[Call, ...]) -> bool:
    """Returns whether a name in the statements of some calls, or that of their function, is one of a focal loss."""
    names = {facts.trace.sites[call.site].function for call in calls}
    for span in filter(None, (facts.span(call.site) for call in calls)):
        nodes = list(ast.walk(statement_around(facts, span) or ast.Pass()))
        names |= {each.id for each in nodes if isinstance(each, ast.Name)}
        names |= {each.attr for each in nodes if isinstance(each, ast.Attribute)}
    return any(name in ("pt", "p_t") or {"focal", "gamma"} & set(words_of(name)) for name in names)


def _of_each(facts: TraceIndex, product: Call) -> FocalOfMean | None:
    """Finds a factor for each sample, `(1 - p) ** gamma`, that multiplies the mean of the loss of the same scores."""
    numbers = [access.tensor for access in product.inputs]
    for number, other in (numbers, numbers[::-1]):
        mean = _mean_of(facts, number, product.index) if shape_of(facts, number) == () else None
        if mean is None or op_name(mean) not in _LOSSES or not reduces_by_mean(facts, mean):
            continue
        samples, scores = _samples(facts, mean), mean.inputs[0].tensor
        power = _power_of_rest(facts, other, product.index) if shape_of(facts, other)[:1] == (samples,) else None
        if power is None or samples < 2:
            continue
        read = {each.tensor for _, call in ancestry(facts, other, product.index, _MOST_ABOVE) for each in call.inputs}
        made = made_by(facts, scores, mean.index)
        sources = {scores} | ({each.tensor for each in made.inputs[:1]} if made and op_name(made) in _LOGS else set())
        if read & sources:
            return FocalOfMean(product, mean, power, samples, is_sum=False, is_each=True)
    return None


def _mean_of(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the call that took the mean that a number is, up to a factor."""
    way = _way(facts, number, before)
    return way[1] if way is not None and all(op_name(call) in _SCALED for call in way[0]) else None


def _power_of_rest(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the power of `1 - p` that a tensor is."""
    power: Call | None = None
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None or not made.inputs:
            return None
        if op_name(made) in ("rsub", "expm1") or (op_name(made) == "sub" and len(made.inputs) == 2):
            return power
        if len({access.tensor for access in made.inputs}) > 1 or op_name(made) not in _SAME | _POWERS | _PRODUCTS | {
            "neg"
        }:
            return None
        power = made if power is None and _is_power(made) else power
        number, before = made.inputs[0].tensor, made.index
    return None


def _way(facts: TraceIndex, number: int, before: int) -> _Way | None:
    """Follows a single number back through arithmetic with constants to the call that made one number of several."""
    calls = list[Call]()
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None or not made.inputs:
            return None
        given = dict.fromkeys(access.tensor for access in made.inputs)
        single = [each for each in given if shape_of(facts, each) == ()]
        if len(single) < len(given):
            return tuple(calls), made
        sources = [each for each in single if not _is_filled(facts, each, made.index)]
        if op_name(made) not in _CURVES or len(sources) != 1:
            return None
        calls.append(made)
        number, before = sources[0], made.index
    return None


def _is_filled(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a tensor is a constant: it has no history, and is computed from no tensor that has one."""
    if facts.requires_grad(number, before - 1):
        return False
    made = made_by(facts, number, before)
    return made is None or op_name(made) in ("ones_like", "full_like", "ones", "full", "tensor", "scalar_tensor")


def _focal_power(facts: TraceIndex, calls: tuple[Call, ...]) -> Call | None:
    """Returns the power that a factor `(1 - exp(-loss)) ** gamma` is, also written as an exponential of a logarithm."""
    names = [op_name(call) for call in calls]
    own = [place for place, call in enumerate(calls) if _is_power(call)]
    if names.count("exp") + names.count("expm1") == 2 and {"log", "log1p"} & set(names) and not own:
        own = [names.index("exp")] if "exp" in names else []
    if len(own) != 1:
        return None
    below = names[own[0] + 1 :]
    place = next((place for place, name in enumerate(below) if name in ("exp", "expm1")), None)
    is_rest = place is not None and (
        below[place] == "expm1" or bool({"rsub", "sub", "add", "log1p"} & set(below[:place]))
    )
    return calls[own[0]] if is_rest else None


def _is_power(call: Call) -> bool:
    is_square = op_name(call) in _PRODUCTS and len(call.inputs) == 2 and call.inputs[0].tensor == call.inputs[1].tensor
    return op_name(call) in _POWERS or is_square


def _is_loss(facts: TraceIndex, given: tuple[int, int], mean: Call) -> bool:
    """Returns whether a tensor is the loss whose mean a call takes, up to a factor: the mean, or its elements."""
    number, before = given
    elements = {access.tensor for access in mean.inputs}
    for _ in range(_MOST_CALLS):
        if number in elements and len(mean.inputs) == 1:
            return True
        made = made_by(facts, number, before)
        if made is None or not made.inputs:
            return False
        if _key(made) == _key(mean):
            return True
        given_ = dict.fromkeys(access.tensor for access in made.inputs)
        sources = [each for each in given_ if not _is_filled(facts, each, made.index)]
        if op_name(made) not in _SCALED or len(sources) != 1 or _is_power(made):
            return False
        number, before = sources[0], made.index
    return False


def _key(call: Call) -> tuple[object, ...]:
    """Returns what two calls have in common that compute the same."""
    return op_name(call), *(access.tensor for access in call.inputs)


def _samples(facts: TraceIndex, mean: Call) -> int:
    """Returns the number of samples whose losses a call makes one number of; 0 if these are no losses of classes."""
    rows = (*shape_of(facts, mean.inputs[0].tensor), 1)[0]
    if not _are_batch(facts, mean, rows):
        return 0
    if op_name(mean) in _LOSSES:
        return rows
    if op_name(mean) not in _REDUCTIONS:
        return 0
    waiting, seen = [(access.tensor, mean.index) for access in mean.inputs], set[int]()
    for number, before in waiting:
        made = made_by(facts, number, before)
        if made is None or made.index in seen or len(seen) > _MOST_ABOVE or not made.inputs:
            continue
        seen.add(made.index)
        if op_name(made) in _LOSSES | _LOGS and facts.requires_grad(number, before - 1):
            return rows
        if op_name(made) in _ARITHMETIC:
            waiting += [(access.tensor, made.index) for access in made.inputs]
    return 0


def _are_batch(facts: TraceIndex, mean: Call, rows: int) -> bool:
    """Returns whether the rows of a loss are those of the model from its first layer on, and no steps of one text."""
    number, before = mean.inputs[0].tensor, mean.index
    for _ in range(_MOST_ABOVE):
        made = made_by(facts, number, before)
        if not facts.requires_grad(number, before - 1) or made is None or not made.inputs:
            return True
        if shape_of(facts, number)[:1] != (rows,) or op_name(made) in _STEPS:
            return False
        number, before = made.inputs[0].tensor, made.index
    return True
