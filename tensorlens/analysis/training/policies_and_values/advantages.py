"""Finds log-probabilities that a loss multiplies by an estimate with a graph, while the run trains the estimate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tensorlens.analysis.lineage import MAX_CALLS, ancestry, graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name, trained_by
from tensorlens.analysis.training.loss_calls import examined_passes, is_arithmetic, is_error, recorded_above
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call

_PRODUCTS = frozenset(("mul", "rmul", "imul"))
_SUMMED_PRODUCTS = frozenset("dot vdot inner matmul mm bmm einsum tensordot".split())
_ADDED_PRODUCTS = frozenset(("addcmul",))
_PER_SAMPLE = frozenset(("cross_entropy", "nll_loss"))
_PICKING = frozenset(("gather", "getitem", "take_along_dim"))
_KEEPING = frozenset("float double to squeeze unsqueeze view reshape flatten".split())
_CONSTANTS = frozenset("ones ones_like zeros zeros_like full full_like new_ones new_zeros".split())
_WEIGHTS = frozenset("sigmoid softmax softplus exp".split())
_DRAWS = frozenset("multinomial bernoulli argmax".split())
_MAX_SITES, _MAX_KEPT, _MAX_CALLS = 16, 3, 60
_Error = tuple[Call, Backward]


@dataclass(frozen=True, slots=True)
class Advantage:
    """A product of log-probabilities and an estimate whose parameters get the gradient of the product, too."""

    product: Call
    estimate: int  # the factor
    error: Call  # the squared error, or another distance, that the run trains the estimate by
    backward: Backward
    parameters: tuple[int, ...]  # only the estimate is computed from them


def advantages(training: Training) -> Iterator[Advantage]:
    """Yields these products, one for each estimate."""
    facts = training.facts
    passes = list(examined_passes(facts))
    errors: dict[int, _Error] = {}
    trained: dict[frozenset[int], _Error] = {}  # by the parameters that an error is computed from
    for backward in passes:
        for call in recorded_above(facts, backward):
            if is_error(call) and not _is_of_constant(facts, call):
                for number in _estimates(facts, [access.tensor for access in call.inputs], call.index):
                    errors.setdefault(number, (call, backward))
                made = call.outputs[0].tensor if call.outputs else call.inputs[0].tensor
                trained.setdefault(frozenset(graph_leaves(facts, made, call.index + 1)), (call, backward))
    reported: set[tuple[int, ...]] = set()
    for backward in passes:
        products = [call for call in recorded_above(facts, backward) if _factors(facts, call)]
        used = trained_by(training, backward) if products and errors else set[int]()
        for call in products if used else ():
            found = _found(training, call, (errors, trained), used)
            if found is not None and (found[1].site, *found[2]) not in reported:
                reported.add((found[1].site, *found[2]))
                yield Advantage(call, found[0], found[1], backward, found[2])


def _is_of_constant(facts: TraceIndex, error: Call) -> bool:
    """Returns whether an error is that of a written number, as a penalty has that keeps weights near 1."""
    numbers, before = [access.tensor for access in error.inputs], error.index
    if len(set(numbers)) == 1:
        made = next(iter(facts.producers(numbers[0], before)), None)
        if made is None or op_name(made) not in ("sub", "rsub"):
            return False
        numbers, before = [access.tensor for access in made.inputs], made.index
    constants = [number for number in numbers if not facts.requires_grad(number, before - 1)]
    makers = [next(iter(facts.producers(number, before)), None) for number in constants]
    is_number = len(numbers) == 1
    return is_number or (bool(makers) and all(made is not None and op_name(made) in _CONSTANTS for made in makers))


def _found(
    training: Training, call: Call, errors: tuple[dict[int, _Error], dict[frozenset[int], _Error]], used: set[int]
) -> tuple[int, Call, tuple[int, ...]] | None:
    """Finds the error that trains the estimate of a product: it reads the same tensor, or what the same parameters have
    given in another call."""
    facts = training.facts
    factors = _factors(facts, call)
    if not all(facts.requires_grad(number, call.index - 1) for number in factors):
        return None
    for score, estimate in (factors, factors[::-1]):
        if not is_score(facts, score, call.index) or _is_probability(facts, score, call.index):
            continue
        made = _maker(facts, estimate, call.index)
        if (made is not None and op_name(made) in _WEIGHTS) or _is_of_labels(facts, score, call.index):
            continue
        leaves = [each & used for each in (graph_leaves(facts, n, call.index) for n in (estimate, score))]
        own = leaves[0] - leaves[1]
        direct = (errors[0][number] for number in _estimates(facts, [estimate], call.index) if number in errors[0])
        again = (error for trained, error in errors[1].items() if (trained & used) - leaves[1] == own)
        error = next(direct, None) or next(again, None)
        if error is None:
            continue
        if own and own <= trained_by(training, error[1]):
            return estimate, error[0], tuple(sorted(own))
    return None


def _factors(facts: TraceIndex, call: Call) -> list[int]:
    """Returns the two tensors that a call multiplies element by element, also where it adds up the products."""
    name, factors = op_name(call), [access.tensor for access in call.inputs]
    if name in _ADDED_PRODUCTS:
        factors = factors[1:]
    elif name in _SUMMED_PRODUCTS:
        sizes = {prod(facts.tensor(number).shape) for number in factors}
        shapes = [facts.tensor(number).shape for number in factors]
        is_of_pairs = len(sizes) == 1 and all(sum(size > 1 for size in shape) == 1 for shape in shapes)
        return factors if len(factors) == 2 and is_of_pairs else []
    elif name not in _PRODUCTS:
        return []
    return factors if len(factors) == 2 else []


def _estimates(facts: TraceIndex, numbers: list[int], before: int) -> Iterator[int]:
    """Yields tensors with a graph, and those that they were computed from by the arithmetic of a loss."""
    waiting, seen = [(number, before) for number in numbers], set[int]()
    for number, limit in waiting:
        if number in seen or len(seen) > MAX_CALLS or not facts.requires_grad(number, limit - 1):
            continue
        seen.add(number)
        yield number
        call = next(iter(facts.producers(number, limit)), None)
        if call is not None and is_arithmetic(call) and op_name(call) not in _PRODUCTS:
            waiting += [(access.tensor, call.index) for access in call.inputs]


def is_score(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a tensor was computed by arithmetic from log-probabilities that a distribution gives, or that
    are picked from a `log_softmax()`."""
    waiting, seen = [(number, before, False)], set[int]()
    for at, limit, is_log in waiting:
        call = next(iter(facts.producers(at, limit)), None)
        if call is None or call.index in seen or len(seen) > _MAX_SITES:
            continue
        seen.add(call.index)
        if facts.trace.sites[call.site].through.endswith(".log_prob"):
            return True
        name = op_name(call)
        if (name in _PER_SAMPLE and facts.tensor(at).shape) or _picks(facts, call, is_log=is_log):
            return True
        if is_arithmetic(call):
            waiting += [(access.tensor, call.index, is_log or name == "log") for access in call.inputs]
    return False


