"""Names CTC losses that leave out many sequences: their loss is infinite, and `zero_infinity` makes it zero."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Backward, Call
from tensorlens.records.report import StandingOut
from tensorlens.records.training_values import ZeroedSequences

_LEAST = 0.1  # of the sequences; a few that are too long for their output are usual
_MIN_PASSES = 3


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    backwards = {each.started: each for each in facts.backwards}
    sites: dict[int, list[tuple[Backward, ZeroedSequences]]] = defaultdict(list)
    for each in facts.trace.inspection.zeroed_sequences:
        if each.index in backwards:
            sites[backwards[each.index].site].append((backwards[each.index], each))
    for found in sites.values():
        infinite, all_of_them = sum(each.infinite for _, each in found), sum(each.sequences for _, each in found)
        call, short = _loss(facts, found[0][0]), sum(each.short for _, each in found)
        if call is None or infinite < _LEAST * all_of_them or len(found) < _MIN_PASSES:
            continue
        why = f" ({short:,} have fewer steps than labels)" if short else ""
        yield stands_out(
            f"{as_written(facts, call)} is infinite for {infinite:,} of {all_of_them:,} sequences{why}, and "
            "`zero_infinity` makes it 0: this loss gives them no gradient",
            facts.label("value_made_here", call.site, "infinite losses become 0", call.index),
            facts.label("needed_here", found[0][0].site, "backward"),
        )


def _loss(facts: TraceIndex, backward: Backward) -> Call | None:
    """Returns the only CTC loss of a pass."""
    calls = [call for call in recorded_above(facts, backward) if op_name(call) == "ctc_loss"]
    return calls[0] if len(calls) == 1 else None
