"""Names lines that change the data of a run in place, so that the changes of all rounds add up."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.changed_in_place.changed_data import add_up, changed_data, is_used
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.report import StandingOut


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches:
        return
    for each in changed_data(training.training):
        call, made = each.calls[0], facts.creator(each.calls[0].writes[0].tensor)
        sites = dict.fromkeys(call.site for call in each.calls)
        changed = [facts.label("modified_here", site, "changed here, in place") for site in sites]
        view = None if made is None else facts.label("view_made_here", made.site, "a view of it", made.index)
        use = facts.first_use(each.data)
        data = None if use is None else facts.label("value_made_here", use.site, "made here", use.index)
        text = (
            f"{as_written(facts, call)} changes parts of {named(facts, each.data)} in place, each {{}} times on average"
        )
        rounds = f"{each.rounds / len(sites):.3g}"
        if not is_complete(facts.trace):
            text = f"in the last {facts.events[-1].index + 1 - training.training.complete_from:,} events, {text}"
        yield stands_out(f"{text.format(rounds)}: the changes add up in what the losses are computed from",
                         *changed, view, data)  # fmt: skip
    if is_complete(facts.trace):
        yield from _arrays(training)


def _arrays(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds lines that change tensors on the memory of an array, before tensors are made on the same parts again."""
    facts = training.facts
    hidden = {each.tensor for each in facts.trace.inspection.overwrites}
    for each in facts.trace.inspection.given_arrays:
        if each.number != training.measured.number:
            continue
        first = facts.creator(each.tensor)
        if first is None:
            continue
        made = [call for call in facts.calls if call.site == each.site and call.op == first.op]
        numbers = {access.tensor for call in made for access in call.outputs}
        storages = {facts.tensor(number).storage for number in numbers} - {None}
        changes = [call for call in facts.calls if call.writes and not call.within
                   and facts.storage_of(call.writes[0].tensor, call.index) in storages]  # fmt: skip
        if not changes or hidden & numbers or not add_up(facts, changes) or not is_used(training.training, changes):
            continue
        sites = dict.fromkeys(call.site for call in changes)
        code = as_written(facts, made[0])
        yield stands_out(
            f"{as_written(facts, changes[0])} changes the array that {code} shares memory with: {each.changed:,} of "
            f"{each.given:,} times, a part that is read again has other values than before",
            *[facts.label("modified_here", site, "changed here, in place") for site in sites],
            facts.label("shared_here", each.site, "the array and the tensor share their memory"),
        )
