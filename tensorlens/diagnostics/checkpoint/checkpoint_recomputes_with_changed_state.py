"""Finds the cause of `checkpoint-recomputes-with-changed-state`."""

from __future__ import annotations

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
    causes = [*_values(facts, checkpoint, backward), *_tensors(facts, checkpoint, recomputed, backward)]
    if not causes and not recomputed.random_kept:
        text = "the state of the random generators is not kept here: the second run draws other numbers"
        causes = [_Cause(checkpoint.site, text)]
    return finding(
        CODE,
        "warning",
        "a checkpoint computed other values in backward than in the forward pass",
        f"what it saved first as {recomputed.before} was {recomputed.after} when backward ran it, so the gradient "
        "is that of a different forward pass",
        [
            *(facts.label("state_changed_here", cause.site, cause.text) for cause in causes),
            facts.label("called_here", checkpoint.site, "run here for the first time, without keeping what it saved"),
            facts.label("needed_here", backward.site, "backward runs it again"),
        ],
        notes=(*(() if causes else ("what changed in between was not seen",)), *proof_notes(facts, backward)),
        fixes=(_cure(recomputed, causes),),
        evidence={"before": recomputed.before, "after": recomputed.after, "position": recomputed.position},
    )


def _values(facts: TraceIndex, checkpoint: Region, backward: Backward) -> Iterator[_Cause]:
    for change in changes_between_runs(facts, checkpoint, backward.index):
        text = f"`{change.name}` was {change.before} in the forward pass and is {change.after} in backward"
        yield _Cause(change.site, text)


def _tensors(facts: TraceIndex, checkpoint: Region, recomputed: Recomputed, backward: Backward) -> Iterator[_Cause]:
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
                yield _Cause(call.site, f"{name}, which it reads, is changed: version {write.before} -> {write.after}")


def _ends(event: Event, checkpoint: Region) -> bool:
    if not isinstance(event, Region) or event.name != "checkpoint" or event.entering:
        return False
    return event.index > checkpoint.index and event.site == checkpoint.site


def _between(facts: TraceIndex, after: int, before: int) -> list[Call]:
    return [call for call in facts.calls if after < call.index < before]


def _cure(recomputed: Recomputed, causes: list[_Cause]) -> Fix:
    if not recomputed.random_kept:
        return fix("leave out `preserve_rng_state=False`, so that the second run draws the same random numbers")
    return fix("change it only after backward, or pass it as an argument: a checkpoint keeps its arguments")
