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
    for call in facts.calls:
        if op_name(call) not in ("add", "radd") or len(call.inputs) != 2 or call.site in seen or call.within:
            continue
        parts = _parts(facts, call)
        if parts is not None:
            seen.add(call.site)
            picked, source, difference = parts
            code, value = as_written(facts, call), named(facts, source, difference.index)
            gradient = named(facts, picked, call.index)
            yield stands_out(
                f"{code} has the value of {value} and the gradient of {gradient}, which is picked by {value}: a "
                f"straight-through estimate has the value of {gradient} and the gradient of {value}",
                facts.label("value_made_here", call.site, f"the value of {value}", call.index),
                facts.label("graph_cut_here", difference.site, "detached", difference.index),
            )


def _parts(facts: TraceIndex, call: Call) -> tuple[int, int, Call] | None:
    """Returns (picked, source, difference) of `picked + (source - picked).detach()`."""
    for picked, cut in [[access.tensor for access in call.inputs][::order] for order in (1, -1)]:
        made = next(iter(facts.producers(cut, call.index)), None)
        if made is None or made.op not in _CUTS or not made.inputs:
            continue
        difference = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
        if difference is None or op_name(difference) != "sub" or len(difference.inputs) != 2:
            continue
        source, other = (access.tensor for access in difference.inputs)
        if other == picked and source != picked and _is_picked_by(facts, picked, source, call.index):
            return picked, source, difference
    return None


def _is_picked_by(facts: TraceIndex, picked: int, source: int, before: int) -> bool:
    """Returns whether a value is chosen from a table by a comparison with another one, which has a graph."""
    made = next(iter(facts.producers(picked, before)), None)
    while made is not None and op_name(made) in RESHAPING - _PICKED and made.inputs:
        made = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
    if made is None or op_name(made) not in _PICKED or not facts.requires_grad(source, before - 1):
        return False
    calls = [call for _, call in ancestry(facts, picked, before)]
    has_choice = any(op_name(call) in _CHOICES for call in calls)
    return has_choice and any(access.tensor == source for call in calls for access in call.inputs)
