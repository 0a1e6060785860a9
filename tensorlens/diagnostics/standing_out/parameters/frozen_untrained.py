"""Names new parameters that a line freezes with trained ones, before any step has trained them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.code_around import class_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.frozen import frozen_at
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.written_values import fills_computed
from tensorlens.diagnostics.shared.optimizers import born
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_DRAWN = frozenset(("normal", "uniform"))


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds parameters that are made after a training, stay as they are, and are frozen by a line that freezes what
    that training has trained: they keep the values that they were made with."""
    facts, steps = training.facts, training.training.steps
    if training.training.is_hidden or facts.trace.inspection.switches or not steps:
        return
    frozen: dict[int, list[tuple[ParameterRow, Call]]] = defaultdict(list)
    for row in training.rows:
        call = None if row.requires_grad else frozen_at(facts, row.tensor)
        if call is not None:
            frozen[call.site].append((row, call))
    for found in frozen.values():
        trained = [row for row, _ in found if row.is_stepped and row.statistics is not None and row.statistics.filled]
        models = {row.owner[:1] for row in trained}  # a network of its own may be meant to stay as it is made
        new = [(row, call) for row, call in found if row.owner[:1] in models and _is_new(training, row, call)]
        new = [] if _leaves_others(training, [row for row, _ in new]) else new
        later = [step for step in steps if step.index > found[0][1].index]
        if trained and new and later:
            rows = [row for row, _ in new]
            them = "it" if len(rows) == 1 else "them"
            text = f"{listed(rows)} {'is' if len(rows) == 1 else 'are'} new, and frozen before a step trains {them}, "
            text += f"by the line that freezes {listed(trained)}, which the run has trained"
            yield stands_out(
                f"{text}: {len(later):,} later steps leave {'it as it was' if len(rows) == 1 else 'them as they were'}",
                facts.label("flag_changed_here", new[0][1].site, "frozen here", new[0][1].index),
                facts.label("leaf_made_here", born(facts, rows[0].tensor), "made here"),
            )


def _is_new(training: MeasuredTraining, row: ParameterRow, frozen: Call) -> bool:
    """Returns whether a parameter was made after a step, and never trained, written or loaded.

    An optimizer may have it, as one that is given all parameters of the model.
    """
    facts = training.facts
    made = facts.first_use(row.tensor)
    first = training.training.steps[0].index
    has_gradient = row.statistics is not None and row.statistics.filled > 0
    if made is None or made.index <= first or has_gradient or (row.is_stepped and row.statistics is None):
        return False
    used = any(
        row.tensor in {access.tensor for access in call.inputs} for call in facts.calls if call.index > frozen.index
    )
    written = [call for call in training.written_after(row.tensor, made.index) if not _is_initial(facts, call)]
    return used and not written and facts.tensor(row.tensor).type.endswith("Parameter")


def _leaves_others(training: MeasuredTraining, new: list[ParameterRow]) -> bool:
    """Returns whether another new parameter of one of the modules is trained, as where only one factor of a low-rank
    update is: then the script chooses by name."""
    facts, first = training.facts, training.training.steps[0].index
    modules = {row.name.rpartition(".")[0] for row in new}
    for row in training.rows:
        made = facts.first_use(row.tensor)
        is_one = row.requires_grad and row.is_stepped and row.name.rpartition(".")[0] in modules
        if is_one and made is not None and made.index > first:
            return True
    return False


def _is_initial(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call gives a parameter first values, which no training or load has made.

    A line outside all classes that draws them may make a random projection, which is to stay as it is.
    """
    if fills_computed(facts, call):
        return False
    site = facts.trace.sites[call.site]
    is_own = not site.through and class_around(facts, site.span.file, site.span.line) is None
    is_constant = op_name(call) in ("zero", "zeros", "ones", "fill", "constant")
    return is_constant or (not is_own and (call.op.startswith("nn.init.") or op_name(call) in _DRAWN))
