"""Names straight-through estimates with their parts exchanged: `q + (z - q).detach()` has the value of `z`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.value_ranges import RESHAPING
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_CUTS = frozenset(("Tensor.detach", "torch.detach", "Tensor.data.__get__"))
_PICKED = frozenset(("getitem", "embedding", "index_select", "matmul", "gather"))
_CHOICES = frozenset(("argmin", "argmax", "min", "max", "topk", "round", "sign", "floor"))


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts, seen = training.facts, set[int]()
    sums = [(call, *pair) for call in facts.calls if (pair := _sum(facts, call)) is not None]
    right = {(kept, other) for _, kept, other, _ in sums}
    for call, picked, source, difference in sums:
        is_both = (source, picked) in right  # the loss uses each of the two ways
        if not is_both and call.site not in seen and _is_picked_by(facts, picked, source, call.index):
            seen.add(call.site)
            code, value = as_written(facts, call), named(facts, source, difference.index)
            gradient = named(facts, picked, call.index)
            yield stands_out(
                f"{code} has the value of {value} and the gradient of {gradient}, which is picked by {value}: a "
                f"straight-through estimate has the value of {gradient} and the gradient of {value}",
                facts.label("value_made_here", call.site, f"the value of {value}", call.index),
                facts.label("graph_cut_here", difference.site, "detached", difference.index),
            )


def _sum(facts: TraceIndex, call: Call) -> tuple[int, int, Call] | None:
    """Returns (kept, other, difference) of `kept + (other - kept).detach()`."""
    if op_name(call) not in ("add", "radd") or len(call.inputs) != 2 or call.within:
        return None
    for kept, cut in [[access.tensor for access in call.inputs][::order] for order in (1, -1)]:
        made = next(iter(facts.producers(cut, call.index)), None)
        if made is None or made.op not in _CUTS or not made.inputs:
            continue
        difference = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
        if difference is None or op_name(difference) != "sub" or len(difference.inputs) != 2:
            continue
        other, less = (access.tensor for access in difference.inputs)
        if less == kept and other != kept:
            return kept, other, difference
    return None


def _is_picked_by(facts: TraceIndex, picked: int, source: int, before: int) -> bool:
    """Returns whether a value is chosen from a table by a comparison with another one, which has a graph."""
    made = next(iter(facts.producers(picked, before)), None)
    while made is not None and op_name(made) in RESHAPING - _PICKED and made.inputs:
        made = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
    if made is None or op_name(made) not in _PICKED or not facts.requires_grad(source, before - 1):
        return False
    above = {call.index for _, call in ancestry(facts, source, before)}
    indices = [
        a.tensor for a in made.inputs if a.tensor != source and not facts.requires_grad(a.tensor, made.index - 1)
    ]
    for index in indices:
        calls = [call for _, call in ancestry(facts, index, made.index) if call.index not in above]
        is_chosen = any(op_name(call) in _CHOICES for call in calls)
        if is_chosen and any(access.tensor == source for call in calls for access in call.inputs):
            return True
    return False
