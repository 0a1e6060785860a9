"""Names loads into parameters that nothing reads, and averages of a model that are read but never updated."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.module_loads import LOADS, module_loads
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import code_at
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_MAKING_ONE = "AveragedModel.__init__"


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    if training.training.is_hidden or facts.trace.inspection.switches or not is_complete(facts.trace):
        return
    if training.training.steps:
        yield from _loads(training)
        yield from _averages(training)


def _through(training: MeasuredTraining, function: str) -> list[Call]:
    sites = training.facts.trace.sites
    return [call for call in training.facts.calls if sites[call.site].through == function]


def _storages(training: MeasuredTraining, calls: list[Call]) -> set[int | None]:
    facts = training.facts
    return {facts.storage_of(write.tensor, call.index) for call in calls for write in call.writes}


def _reads(training: MeasuredTraining, storages: set[int | None], since: int = 0) -> Iterator[Call]:
    """Yields the calls that read memory of some storages, without those that only write there or that make a module."""
    facts = training.facts
    for call in facts.calls_between(since):
        written = {write.tensor for write in call.writes}
        made = facts.trace.sites[call.site].through.endswith(".__init__") or call.op == "nn.Parameter"
        read = (access.tensor for access in call.inputs if access.tensor not in written)
        if not made and any(facts.storage_of(number, call.index) in storages for number in read):
            yield call


def _loads(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Yields the sentences about loads into parameters that no call reads, before or after."""
    facts, by_site = training.facts, dict[int, list[Call]]()
    for call in module_loads(facts):
        by_site.setdefault(call.site, []).append(call)
    for site, calls in by_site.items():
        storages = _storages(training, calls)
        if storages and next(_reads(training, storages), None) is None and _runs_another(training, calls):
            count = len({write.tensor for call in calls for write in call.writes})
            yield stands_out(
                f"{code_at(facts, site, LOADS)} loads {count:,} tensor{'' if count == 1 else 's'} of a module that no "
                "call uses",
                facts.label("modified_here", site, "loaded here"),
            )


def _runs_another(training: MeasuredTraining, loads: list[Call]) -> bool:
    """Returns whether calls after loads use other parameters of the same shapes: a program may load only to show it."""
    facts, written = training.facts, {write.tensor for call in loads for write in call.writes}
    shapes = {facts.tensor(number).shape for number in written}
    others = [
        row.tensor for row in training.rows if row.tensor not in written and facts.tensor(row.tensor).shape in shapes
    ]
    storages: set[int | None] = {storage for number in others for storage in facts.storages_of(number)}
    return next(_reads(training, storages, loads[-1].index + 1), None) is not None


def _averages(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Yields the sentences about an `AveragedModel` that nothing changes, and that a call reads after a step."""
    facts, by_site = training.facts, dict[int, list[Call]]()
    for call in _through(training, _MAKING_ONE):
        if call.op == "nn.Parameter" and call.outputs:
            by_site.setdefault(call.site, []).append(call)
    for made in by_site.values():
        storages = {facts.storage_of(call.outputs[0].tensor, call.index) for call in made}
        if storages & _storages(training, list(facts.calls_between(made[0].index + 1))):
            continue
        later = next((step.index for step in training.training.steps if step.index > made[-1].index), None)
        read = None if later is None else next(_reads(training, storages, later), None)
        if read is not None:
            yield stands_out(
                f"{code_at(facts, made[0].site, _MAKING_ONE)} has the values that the parameters had there: nothing "
                "has changed it, as `update_parameters()` does",
                facts.label("leaf_made_here", made[0].site, "made here", made[0].index),
                facts.label("observed_here", read.site, "read here", read.index),
            )
