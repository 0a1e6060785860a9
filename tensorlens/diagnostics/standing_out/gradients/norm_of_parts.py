"""Names penalties on the norm of a gradient that take the norms of parts of it: `grad.norm(dim=1)` of images."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import prod

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.gradients.penalized_gradients import (
    VMAP,
    asked_gradient,
    compared_norm,
    gradient_below,
)
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.model import Backward, Call
from tensorlens.records.report import StandingOut

_SUMS = frozenset(("sum", "mean"))
_AVERAGES = frozenset(("mean", "binary_cross_entropy_with_logits"))
_TERMS = frozenset("add radd iadd sub rsub isub neg mul rmul imul truediv div".split())
_KEPT = frozenset("relu softplus logsigmoid view reshape squeeze flatten getitem chunk split float clamp min".split())
_LAYERS = frozenset("linear conv1d conv2d conv3d bilinear".split())
_MAX_CALLS = 24


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them where a number is subtracted from the norms, and each sample has one score that is differentiated."""
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        for compared in recorded_above(facts, backward):
            taken = compared_norm(facts, compared)
            gradient = None if taken is None else gradient_below(facts, taken)
            if taken is None or gradient is None or taken.call.site in reported:
                continue
            norm = taken.call
            shape, of = facts.tensor(taken.value).shape, named(facts, taken.value, taken.read.index)
            result = facts.tensor(norm.outputs[0].tensor).shape
            is_whole = prod(result) == 1 and len(shape) > 1
            if not is_whole and (len(shape) < 3 or result[:1] != shape[:1]):
                continue
            samples, norms = shape[0], prod(result)
            if not (is_whole or samples < norms < prod(shape)) or not _has_one_score(facts, gradient, samples, result):
                continue
            if is_whole and not _is_of_averaged_scores(facts, gradient):
                continue
            reported.add(norm.site)
            taken_norms = (
                f"one norm of the gradients of all {samples:,} samples, and {as_written(facts, compared)} compares it "
                f"with a number: each sample has a score and a gradient of its own, a row of {of}"
                if is_whole
                else f"{norms // samples:,} norms for each of the {samples:,} samples, of "
                f"{prod(shape) // norms:,} elements each, and {as_written(facts, compared)} compares each with "
                f"a number: the gradient of a sample's one score, in {of}, has {prod(shape) // samples:,} elements"
            )
            yield stands_out(
                f"{as_written(facts, norm)} takes {taken_norms}",
                facts.label(
                    "value_made_here", norm.site, "one norm of all" if is_whole else "norms of parts", norm.index
                ),
                facts.label("observed_here", gradient.site, "one gradient for each sample", gradient.index),
                facts.label("needed_here", compared.site, "compared with a number", compared.index),
            )


def _is_of_averaged_scores(facts: TraceIndex, made: Call) -> bool:
    """Returns whether a call differentiates the scores of samples one by one, or a loss averages those of their layer.

    The energy of a molecule is a sum over its atoms, too, and its gradient is one for all of them.
    """
    gradient = asked_gradient(facts, made)
    summed = None if gradient is None else _sum_below(facts, gradient)
    if gradient is None or summed is None:
        return gradient is not None
    layers = _layers_above(facts, summed) if op_name(summed) == "sum" else set()
    passes = examined_passes(facts) if layers else ()
    return any(layers & _layers_above(facts, call) for each in passes for call in _averages(facts, each))


def _averages(facts: TraceIndex, backward: Backward) -> Iterator[Call]:
    """Yields the averages that a loss is a sum of, as that of a critic, and not an error of: energies have those."""
    waiting = [(root.tensor, backward.index) for root in backward.roots]
    for number, before in waiting:
        made = next(iter(facts.producers(number, before)), None)
        if made is not None and op_name(made) in _AVERAGES and made.inputs:
            yield made
        elif made is not None and op_name(made) in _TERMS and len(waiting) < _MAX_CALLS:
            waiting += [(access.tensor, made.index) for access in made.inputs]


def _sum_below(facts: TraceIndex, gradient: Call) -> Call | None:
    """Returns the sum or the mean that is differentiated, if it is one."""
    number = gradient.inputs[0].tensor
    made = next(iter(facts.producers(number, gradient.index)), None) if not facts.tensor(number).shape else None
    return made if made is not None and op_name(made) in _SUMS else None


def _layers_above(facts: TraceIndex, reduction: Call) -> set[int]:
    """Returns the weights of the layers whose results a call reduces, with no sum and no square in between."""
    waiting, found = [(reduction.inputs[0].tensor, reduction.index)], set[int]()
    for number, before in waiting:
        made = next(iter(facts.producers(number, before)), None)
        if made is None or len(waiting) > _MAX_CALLS:
            continue
        if op_name(made) in _LAYERS:
            found |= {access.tensor for access in made.inputs[1:]}
        elif op_name(made) in _TERMS | _KEPT:
            waiting += [(access.tensor, made.index) for access in made.inputs]
    return found


def _has_one_score(facts: TraceIndex, made: Call, samples: int, norms: tuple[int, ...]) -> bool:
    """Returns whether a call differentiates one number for each sample, or the sum of these.

    A score that adds up one value for each of the parts, as the energies of atoms, has a gradient for each.
    """
    gradient, is_mapped = asked_gradient(facts, made), made.op == VMAP
    if gradient is None:
        return False
    number, before = gradient.inputs[0].tensor, gradient.index
    if not facts.tensor(number).shape and not is_mapped:
        summed = next(iter(facts.producers(number, before)), None)
        if summed is None or op_name(summed) not in _SUMS:
            return False
        number = summed.inputs[0].tensor
    shape = facts.tensor(number).shape
    above = islice(ancestry(facts, number, before), _MAX_CALLS)
    sums = (facts.tensor(each.inputs[0].tensor).shape for _, each in above if op_name(each) in _SUMS and each.inputs)
    parts = tuple(size for size in (norms[1:] if is_mapped else norms) if size > 1)
    is_of_parts = any(tuple(size for size in each if size > 1) == parts for each in sums)
    is_one = shape == () if is_mapped else shape[:1] == (samples,) and prod(shape) == samples
    return samples > 1 and is_one and not is_of_parts
