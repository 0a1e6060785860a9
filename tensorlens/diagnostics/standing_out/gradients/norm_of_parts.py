"""Names penalties on the norm of a gradient that take the norms of parts of it: `grad.norm(dim=1)` of images."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import prod

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import ERRORS, examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.taken_norms import TakenNorm, taken_norm
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_GRAD, _FUNCTION, _VMAP = "autograd.grad", "func.grad", "func.vmap"
_TRANSFORMS = frozenset((_FUNCTION, _VMAP))
_FILLED = frozenset("ones ones_like full full_like new_ones new_full".split())
_RESHAPES = frozenset("view reshape flatten unflatten squeeze unsqueeze contiguous".split())
_SUMS = frozenset(("sum", "mean"))
_MAX_CALLS, _MAX_RESHAPES = 24, 4
_MAX_EVENTS = 6  # between the end of a function and that of the transform that runs it


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them where a number is subtracted from the norms, and each sample has one score that is differentiated."""
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        for compared in recorded_above(facts, backward):
            taken = _norm_below(facts, compared)
            gradient = None if taken is None else _gradient(facts, taken)
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
                facts.label("value_made_here", norm.site, "one norm of all" if is_whole else "norms of parts", norm.index),
                facts.label("observed_here", gradient.site, "one gradient for each sample", gradient.index),
                facts.label("needed_here", compared.site, "compared with a number", compared.index),
            )


def _norm_below(facts: TraceIndex, call: Call) -> TakenNorm | None:
    """Returns the norm that a call subtracts a number from, or computes the error of for a number."""
    name = op_name(call)
    if name not in ("sub", "rsub", *ERRORS) or not call.inputs:
        return None
    number, *others = (access.tensor for access in call.inputs)
    if len(others) > 1 or not all(_is_constant(facts, each, call) for each in others):
        return None
    made = next(iter(facts.producers(number, call.index)), None)
    return None if made is None else taken_norm(facts, made)


def _is_constant(facts: TraceIndex, number: int, before: Call) -> bool:
    made = next(iter(facts.producers(number, before.index)), None)
    return made is not None and op_name(made) in _FILLED


def _gradient(facts: TraceIndex, norm: TakenNorm) -> Call | None:
    """Returns the call that returned the gradient a norm is of, if it has the same samples."""
    number, before = norm.value, norm.read.index
    samples = facts.tensor(number).shape[:1]
    for _ in range(_MAX_RESHAPES):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or facts.tensor(number).shape[:1] != samples:
            return None
        if made.op in (_GRAD, *_TRANSFORMS):
            shapes = [facts.tensor(access.tensor).shape for access in (_asked(facts, made) or made).outputs]
            own = facts.tensor(number).shape
            return made if (own[1:] if made.op == _VMAP else own) in shapes else None
        if op_name(made) not in _RESHAPES:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _asked(facts: TraceIndex, made: Call) -> Call | None:
    """Returns the call that differentiates: `torch.func.grad()` runs one, and `torch.func.vmap()` may, one for each
    sample, as the last that it runs."""
    call: Call | None = made
    for op in (_FUNCTION, _GRAD) if made.op == _VMAP else (_GRAD,) if made.op == _FUNCTION else ():
        call = None if call is None else next((c for c in _calls_before(facts, call)), None)
        if call is None or call.op != op:
            return None
    return call if call is not None and call.op == _GRAD else None


def _calls_before(facts: TraceIndex, call: Call) -> Iterator[Call]:
    """Yields the calls right before one, the last first."""
    events = (facts.event(index) for index in range(call.index - 1, max(call.index - _MAX_EVENTS, -1), -1))
    return (event for event in events if isinstance(event, Call))


def _has_one_score(facts: TraceIndex, made: Call, samples: int, norms: tuple[int, ...]) -> bool:
    """Returns whether a call differentiates one number for each sample, or the sum of these.

    A score that adds up one value for each of the parts, as the energies of atoms, has a gradient for each.
    """
    gradient, is_mapped = _asked(facts, made), made.op == _VMAP
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
