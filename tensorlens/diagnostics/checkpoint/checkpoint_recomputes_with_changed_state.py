"""A checkpointed region was run again for backward after something that it reads had changed.

The region is not kept but computed once more, with the globals, parameters and settings of that moment. If they have
changed, the gradient belongs to another computation than the loss does. Only a difference in shapes or in the number of
tensors is noticed.

## Fails

```python
import torch
from torch.utils.checkpoint import checkpoint

factor = 2.0
weight = torch.tensor([1.0, 2.0], requires_grad=True)
result = checkpoint(lambda value: (value * factor).square(), weight, use_reentrant=False)  # called_here
factor = 0.0  # state_changed_here
result.sum().backward()  # needed_here
print(weight.grad)  # observed_here
```

## Fixed

```python
import torch
from torch.utils.checkpoint import checkpoint

factor = 2.0
weight = torch.tensor([1.0, 2.0], requires_grad=True)
result = checkpoint(lambda value, by: (value * by).square(), weight, factor, use_reentrant=False)
factor = 0.0
result.sum().backward()
print(weight.grad)
```
"""

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
    """Something that the function reads and that was another in its second run."""

    site: int | None
    text: str


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    told: set[int] = set()
    for found in facts.trace.inspection.recomputed:
        backward, checkpoint = backward_of(facts, found.index), recomputing_checkpoint(facts, found.index)
        if backward is not None and not backward.failed and checkpoint is not None and checkpoint.site not in told:
            told.add(checkpoint.site)
            yield _tell(facts, found, checkpoint, backward)


def _tell(facts: TraceIndex, found: Recomputed, checkpoint: Region, backward: Backward) -> Diagnostic:
    causes = [*_values(facts, checkpoint, backward), *_tensors(facts, checkpoint, found, backward)]
    if not causes and not found.random_kept:
        text = "the state of the random generators is not kept here: the second run draws other numbers"
        causes = [_Cause(checkpoint.site, text)]
    return finding(
        CODE,
        "warning",
        "a checkpoint computed other values in backward than in the forward pass",
        f"what it saved first as {found.before} was {found.after} when backward ran it, so the gradient is that of "
        "another forward pass",
        [
            *(facts.label("state_changed_here", cause.site, cause.text) for cause in causes),
            facts.label("called_here", checkpoint.site, "run here for the first time, without keeping what it saved"),
            facts.label("needed_here", backward.site, "backward runs it again"),
        ],
        notes=(*(() if causes else ("what changed in between was not seen",)), *proof_notes(facts, backward)),
        fixes=(_cure(found, causes),),
        evidence={"before": found.before, "after": found.after, "position": found.position},
    )


def _values(facts: TraceIndex, checkpoint: Region, backward: Backward) -> Iterator[_Cause]:
    for change in changes_between_runs(facts, checkpoint, backward.index):
        text = f"`{change.name}` was {change.before} in the forward pass and is {change.after} in backward"
        yield _Cause(change.site, text)


def _tensors(facts: TraceIndex, checkpoint: Region, found: Recomputed, backward: Backward) -> Iterator[_Cause]:
    """Tensors that both runs read and that were changed in place in between."""
    end = next((e.index for e in facts.events if _ends(e, checkpoint)), backward.started)
    first = {a.tensor: call for call in _between(facts, checkpoint.index, end) for a in call.inputs}
    counters = {facts.tensor(number).counter: number for number in first}
    told: set[int] = set()
    for call in _between(facts, end, backward.started):
        for write in call.writes:
            number = counters.get(facts.tensor(write.tensor).counter)
            if number is not None and number not in told:
                told.add(number)
                name = named(facts, number, first[number].index)
                yield _Cause(call.site, f"{name}, which it reads, is changed: version {write.before} -> {write.after}")


def _ends(event: Event, checkpoint: Region) -> bool:
    if not isinstance(event, Region) or event.name != "checkpoint" or event.entering:
        return False
    return event.index > checkpoint.index and event.site == checkpoint.site


def _between(facts: TraceIndex, after: int, before: int) -> list[Call]:
    return [call for call in facts.calls if after < call.index < before]


def _cure(found: Recomputed, causes: list[_Cause]) -> Fix:
    if not found.random_kept:
        return fix("leave out `preserve_rng_state=False`, so that the second run draws the same random numbers")
    return fix("change it only after backward, or pass it as an argument: a checkpoint keeps its arguments")
