"""Finds the cause of `checkpoint-recomputes-with-changed-state`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.contexts import changes_between_runs, recomputing_checkpoint
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.proof import proof_notes
from tensorlens.diagnostics.shared.silent_saved_tensor import backward_of
from tensorlens.diagnostics.shared.wording import finding, fix, named
from tensorlens.records.model import Backward, Call, Event, Region
from tensorlens.records.observations import Recomputed
from tensorlens.records.report import Diagnostic, Fix

CODE = "checkpoint-recomputes-with-changed-state"


@dataclass(frozen=True, slots=True)
class _Cause:
    """Something that the function reads and that had changed when backward ran it again."""

    site: int | None
    text: str


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    reported: set[int] = set()
    for recomputed in facts.trace.inspection.recomputed:
        backward, checkpoint = backward_of(facts, recomputed.index), recomputing_checkpoint(facts, recomputed.index)
        if backward is not None and not backward.failed and checkpoint is not None and checkpoint.site not in reported:
            reported.add(checkpoint.site)
            yield _report(facts, recomputed, checkpoint, backward)


def _report(facts: TraceIndex, recomputed: Recomputed, checkpoint: Region, backward: Backward) -> Diagnostic:
    causes = [*_values(facts, checkpoint, backward), *_tensors(facts, checkpoint, backward)]
    is_random = not causes and not recomputed.random_kept and _draws(facts, checkpoint)
    if is_random:
        text = "the second run draws other random numbers"
        causes = [_Cause(checkpoint.site, text)]
    return finding(
        CODE,
        "warning",
        "a checkpoint computed other values when backward ran it again",
        "backward runs the function of a checkpoint again, here with something changed, so the gradient is that of a "
        "different forward pass",
        [
            *(facts.label("state_changed_here", cause.site, cause.text) for cause in causes),
            facts.label("called_here", checkpoint.site, "first run, in the forward pass"),
            facts.label("needed_here", backward.site, "second run, in backward"),
        ],
        detail=(f"the first value that differs was {recomputed.before}, and {recomputed.after} in the second run",),
        notes=(*(() if causes else ("what changed in between was not seen",)), *proof_notes(facts, backward)),
        fixes=(_cure(facts, is_random, causes, checkpoint),),
        evidence={"before": recomputed.before, "after": recomputed.after, "position": recomputed.position},
    )


def _draws(facts: TraceIndex, checkpoint: Region) -> bool:
    """Returns whether the first run of the function drew random numbers."""
    end = next((e.index for e in facts.events if _ends(e, checkpoint)), checkpoint.index)
    return any(_RANDOM.search(call.op) for call in _between(facts, checkpoint.index, end))


_RANDOM = re.compile(r"drop|rand|normal|uniform|bernoulli|multinomial|poisson|exponential|gumbel|sample|rrelu")


def _values(facts: TraceIndex, checkpoint: Region, backward: Backward) -> Iterator[_Cause]:
    for change in changes_between_runs(facts, checkpoint, backward.index):
        text = f"`{change.name}` changed from {change.before} to {change.after}"
        yield _Cause(change.site, text)


def _tensors(facts: TraceIndex, checkpoint: Region, backward: Backward) -> Iterator[_Cause]:
    """Finds tensors that the function reads and that were changed in place between its two runs."""
    end = next((e.index for e in facts.events if _ends(e, checkpoint)), backward.started)
    first = {a.tensor: call for call in _between(facts, checkpoint.index, end) for a in call.inputs}
    counters = {facts.tensor(number).counter: number for number in first}
    reported: set[int] = set()
    for call in _between(facts, end, backward.started):
        for write in call.writes:
            number = counters.get(facts.tensor(write.tensor).counter)
            if number is not None and number not in reported:
                reported.add(number)
                name = named(facts, number, first[number].index)
                yield _Cause(call.site, f"{name}, which it reads, is overwritten here")


def _ends(event: Event, checkpoint: Region) -> bool:
    if not isinstance(event, Region) or event.name != "checkpoint" or event.entering:
        return False
    return event.index > checkpoint.index and event.site == checkpoint.site


def _between(facts: TraceIndex, after: int, before: int) -> list[Call]:
    return [call for call in facts.calls if after < call.index < before]


def _cure(facts: TraceIndex, is_random: bool, causes: list[_Cause], checkpoint: Region) -> Fix:
    place = facts.span(checkpoint.site)
    if is_random:
        text = "leave out `preserve_rng_state=False`, so that the second run draws the same random numbers"
        return fix(text, place=place)
    changed = next((cause.site for cause in causes if cause.site is not None), None)
    return fix(
        "change it only after backward, or pass it as an argument: a checkpoint keeps its arguments",
        place=place if changed is None else facts.span(changed),
    )