def _is_of_labels(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a tensor is a cross-entropy of labels that no call has drawn: its weight is that of a sample."""
    for _ in range(_MAX_SITES):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return False
        if op_name(made) in _PER_SAMPLE:
            labels = made.inputs[1].tensor if len(made.inputs) > 1 else number
            return not any(op_name(call) in _DRAWS for _, call in ancestry(facts, labels, made.index, _MAX_CALLS))
        if not is_arithmetic(made):
            return False
        number, before = made.inputs[0].tensor, made.index
    return False


def _is_probability(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a tensor is the probability of a choice: its product with a value is an expected value."""
    made = _maker(facts, number, before)
    if made is not None and op_name(made) == "neg":
        made = _maker(facts, made.inputs[0].tensor, made.index)
    log = None if made is None or op_name(made) != "exp" else _maker(facts, made.inputs[0].tensor, made.index)
    if log is None:
        return False
    return facts.trace.sites[log.site].through.endswith(".log_prob") or _picks(facts, log, is_log=False)


def _picks(facts: TraceIndex, call: Call, *, is_log: bool) -> bool:
    """Returns whether a call picks log-probabilities of choices, or probabilities if a logarithm follows, or subtracts
    the `logsumexp()` of the scores from them."""
    makers = [_maker(facts, access.tensor, call.index) for access in call.inputs]
    names = [None if made is None else op_name(made) for made in makers]
    kind = "softmax" if is_log else "log_softmax"
    if op_name(call) in _PICKING:
        return names[:1] == [kind]
    if op_name(call) in _PRODUCTS:
        return kind in names and "one_hot" in names
    if op_name(call) != "sub" or len(makers) != 2 or names[1] != "logsumexp":
        return False
    picked, total = makers
    is_picked = picked is not None and op_name(picked) in _PICKING
    return is_picked and picked is not None and total is not None and picked.inputs[0].tensor == total.inputs[0].tensor


def _maker(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the call that made a tensor, apart from a conversion or another shape of it."""
    made = next(iter(facts.producers(number, before)), None)
    for _ in range(_MAX_KEPT):
        if made is None or op_name(made) not in _KEEPING or not made.inputs:
            break
        made = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
    return made
