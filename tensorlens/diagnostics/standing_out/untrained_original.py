"""Names parameters that are used after the training, of which the steps have trained a copy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_COPYING = frozenset("stack clone detach requires_grad cat to parameter deepcopy __deepcopy__".split())
_MAX_CALLS = 12


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if nothing changes the originals, and no line uses the copies after the last step."""
    facts, steps = training.facts, training.training.steps
    if not steps or training.training.is_hidden or not is_complete(facts.trace):
        return
    first, last, stepping = steps[0].index, steps[-1].index, {step.site for step in steps}
    after = [call for call in facts.calls_between(last + 1) if call.site not in stepping]
    copies = [row for row in training.rows if row.is_stepped]
    if not copies or any(_is_read(facts, row.tensor, after) for row in copies):
        return
    found: list[tuple[ParameterRow, Call, ParameterRow, Call]] = []
    for copy in copies:
        for original, made in _originals(training, copy.tensor, first):
            used = next((call for call in after if _is_used(call, original.tensor)), None)
            if used is not None and not training.writes(original.tensor, since=made.index):
                found.append((copy, made, original, used))
    if found:
        copy, made, _, used = found[0]
        rows = list(dict.fromkeys(original for _, _, original, _ in found))
        yield stands_out(
            f"after the last step, lines use {listed(rows)}, which have the values from before the training: the steps "
            f"have trained copies, as `{copy.name}`, and no line uses these then",
            facts.label("leaf_made_here", made.site, f"{as_written(facts, made)} copies them", made.index),
            facts.label("needed_here", used.site, "the originals are used here", used.index),
        )


def _originals(training: MeasuredTraining, number: int, before: int) -> Iterator[tuple[ParameterRow, Call]]:
    """Yields the parameters that no optimizer steps and whose values a tensor was made of, with the calls that copied
    them."""
    facts = training.facts
    for _, made in islice(ancestry(facts, number, before), _MAX_CALLS):
        if op_name(made).lower() not in _COPYING:
            return
        for access in made.inputs:
            row = training.row(access.tensor)
            if row is not None and not row.is_stepped and row.tensor != number:
                yield row, made


def _is_read(facts: TraceIndex, number: int, calls: list[Call]) -> bool:
    storages = facts.storages_of(number)
    return any(facts.storage_of(access.tensor, call.index) in storages for call in calls for access in call.inputs)


def _is_used(call: Call, number: int) -> bool:
    is_read = any(access.tensor == number for access in call.inputs)
    return is_read and len(call.inputs) > 1 and op_name(call).lower() not in _COPYING
