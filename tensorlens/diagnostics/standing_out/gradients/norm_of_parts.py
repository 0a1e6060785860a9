"""Names penalties on the norm of a gradient that take the norms of parts of it: `grad.norm(dim=1)` of images."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import prod

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_GRAD = "autograd.grad"
_NORMS = frozenset(("norm", "vector_norm", "linalg_norm"))
_SUMS = frozenset(("sum", "mean"))
_MAX_CALLS = 24


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them where a number is subtracted from the norms, and each sample has one score that is differentiated."""
    facts, reported = training.facts, set[int]()
    for backward in examined_passes(facts):
        for compared in recorded_above(facts, backward):
            norm = _norm_below(facts, compared)
            gradient = None if norm is None else _gradient(facts, norm)
            if norm is None or gradient is None or norm.site in reported:
                continue
            shape, of = facts.tensor(norm.inputs[0].tensor).shape, named(facts, norm.inputs[0].tensor, norm.index)
            result = facts.tensor(norm.outputs[0].tensor).shape
            if len(shape) < 3 or result[:1] != shape[:1] or not _has_one_score(facts, gradient, shape[0], result):
                continue
            samples, norms = shape[0], prod(result)
            if not samples < norms < prod(shape):
                continue
            reported.add(norm.site)
            yield stands_out(
                f"{as_written(facts, norm)} takes {norms // samples:,} norms for each of the {samples:,} samples, of "
                f"{prod(shape) // norms:,} elements each, and {as_written(facts, compared)} compares each with "
                f"a number: the gradient of a sample's one score, in {of}, has {prod(shape) // samples:,} elements",
                facts.label("value_made_here", norm.site, "norms of parts", norm.index),
                facts.label("observed_here", gradient.site, "one gradient for each sample", gradient.index),
                facts.label("needed_here", compared.site, "compared with a number", compared.index),
            )


def _norm_below(facts: TraceIndex, call: Call) -> Call | None:
    """Returns the norm that a call subtracts a number from."""
    if op_name(call) not in ("sub", "rsub") or len(call.inputs) != 1:
        return None
    norm = next(iter(facts.producers(call.inputs[0].tensor, call.index)), None)
    is_norm = norm is not None and op_name(norm) in _NORMS and len(norm.inputs) == len(norm.outputs) == 1
    return norm if is_norm else None


def _gradient(facts: TraceIndex, norm: Call) -> Call | None:
    made = next(iter(facts.producers(norm.inputs[0].tensor, norm.index)), None)
    return made if made is not None and made.op == _GRAD and made.inputs else None


def _has_one_score(facts: TraceIndex, gradient: Call, samples: int, norms: tuple[int, ...]) -> bool:
    """Returns whether a call differentiates one number for each sample, or the sum of these.

    A score that adds up one value for each of the parts, as the energies of atoms, has a gradient for each.
    """
    number, before = gradient.inputs[0].tensor, gradient.index
    if not facts.tensor(number).shape:
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) not in _SUMS:
            return False
        number = made.inputs[0].tensor
    shape = facts.tensor(number).shape
    above = islice(ancestry(facts, number, before), _MAX_CALLS)
    sums = (facts.tensor(made.inputs[0].tensor).shape for _, made in above if op_name(made) in _SUMS and made.inputs)
    is_of_parts = any(tuple(size for size in each if size > 1) == tuple(s for s in norms if s > 1) for each in sums)
    return samples > 1 and shape[:1] == (samples,) and prod(shape) == samples and not is_of_parts
